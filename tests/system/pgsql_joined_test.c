/* SPDX-License-Identifier: MIT */
/* pgsql_joined_test.c - joined locks, as far as PostgreSQL is special: snapshots, limits and
 * settings of the application's connection, and the states in which it cannot be used. What holds
 * for every database is in joined_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

static struct pgsql_fixture f;
static dblock_client *client;
static PGconn *other; /* who is in the way */
static struct dblock_error error;
static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };

static void run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(pg));
    PQclear(result);
}

static const char *value(PGconn *pg, const char *sql)
{
    static char text[200];
    PGresult *result = PQexec(pg, sql);

    text[0] = 0;
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        (void)snprintf(text, sizeof text, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return text;
}

static dblock_status join(PGconn *pg, const char *name, int strategy, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    return dblock_pgsql_acquire_in(client, pg, name, &options, NULL, &error);
}

static void must_join(PGconn *pg, const char *name, int strategy)
{
    if (join(pg, name, strategy, 0) != DBLOCK_OK)
        fail_msg("%s: %s", name, error.message);
}

/* PITFALL(C17):
 * What it reads would be older than the end of who was waited for, and a new name is not seen. */
static void old_snapshot__is_told(void **state)
{
    (void)state;
    run(f.plain, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM dblock_row");
    assert_int_equal(DBLOCK_STALE_SNAPSHOT, join(f.plain, "snapshot", DBLOCK_ROW, 0));
    run(f.plain, "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ");
    must_join(f.plain, "snapshot", DBLOCK_ROW);
    run(f.plain, "COMMIT");
}

static void *commit_soon(void *context)
{
    (void)test_readable(-1, 200);
    run(context, "COMMIT");
    return NULL;
}

static void wait_in_a_snapshot__is_told(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        pthread_t thread;

        run(other, "BEGIN");
        must_join(other, "waits", strategies[i]);
        run(f.plain, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        assert_int_equal(0, pthread_create(&thread, NULL, commit_soon, other));
        assert_int_equal(DBLOCK_STALE_SNAPSHOT, join(f.plain, "waits", strategies[i], 5000));
        (void)pthread_join(thread, NULL);
        run(f.plain, "ROLLBACK");
    }
}

/* Also while it is in the way of a wait that ends in time, and of one that ends well. */
static void settings__are_as_they_were(void **state)
{
    static const char all[] = "SELECT string_agg(name || '=' || setting, ',' ORDER BY name)"
                              " FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout',"
                              " 'search_path', 'synchronous_commit', 'deadlock_timeout')";
    char before[200];
    size_t i;

    (void)state;
    run(f.plain, "PREPARE mine AS SELECT 5; SET lock_timeout = '7s'; SET statement_timeout = '2s'");
    (void)snprintf(before, sizeof before, "%s", value(f.plain, all));
    for (i = 0; i < 2; ++i) {
        pthread_t thread;

        run(other, "BEGIN");
        must_join(other, "settings", strategies[i]);
        run(f.plain, "BEGIN; SET LOCAL lock_timeout = '3s'; SAVEPOINT mine");
        assert_int_equal(DBLOCK_BUSY, join(f.plain, "settings", strategies[i], 100));
        assert_string_equal("3s", value(f.plain, "SHOW lock_timeout"));
        assert_int_equal(0, pthread_create(&thread, NULL, commit_soon, other));
        assert_int_equal(DBLOCK_OK, join(f.plain, "settings", strategies[i], 5000));
        (void)pthread_join(thread, NULL);
        assert_string_equal("3s", value(f.plain, "SHOW lock_timeout"));
        run(f.plain, "RELEASE mine; COMMIT");
        assert_string_equal(before, value(f.plain, all));
        assert_string_equal("", value(f.plain, "SELECT current_setting('dblock.name', true)"));
    }
    assert_string_equal("5", value(f.plain, "EXECUTE mine"));
    assert_string_equal("1", value(f.plain, "SELECT count(*) FROM pg_prepared_statements"));
    run(f.plain, "DEALLOCATE mine; RESET lock_timeout; RESET statement_timeout");
}

/* A limit of the application is for its own statements; the wait is bounded by wait_ms. */
static void statement_timeout__ends_no_wait(void **state)
{
    uint64_t begun_ms = test_now_ms();

    (void)state;
    run(other, "BEGIN");
    must_join(other, "limit", DBLOCK_ROW);
    run(f.plain, "BEGIN; SET LOCAL statement_timeout = 300; SET LOCAL lock_timeout = 20");
    assert_int_equal(DBLOCK_BUSY, join(f.plain, "limit", DBLOCK_ROW, 800));
    assert_true(test_now_ms() - begun_ms >= 800);
    assert_string_equal("1", value(f.plain, "SELECT 1"));
    run(f.plain, "COMMIT");
    run(other, "COMMIT");
}

static void *cancel_soon(void *context)
{
    PGcancel *cancel = PQgetCancel(context);
    char reason[200];

    (void)test_readable(-1, 200);
    (void)PQcancel(cancel, reason, sizeof reason);
    PQfreeCancel(cancel);
    return NULL;
}

static dblock_status wait_until_cancelled(int strategy)
{
    dblock_status status;
    pthread_t thread;

    run(other, "BEGIN");
    must_join(other, "cancel", strategy);
    run(f.plain, "BEGIN");
    assert_int_equal(0, pthread_create(&thread, NULL, cancel_soon, f.plain));
    status = join(f.plain, "cancel", strategy, DBLOCK_FOREVER);
    (void)pthread_join(thread, NULL);
    if (status == DBLOCK_CANCELLED)
        assert_string_equal("1", value(f.plain, "SELECT 1"));
    run(f.plain, "ROLLBACK");
    run(other, "COMMIT");
    return status;
}

/* The server signals a cancel request twice. On a machine so busy that the second one comes later
 * than it is waited for, the transaction fails, and that is said. */
static void statement_that_is_cancelled__ends_the_wait(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        dblock_status status = DBLOCK_ROLLED_BACK;
        int n;

        for (n = 0; n < 5 && status == DBLOCK_ROLLED_BACK; ++n)
            status = wait_until_cancelled(strategies[i]);
        assert_int_equal(DBLOCK_CANCELLED, status);
    }
}

/* Nothing of a wait that did not get it is left: not the turn of who would be next. */
static void wait_that_ended__leaves_nothing(void **state)
{
    static const char locks[] = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"
                                " AND locktype = 'advisory'";
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        run(other, "BEGIN");
        must_join(other, "left", strategies[i]);
        run(f.plain, "BEGIN");
        assert_int_equal(DBLOCK_BUSY, join(f.plain, "left", strategies[i], 50));
        assert_string_equal("0", value(f.plain, locks));
        run(other, "COMMIT");
        run(f.plain, "COMMIT");
    }
}

