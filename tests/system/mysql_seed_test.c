/* SPDX-License-Identifier: MIT */
/* mysql_seed_test.c - making the row of a name, over the connection that is going to lock it or over
 * another one: nobody is waited for longer than it takes to know that the row is there. Alone on its
 * server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>

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
    return 0;
}

static int seed(struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = mysql_subject(name);

    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status = fixture.driver->row.seed(
        connection, &fixture.call, &subject, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
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
        assert_int_equal(YES, seed(connections[i], "race"));
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
        int64_t limit = read_limit(i);

        assert_true(limit > 0);
        assert_int_equal(YES, seed(connections[i], i == ROW ? "row" : "short")); /* a new one */
        assert_int_equal(limit, read_limit(i));
        assert_int_equal(YES, seed(connections[i], i == ROW ? "row" : "short"));
        assert_int_equal(limit, read_limit(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_that_is_being_made__is_there),
        cmocka_unit_test(row_that_was_made__leaves_the_limit_of_a_wait),
    };

    return cmocka_run_group_tests_name("mysql_seed", tests, set_up, tear_down);
}
