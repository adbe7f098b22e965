/* SPDX-License-Identifier: MIT */
/* pgsql_path_test.c - search_path decides nothing: what runs on connections of the application, and
 * the first words of own ones, in a path that begins with operators and types of other meaning. Runs
 * beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

enum { SQL_MAX = 700 };

static struct pgsql_fixture f;
static dblock_client *client;
static PGconn *led; /* the application's, whose path leads astray */
static PGconn *other;
static struct dblock_error error;

static void run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(pg));
    PQclear(result);
}

static void must(dblock_status expected, dblock_status status)
{
    if (status != expected)
        fail_msg("%s, not %s: %s", dblock_status_name(status), dblock_status_name(expected),
            status < 0 ? error.message : "");
}

/* Any use of one of them is an error. */
static void lead_astray(void)
{
    static const char *const operators[][4] = {
        { "=", "bytea", "bytea", "boolean" },
        { "=", "text", "text", "boolean" },
        { "=", "integer", "integer", "boolean" },
        { "=", "bigint", "bigint", "boolean" },
        { ">", "timestamptz", "timestamptz", "boolean" },
        { "||", "text", "text", "text" },
        { "+", "timestamptz", "interval", "timestamptz" },
        { "-", "timestamptz", "timestamptz", "interval" },
        { "*", "double precision", "interval", "interval" },
        { "*", "integer", "interval", "interval" },
        { "*", "double precision", "integer", "double precision" },
        { "*", "double precision", "double precision", "double precision" },
        { "*", "numeric", "integer", "numeric" },
        { "*", "numeric", "numeric", "numeric" },
    };
    char sql[SQL_MAX];
    size_t i;

    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s_astray", f.schema);
    run(other, sql);
    for (i = 0; i < sizeof operators / sizeof *operators; ++i) {
        const char *const *o = operators[i];

        (void)snprintf(sql, sizeof sql,
            "CREATE FUNCTION %s_astray.f%zu(%s, %s) RETURNS %s LANGUAGE plpgsql AS"
            " $$BEGIN RAISE 'search_path has decided'; END$$;"
            "CREATE OPERATOR %s_astray.%s (PROCEDURE = %s_astray.f%zu, LEFTARG = %s, RIGHTARG = %s)",
            f.schema, i, o[1], o[2], o[3], f.schema, o[0], f.schema, i, o[1], o[2]);
        run(other, sql);
    }
    (void)snprintf(sql, sizeof sql,
        "CREATE DOMAIN %s_astray.text AS integer; CREATE DOMAIN %s_astray.timestamptz AS integer",
        f.schema, f.schema);
    run(other, sql);
    (void)snprintf(sql, sizeof sql, "SET search_path = %s_astray, pg_catalog", f.schema);
    run(led, sql);
}

static void path__leads_astray(void **state)
{
    PGresult *result = PQexec(led, "SELECT 1 WHERE pg_backend_pid() = 7");

    (void)state;
    assert_non_null(strstr(PQresultErrorMessage(result), "search_path has decided"));
    PQclear(result);
}

static void guards_are_as_ever(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock;
    size_t i;

    (void)state;
    options.flags = DBLOCK_FENCED;
    for (i = 0; i < sizeof strategies / sizeof *strategies; ++i) {
        options.strategy = strategies[i];
        must(DBLOCK_OK, dblock_acquire(client, "guarded", &options, &lock, &error));
        run(led, "BEGIN");
        must(DBLOCK_OK, dblock_pgsql_guard(lock, led, &error));
        if (i < 2)
            must(DBLOCK_OK, dblock_pgsql_release_in(lock, led, &error));
        run(led, "COMMIT");
        dblock_lock_free(lock);
    }
}

/* It was true for any grant, with an operator that says so. */
static void guard_of_a_lost_grant__is_lost(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock;

    (void)state;
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    must(DBLOCK_OK, dblock_acquire(client, "lost", &options, &lock, &error));
    run(f.plain, "UPDATE dblock_lease SET token = token + 1 WHERE name = 'lost'");
    run(led, "BEGIN");
    must(DBLOCK_LOST, dblock_pgsql_guard(lock, led, &error));
    run(led, "ROLLBACK");
    dblock_lock_free(lock);
}

