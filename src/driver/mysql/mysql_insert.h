/* SPDX-License-Identifier: MIT */
/* mysql_insert.h - the steps of the strategy insert. */
#ifndef DBLOCK_MYSQL_INSERT_H
#define DBLOCK_MYSQL_INSERT_H

#include <dblock/sys/driver.h>

dblock_status mysql_insert_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_insert_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_insert_extend(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_insert_look(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_insert_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr);

dblock_status mysql_insert_take_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);

dblock_status mysql_insert_drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);

#endif
