/* SPDX-License-Identifier: MIT */
/* sqlite_steps.h - the steps that sqlite_driver.c puts into its table; their
 * contracts are in dblock/sys/driver.h. */
#ifndef DBLK_SQLITE_STEPS_H
#define DBLK_SQLITE_STEPS_H

#include "sqlite_connection.h"

dblock_status sqlite_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr);

dblock_status sqlite_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status sqlite_lease_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_lease_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_lease_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_lease_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_lease_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status sqlite_insert_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_insert_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_insert_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_insert_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status sqlite_stand(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, uint64_t wait_us, int is_fair,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
void sqlite_leave(struct dblock_connection *connection);

dblock_status sqlite_row_seed(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_row_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_row_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_row_prove(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_row_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sqlite_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status sqlite_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_observe_purge(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status sqlite_lease_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_lease_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);

dblock_status sqlite_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);

#endif
