/* SPDX-License-Identifier: MIT */
/* sqlite_statement.h - running the named statements of sql/ on a connection, each
 * prepared on its first use, always reset afterwards.
 *
 *     status = sqlite_step_begin(connection, call, "release lease", name, reterr);
 *     if (status == DBLOCK_OK)
 *         status = sqlite_prepare(connection, STATEMENT_LEASE_DROP, &statement, reterr);
 *     if (status == DBLOCK_OK) {
 *         sqlite3_bind_...
 *         status = sqlite_change(connection, statement, &n_changed, reterr);
 *     }
 *     return sqlite_step_end(connection, status, answer);
 */
#ifndef DBLK_SQLITE_STATEMENT_H
#define DBLK_SQLITE_STATEMENT_H

#include "sqlite_connection.h"

/* Internal, between begin and end of a step: the write lock was not to be had, nothing was done.
 * sqlite_step_end() makes DBLOCK_ANSWER_AGAIN of it. */
#define SQLITE_STEP_AGAIN 1001

/* Opens the handle if there is none yet, and remembers what is being done for messages. */
dblock_status sqlite_step_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const char *action, const char *name,
    struct dblock_error *reterr);
/* Rolls back what is still open; fills answer->now_us; turns SQLITE_STEP_AGAIN into an answer. */
dblock_status sqlite_step_end(
    struct dblock_connection *connection, dblock_status status, struct dblock_answer *answer);

/* The statement, with the clock unread: it is read when the statement first asks. */
dblock_status sqlite_prepare(struct dblock_connection *connection, int id,
    sqlite3_stmt **ret_statement, struct dblock_error *reterr);
/* The next row: *ret_has_row 1. The last call (0, or a failure) has reset the statement. */
dblock_status sqlite_fetch(struct dblock_connection *connection, sqlite3_stmt *statement,
    int *ret_has_row, struct dblock_error *reterr);
/* Runs a statement that has no rows; `*ret_n_changed` may be NULL. */
dblock_status sqlite_change(struct dblock_connection *connection, sqlite3_stmt *statement,
    int *ret_n_changed, struct dblock_error *reterr);

/* BEGIN IMMEDIATE; one clock from here to the commit. Without an end a step rolls it back. */
dblock_status sqlite_begin(struct dblock_connection *connection, struct dblock_error *reterr);
dblock_status sqlite_commit(struct dblock_connection *connection, struct dblock_error *reterr);

void sqlite_bind_name(sqlite3_stmt *statement, int index, const struct dblock_subject *subject);
void sqlite_bind_id(sqlite3_stmt *statement, int index, const unsigned char *id); /* NULL: NULL */
/* A duration, held below what overflows when a clock is added. */
void sqlite_bind_us(sqlite3_stmt *statement, int index, uint64_t duration_us);

#endif
