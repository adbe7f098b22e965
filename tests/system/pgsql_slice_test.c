/* SPDX-License-Identifier: MIT */
/* pgsql_slice_test.c - a slice of a wait on PostgreSQL whose end meets the grant. The server may
 * tell that end only after the place where it is caught, with the lock had already. Runs beside
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "pgsql_fixture.h"

#define YES DBLOCK_ANSWER_YES

enum { SQL_MAX = 900, WAIT_US = 10000000 };

static struct pgsql_fixture f;

static void replace(const char *what, const char *body)
{
    char sql[SQL_MAX];

    (void)snprintf(sql, sizeof sql, "CREATE OR REPLACE %s LANGUAGE plpgsql AS $$BEGIN %s END$$",
        what, body);
    pgsql_run(f.plain, sql);
}

/* What the server does in that moment: it grants, and then tells the end of the slice. Once. */
static void end_late(const char *what, const char *outcome)
{
    char body[SQL_MAX / 2];

    (void)snprintf(body, sizeof body,
        "PERFORM pg_advisory_lock(id); %s IF nextval('%s.times') = 1 THEN"
        " RAISE 'lock timeout' USING ERRCODE = 'lock_not_available'; END IF; %s",
        outcome[0] == 'R' ? "PERFORM pg_advisory_xact_lock(high, low);" : "", f.schema, outcome);
    replace(what, body);
}

#define WAIT                                                                                       \
    "FUNCTION dblock_wait(id bigint, high integer, low integer, slice_ms integer) RETURNS integer"
#define QUEUE                                                                                      \
    "PROCEDURE dblock_queue(tables text, lock_name bytea, high integer, low integer,"              \
    " is_fair boolean, slice_ms integer, n_slices integer, INOUT outcome integer,"                 \
    " INOUT ticket integer, INOUT id bigint)"

/* Had by the wait all the same, and by nobody once it was given back: it was not counted twice. */
static void check_had_once(int strategy)
{
    int role = strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY;
    struct dblock_connection *waiter = pgsql_fixture_connect(&f, role);
    struct dblock_connection *next = pgsql_fixture_connect(&f, role);

    assert_non_null(waiter);
    assert_non_null(next);
    pgsql_run(f.plain, "ALTER SEQUENCE times RESTART");
    pgsql_fixture_limit(&f, 2 * WAIT_US, -1);
    assert_int_equal(YES, pgsql_lock(&f, waiter, strategy, "slice", WAIT_US));
    assert_int_equal(1, pgsql_number(f.plain, "SELECT is_called::integer FROM times"));
    assert_int_equal(YES, pgsql_prove(&f, waiter, strategy, "slice"));
    assert_int_equal(YES, pgsql_unlock(&f, waiter, strategy, "slice"));
    assert_int_equal(YES, pgsql_lock(&f, next, strategy, "slice", 0));
    assert_int_equal(YES, pgsql_unlock(&f, next, strategy, "slice"));
}

static void first_slice_that_ends_with_the_grant__is_no_failure(void **state)
{
    (void)state;
    end_late(WAIT, "RETURN 1;");
    check_had_once(DBLOCK_ADVISORY);
    check_had_once(DBLOCK_ROW);
}

static void later_slice_that_ends_with_the_grant__is_no_failure(void **state)
{
    (void)state;
    replace(WAIT, "RETURN 0;");
    end_late(QUEUE, "outcome := 1;");
    check_had_once(DBLOCK_ADVISORY);
}

static int begin(void **state)
{
    struct dblock_connection *connection;

    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    connection = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    if (connection == NULL || pgsql_seed(&f, connection, "slice") != YES)
        return -1;
    pgsql_run(f.plain, "CREATE SEQUENCE times");
    return 0;
}

static int end(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_slice_that_ends_with_the_grant__is_no_failure),
        cmocka_unit_test(later_slice_that_ends_with_the_grant__is_no_failure),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
