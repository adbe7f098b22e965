/* SPDX-License-Identifier: MIT */
/* pgsql_late_take_test.c - a take of a lease that gets the gate just after another's commit, having
 * seen the name free: its second statement neither takes nor locks the row of the new grant, so the
 * owner's release finds nobody on it. By the statements alone, as no timing stages this.
 * Runs beside others. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "pgsql_sql.h"

#define YES DBLOCK_ANSWER_YES

enum { BYTEA = 17, BYTEAS = 1001 }; /* type numbers, the same on every server */

static struct pgsql_fixture f;
static struct dblock_connection *holder;

/* With the schema of the test in the place of the one that the driver replaces. */
static void run_late(
    const char *template, int n_parameters, const Oid *types, const char *const *values)
{
    static const char mark[] = "dblock_schema.";
    char sql[8000] = "";
    const char *next;
    PGresult *result;

    for (; (next = strstr(template, mark)) != NULL; template = next + sizeof mark - 1)
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%.*s%s.",
            (int)(next - template), template, f.schema);
    (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%s", template);
    result = PQexecParams(f.plain, sql, n_parameters, types, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(f.plain));
    assert_int_equal(0, PQntuples(result));
    PQclear(result);
}

/* Holder takes, the late one runs `take`, the holder gives back while that is not committed. */
static void expect_left_alone(
    const char *take, int n_parameters, const Oid *types, const char *const *values)
{
    assert_int_equal(YES, pgsql_take(&f, holder, DBLOCK_LEASE, "late", "holder", NULL, 60000000));
    pgsql_run(f.plain, "BEGIN; SELECT set_config('dblock.gate', 'mine', true)");
    run_late(take, n_parameters, types, values);
    assert_int_equal(YES, pgsql_drop(&f, holder, DBLOCK_LEASE, "late", "holder", 0));
    pgsql_run(f.plain, "COMMIT");
    assert_int_equal(0,
        pgsql_number(f.plain, "SELECT count(*) FROM dblock_lease WHERE owner IS NOT NULL"));
}

static void late_take__leaves_the_new_grant_alone(void **state)
{
    static const Oid types[8] = { 0, BYTEA };
    static const char *const values[] = { "late", NULL, "infinity", "somebody else...", "1 minute",
        "", "here", "1" };

    (void)state;
    expect_left_alone(pgsql_sql_lease_take, 8, types, values);
}

static void late_take_of_many__leaves_the_new_grant_alone(void **state)
{
    static const Oid types[7] = { BYTEAS, BYTEA, 0, BYTEAS };
    static const char *const values[] = { "{late}", NULL, "1 minute", "{somebody else...}", "",
        "here", "1" };

    (void)state;
    expect_left_alone(pgsql_sql_lease_many_take, 7, types, values);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    holder = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    return holder != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_take__leaves_the_new_grant_alone),
        cmocka_unit_test(late_take_of_many__leaves_the_new_grant_alone),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
