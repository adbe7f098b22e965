/* SPDX-License-Identifier: MIT */
/* pgsql_borrowed_test.c - a client over a connection of the application, as far as PostgreSQL is
 * special: what is left on the connection, and when it is refused. What holds for every database
 * is in borrowed_test.c. */
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
#include "test_wait.h"

extern const struct application application_pgsql;

enum { SETTINGS_SIZE = 65536 };

static const struct application *const application = &application_pgsql;
static dblock_client *client;
static PGconn *mine, *other;
static struct dblock_error error;

static void run(PGconn *connection, const char *sql)
{
    if (application->run(connection, sql) != 0)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
}

static dblock_status open_on(uint64_t io_timeout_ms)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.schema = application->database->schema();
    config.io_timeout_ms = io_timeout_ms;
    dblock_close(client);
    client = NULL;
    return dblock_pgsql_open_on(mine, &config, &client, &error);
}

static dblock_status take(int strategy, const char *name, uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    if (strategy == DBLOCK_LEASE)
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    return dblock_acquire(client, name, &options, ret_lock, &error);
}

static void give_back(dblock_lock *lock)
{
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* A bit of everything. */
static void use(const char *name)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_lock *lock = NULL;
    int64_t token;

    assert_int_equal(DBLOCK_OK, take(DBLOCK_LEASE, name, 100, &lock));
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 10000, &error));
    assert_int_equal(DBLOCK_OK, dblock_inspect(client, name, DBLOCK_LEASE, &grant, &error));
    give_back(lock);
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, name, 100, &lock));
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    give_back(lock);
}

static char *read_settings(char *text)
{
    PGresult *result = PQexec(mine, "SHOW ALL");
    size_t length = 0;
    int row;

    for (row = 0; row < PQntuples(result); ++row)
        length += (size_t)snprintf(text + length, SETTINGS_SIZE - length, "%s=%s\n",
            PQgetvalue(result, row, 0), PQgetvalue(result, row, 1));
    PQclear(result);
    assert_true(length > 1000);
    return text;
}

static void hear(void *context, const PGresult *result)
{
    (void)result;
    ++*(int *)context;
}

static void expect_idle(void)
{
    assert_int_equal(PQTRANS_IDLE, PQtransactionStatus(mine));
    assert_int_equal(0, PQisnonblocking(mine));
    assert_int_equal(PQ_PIPELINE_OFF, PQpipelineStatus(mine));
    assert_int_equal(1, application->number(mine, "SELECT 1"));
}

