/* SPDX-License-Identifier: MIT */
/* sqlite_borrowed_test.c - a client over a connection of the application, as far as SQLite is
 * special: what is left on the connection, and when it is refused. What holds for every database
 * is in borrowed_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include <dblock/sqlite.h>

#include "application.h"
#include "test_wait.h"

extern const struct application application_sqlite;

static const struct application *const application = &application_sqlite;
static dblock_client *client;
static sqlite3 *mine, *other;
static struct dblock_error error;

static void run(sqlite3 *database, const char *sql)
{
    if (application->run(database, sql) != 0)
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
}

static dblock_status take(const char *name, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    return dblock_acquire(client, name, &options, ret_lock, &error);
}

/* A bit of everything. */
static void use(const char *name)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, take(name, &lock));
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 10000, &error));
    assert_int_equal(DBLOCK_OK, dblock_inspect(client, name, DBLOCK_LEASE, &grant, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    options.strategy = DBLOCK_ROW;
    options.flags = DBLOCK_FENCED;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static const char *const settings[] = { "busy_timeout", "main.synchronous", "journal_mode",
    "foreign_keys", "query_only", "read_uncommitted", "recursive_triggers", "cache_size",
    "temp_store", "locking_mode", "wal_autocheckpoint", "defer_foreign_keys", "mmap_size",
    "trusted_schema", "automatic_index", "user_version", "application_id" };

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

static void read_settings(char values[N_SETTINGS][32])
{
    size_t i;

    for (i = 0; i < N_SETTINGS; ++i) {
        sqlite3_stmt *statement = NULL;
        char sql[64];

        (void)snprintf(sql, sizeof sql, "PRAGMA %s", settings[i]);
        values[i][0] = 0;
        if (sqlite3_prepare_v2(mine, sql, -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_ROW)
            (void)snprintf(values[i], 32, "%s", (const char *)sqlite3_column_text(statement, 0));
        (void)sqlite3_finalize(statement);
    }
}

static int n_commits;

static int hear_commit(void *context)
{
    (void)context;
    ++n_commits;
    return 0;
}

static void connection__is_as_it_was(void **state)
{
    static const char *const synchronous[] = { "OFF", "NORMAL", "FULL" };
    char before[N_SETTINGS][32], after[N_SETTINGS][32];
    sqlite3_stmt *statement = NULL;
    char sql[64];
    size_t i, k;

    (void)state;
    (void)sqlite3_commit_hook(mine, hear_commit, &n_commits);
    assert_int_equal(SQLITE_OK,
        sqlite3_prepare_v2(mine, "SELECT balance FROM account", -1, &statement, NULL));
    for (k = 0; k < 3; ++k) {
        (void)snprintf(sql, sizeof sql, "PRAGMA main.synchronous = %s", synchronous[k]);
        run(mine, sql);
        run(mine, "INSERT INTO account VALUES (77, 1)");
        read_settings(before);
        use("as-it-was");
        read_settings(after);
        for (i = 0; i < N_SETTINGS; ++i)
            if (strcmp(before[i], after[i]) != 0)
                fail_msg("%s: %s, was %s", settings[i], after[i], before[i]);
        assert_int_equal(77, sqlite3_last_insert_rowid(mine));
        assert_int_equal(1, sqlite3_get_autocommit(mine));
        assert_int_equal(SQLITE_TXN_NONE, sqlite3_txn_state(mine, NULL));
        assert_ptr_equal(statement, sqlite3_next_stmt(mine, NULL));
        assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
        assert_int_equal(100, sqlite3_column_int(statement, 0));
        assert_int_equal(SQLITE_OK, sqlite3_reset(statement));
        run(mine, "DELETE FROM account WHERE id = 77");
    }
    assert_null(sqlite3_next_stmt(mine, statement));
    assert_int_equal(0, sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0));
    (void)sqlite3_finalize(statement);
    assert_ptr_equal(&n_commits, sqlite3_commit_hook(mine, NULL, NULL));
    assert_int_equal(0, application->number(mine, "SELECT count(*) FROM temp.sqlite_schema"));
    assert_int_equal(1, application->number(mine, "SELECT dblock_now_us() IS NULL"));
}

/* A change says a row then, and is not made before somebody asks for the next one. */
static void count_changes__changes_nothing(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    (void)state;
    run(mine, "PRAGMA count_changes = 1");
    use("counted");
    assert_int_equal(DBLOCK_OK, take("counted", &lock));
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK, dblock_sqlite_guard(lock, mine, sqlite3_sourceid(), &error));
    run(mine, "COMMIT");
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK, dblock_sqlite_release_in(lock, mine, sqlite3_sourceid(), &error));
    run(mine, "COMMIT");
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release(lock, &error));
    dblock_lock_free(lock);
    options.strategy = DBLOCK_ROW;
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_acquire_in(
            client, mine, sqlite3_sourceid(), "counted", &options, &lock, &error));
    run(mine, "COMMIT");
    dblock_lock_free(lock);
}

