/* SPDX-License-Identifier: MIT */
/* mysql_truncate_test.c - row_table.h on the server of DBLOCK_TEST_MYSQL. Alone on its server.
 * Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mysql.h>

#include "row_table.h"

static struct mysql_fixture fixture;
static MYSQL *plain;

static int run(const char *sql, unsigned seconds)
{
    MYSQL *connection = mysql_fixture_plain(&fixture);
    unsigned code = mysql_fixture_run(connection,
        "SET SESSION lock_wait_timeout = %u, innodb_lock_wait_timeout = %u", seconds, seconds);

    if (code == 0)
        code = mysql_fixture_run(connection, "%s", sql);
    mysql_close(connection);
    mysql_thread_end();
    return code == 0 ? 1 : code == 1205 ? 0 : -1;
}

static int count_waiting(void)
{
    return (int)mysql_fixture_number(plain,
        "SELECT count(*) FROM information_schema.processlist"
        " WHERE state LIKE 'Waiting for table metadata lock%%' AND info LIKE 'TRUNCATE%%'");
}

static struct row_table table = { .run = run, .count_waiting = count_waiting };

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    table.driver = fixture.driver;
    table.url = fixture.url;
    return plain != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mysql_close(plain);
    mysql_fixture_close(&fixture);
    return 0;
}

static void row_table__waits(void **state)
{
    (void)state;
    row_table__waits_for_its_holders(&table);
}

static void calls__end_behind_a_truncate(void **state)
{
    (void)state;
    waiting_truncate__lets_every_call_end(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_table__waits),
        cmocka_unit_test(calls__end_behind_a_truncate),
    };

    return cmocka_run_group_tests_name("mysql_truncate", tests, set_up, tear_down);
}