static void connection__is_as_it_was(void **state)
{
    char *before = malloc(SETTINGS_SIZE);
    char *after = malloc(SETTINGS_SIZE);
    PGnotify *notify;
    int n_notices = 0;

    (void)state;
    run(mine, "SET client_encoding = LATIN1; SET application_name = 'mine';"
              " SET lock_timeout = 12345; SET statement_timeout = 54321;"
              " SET default_transaction_isolation = serializable; SET synchronous_commit = off;"
              " SET client_min_messages = notice; LISTEN mine; CREATE TEMP TABLE own (a int);"
              " PREPARE begin AS SELECT 7; PREPARE lease_take AS SELECT 8;"
              " SELECT pg_advisory_lock(42)");
    (void)PQsetNoticeReceiver(mine, hear, &n_notices);
    (void)read_settings(before);
    use("as-it-was");
    run(other, "NOTIFY mine");
    use("as-it-was");
    assert_string_equal(before, read_settings(after));
    expect_idle();
    assert_int_equal(0, n_notices);
    run(mine, "DO $$ BEGIN RAISE NOTICE 'heard'; END $$");
    assert_int_equal(1, n_notices);
    notify = PQnotifies(mine);
    assert_non_null(notify);
    PQfreemem(notify);
    assert_int_equal(7, application->number(mine, "EXECUTE begin"));
    assert_int_equal(8, application->number(mine, "EXECUTE lease_take"));
    assert_int_equal(
        2, application->number(mine, "SELECT count(*) FROM pg_prepared_statements"));
    assert_int_equal(1, application->number(mine,
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"));
    assert_int_equal(PQERRORS_DEFAULT, PQsetErrorVerbosity(mine, PQERRORS_DEFAULT));
    free(before);
    free(after);
}

/* The transaction in which it failed is not left open. */
static void failure__leaves_no_transaction(void **state)
{
    dblock_lock *lock = NULL;
    uint64_t begun_ms = test_now_ms();
    char sql[128];

    (void)state;
    assert_int_equal(DBLOCK_OK, open_on(400));
    (void)snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE %s.dblock_lease IN ACCESS EXCLUSIVE MODE",
        application->database->schema());
    run(other, sql);
    assert_true(take(DBLOCK_LEASE, "failure", 0, &lock) != DBLOCK_OK);
    assert_true(test_now_ms() - begun_ms < 10000);
    expect_idle();
    run(other, "ROLLBACK");
    assert_int_equal(DBLOCK_OK, open_on(0));
    use("failure");
    run(mine, "SET default_transaction_read_only = on");
    assert_int_equal(DBLOCK_E_READ_ONLY, take(DBLOCK_LEASE, "failure", 0, &lock));
    expect_idle();
    run(mine, "RESET default_transaction_read_only");
    use("failure");
}

static void expect_refused(dblock_status expected, const char *word)
{
    dblock_lock *lock = NULL;

    memset(&error, 0, sizeof error);
    assert_int_equal(expected, take(DBLOCK_LEASE, "refused", 1000, &lock));
    if (strstr(error.message, word) == NULL)
        fail_msg("no \"%s\" in: %s", word, error.message);
    assert_true(strlen(error.hint) > 0);
    assert_int_equal(expected, take(DBLOCK_ADVISORY, "refused", 1000, &lock));
    assert_true(dblock_ping(client, &error) < 0);
}

static void drain(void)
{
    PGresult *result;
    char *row;

    while (PQgetCopyData(mine, &row, 0) > 0)
        PQfreemem(row);
    while ((result = PQgetResult(mine)) != NULL)
        PQclear(result);
}

static void connection_that_is_not_free__is_refused(void **state)
{
    PGresult *result;

    (void)state;
    run(mine, "BEGIN");
    expect_refused(DBLOCK_E_ARGUMENT, "in a transaction");
    (void)application->run(mine, "SELECT 1 / 0");
    expect_refused(DBLOCK_E_ARGUMENT, "failed");
    run(mine, "ROLLBACK");
    assert_int_equal(1, PQenterPipelineMode(mine));
    expect_refused(DBLOCK_E_ARGUMENT, "pipeline");
    assert_int_equal(PQ_PIPELINE_ON, PQpipelineStatus(mine));
    assert_int_equal(1, PQexitPipelineMode(mine));
    assert_int_equal(0, PQsetnonblocking(mine, 1));
    expect_refused(DBLOCK_E_ARGUMENT, "non-blocking");
    assert_int_equal(1, PQisnonblocking(mine));
    assert_int_equal(0, PQsetnonblocking(mine, 0));
    assert_int_equal(1, PQsendQuery(mine, "SELECT 5"));
    expect_refused(DBLOCK_E_ARGUMENT, "not read");
    drain();
    assert_int_equal(1, PQsendQuery(mine, "SELECT generate_series(1, 100)"));
    assert_int_equal(1, PQsetSingleRowMode(mine));
    result = PQgetResult(mine);
    assert_int_equal(PGRES_SINGLE_TUPLE, PQresultStatus(result));
    PQclear(result);
    expect_refused(DBLOCK_E_ARGUMENT, "not read");
    drain();
    result = PQexec(mine, "COPY account FROM STDIN");
    assert_int_equal(PGRES_COPY_IN, PQresultStatus(result));
    PQclear(result);
    expect_refused(DBLOCK_E_ARGUMENT, "statement runs");
    assert_int_equal(1, PQputCopyEnd(mine, "enough"));
    drain();
    result = PQexec(mine, "COPY account TO STDOUT");
    assert_int_equal(PGRES_COPY_OUT, PQresultStatus(result));
    PQclear(result);
    expect_refused(DBLOCK_E_ARGUMENT, "statement runs");
    drain();
    use("refused");
    expect_idle();
}

static void end_session(void)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d)", PQbackendPID(mine));
    run(other, sql);
}

