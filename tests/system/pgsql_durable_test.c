/* SPDX-License-Identifier: MIT */
/* pgsql_durable_test.c - which commits PostgreSQL has on its disk when they are told: a release
 * need not be, and that must not become the way of the application's own commit, nor of a grant
 * that follows, nor of a break. PITFALL(S14); that a lost release is made up for is shown with
 * S1. Alone on its server. Also on pgsql18. */
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

#include "application.h"

extern const struct application application_pgsql;

/* What the server writes for itself in between, or flushes, spoils a try now and then. */
enum { N_TRIES = 12, N_MOST = 9, N_FEW = 4, TTL_MS = 60000 };

static const struct application *const application = &application_pgsql;
static dblock_client *client, *other;
static void *connection;
static PGconn *admin;
static struct dblock_error error;

static void expect(dblock_status expected, dblock_status actual)
{
    if (actual != expected)
        fail_msg("%s instead of %s: %s", dblock_status_name(actual), dblock_status_name(expected),
            actual < 0 ? error.message : "");
}

static void run(const char *sql)
{
    if (application->run(connection, sql) != 0)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
}

static dblock_lock *take_by(dblock_client *by, int strategy, const char *name, int heartbeat)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    options.heartbeat = heartbeat;
    options.ttl_ms = TTL_MS;
    expect(DBLOCK_OK, dblock_acquire(by, name, &options, &lock, &error));
    return lock;
}

/* A lease for so long, as heartbeats would write in between. */
static dblock_lock *take(const char *name)
{
    return take_by(client, DBLOCK_LEASE, name, DBLOCK_HEARTBEAT_OFF);
}

static void give_back(dblock_lock *lock)
{
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static int is_all_on_disk(void)
{
    PGresult *result =
        PQexec(admin, "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()");
    int is_all;

    assert_int_equal(PGRES_TUPLES_OK, PQresultStatus(result));
    is_all = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return is_all;
}

/* How many of N_TRIES commits are on the disk when they are told. */
static int count_durable(void (*act)(int number))
{
    int n_durable = 0, i;

    for (i = 0; i < N_TRIES; ++i) {
        act(i);
        n_durable += is_all_on_disk();
    }
    return n_durable;
}

/* ------------------------------------------------------------ what is durable */

static void release_one(int number)
{
    (void)number;
    give_back(take("durable"));
}

static dblock_lock *last;

static void take_after_a_release(int number)
{
    (void)number;
    if (last != NULL)
        give_back(last);
    last = NULL;
    last = take("durable");
}

static void commit_with_a_release(int number)
{
    dblock_lock *lock = take("durable-in");

    (void)number;
    run("BEGIN");
    run("UPDATE account SET balance = balance + 1 WHERE id = 1");
    expect(DBLOCK_OK, application->release_in(lock, connection, &error));
    run("COMMIT");
    dblock_lock_free(lock);
}

static void break_one(int number)
{
    char name[32];
    dblock_lock *lock;

    (void)snprintf(name, sizeof name, "durable-broken-%d", number);
    lock = take(name);
    expect(DBLOCK_OK, dblock_break(other, name, DBLOCK_LEASE, 0, &error));
    dblock_lock_free(lock);
}

/* The release of such a lock writes nothing. */
static void draw_one(int number)
{
    dblock_lock *lock =
        take_by(client, DBLOCK_ADVISORY, "durable-token", DBLOCK_HEARTBEAT_DEFAULT);
    int64_t token;

    (void)number;
    expect(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    assert_true(token > 0);
    give_back(lock);
}

/* The first says that the others could be told from it. */
static void release__is_the_only_commit_that_is_not_waited_for(void **state)
{
    static const struct {
        const char *what;
        void (*act)(int number);
    } durable[] = {
        { "a grant after a release", take_after_a_release },
        { "the application's commit with a release in it", commit_with_a_release },
        { "a break", break_one },
        { "a token", draw_one },
    };
    int n_durable = count_durable(release_one);
    size_t i;

    (void)state;
    print_message("# a release: %d of %d on the disk\n", n_durable, N_TRIES);
    assert_in_range(n_durable, 0, N_FEW);
    for (i = 0; i < sizeof durable / sizeof durable[0]; ++i) {
        n_durable = count_durable(durable[i].act);
        print_message("# %s: %d of %d on the disk\n", durable[i].what, n_durable, N_TRIES);
        if (n_durable < N_MOST)
            fail_msg("%s: only %d of %d", durable[i].what, n_durable, N_TRIES);
    }
}

/* ---------------------------------------------------- the application's settings */

static void expect_mode(const char *mode)
{
    PGresult *result = PQexec(connection, "SHOW synchronous_commit");

    assert_string_equal(mode, PQgetvalue(result, 0, 0));
    PQclear(result);
}

/* Whatever is done in a transaction, it commits as the application wants it. */
static void transaction__commits_as_it_would_have(void **state)
{
    static const char *const modes[] = { "on", "off", "local" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    char sql[80];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        dblock_lock *guarded = take("guarded"), *released = take("released");

        (void)snprintf(sql, sizeof sql, "SET synchronous_commit = %s", modes[i]);
        run(sql);
        run("BEGIN");
        expect(DBLOCK_OK, application->guard(guarded, connection, &error));
        expect_mode(modes[i]);
        options.strategy = DBLOCK_ROW;
        expect(DBLOCK_OK,
            application->acquire_in(client, connection, "joined", &options, NULL, &error));
        expect_mode(modes[i]);
        options.strategy = DBLOCK_ADVISORY;
        expect(DBLOCK_OK,
            application->acquire_in(client, connection, "joined", &options, NULL, &error));
        expect_mode(modes[i]);
        expect(DBLOCK_OK, application->release_in(released, connection, &error));
        expect_mode(modes[i]);
        run("COMMIT");
        expect_mode(modes[i]);
        dblock_lock_free(released);
        give_back(guarded);
    }
}

static int open_all(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    config.schema = application->database->schema();
    connection = application->open();
    admin = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    if (application_set_account(application, connection) != 0 || PQstatus(admin) != CONNECTION_OK ||
        dblock_open(application->database->driver(), application->database->url(CONTRACT_URL),
            &config, &client, &error) != DBLOCK_OK ||
        dblock_open(application->database->driver(), application->database->url(CONTRACT_URL),
            &config, &other, &error) != DBLOCK_OK)
        return -1;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    dblock_lock_free(last);
    last = NULL;
    dblock_close(client);
    dblock_close(other);
    application->close(connection);
    PQfinish(admin);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            release__is_the_only_commit_that_is_not_waited_for, open_all, close_all),
        cmocka_unit_test_setup_teardown(
            transaction__commits_as_it_would_have, open_all, close_all),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("pgsql_durable", tests, NULL, NULL);
    application->database->stop();
    return n_failed == 0 ? 0 : 1;
}