static void *commit_soon(void *context)
{
    (void)test_readable(-1, 200);
    run(context, "COMMIT");
    return NULL;
}

static void joined_locks__are_as_ever(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    pthread_t thread;
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        options.strategy = strategies[i];
        options.wait_ms = 0;
        run(other, "BEGIN");
        must(DBLOCK_OK, dblock_pgsql_acquire_in(client, other, "joined", &options, NULL, &error));
        run(led, "BEGIN");
        must(DBLOCK_BUSY, dblock_pgsql_acquire_in(client, led, "joined", &options, NULL, &error));
        options.wait_ms = 9000;
        assert_int_equal(0, pthread_create(&thread, NULL, commit_soon, other));
        must(DBLOCK_OK, dblock_pgsql_acquire_in(client, led, "joined", &options, NULL, &error));
        (void)pthread_join(thread, NULL);
        run(led, "COMMIT");
    }
}

static void borrowed_connection__is_as_ever(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ADVISORY };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *borrower = NULL;
    dblock_lock *lock;
    size_t i;

    (void)state;
    config.schema = f.schema;
    must(DBLOCK_OK, dblock_pgsql_open_on(led, &config, &borrower, &error));
    for (i = 0; i < sizeof strategies / sizeof *strategies; ++i) {
        options.strategy = strategies[i];
        options.heartbeat = strategies[i] != DBLOCK_ADVISORY ? DBLOCK_HEARTBEAT_OFF : 0;
        must(DBLOCK_OK, dblock_acquire(borrower, "borrowed", &options, &lock, &error));
        must(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    dblock_close(borrower);
}

/* The path of new sessions, as a role or a URL may set it. */
static void own_connection__is_as_ever(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *own = NULL;
    dblock_lock *lock;
    char url[400];
    size_t i;

    (void)state;
    config.schema = f.schema;
    (void)snprintf(url, sizeof url, "%s%soptions=-csearch_path%%3D%s_astray%%2Cpg_catalog", f.url,
        strchr(f.url, '?') != NULL ? "&" : "?", f.schema);
    must(DBLOCK_OK, dblock_open(dblock_pgsql_driver(), url, &config, &own, &error));
    for (i = 0; i < sizeof strategies / sizeof *strategies; ++i) {
        options.strategy = strategies[i];
        must(DBLOCK_OK, dblock_acquire(own, "own", &options, &lock, &error));
        must(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    dblock_close(own);
}

/* Also one that a temporary table would shadow. */
static void guard_in_sql__is_as_ever(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock;
    int64_t token = 0;
    char sql[SQL_MAX];

    (void)state;
    must(DBLOCK_OK, dblock_acquire(client, "sql", &options, &lock, &error));
    must(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    run(led, "BEGIN; CREATE TEMPORARY TABLE dblock_lease (wrong integer);"
             "CREATE TEMPORARY TABLE dblock_session (wrong integer)");
    (void)snprintf(sql, sizeof sql, "SELECT %s.dblock_guard('sql', %lld)", f.schema,
        (long long)token);
    run(led, sql);
    run(led, "ROLLBACK");
    dblock_lock_free(lock);
}

static int open_all(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    config.schema = f.schema;
    other = pgsql_plain(&f, f.url);
    led = pgsql_plain(&f, f.url);
    run(other, "SET client_min_messages = warning");
    lead_astray();
    return dblock_open(dblock_pgsql_driver(), f.url, &config, &client, &error);
}

static int close_all(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA %s_astray CASCADE", f.schema);
    run(other, sql);
    PQfinish(other);
    PQfinish(led);
    dblock_close(client);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path__leads_astray),
        cmocka_unit_test(guards_are_as_ever),
        cmocka_unit_test(guard_of_a_lost_grant__is_lost),
        cmocka_unit_test(joined_locks__are_as_ever),
        cmocka_unit_test(borrowed_connection__is_as_ever),
        cmocka_unit_test(own_connection__is_as_ever),
        cmocka_unit_test(guard_in_sql__is_as_ever),
    };
    int n_failed;

    if (pgsql_fixture_open(&f) != 0)
        return 77;
    n_failed = cmocka_run_group_tests_name("pgsql_path", tests, open_all, close_all);
    pgsql_fixture_close(&f);
    return n_failed != 0;
}
