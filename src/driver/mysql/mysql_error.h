/* SPDX-License-Identifier: MIT */
/* mysql_error.h - native errors, and what they mean for a step. */
#ifndef DBLOCK_MYSQL_ERROR_H
#define DBLOCK_MYSQL_ERROR_H

#include <dblock/sys/driver.h>

struct dblock_connection;

enum mysql_class { /* what an error of the database says about the statement */
    MYSQL_CLASS_REFUSED = 0, /* a failure: `status` of the table */
    MYSQL_CLASS_CONFLICT,    /* rolled back in favour of another: answer AGAIN */
    MYSQL_CLASS_LOCKED,      /* a row was locked: PINNED, BUSY or AGAIN, as the step knows */
    MYSQL_CLASS_TIMEOUT,     /* the limit of the statement came, or KILL QUERY: no effect */
    MYSQL_CLASS_GONE         /* the connection is of no use any more */
};

#define MYSQL_HINT_RANGE                                                                           \
    "a number in its row is out of range (tokens are below 2^53): set it right by hand"

/* Of a native code; 0 is none of these and must not be asked. */
enum mysql_class mysql_error_class(unsigned int code);

/* Whether an answer may have been lost: the statement may have taken effect. */
int mysql_error_is_lost_answer(unsigned int code);

/* The table's status for a code that came while connecting, or while a statement ran. */
dblock_status mysql_error_status(unsigned int code, int is_connecting, const char **ret_hint);

/* Fills `*reterr` with the last error of the connection and returns the status that it
 * means. The message is the attempt by printf rules, ": ", the database's words. */
dblock_status mysql_fail(struct dblock_connection *connection, struct dblock_error *reterr,
    const char *format, ...) DBLOCK_PRINTF_(3, 4);

#endif
