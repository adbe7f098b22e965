/* SPDX-License-Identifier: MIT */
/* pgsql_loan.h - a connection that the application owns, taken for the time of one message and
 * given back as it was. What is sent there is sent as behind a pooler: unnamed statements, in a
 * transaction of their own that brings its settings along and ends with the message. */
#ifndef DBLK_PGSQL_LOAN_H
#define DBLK_PGSQL_LOAN_H

#include "pgsql_connection.h"

/* Is it free: alive, blocking, in no pipeline, nothing unread, in no transaction? E_ARGUMENT,
 * E_CONNECTION. `name` NULL or "": of no lock. `reterr` may be NULL. */
dblock_status pgsql_loan_check(
    PGconn *pg, const char *action, const char *name, struct dblock_error *reterr);

/* For a message that begins: 1, or it is not to be had now. */
int pgsql_loan_take(struct dblock_connection *connection);
/* Why it was not. */
dblock_status pgsql_loan_refuse(struct dblock_connection *connection, const char *action,
    const char *name, struct dblock_error *reterr);
/* After the message, of which nothing is under way any more, or the connection is lost. */
void pgsql_loan_give_back(struct dblock_connection *connection);

/* As the driver's table has them: those of a connection of our own (pgsql_connection.h), and what is
 * done in their place with the application's. */
dblock_status pgsql_loan_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_answer *answer,
    struct dblock_error *reterr);
void pgsql_loan_close(struct dblock_connection *connection, int how);
int pgsql_loan_fd(const struct dblock_connection *connection);

#endif