static void broken_connection__is_told(void **state)
{
    dblock_lock *lock = NULL, *second = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, take(DBLOCK_LEASE, "broken", 0, &lock));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "broken", 0, &second));
    end_session();
    assert_int_equal(DBLOCK_LOST, dblock_confirm(second, &error));
    assert_int_equal(DBLOCK_CAUSE_CONNECTION, dblock_lock_cause(second));
    assert_int_equal(DBLOCK_E_CONNECTION, dblock_confirm(lock, &error));
    expect_refused(DBLOCK_E_CONNECTION, "broken");
    dblock_lock_free(lock);
    dblock_lock_free(second);
    assert_int_equal(CONNECTION_BAD, PQstatus(mine));
}

static void reset_connection__has_lost_what_it_held(void **state)
{
    dblock_lock *lock = NULL, *second = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, take(DBLOCK_LEASE, "reset", 0, &lock));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "reset", 0, &second));
    PQreset(mine);
    assert_int_equal(DBLOCK_LOST, dblock_confirm(second, &error));
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
    dblock_lock_free(second);
    give_back(lock);
    use("reset");
}

/* The server counts what one session takes; there is one holder all the same. */
static void advisory_lock_of_the_application__is_busy(void **state)
{
    const char *const id =
        "('x' || encode(substr(sha256('counted'), 1, 8), 'hex'))::bit(64)::bigint";
    dblock_lock *lock = NULL;
    char sql[200];

    (void)state;
    (void)snprintf(sql, sizeof sql, "SELECT pg_advisory_lock(%s)", id);
    run(mine, sql);
    assert_int_equal(DBLOCK_BUSY, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    assert_int_equal(DBLOCK_BUSY, take(DBLOCK_ADVISORY, "counted", 50, &lock));
    (void)snprintf(sql, sizeof sql, "SELECT pg_advisory_unlock(%s)::int", id);
    assert_int_equal(1, application->number(mine, sql));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    assert_int_equal(DBLOCK_BUSY, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    give_back(lock);
    assert_int_equal(0, application->number(mine,
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"));
}

static void joined_locks__need_no_row_that_it_cannot_make(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    (void)state;
    options.strategy = DBLOCK_ADVISORY;
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK,
        dblock_pgsql_acquire_in(client, mine, "joined", &options, NULL, &error));
    options.strategy = DBLOCK_ROW;
    assert_int_equal(DBLOCK_E_UNSUPPORTED,
        dblock_pgsql_acquire_in(client, mine, "joined", &options, NULL, &error));
    assert_non_null(strstr(error.hint, "keeper_url"));
    assert_int_equal(PQTRANS_INTRANS, PQtransactionStatus(mine));
    run(mine, "COMMIT");
}

static int open_all(void **state)
{
    (void)state;
    mine = application->open();
    other = application->open();
    if (application_set_account(application, mine) != 0)
        return -1;
    return open_on(0);
}

static int close_all(void **state)
{
    (void)state;
    dblock_close(client);
    client = NULL;
    application->close(mine);
    application->close(other);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connection__is_as_it_was),
        TEST(failure__leaves_no_transaction),
        TEST(connection_that_is_not_free__is_refused),
        TEST(broken_connection__is_told),
        TEST(reset_connection__has_lost_what_it_held),
        TEST(advisory_lock_of_the_application__is_busy),
        TEST(joined_locks__need_no_row_that_it_cannot_make),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("pgsql_borrowed", tests, NULL, NULL);
    application->database->stop();
    return n_failed == 0 ? 0 : 1;
}
