/* SPDX-License-Identifier: MIT */
/* mysql_joined_test.c - joined locks, as far as MySQL and MariaDB are special: snapshots, gaps,
 * settings, and the states in which the application's connection cannot be used. What holds for
 * every database is in joined_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mysql.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <dblock/mysql.h>

#include "application.h"
#include "test_wait.h"

extern const struct application application_mysql;

static const struct application *const application = &application_mysql;
static dblock_client *client;
static MYSQL *mine, *other;
static struct dblock_error error;
static char prefix[64];

static void run(MYSQL *mysql, const char *sql)
{
    if (application->run(mysql, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(mysql));
}

static const char *name_of(const char *what)
{
    static char names[2][128];
    static int turn;

    turn = !turn;
    (void)snprintf(names[turn], sizeof names[turn], "%s-%s", prefix, what);
    return names[turn];
}

static dblock_status join(MYSQL *mysql, const char *what, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = DBLOCK_ROW;
    options.wait_ms = wait_ms;
    return dblock_mysql_acquire_in(client, mysql, name_of(what), &options, NULL, &error);
}

static void must_join(MYSQL *mysql, const char *what)
{
    dblock_status status = join(mysql, what, 0);

    if (status != DBLOCK_OK)
        fail_msg("%s: %s: %s", what, dblock_status_name(status), status < 0 ? error.message : "");
}

static void *commit_soon(void *context)
{
    (void)test_readable(-1, 200);
    run(context, "UPDATE account SET balance = 55 WHERE id = 1; COMMIT");
    return NULL;
}

/* At InnoDB's default, also after a wait: the lock makes no snapshot. */
static void who_locks_first__reads_what_the_last_has_written(void **state)
{
    pthread_t thread;

    (void)state;
    run(other, "BEGIN");
    must_join(other, "first");
    run(mine, application->begin_snapshot);
    assert_int_equal(0, pthread_create(&thread, NULL, commit_soon, other));
    assert_int_equal(DBLOCK_OK, join(mine, "first", 5000));
    (void)pthread_join(thread, NULL);
    assert_int_equal(55, application->number(mine, "SELECT balance FROM account WHERE id = 1"));
    run(mine, "COMMIT");
}

/* A lock timeout is a second at least. */
static void join_without_wait(MYSQL *mysql, const char *what)
{
    uint64_t begun_ms = test_now_ms();

    must_join(mysql, what);
    assert_true(test_now_ms() - begun_ms < 950);
}

/* PITFALL(C2): others make rows next to it while a new name is locked at REPEATABLE READ. */
static void new_name__locks_no_gap(void **state)
{
    (void)state;
    run(mine, application->begin_snapshot);
    join_without_wait(mine, "gap-b");
    run(other, application->begin_snapshot);
    join_without_wait(other, "gap-a");
    join_without_wait(other, "gap-c");
    join_without_wait(mine, "gap-d");
    run(other, "COMMIT");
    run(mine, "COMMIT");
}

/* A name that this client has seen: the transaction has locked the gap, so it has to end. */
static void purged_name__is_made_anew_by_the_next_transaction(void **state)
{
    char sql[200];

    (void)state;
    run(mine, application->begin_snapshot);
    must_join(mine, "purged");
    run(mine, "COMMIT");
    (void)snprintf(sql, sizeof sql, "DELETE FROM dblock_row WHERE name = '%s'", name_of("purged"));
    run(other, sql);
    run(mine, application->begin_snapshot);
    assert_int_equal(DBLOCK_E_DATABASE, join(mine, "purged", 0));
    assert_int_equal(1, error.is_transient);
    run(mine, "ROLLBACK");
    run(mine, application->begin_snapshot);
    must_join(mine, "purged");
    run(mine, "COMMIT");
}

static void settings__are_as_they_were(void **state)
{
    static const char query[] = "SELECT @@innodb_lock_wait_timeout * 1000 + @@autocommit";

    (void)state;
    run(other, "BEGIN");
    must_join(other, "settings");
    run(mine, "SET innodb_lock_wait_timeout = 7; BEGIN; UPDATE account SET balance = 1 WHERE id = 1");
    assert_int_equal(DBLOCK_BUSY, join(mine, "settings", 0));
    assert_int_equal(DBLOCK_BUSY, join(mine, "settings", 1200));
    assert_int_equal(7001, application->number(mine, query));
    run(other, "COMMIT");
    assert_int_equal(DBLOCK_OK, join(mine, "settings", 1000));
    assert_int_equal(7001, application->number(mine, query));
    run(mine, "COMMIT; SET innodb_lock_wait_timeout = 50");
    assert_int_equal(1, application->number(other, "SELECT balance FROM account WHERE id = 1"));
}

