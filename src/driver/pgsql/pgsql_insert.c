/* SPDX-License-Identifier: MIT */
/* pgsql_insert.c - strategy insert: pgsql_hold.c over its table. The statements, and why
 * they are safe, are in sql/insert.sql. */
#include "pgsql_steps.h"

const struct pgsql_hold pgsql_hold_insert = {
    .strategy = DBLOCK_INSERT,
    .gate = STATEMENT_INSERT_GATE,
    .clear = STATEMENT_INSERT_CLEAR,
    .take = STATEMENT_INSERT_TAKE,
    .drop = STATEMENT_INSERT_DROP,
    .extend = STATEMENT_INSERT_EXTEND,
    .look = STATEMENT_INSERT_LOOK,
    .end = STATEMENT_INSERT_END,
    .draw = STATEMENT_INSERT_DRAW,
    .many_gate = STATEMENT_INSERT_MANY_GATE,
    .many_take = STATEMENT_INSERT_MANY_TAKE,
    .many_keep = STATEMENT_INSERT_MANY_KEEP,
    .many_drop = STATEMENT_INSERT_MANY_DROP,
    .take_action = "take insert",
    .drop_action = "release insert",
    .extend_action = "extend insert",
    .look_action = "look at insert",
    .end_action = "break insert",
    .draw_action = "draw a token of insert",
};

dblock_status pgsql_insert_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_take(&pgsql_hold_insert, connection, call, take, holder, answer, reterr);
}

dblock_status pgsql_insert_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_drop(
        &pgsql_hold_insert, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status pgsql_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_extend(
        &pgsql_hold_insert, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status pgsql_insert_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_look(&pgsql_hold_insert, connection, call, subject, grant, answer, reterr);
}

dblock_status pgsql_insert_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_draw(&pgsql_hold_insert, connection, call, subject, owner, answer, reterr);
}

dblock_status pgsql_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_hold_take_many(&pgsql_hold_insert, connection, call, terms, many, ret_place, holder,
        answer, reterr);
}

dblock_status pgsql_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return pgsql_hold_drop_many(&pgsql_hold_insert, connection, call, many, answer, reterr);
}
