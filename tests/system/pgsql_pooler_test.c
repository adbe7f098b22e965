/* SPDX-License-Identifier: MIT */
/* pgsql_pooler_test.c - connections of the application that go through PgBouncer, which lends out
 * a server's session for a transaction, or for as long as the connection lasts: what works over
 * them, what says why not, and that nothing stays on a session that the next one gets. Runs beside
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/pgsql.h>

#include "contract_database.h"

/* Of the role that the pooler logs in as. */
static char schema[48];
static PGconn *owner;           /* of the schema; directly */
static PGconn *pooled;          /* the application's */
static dblock_client *direct;   /* over connections of its own */
static dblock_client *borrowing; /* over the pooled one */
static struct dblock_error error;

static void run(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
}

static void expect(dblock_status expected, dblock_status actual)
{
    if (expected != actual)
        fail_msg("%s instead of %s: %s", dblock_status_name(actual), dblock_status_name(expected),
            actual < 0 ? error.message : "");
}

static dblock_status take(
    dblock_client *client, int strategy, const char *name, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    if (strategy == DBLOCK_LEASE)
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    return dblock_acquire(client, name, &options, ret_lock, &error);
}

static void give_back(dblock_lock *lock)
{
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static void expect_busy(int strategy, const char *name)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_BUSY, take(direct, strategy, name, &lock));
}

static void rows__are_locks_over_it(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    dblock_lock *lock = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        expect(DBLOCK_OK, take(borrowing, strategies[i], "pooled", &lock));
        expect_busy(strategies[i], "pooled");
        expect(DBLOCK_OK, dblock_extend(lock, 20000, &error));
        give_back(lock);
        expect(DBLOCK_OK, take(direct, strategies[i], "pooled", &lock));
        give_back(lock);
    }
}

/* PITFALL(D1): the session that would hold it may be somebody else's with the next statement. */
static void advisory__says_why_not(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    expect(DBLOCK_E_UNSUPPORTED, take(borrowing, DBLOCK_ADVISORY, "pooled", &lock));
    assert_non_null(strstr(error.message, "pooler"));
    expect(DBLOCK_OK, take(direct, DBLOCK_ADVISORY, "pooled", &lock));
    give_back(lock);
}

/* Leases of this name on whose rows nobody stands. */
static int n_unpinned(void)
{
    char sql[160];
    PGresult *result;
    int n;

    (void)snprintf(sql, sizeof sql,
        "SELECT 1 FROM %s.dblock_lease WHERE name = 'guarded' FOR UPDATE SKIP LOCKED", schema);
    result = PQexec(owner, sql);
    n = PQresultStatus(result) == PGRES_TUPLES_OK ? PQntuples(result) : -1;
    PQclear(result);
    return n;
}

/* A transaction keeps its session whatever the pooler does. */
static void transaction__can_lock_and_be_guarded(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        options.strategy = strategies[i];
        run(pooled, "BEGIN");
        expect(DBLOCK_OK,
            dblock_pgsql_acquire_in(direct, pooled, schema, &options, NULL, &error));
        expect_busy(strategies[i], schema);
        run(pooled, "COMMIT");
        expect(DBLOCK_OK, take(direct, strategies[i], schema, &lock));
        give_back(lock);
    }
    expect(DBLOCK_OK, take(direct, DBLOCK_LEASE, "guarded", &lock));
    run(pooled, "BEGIN");
    expect(DBLOCK_OK, dblock_pgsql_guard(lock, pooled, &error));
    assert_int_equal(0, n_unpinned());
    run(pooled, "COMMIT");
    assert_int_equal(1, n_unpinned());
    run(pooled, "BEGIN");
    expect(DBLOCK_OK, dblock_pgsql_release_in(lock, pooled, &error));
    run(pooled, "COMMIT");
    dblock_lock_free(lock);
    expect(DBLOCK_OK, take(direct, DBLOCK_LEASE, "guarded", &lock));
    give_back(lock);
}

/* What the pooler itself sets are these two. */
static void session__has_nothing_of_ours(void **state)
{
    PGresult *result;

    (void)state;
    result = PQexec(pooled, "SELECT (SELECT count(*) FROM pg_prepared_statements),"
                            " (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"
                            " AND locktype = 'advisory'),"
                            " (SELECT count(*) FROM pg_listening_channels()),"
                            " (SELECT coalesce(string_agg(name, ' '), '') FROM pg_settings"
                            " WHERE source = 'session' AND name NOT IN ('application_name',"
                            " 'client_encoding', 'DateStyle', 'TimeZone',"
                            " 'standard_conforming_strings'))");
    assert_int_equal(1, PQntuples(result));
    assert_string_equal("0", PQgetvalue(result, 0, 0));
    assert_string_equal("0", PQgetvalue(result, 0, 1));
    assert_string_equal("0", PQgetvalue(result, 0, 2));
    assert_string_equal("", PQgetvalue(result, 0, 3));
    PQclear(result);
}

static int open_over(const char *url)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.schema = schema;
    pooled = PQconnectdb(url);
    if (PQstatus(pooled) == CONNECTION_OK &&
        dblock_open(dblock_pgsql_driver(), getenv("DBLOCK_TEST_PGSQL"), &config, &direct, &error) ==
            DBLOCK_OK &&
        dblock_schema_install(direct, &error) == DBLOCK_OK &&
        dblock_pgsql_open_on(pooled, &config, &borrowing, &error) == DBLOCK_OK)
        return 0;
    print_error("%s%s\n", PQerrorMessage(pooled), error.message);
    return -1;
}

static int open_transactions(void **state)
{
    (void)state;
    return open_over(getenv("DBLOCK_TEST_PGBOUNCER"));
}

static int open_sessions(void **state)
{
    char url[300];

    (void)state;
    (void)snprintf(url, sizeof url, "%s_session", getenv("DBLOCK_TEST_PGBOUNCER"));
    return open_over(url);
}

static int close_all(void **state)
{
    (void)state;
    dblock_close(borrowing);
    dblock_close(direct);
    PQfinish(pooled);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows__are_locks_over_it),
        cmocka_unit_test(advisory__says_why_not),
        cmocka_unit_test(transaction__can_lock_and_be_guarded),
        cmocka_unit_test(session__has_nothing_of_ours),
    };
    char sql[80];
    int n_failed;

    if (getenv("DBLOCK_TEST_PGSQL") == NULL || getenv("DBLOCK_TEST_PGBOUNCER") == NULL) {
        (void)printf("skip: DBLOCK_TEST_PGSQL and DBLOCK_TEST_PGBOUNCER name no server"
                     " (ci/services)\n");
        return 77;
    }
    (void)snprintf(schema, sizeof schema, "pooled_%s", contract_word());
    owner = PQconnectdb(getenv("DBLOCK_TEST_PGSQL"));
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s", schema);
    PQclear(PQexec(owner, sql));
    n_failed = cmocka_run_group_tests_name("transactions", tests, open_transactions, close_all);
    n_failed += cmocka_run_group_tests_name("sessions", tests, open_sessions, close_all);
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA %s CASCADE", schema);
    PQclear(PQexec(owner, "SET client_min_messages = warning"));
    PQclear(PQexec(owner, sql));
    PQfinish(owner);
    return n_failed != 0;
}
