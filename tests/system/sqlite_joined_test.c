/* SPDX-License-Identifier: MIT */
/* sqlite_joined_test.c - joined locks, as far as SQLite is special: one writer, snapshots, the
 * hooks of the application, and what is left on its connection. What holds for every database is
 * in joined_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static dblock_status join_by(
    dblock_client *whose, sqlite3 *database, const char *name, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = DBLOCK_ROW;
    options.wait_ms = wait_ms;
    return dblock_sqlite_acquire_in(
        whose, database, sqlite3_sourceid(), name, &options, NULL, &error);
}

static dblock_status join(sqlite3 *database, const char *name, uint64_t wait_ms)
{
    return join_by(client, database, name, wait_ms);
}

static dblock_status take(const char *name, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = DBLOCK_ROW;
    return dblock_acquire(client, name, &options, ret_lock, &error);
}

static void expect_free(const char *name)
{
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, take(name, &lock));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static void old_snapshot__is_told_and_nothing_stays(void **state)
{
    (void)state;
    run(mine, "BEGIN");
    assert_int_equal(100, application->number(mine, "SELECT balance FROM account WHERE id = 1"));
    run(other, "UPDATE account SET balance = 50 WHERE id = 1");
    assert_int_equal(DBLOCK_STALE_SNAPSHOT, join(mine, "snapshot", 0));
    expect_free("snapshot");
    run(mine, "ROLLBACK; BEGIN");
    assert_int_equal(DBLOCK_OK, join(mine, "snapshot", 0));
    assert_int_equal(50, application->number(mine, "SELECT balance FROM account WHERE id = 1"));
    run(mine, "COMMIT");
    run(other, "UPDATE account SET balance = 100 WHERE id = 1");
    expect_free("snapshot");
}

static void other_writer__is_told_and_nothing_stays(void **state)
{
    (void)state;
    run(other, "BEGIN IMMEDIATE");
    run(mine, "PRAGMA busy_timeout = 20; BEGIN");
    assert_int_equal(DBLOCK_E_DATABASE, join(mine, "writer", 0));
    assert_int_equal(1, error.is_transient);
    expect_free("writer");
    run(other, "COMMIT");
    assert_int_equal(DBLOCK_OK, join(mine, "writer", 0)); /* in the same transaction */
    run(mine, "COMMIT; PRAGMA busy_timeout = 10000");
    expect_free("writer");
}

/* Who only waits for the lock is not the writer. */
static void waiting__keeps_nobody_from_writing(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, take("waiting", &lock));
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_BUSY, join(mine, "waiting", 100));
    run(other, "PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; COMMIT; PRAGMA busy_timeout = 10000");
    run(mine, "COMMIT");
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

struct rival {
    dblock_client *client;
    struct dblock_error error;
    dblock_status status;
};

/* Gets the lock, and then waits for the writer. */
static void *join_beside(void *context)
{
    struct rival *rival = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = DBLOCK_ROW;
    options.wait_ms = 10000;
    rival->status = DBLOCK_E_DATABASE;
    if (application->run(other, "BEGIN") == 0)
        rival->status = dblock_sqlite_acquire_in(rival->client, other, sqlite3_sourceid(),
            "deadlock-second", &options, NULL, &rival->error);
    (void)application->run(other, "COMMIT");
    return NULL;
}

static int is_taken(void *name)
{
    dblock_lock *lock = NULL;
    dblock_status status = take(name, &lock);

    dblock_lock_free(lock);
    return status == DBLOCK_BUSY;
}

/* Found by the bank: whoever held the second name waited for the writer, who waited for that. */
static void two_names__wait_for_no_one_who_waits_for_the_writer(void **state)
{
    char second[] = "deadlock-second";
    struct rival rival = { 0 };
    pthread_t thread;

    (void)state;
    assert_int_equal(DBLOCK_OK,
        dblock_open(dblock_sqlite_driver(), application->database->url(CONTRACT_URL), NULL,
            &rival.client, &error));
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK, join(mine, "deadlock-first", 0));
    assert_int_equal(0, pthread_create(&thread, NULL, join_beside, &rival));
    assert_true(test_until(is_taken, second, 5000));
    assert_int_equal(DBLOCK_OK, join(mine, second, 5000));
    run(mine, "COMMIT");
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(DBLOCK_OK, rival.status);
    assert_int_equal(10000, application->number(other, "PRAGMA busy_timeout"));
    expect_free(second);
    dblock_close(rival.client);
}

static int n_commits, n_rollbacks;

static int hear_commit(void *context)
{
    (void)context;
    ++n_commits;
    return 0;
}

static void hear_rollback(void *context)
{
    (void)context;
    ++n_rollbacks;
}

