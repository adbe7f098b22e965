/* SPDX-License-Identifier: MIT */
/* pgsql_truncate_test.c - row_table.h on the server of DBLOCK_TEST_PGSQL. Alone on its server. */
#include "pgsql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "row_table.h"

static struct pgsql_fixture fixture;

static int run(const char *sql, unsigned seconds)
{
    PGconn *plain = pgsql_plain(&fixture, fixture.url);
    PGresult *result;
    const char *code;
    char limit[64];
    int is_done;

    (void)snprintf(limit, sizeof limit, "SET lock_timeout = '%us'", seconds);
    pgsql_run(plain, limit);
    result = PQexec(plain, sql);
    code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    is_done = code == NULL ? 1 : strcmp(code, "55P03") == 0 ? 0 : -1;
    PQclear(result);
    PQfinish(plain);
    return is_done;
}

static int count_waiting(void)
{
    return (int)pgsql_number(fixture.plain,
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'dblock_row'::regclass");
}

static struct row_table table = { .run = run, .count_waiting = count_waiting };

static int set_up(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&fixture) != 0)
        return -1;
    table.driver = fixture.driver;
    table.url = fixture.url;
    table.schema = fixture.schema;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pgsql_fixture_close(&fixture);
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

    return cmocka_run_group_tests_name("pgsql_truncate", tests, set_up, tear_down);
}