static void connection_that_is_not_free__is_refused(void **state)
{
    PGconn *dead = PQconnectdb(f.url);
    pid_t pid = (pid_t)PQbackendPID(dead);
    char sql[80];

    (void)state;
    run(f.plain, "BEGIN");
    assert_int_equal(1, PQsendQuery(f.plain, "SELECT 1"));
    assert_int_equal(DBLOCK_E_ARGUMENT, join(f.plain, "free", DBLOCK_ROW, 0));
    assert_true(error.hint[0] != 0);
    PQclear(PQgetResult(f.plain));
    assert_null(PQgetResult(f.plain));
    assert_int_equal(0, PQsetnonblocking(f.plain, 1));
    assert_int_equal(DBLOCK_E_ARGUMENT, join(f.plain, "free", DBLOCK_ROW, 0));
    assert_int_equal(0, PQsetnonblocking(f.plain, 0));
    assert_int_equal(1, PQenterPipelineMode(f.plain));
    assert_int_equal(DBLOCK_E_ARGUMENT, join(f.plain, "free", DBLOCK_ROW, 0));
    assert_int_equal(1, PQexitPipelineMode(f.plain));
    must_join(f.plain, "free", DBLOCK_ROW);
    PQclear(PQexec(f.plain, "SELECT nonsense"));
    assert_int_equal(DBLOCK_ROLLED_BACK, join(f.plain, "free", DBLOCK_ROW, 0));
    run(f.plain, "ROLLBACK");

    run(dead, "BEGIN");
    (void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d)", (int)pid);
    run(f.plain, sql);
    assert_int_equal(DBLOCK_E_CONNECTION, join(dead, "free", DBLOCK_ROW, 0));
    assert_int_equal(DBLOCK_E_CONNECTION, join(dead, "free", DBLOCK_ROW, 0));
    PQfinish(dead);
}

/* Bytes that a text must not take for its own, and a number in place of a name. */
static void odd_names__are_names(void **state)
{
    static const char *const names[] = { "'; DROP TABLE dblock_row; --", "a\\b", "@NAME@", "\xc3\xa4",
        "$dblock$", "%s" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    size_t i, k;

    (void)state;
    run(f.plain, "SET standard_conforming_strings = off");
    for (k = 0; k < 2; ++k)
        for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
            run(other, "BEGIN");
            must_join(other, names[i], strategies[k]);
            run(f.plain, "BEGIN");
            assert_int_equal(DBLOCK_BUSY, join(f.plain, names[i], strategies[k], 10));
            run(other, "COMMIT");
            assert_int_equal(DBLOCK_OK, join(f.plain, names[i], strategies[k], 1000));
            run(f.plain, "COMMIT");
        }
    run(f.plain, "SET standard_conforming_strings = on");
    options.strategy = DBLOCK_ADVISORY;
    options.advisory_id = INT64_MIN;
    options.has_advisory_id = 1;
    run(other, "BEGIN; SELECT pg_advisory_xact_lock('-9223372036854775808'::bigint)");
    run(f.plain, "BEGIN");
    assert_int_equal(DBLOCK_BUSY,
        dblock_pgsql_acquire_in(client, f.plain, "number", &options, NULL, &error));
    options.wait_ms = 20;
    assert_int_equal(DBLOCK_BUSY,
        dblock_pgsql_acquire_in(client, f.plain, "number", &options, NULL, &error));
    run(other, "COMMIT");
    run(f.plain, "COMMIT");
}

static int open_all(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    char sql[80];

    (void)state;
    config.schema = f.schema;
    other = PQconnectdb(f.url);
    (void)snprintf(sql, sizeof sql, "SET search_path = %s", f.schema);
    run(other, sql);
    run(f.plain, "SET client_min_messages = warning");
    return dblock_open(dblock_pgsql_driver(), f.url, &config, &client, &error);
}

static int close_all(void **state)
{
    (void)state;
    PQfinish(other);
    dblock_close(client);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_snapshot__is_told),
        cmocka_unit_test(wait_in_a_snapshot__is_told),
        cmocka_unit_test(settings__are_as_they_were),
        cmocka_unit_test(statement_timeout__ends_no_wait),
        cmocka_unit_test(statement_that_is_cancelled__ends_the_wait),
        cmocka_unit_test(wait_that_ended__leaves_nothing),
        cmocka_unit_test(connection_that_is_not_free__is_refused),
        cmocka_unit_test(odd_names__are_names),
    };
    int n_failed;

    if (pgsql_fixture_open(&f) != 0)
        return 77;
    n_failed = cmocka_run_group_tests_name("pgsql_joined", tests, open_all, close_all);
    pgsql_fixture_close(&f);
    return n_failed != 0;
}
