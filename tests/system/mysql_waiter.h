/* SPDX-License-Identifier: MIT */
/* mysql_waiter.h - for the tests of the lines on MySQL: a step that waits, in a thread of its own,
 * and what can be seen of the lines from the outside. */
#ifndef DBLOCK_TEST_MYSQL_WAITER_H
#define DBLOCK_TEST_MYSQL_WAITER_H

#include "mysql_fixture.h"

#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MYSQL_WAIT_MS = 15000 };

struct mysql_waiter {
    struct mysql_fixture fixture; /* a copy: the steps write into it */
    MYSQL *plain;
    struct dblock_connection *connection;
    pthread_t thread;
    int strategy;
    const char *owner;     /* rests for his bell; NULL: stands in line for "x" */
    atomic_int is_napping; /* and rests again until something else happens, as a nap is short */
    int outcome;
    atomic_uint_fast64_t ended_ms; /* 0: not yet */
};

/* 1: it waits on the server. 0: that was not seen in time. */
int mysql_waiter_start(struct mysql_waiter *waiter, const struct mysql_fixture *fixture,
    MYSQL *plain, struct dblock_connection *connection, int strategy, const char *owner,
    int is_napping);
/* The outcome of the last step. */
int mysql_waiter_end(struct mysql_waiter *waiter);

/* What the function, as IS_FREE_LOCK, says of the gate of a name; `more`: further arguments. Who gets
 * it so is the first in line, and may idle. */
int mysql_gate(
    MYSQL *plain, const char *function, int strategy, const char *name, const char *more);
int mysql_bell_is_free(MYSQL *plain, const char *owner);
/* Of the whole server; -1: there is none of that name. */
int64_t mysql_status(MYSQL *plain, const char *name);

#endif