static void rows_that_are_being_read__are_refused(void **state)
{
    sqlite3_stmt *statement = NULL;
    dblock_lock *lock = NULL;

    (void)state;
    assert_int_equal(SQLITE_OK,
        sqlite3_prepare_v2(mine, "VALUES (1), (2), (3)", -1, &statement, NULL));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement)); /* reads nothing of the file */
    use("reading");
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    (void)sqlite3_finalize(statement);
    assert_int_equal(SQLITE_OK,
        sqlite3_prepare_v2(mine, "SELECT id FROM account UNION ALL SELECT 5", -1, &statement,
            NULL));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    assert_int_equal(DBLOCK_E_ARGUMENT, take("reading", &lock));
    assert_non_null(strstr(error.message, "rows"));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    assert_int_equal(5, sqlite3_column_int(statement, 0));
    (void)sqlite3_reset(statement);
    use("reading");
    (void)sqlite3_finalize(statement);
}

/* Not by the time-out of the application, which is longer, nor without any. */
static void somebody_who_writes__is_waited_for_within_the_limit(void **state)
{
    static const char *const timeouts[] = { "PRAGMA busy_timeout = 60000",
        "PRAGMA busy_timeout = 0" };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_lock *lock = NULL;
    uint64_t begun_ms;
    size_t i;

    (void)state;
    config.io_timeout_ms = 200;
    dblock_close(client);
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_open_on(mine, sqlite3_sourceid(), &config, &client, &error));
    run(other, "BEGIN IMMEDIATE");
    for (i = 0; i < 2; ++i) {
        run(mine, timeouts[i]);
        begun_ms = test_now_ms();
        assert_true(take("writer", &lock) != DBLOCK_OK);
        assert_true(test_now_ms() - begun_ms < 10000);
    }
    run(other, "COMMIT");
    use("writer");
    run(mine, "PRAGMA busy_timeout = 10000");
}

static int n_busy;

static int be_busy(void *context, int n_waits)
{
    (void)context;
    (void)n_waits;
    ++n_busy;
    return 0;
}

static void busy_handler_of_the_application__stays(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_lock *lock = NULL;
    int n_before;

    (void)state;
    config.io_timeout_ms = 100;
    dblock_close(client);
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_open_on(mine, sqlite3_sourceid(), &config, &client, &error));
    (void)sqlite3_busy_handler(mine, be_busy, NULL);
    use("handler");
    run(other, "BEGIN IMMEDIATE");
    assert_true(take("handler", &lock) != DBLOCK_OK);
    n_before = n_busy;
    assert_int_not_equal(0, application->run(mine, "DELETE FROM account WHERE id = 9"));
    assert_true(n_busy > n_before);
    run(other, "COMMIT");
    (void)sqlite3_busy_timeout(mine, 10000);
}

