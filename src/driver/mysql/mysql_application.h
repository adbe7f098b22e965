/* SPDX-License-Identifier: MIT */
/* mysql_application.h - statements on a connection that the application owns. Nothing of it is
 * kept, and none of its settings is changed. */
#ifndef DBLOCK_MYSQL_APPLICATION_H
#define DBLOCK_MYSQL_APPLICATION_H

#include <dblock/sys/driver.h>

#include <mysql.h>

#include "mysql_text.h"

/* What is done there, for whom. */
struct mysql_application {
    MYSQL *mysql;
    const char *database; /* that of dblock's tables; NULL: the connection's default */
    const char *action;   /* "guard" */
    const char *name;     /* of the lock */
    struct dblock_error *reterr;
};

/* Is it of our client library (`client_text`), connected, without an answer that nobody has read,
 * and in a transaction? DBLOCK_OK, E_ARGUMENT, E_DRIVER. */
dblock_status mysql_application_check(
    const struct mysql_application *application, const char *client_text);

/* Without autocommit there is always one, which the next statement begins. */
int mysql_application_is_in_transaction(const MYSQL *mysql);

/* One statement, as text with `clause` behind it. 0 or the native code. `*ret_rows` NULL: it has
 * none. */
unsigned int mysql_application_run(const struct mysql_application *application, const char *text,
    const struct mysql_literal *literals, size_t n_literals, const char *clause,
    MYSQL_RES **ret_rows);

/* What a code of it means that is no waiting: ROLLED_BACK, STALE_SNAPSHOT, or a failure. */
dblock_status mysql_application_fail(
    const struct mysql_application *application, unsigned int code);

#endif
