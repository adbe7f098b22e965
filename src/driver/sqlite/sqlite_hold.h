/* SPDX-License-Identifier: MIT */
/* sqlite_hold.h - what lease and insert have in common: all but the names of
 * their statements. */
#ifndef DBLK_SQLITE_HOLD_H
#define DBLK_SQLITE_HOLD_H

#include "sqlite_connection.h"

struct sqlite_hold {
    int strategy;
    int take, drop, extend, look, draw, list, end; /* STATEMENT_* */
    const char *take_action, *drop_action, *extend_action, *look_action, *draw_action,
        *end_action;
};

extern const struct sqlite_hold sqlite_lease_hold;
extern const struct sqlite_hold sqlite_insert_hold;

dblock_status sqlite_hold_take(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_hold_drop(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_hold_extend(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_hold_look(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_hold_draw(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_hold_end(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr);

/* Many names (sqlite_many.c). */
dblock_status sqlite_hold_take_many(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_hold_drop_many(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr);

/* Parts of a take, between the begin and the end of a step. */

/* What a look found, as far as a take needs it. */
struct sqlite_finding {
    int judgement; /* GRANT_*; FREE also without a row */
    int64_t end_us;
    unsigned char session[DBLOCK_ID_SIZE]; /* of GRANT_EXPIRED */
};

/* `grant` NULL: not wanted; filled if it is held. */
dblock_status sqlite_hold_look_at(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_subject *subject,
    struct sqlite_finding *finding, struct dblock_grant *grant, struct dblock_error *reterr);
/* One attempt. `*ret_outcome` is YES, or why not as far as the statement itself can tell: SESSION,
 * LATE, else AGAIN (held, or an expired session stands in the way). */
dblock_status sqlite_hold_attempt(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_take *take, int32_t *ret_outcome,
    struct dblock_answer *answer, struct dblock_error *reterr);
/* Ends a session unless it was renewed meanwhile. */
dblock_status sqlite_hold_end_expired(struct dblock_connection *connection,
    const unsigned char *session, struct dblock_error *reterr);

#endif
