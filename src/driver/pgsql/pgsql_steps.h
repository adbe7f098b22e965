/* SPDX-License-Identifier: MIT */
/* pgsql_steps.h - the steps that pgsql_driver.c puts into its table, and what
 * they share; their contracts are in dblock/sys/driver.h. */
#ifndef DBLK_PGSQL_STEPS_H
#define DBLK_PGSQL_STEPS_H

#include "pgsql_connection.h"

dblock_status pgsql_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr);

dblock_status pgsql_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_lease_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_lease_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_lease_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_lease_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_lease_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_insert_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_insert_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_insert_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_insert_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_row_seed(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_row_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_row_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_row_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_row_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_observe_purge(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr);

/* Lease and insert: the same statements on two tables. */
struct pgsql_hold {
    int32_t strategy;
    enum pgsql_statement gate, clear, take, drop, extend, look, end, draw;
    enum pgsql_statement many_gate, many_take, many_keep, many_drop;
    const char *take_action, *drop_action, *extend_action, *look_action, *end_action,
        *draw_action; /* "take lease" */
};

extern const struct pgsql_hold pgsql_hold_lease;
extern const struct pgsql_hold pgsql_hold_insert;

dblock_status pgsql_hold_take(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_hold_drop(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_hold_extend(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_hold_look(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_hold_end(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status pgsql_hold_draw(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);

/* A grant that was in force, and was skipped: PINNED if somebody stands on its row, else `otherwise`. */
dblock_status pgsql_hold_judge_skipped(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, int32_t otherwise,
    struct dblock_answer *answer, struct dblock_error *reterr);

/* Several names (pgsql_many.c). */
dblock_status pgsql_hold_take_many(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_hold_drop_many(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_lease_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_lease_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* The last token of a row or advisory lock. End: YES, it is not the newest any more; PINNED, a
 * guarded transaction stands on it. */
dblock_status pgsql_token_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_token_draw(struct dblock_connection *connection,
    const struct dblock_call *call, int32_t strategy, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);

/* Who holds a row or advisory lock, told from STATEMENT_ROW_HOLDER and the like. */
dblock_status pgsql_row_holder(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_advisory_holder(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);

#endif
