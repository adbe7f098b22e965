/* SPDX-License-Identifier: MIT */
/* pgsql_lease.c - strategy lease: pgsql_hold.c over its table. The statements, and why
 * they are safe, are in sql/lease.sql. */
#include "pgsql_steps.h"

const struct pgsql_hold pgsql_hold_lease = {
    .strategy = DBLOCK_LEASE,
    .gate = STATEMENT_LEASE_GATE,
    .clear = STATEMENT_LEASE_CLEAR,
    .take = STATEMENT_LEASE_TAKE,
    .drop = STATEMENT_LEASE_DROP,
    .extend = STATEMENT_LEASE_EXTEND,
    .look = STATEMENT_LEASE_LOOK,
    .end = STATEMENT_LEASE_END,
    .draw = STATEMENT_LEASE_DRAW,
    .many_gate = STATEMENT_LEASE_MANY_GATE,
    .many_take = STATEMENT_LEASE_MANY_TAKE,
    .many_keep = STATEMENT_LEASE_MANY_KEEP,
    .many_drop = STATEMENT_LEASE_MANY_DROP,
    .take_action = "take lease",
    .drop_action = "release lease",
    .extend_action = "extend lease",
    .look_action = "look at lease",
    .end_action = "break lease",
    .draw_action = "draw a token of lease",
};

dblock_status pgsql_lease_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_take(&pgsql_hold_lease, connection, call, take, holder, answer, reterr);
}

dblock_status pgsql_lease_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_drop(
        &pgsql_hold_lease, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status pgsql_lease_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_extend(
        &pgsql_hold_lease, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status pgsql_lease_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_look(&pgsql_hold_lease, connection, call, subject, grant, answer, reterr);
}

dblock_status pgsql_lease_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_draw(&pgsql_hold_lease, connection, call, subject, owner, answer, reterr);
}

dblock_status pgsql_lease_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_take_many(&pgsql_hold_lease, connection, call, terms, many, ret_place, holder,
        answer, reterr);
}

dblock_status pgsql_lease_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_drop_many(&pgsql_hold_lease, connection, call, many, answer, reterr);
}
