/* SPDX-License-Identifier: MIT */
/* mysql_loan.h - a connection that the application owns, taken for the time of one step and given
 * back as it was. */
#ifndef DBLOCK_MYSQL_LOAN_H
#define DBLOCK_MYSQL_LOAN_H

#include <dblock/sys/driver.h>

#include <mysql.h>

#include "mysql_statement.h"
#include "mysql_wire.h"

enum { MYSQL_LOAN_SETTINGS_MAX = 12 };

/* Of the step that runs. */
struct mysql_loan {
    int is_taken;
    MYSQL_RES *rows;     /* the settings as they were, a column each, and of these */
    MYSQL_ROW settings;  /* the only row */
    int has_autocommit;  /* it was on */
    int is_frozen;       /* its clock was set, and stood still */
    int is_elsewhere;    /* its default database was another */
    mysql_flag reconnect;
#if MYSQL_IS_MARIADB_CLIENT
    PVIO_METHODS *methods; /* its wire's; NULL: as they are */
#endif
};

/* Is it free: connected, everything read, in no transaction? E_ARGUMENT, E_CONNECTION. `name`
 * NULL or "": of no lock. `reterr` may be NULL. */
dblock_status mysql_loan_check(
    MYSQL *mysql, const char *action, const char *name, struct dblock_error *reterr);

/* The first line of a step, and the last. A connection of our own: nothing is done. */
dblock_status mysql_loan_take(struct dblock_connection *connection, const struct dblock_call *call,
    const char *action, const char *name, struct dblock_error *reterr);
/* Returns `status`. */
dblock_status mysql_loan_end(struct dblock_connection *connection, dblock_status status);

/* Instead of connecting. */
dblock_status mysql_loan_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_answer *answer,
    struct dblock_error *reterr);

#endif
