/* SPDX-License-Identifier: MIT */
/* sqlite_loan.h - a handle that the application owns, taken for the time of one step and given
 * back as it was. What stays on it until it is closed are the two functions of our SQL. */
#ifndef DBLK_SQLITE_LOAN_H
#define DBLK_SQLITE_LOAN_H

#include "sqlite_connection.h"

/* One for each handle, for all clients over it. Ends with the last of those and the handle. */
struct sqlite_loan;

/* The loan of a handle, which is of our copy of SQLite. To be given up once for each call. */
dblock_status sqlite_loan_open(
    sqlite3 *handle, struct sqlite_loan **ret_loan, struct dblock_error *reterr);
void sqlite_loan_close(struct sqlite_loan *loan); /* takes NULL */

/* Is it free: not closed, in no transaction, no statement in the middle of its rows? `name` may be
 * "", `reterr` NULL. */
dblock_status sqlite_loan_check(const struct sqlite_loan *loan, const char *action,
    const char *name, struct dblock_error *reterr);

/* For the step that begins on `connection`: OK, and its handle is the loan's. */
dblock_status sqlite_loan_take(struct dblock_connection *connection, struct dblock_error *reterr);
int sqlite_loan_is_taken(const struct dblock_connection *connection);
/* Everything as it was. */
void sqlite_loan_give_back(struct dblock_connection *connection);

/* Waits a moment for somebody's write lock, where no handler of ours does. 0: long enough. */
int sqlite_loan_waits(struct dblock_connection *connection, int code);

#endif
