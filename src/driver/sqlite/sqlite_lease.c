/* SPDX-License-Identifier: MIT */
/* sqlite_lease.c - the strategy lease: sqlite_hold.c over the statements of
 * sql/lease.sql. */
#include "sqlite_hold.h"
#include "sqlite_steps.h"

const struct sqlite_hold sqlite_lease_hold = {
    .strategy = DBLOCK_LEASE,
    .take = STATEMENT_LEASE_TAKE,
    .drop = STATEMENT_LEASE_DROP,
    .extend = STATEMENT_LEASE_EXTEND,
    .look = STATEMENT_LEASE_LOOK,
    .draw = STATEMENT_LEASE_DRAW,
    .list = STATEMENT_LEASE_LIST,
    .end = STATEMENT_LEASE_END,
    .take_action = "take lease",
    .drop_action = "release lease",
    .extend_action = "extend lease",
    .look_action = "look at lease",
    .draw_action = "draw a token for lease",
    .end_action = "break lease",
};

dblock_status sqlite_lease_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_take(&sqlite_lease_hold, connection, call, take, holder, answer, reterr);
}

dblock_status sqlite_lease_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_drop(
        &sqlite_lease_hold, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status sqlite_lease_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_extend(
        &sqlite_lease_hold, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status sqlite_lease_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_look(&sqlite_lease_hold, connection, call, subject, grant, answer, reterr);
}

dblock_status sqlite_lease_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_draw(&sqlite_lease_hold, connection, call, subject, owner, answer, reterr);
}

dblock_status sqlite_lease_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_take_many(&sqlite_lease_hold, connection, call, terms, many, ret_place, holder,
        answer, reterr);
}

dblock_status sqlite_lease_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_drop_many(&sqlite_lease_hold, connection, call, many, answer, reterr);
}