static void expect_refused(dblock_status expected, sqlite3 *database, const char *source_id)
{
    dblock_client *refused = NULL;

    assert_int_equal(
        expected, dblock_sqlite_open_on(database, source_id, NULL, &refused, &error));
    assert_null(refused);
    assert_true(strlen(error.message) > 0);
}

static void what_cannot_be__is_refused(void **state)
{
    sqlite3 *elsewhere = NULL;
    dblock_lock *lock = NULL;

    (void)state;
    expect_refused(DBLOCK_E_DRIVER, mine, "another copy");
    assert_int_equal(SQLITE_OK, sqlite3_open(":memory:", &elsewhere));
    expect_refused(DBLOCK_E_UNSUPPORTED, elsewhere, sqlite3_sourceid());
    (void)sqlite3_close(elsewhere);
    assert_int_equal(SQLITE_OK,
        sqlite3_open_v2(sqlite3_db_filename(mine, "main"), &elsewhere, SQLITE_OPEN_READONLY, NULL));
    expect_refused(DBLOCK_E_READ_ONLY, elsewhere, sqlite3_sourceid());
    (void)sqlite3_close(elsewhere);
    run(mine, "CREATE TEMP TABLE dblock_lease (name)");
    assert_int_equal(DBLOCK_E_ARGUMENT, take("shadow", &lock));
    run(mine, "DROP TABLE temp.dblock_lease");
    (void)sqlite3_db_config(mine, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    assert_int_equal(DBLOCK_E_ARGUMENT, take("triggers", &lock));
    (void)sqlite3_db_config(mine, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);
    run(mine, "PRAGMA query_only = ON");
    assert_int_equal(DBLOCK_E_READ_ONLY, take("query-only", &lock));
    run(mine, "PRAGMA query_only = OFF");
    use("refused");
}

static void connection_that_was_closed_first__is_told(void **state)
{
    sqlite3 *short_lived = application->open();
    dblock_client *over = NULL;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    (void)state;
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_open_on(short_lived, sqlite3_sourceid(), NULL, &over, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(over, "closed", &options, &lock, &error));
    assert_int_equal(SQLITE_OK, sqlite3_close(short_lived)); /* nothing of ours keeps it open */
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_confirm(lock, &error));
    assert_non_null(strstr(error.message, "closed"));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_release(lock, &error));
    dblock_lock_free(lock);
    dblock_close(over);
}

/* Its answer is the application's own use of it. */
static void joined_locks__are_of_this_client_too(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    (void)state;
    options.strategy = DBLOCK_ROW;
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_acquire_in(
            client, mine, sqlite3_sourceid(), "joined", &options, NULL, &error));
    assert_int_equal(DBLOCK_BUSY, dblock_acquire(client, "joined", &options, &lock, &error));
    run(mine, "COMMIT");
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "joined", &options, &lock, &error));
    dblock_lock_free(lock); /* free at once, although nobody works in the background */
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK,
        dblock_sqlite_acquire_in(
            client, mine, sqlite3_sourceid(), "joined", &options, NULL, &error));
    run(mine, "COMMIT");
}

static int open_all(void **state)
{
    (void)state;
    mine = application->open();
    other = application->open();
    if (application_set_account(application, mine) != 0)
        return -1;
    return dblock_sqlite_open_on(mine, sqlite3_sourceid(), NULL, &client, &error);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connection__is_as_it_was, open_all, close_all),
        cmocka_unit_test_setup_teardown(count_changes__changes_nothing, open_all, close_all),
        cmocka_unit_test_setup_teardown(
            rows_that_are_being_read__are_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(
            somebody_who_writes__is_waited_for_within_the_limit, open_all, close_all),
        cmocka_unit_test_setup_teardown(
            busy_handler_of_the_application__stays, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_cannot_be__is_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(
            connection_that_was_closed_first__is_told, open_all, close_all),
        cmocka_unit_test_setup_teardown(joined_locks__are_of_this_client_too, open_all, close_all),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("sqlite_borrowed", tests, NULL, NULL);
    application->database->stop();
    return n_failed == 0 ? 0 : 1;
}
