/* SPDX-License-Identifier: MIT */
/* mysql_waiter.c - see mysql_waiter.h. */
#include "mysql_waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_wait.h"

static void *run_waiter(void *argument)
{
    struct mysql_waiter *waiter = argument;
    uint64_t end_ms = test_now_ms() + MYSQL_WAIT_MS;

    do
        waiter->outcome = waiter->owner != NULL
            ? mysql_rest(
                  &waiter->fixture, waiter->connection, waiter->owner, MYSQL_WAIT_MS * 1000)
            : mysql_stand(&waiter->fixture, waiter->connection, waiter->strategy, "x",
                  MYSQL_WAIT_MS * 1000);
    while (waiter->is_napping && waiter->outcome == DBLOCK_ANSWER_YES && test_now_ms() < end_ms);
    atomic_store(&waiter->ended_ms, test_now_ms());
    return NULL;
}

static int is_waiting(void *context)
{
    const struct mysql_waiter *waiter = context;

    return mysql_fixture_number(waiter->plain,
               "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %lu AND state IN"
               " ('User lock', 'User sleep')",
               mysql_fixture_server_id(waiter->connection)) == 1;
}

int mysql_waiter_start(struct mysql_waiter *waiter, const struct mysql_fixture *fixture,
    MYSQL *plain, struct dblock_connection *connection, int strategy, const char *owner,
    int is_napping)
{
    memset(waiter, 0, sizeof *waiter);
    waiter->fixture = *fixture;
    waiter->plain = plain;
    waiter->connection = connection;
    waiter->strategy = strategy;
    waiter->owner = owner;
    waiter->is_napping = is_napping;
    return pthread_create(&waiter->thread, NULL, run_waiter, waiter) == 0 &&
        test_until(is_waiting, waiter, 10000);
}

int mysql_waiter_end(struct mysql_waiter *waiter)
{
    (void)pthread_join(waiter->thread, NULL);
    return waiter->outcome;
}

int mysql_gate(
    MYSQL *plain, const char *function, int strategy, const char *name, const char *more)
{
    return (int)mysql_fixture_number(plain,
        "SELECT %s(CONCAT('dblock:', LEFT(SHA2(DATABASE(), 256), 12), ':%s',"
        " LEFT(SHA2('%s', 256), 32))%s)",
        function, strategy == DBLOCK_INSERT ? "i" : "l", name, more);
}

int mysql_bell_is_free(MYSQL *plain, const char *owner)
{
    char text[40];

    dblock_id_text(mysql_id(owner), text);
    return (int)mysql_fixture_number(plain,
        "SELECT IS_FREE_LOCK(CONCAT('dblock:', LEFT(SHA2(DATABASE(), 256), 12), ':b%s'))", text);
}

int64_t mysql_status(MYSQL *plain, const char *name)
{
    int64_t value = -1;
    MYSQL_RES *rows;
    MYSQL_ROW row;
    char sql[64];

    (void)snprintf(sql, sizeof sql, "SHOW GLOBAL STATUS LIKE '%s'", name);
    if (mysql_query(plain, sql) != 0 || (rows = mysql_store_result(plain)) == NULL)
        return -1;
    row = mysql_fetch_row(rows);
    if (row != NULL)
        value = strtoll(row[1], NULL, 10);
    mysql_free_result(rows);
    return value;
}
