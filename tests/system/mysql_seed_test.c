/* SPDX-License-Identifier: MIT */
/* mysql_seed_test.c - making the row of a name, over the connection that is going to lock it or over
 * another one: nobody is waited for longer than it takes to know that the row is there. And no
 * transaction of that, nor of a break, stays open in a connection that lives on. Alone on its
 * server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>
#include <pthread.h>

#include "test_clock.h"
#include "test_wait.h"

#define SECOND 1000000u
#define YES DBLOCK_ANSWER_YES

enum { SHORT, ROW, N_CONNECTIONS };

static struct mysql_fixture fixture;
static struct dblock_connection *connections[N_CONNECTIONS];
static MYSQL *plain;

static int set_up(void **state)
{
    (void)state;
    test_clock_begin();
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    connections[SHORT] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    connections[ROW] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ROW);
    return plain != NULL && connections[SHORT] != NULL && connections[ROW] != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < N_CONNECTIONS; ++i)
        fixture.driver->connection.close(connections[i], DBLOCK_CLOSE_POLITE);
    mysql_close(plain);
    mysql_fixture_close(&fixture);
    test_clock_end();
    return 0;
}

static int64_t read_limit(int i)
{
    return mysql_fixture_number_on(connections[i], "SELECT @@innodb_lock_wait_timeout");
}

/* Somebody makes the row and goes on in that transaction: its name is taken, so it is there. */
static void row_that_is_being_made__is_there(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < N_CONNECTIONS; ++i) {
        uint64_t begun_ms = test_now_ms();
        int64_t limit = read_limit(i);

        assert_int_equal(0, mysql_fixture_run(plain, "START TRANSACTION"));
        assert_int_equal(0, mysql_fixture_run(plain, "INSERT INTO dblock_row VALUES ('race', 1)"));
        assert_int_equal(YES, mysql_seed(&fixture, connections[i], "race"));
        assert_true(test_now_ms() - begun_ms < 10000); /* of the 20 s that the call has */
        assert_int_equal(0, mysql_fixture_run(plain, "ROLLBACK"));
        assert_false(mysql_fixture_is_in_transaction(connections[i]));
        assert_int_equal(limit, read_limit(i));
    }
}

/* Who waits in line would leave it when that limit is over, and stand at its end again: a wait that
 * is measured does not tell. */
static void row_that_was_made__leaves_the_limit_of_a_wait(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < N_CONNECTIONS; ++i) {
        const char *name = i == ROW ? "row" : "short";
        int64_t limit = read_limit(i);

        assert_true(limit > 0);
        assert_int_equal(YES, mysql_seed(&fixture, connections[i], name)); /* a new one */
        assert_int_equal(limit, read_limit(i));
        assert_int_equal(YES, mysql_seed(&fixture, connections[i], name));
        assert_int_equal(limit, read_limit(i));
    }
}

struct late {
    pthread_t thread;
    const char *verb;
    int is_break; /* of a lease, over the connection for short statements; else a seed */
    int outcome;
};

static void *run_late(void *context)
{
    struct late *late = context;

    if (!late->is_break) {
        late->outcome = mysql_seed(&fixture, connections[ROW], "late");
        return NULL;
    }
    late->outcome = mysql_break(&fixture, connections[SHORT], DBLOCK_LEASE, "late", 0);
    return NULL;
}

static int is_running(void *context)
{
    const struct late *late = context;

    return mysql_fixture_number(plain,
               "SELECT COUNT(*) FROM information_schema.processlist"
               " WHERE id = %lu AND command = 'Execute' AND info LIKE '%%%s%%'",
               mysql_fixture_server_id(connections[late->is_break ? SHORT : ROW]), late->verb) > 0;
}

/* The machine sleeps while the statement waits for somebody's row, which is free again then. */
static void run_through_sleep(struct late *late, const char *theirs)
{
    assert_int_equal(0, mysql_fixture_run(plain, "START TRANSACTION"));
    assert_int_equal(0, mysql_fixture_run(plain, "%s", theirs));
    assert_int_equal(0, pthread_create(&late->thread, NULL, run_late, late));
    assert_true(test_until(is_running, late, 10000));
    test_clock_forward(3600 * (uint64_t)SECOND);
    assert_int_equal(0, mysql_fixture_run(plain, "ROLLBACK"));
    assert_int_equal(0, pthread_join(late->thread, NULL));
}

static void assert_nothing_stays(const struct dblock_connection *connection)
{
    assert_false(fixture.driver->connection.is_alive(connection) &&
        mysql_fixture_is_in_transaction(connection));
}

/* There is no time for the COMMIT, nor for a ROLLBACK: the connection is given up. So these two are
 * the last that use theirs. */
static void row_that_came_too_late__is_not_left_locked(void **state)
{
    struct late late = { 0, "INSERT IGNORE", 0, 0 };

    (void)state;
    run_through_sleep(&late, "INSERT INTO dblock_row VALUES ('late', 1)");
    assert_int_equal(-1, late.outcome);
    assert_nothing_stays(connections[ROW]);
}

static void break_that_came_too_late__leaves_no_transaction(void **state)
{
    struct late late = { 0, "UPDATE dblock_", 1, 0 };

    (void)state;
    if (!mysql_fixture_is_mariadb(connections[SHORT]))
        return; /* MySQL does not always tell which prepared statement it is at */
    assert_int_equal(YES, mysql_begin(&fixture, connections[SHORT], "one", 60 * SECOND));
    assert_int_equal(YES,
        mysql_take(&fixture, connections[SHORT], DBLOCK_LEASE, "late", "owner", "one", 0));
    run_through_sleep(&late, "UPDATE dblock_session SET beat = beat + 1");
    assert_int_not_equal(YES, late.outcome);
    assert_nothing_stays(connections[SHORT]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_that_is_being_made__is_there),
        cmocka_unit_test(row_that_was_made__leaves_the_limit_of_a_wait),
        cmocka_unit_test(row_that_came_too_late__is_not_left_locked),
        cmocka_unit_test(break_that_came_too_late__leaves_no_transaction),
    };

    return cmocka_run_group_tests_name("mysql_seed", tests, set_up, tear_down);
}
