/* SPDX-License-Identifier: MIT */
/* mysql_hold.h - grants that are rows, whatever their table: what lease and insert
 * share. */
#ifndef DBLOCK_MYSQL_HOLD_H
#define DBLOCK_MYSQL_HOLD_H

#include <dblock/sys/driver.h>

#include "mysql_statement.h"

/* One table of such grants. The statements follow `first` in the order of
 * MYSQL_LEASE_TAKE to MYSQL_LEASE_PURGE. */
struct mysql_hold {
    int strategy;
    const char *what; /* in messages */
    enum mysql_statement_id first;
};

extern const struct mysql_hold mysql_hold_lease;
extern const struct mysql_hold mysql_hold_insert;

/* The statement of the table that corresponds to one of lease's. */
enum mysql_statement_id mysql_hold_statement(
    const struct mysql_hold *hold, enum mysql_statement_id lease_statement);

/* Reads the name's row into the outputs, with no session of mine. 0 or a native code. */
unsigned int mysql_hold_read(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject);
/* A statement that ran a trigger may tell no insert id (on MySQL, it never does). This makes it of
 * the row of the name that the last statement was given: 0 if `owner` has not got it. Returns 0 or
 * a native code. */
unsigned int mysql_hold_find_token(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const unsigned char *owner, uint64_t *ret_insert_id);
/* The last statement found the row locked. 1: it is not any more, so try again; 0: it stays
 * so. */
int mysql_hold_is_lock_brief(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call);

/* mysql_hold.c */
dblock_status mysql_hold_take(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_hold_look(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr);
/* mysql_many.c */
dblock_status mysql_hold_take_many(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_hold_drop_many(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr);
/* mysql_change.c */
dblock_status mysql_hold_drop(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_hold_extend(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_hold_draw(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
/* Ends the grant of the name, of `token` only unless 0 (observe.end). */
dblock_status mysql_hold_end(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr);

#endif