static void without_autocommit__it_begins_the_transaction(void **state)
{
    (void)state;
    run(mine, "SET autocommit = 0");
    must_join(mine, "autocommit");
    run(other, "BEGIN");
    assert_int_equal(DBLOCK_BUSY, join(other, "autocommit", 0));
    run(mine, "COMMIT");
    assert_int_equal(DBLOCK_OK, join(other, "autocommit", 0));
    run(other, "COMMIT");
    run(mine, "SET autocommit = 1");
}

/* The tables are found in the database of the client's URL. */
static void other_default_database__is_no_matter(void **state)
{
    (void)state;
    run(mine, "USE information_schema; BEGIN");
    must_join(mine, "default");
    run(other, "BEGIN");
    assert_int_equal(DBLOCK_BUSY, join(other, "default", 0));
    run(other, "COMMIT");
    run(mine, "COMMIT");
    assert_int_equal(0, mysql_select_db(mine, other->db));
}

static unsigned long victim;

static void *kill_soon(void *context)
{
    MYSQL *killer = application->open();
    char sql[60];

    (void)context;
    (void)test_readable(-1, 200);
    (void)snprintf(sql, sizeof sql, "KILL QUERY %lu", victim);
    (void)mysql_query(killer, sql);
    application->close(killer);
    return NULL;
}

static void statement_that_is_killed__ends_the_wait(void **state)
{
    pthread_t thread;

    (void)state;
    run(other, "BEGIN");
    must_join(other, "killed");
    run(mine, "BEGIN; UPDATE account SET balance = 33 WHERE id = 1");
    victim = mysql_thread_id(mine);
    assert_int_equal(0, pthread_create(&thread, NULL, kill_soon, NULL));
    assert_int_equal(DBLOCK_CANCELLED, join(mine, "killed", 20000));
    (void)pthread_join(thread, NULL);
    run(mine, "COMMIT");
    run(other, "COMMIT");
    assert_int_equal(33, application->number(other, "SELECT balance FROM account WHERE id = 1"));
}

static void connection_that_is_not_free__is_refused(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    MYSQL *dead = application->open();
    char sql[60];

    (void)state;
    options.strategy = DBLOCK_ROW;
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_E_DRIVER,
        dblock_mysql_acquire_in_(client, mine, "1.2.3", name_of("free"), &options, NULL, &error));
    assert_int_equal(0, mysql_query(mine, "SELECT 1"));
    assert_int_equal(DBLOCK_E_ARGUMENT, join(mine, "free", 0));
    assert_true(error.hint[0] != 0);
    mysql_free_result(mysql_store_result(mine));
    must_join(mine, "free");
    run(mine, "COMMIT");

    run(dead, "BEGIN");
    (void)snprintf(sql, sizeof sql, "KILL %lu", mysql_thread_id(dead));
    run(mine, sql);
    assert_int_equal(DBLOCK_E_CONNECTION, join(dead, "free", 0));
    application->close(dead);
}

static int open_all(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "my-%llu", (unsigned long long)test_now_ms());
    mine = application->open();
    other = application->open();
    if (application_set_account(application, mine) != 0)
        return -1;
    return dblock_open(dblock_mysql_driver(), application->database->url(CONTRACT_URL), &config,
        &client, &error);
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
        cmocka_unit_test(who_locks_first__reads_what_the_last_has_written),
        cmocka_unit_test(new_name__locks_no_gap),
        cmocka_unit_test(purged_name__is_made_anew_by_the_next_transaction),
        cmocka_unit_test(settings__are_as_they_were),
        cmocka_unit_test(without_autocommit__it_begins_the_transaction),
        cmocka_unit_test(other_default_database__is_no_matter),
        cmocka_unit_test(statement_that_is_killed__ends_the_wait),
        cmocka_unit_test(connection_that_is_not_free__is_refused),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("mysql_joined", tests, open_all, close_all);
    application->database->stop();
    return n_failed != 0;
}
