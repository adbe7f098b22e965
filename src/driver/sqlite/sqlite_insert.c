/* SPDX-License-Identifier: MIT */
/* sqlite_insert.c - the strategy insert: sqlite_hold.c over the statements of
 * sql/insert.sql. */
#include "sqlite_hold.h"
#include "sqlite_steps.h"

const struct sqlite_hold sqlite_insert_hold = {
    .strategy = DBLOCK_INSERT,
    .take = STATEMENT_INSERT_TAKE,
    .drop = STATEMENT_INSERT_DROP,
    .extend = STATEMENT_INSERT_EXTEND,
    .look = STATEMENT_INSERT_LOOK,
    .draw = STATEMENT_INSERT_DRAW,
    .list = STATEMENT_INSERT_LIST,
    .end = STATEMENT_INSERT_END,
    .take_action = "take insert",
    .drop_action = "release insert",
    .extend_action = "extend insert",
    .look_action = "look at insert",
    .draw_action = "draw a token for insert",
    .end_action = "break insert",
};

dblock_status sqlite_insert_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_take(&sqlite_insert_hold, connection, call, take, holder, answer, reterr);
}

dblock_status sqlite_insert_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_drop(
        &sqlite_insert_hold, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status sqlite_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_extend(
        &sqlite_insert_hold, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status sqlite_insert_look(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_look(&sqlite_insert_hold, connection, call, subject, grant, answer, reterr);
}

dblock_status sqlite_insert_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_draw(&sqlite_insert_hold, connection, call, subject, owner, answer, reterr);
}

dblock_status sqlite_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_hold_take_many(&sqlite_insert_hold, connection, call, terms, many, ret_place, holder,
        answer, reterr);
}

dblock_status sqlite_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_hold_drop_many(&sqlite_insert_hold, connection, call, many, answer, reterr);
}