static void connection__is_as_it_was(void **state)
{
    (void)state;
    (void)sqlite3_commit_hook(mine, hear_commit, NULL);
    (void)sqlite3_rollback_hook(mine, hear_rollback, NULL);
    run(mine, "BEGIN; INSERT INTO account VALUES (77, 1)");
    assert_int_equal(DBLOCK_OK, join(mine, "hooks", 0));
    assert_int_equal(77, sqlite3_last_insert_rowid(mine));
    run(mine, "COMMIT");
    expect_free("hooks");
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK, join(mine, "hooks", 0));
    run(mine, "ROLLBACK");
    expect_free("hooks");
    assert_int_equal(1, n_commits);
    assert_int_equal(1, n_rollbacks);
    assert_true(sqlite3_commit_hook(mine, NULL, NULL) == NULL);
    (void)sqlite3_rollback_hook(mine, NULL, NULL);
    run(mine, "DELETE FROM account WHERE id = 77");
    assert_int_equal(0, application->number(mine,
        "SELECT (SELECT count(*) FROM main.sqlite_schema WHERE name LIKE 'dblock_joined%')"
        " + (SELECT count(*) FROM temp.sqlite_schema)"));
    assert_int_not_equal(0, application->run(mine, "INSERT INTO dblock_joined VALUES (1)"));
}

/* A savepoint outside of BEGIN is a transaction; within one its end frees nothing. */
static void savepoints__are_no_end(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    run(mine, "SAVEPOINT whole; SAVEPOINT part");
    assert_int_equal(DBLOCK_OK, join(mine, "savepoint", 0));
    run(mine, "ROLLBACK TO part; RELEASE part");
    assert_int_equal(DBLOCK_BUSY, take("savepoint", &lock));
    run(mine, "RELEASE whole");
    expect_free("savepoint");
}

static void failed_commit__keeps_it(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    run(mine, "PRAGMA foreign_keys = ON;"
              "CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES account (id) DEFERRABLE INITIALLY"
              " DEFERRED); BEGIN");
    assert_int_equal(DBLOCK_OK, join(mine, "failed", 0));
    run(mine, "INSERT INTO child VALUES (12345)");
    assert_int_not_equal(0, application->run(mine, "COMMIT"));
    assert_int_equal(DBLOCK_BUSY, take("failed", &lock));
    run(mine, "ROLLBACK; PRAGMA foreign_keys = OFF; DROP TABLE child");
    expect_free("failed");
}

static void connection_that_is_not_ours__is_refused(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    sqlite3 *elsewhere = NULL;

    (void)state;
    options.strategy = DBLOCK_ROW;
    assert_int_equal(SQLITE_OK, sqlite3_open(":memory:", &elsewhere));
    run(elsewhere, "BEGIN");
    assert_int_equal(DBLOCK_E_ARGUMENT, join(elsewhere, "elsewhere", 0));
    (void)sqlite3_close(elsewhere);
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_E_DRIVER,
        dblock_sqlite_acquire_in(
            client, mine, "another copy", "elsewhere", &options, NULL, &error));
    run(mine, "COMMIT");
    expect_free("elsewhere");
}

/* A file of its own, as the path of this one shall lead to another. */
static void file_that_was_moved__is_noticed(void **state)
{
    char url[300], away[320];
    const char *path = url + strlen("sqlite:");
    dblock_client *its_client = NULL;
    sqlite3 *handle = NULL;
    int i;

    (void)state;
    (void)snprintf(url, sizeof url, "%s-moved", application->database->url(CONTRACT_URL));
    (void)snprintf(away, sizeof away, "%s-away", path);
    assert_int_equal(
        DBLOCK_OK, dblock_open(dblock_sqlite_driver(), url, NULL, &its_client, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(its_client, &error));
    assert_int_equal(SQLITE_OK, sqlite3_open(path, &handle));
    run(handle, "BEGIN");
    assert_int_equal(DBLOCK_OK, join_by(its_client, handle, "moved", 0));
    assert_int_equal(0, rename(path, away));
    test_pass_ms(100); /* it is asked for at most every 50 ms */
    assert_int_equal(DBLOCK_E_ARGUMENT, join_by(its_client, handle, "moved", 0));
    run(handle, "ROLLBACK");
    assert_int_equal(SQLITE_OK, sqlite3_close(handle));
    dblock_close(its_client);
    for (i = 0; i < 4; ++i) {
        static const char *const endings[] = { "-away", "-dblock", "-shm", "-wal" };

        (void)snprintf(away, sizeof away, "%s%s", path, endings[i]);
        (void)unlink(away);
    }
}

static int open_all(void **state)
{
    (void)state;
    mine = application->open();
    other = application->open();
    if (application_set_account(application, mine) != 0)
        return -1;
    return dblock_open(
        dblock_sqlite_driver(), application->database->url(CONTRACT_URL), NULL, &client, &error);
}

static int close_all(void **state)
{
    (void)state;
    application->close(mine);
    application->close(other);
    dblock_close(client);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_snapshot__is_told_and_nothing_stays),
        cmocka_unit_test(other_writer__is_told_and_nothing_stays),
        cmocka_unit_test(waiting__keeps_nobody_from_writing),
        cmocka_unit_test(two_names__wait_for_no_one_who_waits_for_the_writer),
        cmocka_unit_test(connection__is_as_it_was),
        cmocka_unit_test(savepoints__are_no_end),
        cmocka_unit_test(failed_commit__keeps_it),
        cmocka_unit_test(connection_that_is_not_ours__is_refused),
        cmocka_unit_test(file_that_was_moved__is_noticed),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("sqlite_joined", tests, open_all, close_all);
    application->database->stop();
    return n_failed != 0;
}
