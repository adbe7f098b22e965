/* SPDX-License-Identifier: MIT */
/* mysql_insert.c - the strategy insert: sql/insert.sql by the steps of mysql_hold.c. */
#include "mysql_insert.h"

#include "mysql_hold.h"

const struct mysql_hold mysql_hold_insert = { DBLOCK_INSERT, "insert", MYSQL_INSERT_TAKE };

dblock_status mysql_insert_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_take(&mysql_hold_insert, connection, call, take, holder, answer, reterr);
}

dblock_status mysql_insert_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return mysql_hold_drop(
        &mysql_hold_insert, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status mysql_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_extend(
        &mysql_hold_insert, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status mysql_insert_look(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_look(&mysql_hold_insert, connection, call, subject, grant, answer, reterr);
}

dblock_status mysql_insert_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_draw(&mysql_hold_insert, connection, call, subject, owner, answer, reterr);
}

dblock_status mysql_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return mysql_hold_take_many(
        &mysql_hold_insert, connection, call, terms, many, ret_place, holder, answer, reterr);
}

dblock_status mysql_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_drop_many(&mysql_hold_insert, connection, call, many, answer, reterr);
}
