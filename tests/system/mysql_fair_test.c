/* SPDX-License-Identifier: MIT */
/* mysql_fair_test.c - a wait in order of arrival is one statement of the server, as the next one
 * would begin at the end of the queue. Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include <mysql.h>

#include "test_wait.h"

#define SECOND UINT64_C(1000000)
#define LONG_WAIT (20 * 3600 * SECOND)
#define YES DBLOCK_ANSWER_YES

enum { FIRST, SECOND_ONE, N_CONNECTIONS };

struct waiter {
    struct mysql_fixture fixture;
    struct dblock_connection *connection;
    int strategy;
};

static struct mysql_fixture fixture;
static MYSQL *plain;

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    return plain != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mysql_close(plain);
    mysql_fixture_close(&fixture);
    return 0;
}

static void *wait_for_long(void *argument)
{
    struct waiter *waiter = argument;
    struct mysql_fixture *f = &waiter->fixture;
    struct dblock_take take = mysql_take_of("long", "second", NULL, 0);

    take.wait_us = LONG_WAIT;
    take.is_fair = 1;
    if (waiter->strategy == DBLOCK_LEASE) /* not by the short ways, which end within 20 s */
        f->status = f->driver->line.stand(waiter->connection, &f->call, DBLOCK_LEASE,
            &take.subject, LONG_WAIT, 1, &f->answer, &f->error);
    else
        f->status = (waiter->strategy == DBLOCK_ROW ? f->driver->row : f->driver->advisory)
                        .take(waiter->connection, &f->call, &take, NULL, &f->answer, &f->error);
    mysql_thread_end();
    return NULL;
}

/* In ms, of the statement that stands in the server's queue; 0: none does. */
static int64_t read_limit(const struct waiter *waiter)
{
    return mysql_fixture_number(plain,
        "SELECT IFNULL(MAX(CAST(SUBSTRING_INDEX(info, 'MAX_EXECUTION_TIME(', -1) AS UNSIGNED)), 0)"
        " FROM information_schema.processlist"
        " WHERE id = %lu AND info LIKE '%%MAX_EXECUTION_TIME(%%'",
        mysql_fixture_server_id(waiter->connection));
}

static int is_waiting(void *context)
{
    return read_limit(context) > 0;
}

static void take_first(struct dblock_connection *connection, int strategy)
{
    struct dblock_take take = mysql_take_of("long", "first", NULL, 0);

    if (strategy == DBLOCK_LEASE) {
        assert_int_equal(YES, mysql_stand(&fixture, connection, strategy, "long", SECOND));
        return;
    }
    if (strategy == DBLOCK_ROW)
        assert_int_equal(YES, mysql_seed(&fixture, connection, "long"));
    assert_int_equal(YES, mysql_take_as(&fixture, connection, strategy, &take));
}

static void check(int role, int strategy)
{
    struct dblock_connection *connections[N_CONNECTIONS];
    struct waiter waiter;
    pthread_t id;
    int ends[2];
    int i;

    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    for (i = 0; i < N_CONNECTIONS; ++i)
        connections[i] = mysql_fixture_connect(&fixture, role);
    take_first(connections[FIRST], strategy);
    assert_int_equal(0, pipe(ends));
    waiter.fixture = fixture;
    mysql_fixture_limit(&waiter.fixture, 2 * LONG_WAIT, ends[0]);
    waiter.connection = connections[SECOND_ONE];
    waiter.strategy = strategy;
    assert_int_equal(0, pthread_create(&id, NULL, wait_for_long, &waiter));
    assert_true(test_until(is_waiting, &waiter, 10000));
    assert_in_range(read_limit(&waiter), LONG_WAIT / 1000 - 60000, LONG_WAIT / 1000);
    assert_int_equal(1, write(ends[1], "x", 1));
    (void)pthread_join(id, NULL);
    assert_int_equal(DBLOCK_CANCELLED, waiter.fixture.status);
    for (i = 0; i < N_CONNECTIONS; ++i)
        fixture.driver->connection.close(connections[i], DBLOCK_CLOSE_POLITE);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void row__waits_in_one_statement(void **state)
{
    (void)state;
    check(DBLOCK_ROLE_ROW, DBLOCK_ROW);
}

static void advisory__waits_in_one_statement(void **state)
{
    (void)state;
    check(DBLOCK_ROLE_ADVISORY, DBLOCK_ADVISORY);
}

static void line__is_stood_in_by_one_statement(void **state)
{
    (void)state;
    check(DBLOCK_ROLE_LINE, DBLOCK_LEASE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row__waits_in_one_statement),
        cmocka_unit_test(advisory__waits_in_one_statement),
        cmocka_unit_test(line__is_stood_in_by_one_statement),
    };

    return cmocka_run_group_tests_name("mysql_fair", tests, set_up, tear_down);
}
