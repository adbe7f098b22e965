/* SPDX-License-Identifier: MIT */
/* mysql_lease.c - the strategy lease: sql/lease.sql by the steps of mysql_hold.c. */
#include "mysql_lease.h"

#include "mysql_hold.h"

const struct mysql_hold mysql_hold_lease = { DBLOCK_LEASE, "lease", MYSQL_LEASE_TAKE };

dblock_status mysql_lease_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_take(&mysql_hold_lease, connection, call, take, holder, answer, reterr);
}

dblock_status mysql_lease_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return mysql_hold_drop(
        &mysql_hold_lease, connection, call, subject, owner, keep_us, answer, reterr);
}

dblock_status mysql_lease_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_extend(
        &mysql_hold_lease, connection, call, subject, owner, ttl_us, answer, reterr);
}

dblock_status mysql_lease_look(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_look(&mysql_hold_lease, connection, call, subject, grant, answer, reterr);
}

dblock_status mysql_lease_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_draw(&mysql_hold_lease, connection, call, subject, owner, answer, reterr);
}

dblock_status mysql_lease_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return mysql_hold_take_many(
        &mysql_hold_lease, connection, call, terms, many, ret_place, holder, answer, reterr);
}

dblock_status mysql_lease_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return mysql_hold_drop_many(&mysql_hold_lease, connection, call, many, answer, reterr);
}
