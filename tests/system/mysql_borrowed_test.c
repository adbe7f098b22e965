/* SPDX-License-Identifier: MIT */
/* mysql_borrowed_test.c - a client over a connection of the application, as far as MySQL and
 * MariaDB are special: what is left on the connection, and when it is refused. What holds for every
 * database is in borrowed_test.c. Also on oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/mysql.h>

#include "application.h"
#include "test_wait.h"

extern const struct application application_mysql, application_cluster;

enum { SETTINGS_SIZE = 262144 };

static const struct application *const application = &application_mysql;
static dblock_client *client;
static MYSQL *mine, *other;
static struct dblock_error error;

static void run(MYSQL *connection, const char *sql)
{
    if (application->run(connection, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(connection));
}

static int64_t number(const char *sql)
{
    return application->number(mine, sql);
}

static dblock_status open_on(uint64_t io_timeout_ms)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.io_timeout_ms = io_timeout_ms;
    dblock_close(client);
    client = NULL;
    return dblock_mysql_open_on(mine, &config, &client, &error);
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

    if (take(DBLOCK_LEASE, name, 100, &lock) != DBLOCK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 10000, &error));
    assert_int_equal(DBLOCK_OK, dblock_inspect(client, name, DBLOCK_LEASE, &grant, &error));
    give_back(lock);
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, name, 100, &lock));
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    give_back(lock);
}

/* What counts or tells the time by itself. */
static int is_volatile(const char *name)
{
    static const char *const names[] = { "timestamp", "rand_seed1", "rand_seed2", "error_count",
        "warning_count", "last_gtid", "gtid_executed", "gtid_binlog_pos", "gtid_current_pos",
        "pseudo_thread_id", "insert_id", "statement_id", "identity_", "wsrep_last", "last_insert_id_" };
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

static char *read_settings(char *text)
{
    size_t length = 0;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    run(mine, "DO 0");
    assert_int_equal(0, mysql_query(mine, "SHOW SESSION VARIABLES"));
    rows = mysql_store_result(mine);
    assert_non_null(rows);
    while ((row = mysql_fetch_row(rows)) != NULL)
        if (!is_volatile(row[0]))
            length += (size_t)snprintf(
                text + length, SETTINGS_SIZE - length, "%s=%s\n", row[0], row[1]);
    mysql_free_result(rows);
    assert_true(length > 1000);
    return text;
}

static void expect_same(const char *before, const char *after)
{
    while (*before != 0 && *after != 0) {
        size_t n = strcspn(before, "\n");

        if (strncmp(before, after, n + 1) != 0)
            fail_msg("was %.*s, is %.*s", (int)n, before, (int)strcspn(after, "\n"), after);
        before += n + 1;
        after += n + 1;
    }
}

static void connection__is_as_it_was(void **state)
{
    static const char query[] = "SELECT 8";
    char *before = malloc(SETTINGS_SIZE);
    char *after = malloc(SETTINGS_SIZE);
    MYSQL_STMT *statement = mysql_stmt_init(mine);

    (void)state;
    run(mine, "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'");
    run(mine, "SET time_zone = '+03:30', innodb_lock_wait_timeout = 7, lock_wait_timeout = 77");
    run(mine, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    run(mine, "PREPARE lease_take FROM 'SELECT 7'");
    assert_int_equal(0, mysql_stmt_prepare(statement, query, sizeof query - 1));
    assert_int_equal(1, number("SELECT GET_LOCK('of the application', 0)"));
    assert_int_equal(4711, number("SELECT LAST_INSERT_ID(4711)"));
    (void)read_settings(before);
    use("as-it-was");
    assert_int_equal(4711, number("SELECT LAST_INSERT_ID()"));
    expect_same(before, read_settings(after));
    assert_int_equal(7, number("EXECUTE lease_take"));
    assert_int_equal(0, mysql_stmt_execute(statement));
    assert_int_equal(0, mysql_stmt_store_result(statement));
    (void)mysql_stmt_close(statement);
    assert_int_equal(
        1, number("SELECT IS_USED_LOCK('of the application') = CONNECTION_ID()"));
    run(mine, "SET autocommit = 0");
    use("as-it-was");
    assert_int_equal(0, number("SELECT @@autocommit"));
    assert_int_equal(0, mine->server_status & SERVER_STATUS_IN_TRANS);
    run(mine, "INSERT INTO account VALUES (5, 5)");
    run(mine, "ROLLBACK");
    assert_int_equal(1, number("SELECT COUNT(*) FROM account"));
    free(before);
    free(after);
}

/* A client with connections of its own, to the same tables. */
static dblock_client *open_own(void)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *own = NULL;

    config.schema = application->database->schema != NULL ? application->database->schema() : NULL;
    if (dblock_open(application->database->driver(), application->database->url(CONTRACT_URL),
            &config, &own, &error) != DBLOCK_OK)
        fail_msg("%s", error.message);
    return own;
}

/* A lease for a minute; heartbeat 0: by the library. */
static dblock_status take_for(
    dblock_client *whose, const char *name, int heartbeat, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.ttl_ms = 60000;
    options.heartbeat = heartbeat;
    return dblock_acquire(whose, name, &options, ret_lock, &error);
}

/* All expiries are judged by the server's clock, which a session can set for itself. */
static void clock_that_the_application_has_set__is_set_aside(void **state)
{
    dblock_client *own = open_own();
    dblock_lock *held = NULL, *lent = NULL, *second = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, take_for(own, "future", 0, &held));
    run(mine, "SET timestamp = 2000000000.25");
    assert_int_equal(DBLOCK_BUSY, take_for(client, "future", DBLOCK_HEARTBEAT_OFF, &second));
    use("of the future");
    assert_int_equal(1, number("SELECT @@timestamp = 2000000000.25"));
    run(mine, "SET timestamp = 1000000000");
    assert_int_equal(DBLOCK_OK, take_for(client, "past", DBLOCK_HEARTBEAT_OFF, &lent));
    assert_int_equal(DBLOCK_OK, dblock_extend(lent, 60000, &error));
    assert_int_equal(DBLOCK_BUSY, take_for(own, "past", 0, &second));
    assert_int_equal(1, number("SELECT @@timestamp = 1000000000"));
    run(mine, "SET timestamp = DEFAULT");
    use("of the present");
    assert_int_equal(1, number("SELECT ABS(TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6))) < 2"));
    assert_int_equal(0, number("SELECT @@timestamp") == 1000000000);
    run(mine, "SET @before = @@timestamp");
    assert_int_equal(1, number("SELECT @@timestamp > @before"));
    give_back(lent);
    give_back(held);
    dblock_close(own);
}

/* On the application's connection, in its transaction. */
static void check_guard(const struct application *its, dblock_client *own)
{
    static const char *const clocks[] = { "2000000000", "1000000000" };
    dblock_lock *held = NULL;
    char sql[80];
    size_t i;

    assert_int_equal(DBLOCK_OK, take_for(own, "guarded", 0, &held));
    for (i = 0; i < 2; ++i) {
        (void)snprintf(sql, sizeof sql, "SET timestamp = %s", clocks[i]);
        run(mine, sql);
        run(mine, "BEGIN");
        assert_int_equal(DBLOCK_OK, its->guard(held, mine, &error));
        assert_true((mine->server_status & SERVER_STATUS_IN_TRANS) != 0);
        run(mine, "ROLLBACK");
        (void)snprintf(sql, sizeof sql, "SELECT @@timestamp = %s", clocks[i]);
        assert_int_equal(1, number(sql));
    }
    run(mine, "SET timestamp = 2000000000");
    assert_int_equal(DBLOCK_OK, dblock_break(own, "guarded", DBLOCK_LEASE, 0, &error));
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_LOST, its->guard(held, mine, &error));
    run(mine, "ROLLBACK");
    assert_int_equal(1, number("SELECT @@timestamp = 2000000000"));
    dblock_lock_free(held);
}

static void guard__is_not_misled_by_a_clock_that_is_set(void **state)
{
    dblock_client *own = open_own();

    (void)state;
    check_guard(&application_mysql, own);
    check_guard(&application_cluster, own);
    dblock_close(own);
}

/* A COMMIT of ours that chains would begin a transaction that nobody ends. */
static void completion_type__is_set_aside(void **state)
{
    static const char *const types[] = { "CHAIN", "RELEASE" };
    dblock_client *own = open_own();
    dblock_lock *held = NULL, *second = NULL, *broken = NULL;
    char sql[80];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof types / sizeof *types; ++i) {
        (void)snprintf(sql, sizeof sql, "SET completion_type = '%s'", types[i]);
        run(mine, sql);
        assert_int_equal(DBLOCK_OK, take_for(own, "chained", 0, &broken));
        assert_int_equal(DBLOCK_OK, dblock_break(client, "chained", DBLOCK_LEASE, 0, &error));
        assert_int_equal(0, mine->server_status & SERVER_STATUS_IN_TRANS);
        assert_int_equal(DBLOCK_OK, take_for(client, "chain", DBLOCK_HEARTBEAT_OFF, &held));
        assert_int_equal(DBLOCK_BUSY, take_for(own, "chain", 0, &second));
        give_back(held);
        dblock_lock_free(broken);
        (void)snprintf(sql, sizeof sql, "SELECT @@completion_type = '%s'", types[i]);
        assert_int_equal(1, number(sql));
    }
    dblock_close(own);
}

/* Limits that are meant for the application's own statements. */
static void limits_of_statements__are_set_aside(void **state)
{
    dblock_client *own = open_own();
    dblock_lock *held = NULL;

    (void)state;
    run(mine, "SET sql_select_limit = 0, sql_safe_updates = 1, max_join_size = 1, unique_checks = 0");
    if (strstr(mysql_get_server_info(mine), "MariaDB") == NULL)
        run(mine, "SET max_execution_time = 1");
    use("limits");
    assert_int_equal(DBLOCK_OK, open_on(0));
    use("limits");
    assert_int_equal(1, number("SELECT @@sql_select_limit = 0 AND @@sql_safe_updates = 1 AND"
                               " @@max_join_size = 1 AND @@sql_big_selects = 0 AND"
                               " @@unique_checks = 0 LIMIT 1"));
    run(mine, "SET max_join_size = DEFAULT, sql_big_selects = 1");
    assert_int_equal(DBLOCK_OK, take_for(own, "limits", 0, &held));
    run(mine, "BEGIN");
    assert_int_equal(DBLOCK_OK, dblock_mysql_guard(held, mine, &error));
    run(mine, "ROLLBACK");
    give_back(held);
    dblock_close(own);
}

static void other_default_database__is_kept(void **state)
{
    (void)state;
    use("elsewhere"); /* here the tables are */
    run(mine, "USE information_schema");
    use("elsewhere");
    assert_int_equal(1, number("SELECT DATABASE() = 'information_schema'"));
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

/* Whoever says so means it: not set aside. */
static void session_that_may_only_read__is_told_so(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    run(mine, "SET SESSION TRANSACTION READ ONLY");
    memset(&error, 0, sizeof error);
    assert_int_equal(DBLOCK_E_READ_ONLY, take(DBLOCK_LEASE, "read-only", 0, &lock));
    assert_non_null(strstr(error.hint, "read_only"));
    run(mine, "SET SESSION TRANSACTION READ WRITE");
    use("read-only");
}

static void temporary_tables__are_refused(void **state)
{
    (void)state;
    run(mine, "CREATE TEMPORARY TABLE hiding LIKE dblock_lease");
    run(mine, "ALTER TABLE hiding RENAME TO dblock_lease");
    assert_int_equal(DBLOCK_OK, open_on(0));
    expect_refused(DBLOCK_E_ARGUMENT, "temporary table");
    run(mine, "DROP TEMPORARY TABLE dblock_lease");
    use("temporary");
}

static void connection_that_is_not_free__is_refused(void **state)
{
    static const char query[] = "SELECT id FROM account UNION ALL SELECT 5";
    MYSQL_STMT *statement = mysql_stmt_init(mine);
    dblock_client *refused = NULL;
    MYSQL_RES *rows;

    (void)state;
    run(mine, "BEGIN");
    run(mine, "UPDATE account SET balance = 7 WHERE id = 1");
    expect_refused(DBLOCK_E_ARGUMENT, "in a transaction");
    run(mine, "ROLLBACK");
    assert_int_equal(100, number("SELECT balance FROM account"));
    assert_int_equal(0, mysql_query(mine, query));
    rows = mysql_use_result(mine);
    assert_non_null(mysql_fetch_row(rows));
    expect_refused(DBLOCK_E_ARGUMENT, "not read");
    assert_non_null(mysql_fetch_row(rows));
    assert_null(mysql_fetch_row(rows));
    mysql_free_result(rows);
    assert_int_equal(0, mysql_stmt_prepare(statement, query, sizeof query - 1));
    assert_int_equal(0, mysql_stmt_execute(statement));
    expect_refused(DBLOCK_E_ARGUMENT, "not read");
    assert_int_equal(0, mysql_stmt_store_result(statement));
    (void)mysql_stmt_close(statement);
    use("refused");
    assert_int_equal(DBLOCK_E_DRIVER,
        dblock_mysql_open_on_(mine, "another library", NULL, &refused, &error));
    mine->client_flag |= CLIENT_FOUND_ROWS;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_mysql_open_on(mine, NULL, &refused, &error));
    mine->client_flag &= ~(unsigned long)CLIENT_FOUND_ROWS;
}

/* Rows are locked by somebody for longer than the limit: an error, in time. */
static void failure__is_in_time_and_leaves_it_usable(void **state)
{
    dblock_lock *lock = NULL;
    uint64_t begun_ms = test_now_ms();

    (void)state;
    assert_int_equal(DBLOCK_OK, open_on(1000));
    run(other, "LOCK TABLES dblock_lease WRITE");
    assert_true(take(DBLOCK_LEASE, "failure", 0, &lock) != DBLOCK_OK);
    assert_true(test_now_ms() - begun_ms < 10000);
    run(other, "UNLOCK TABLES");
}

static void end_session(void)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "KILL %lu", mysql_thread_id(mine));
    run(other, sql);
}

static void broken_connection__is_told(void **state)
{
    dblock_lock *lock = NULL, *second = NULL;
    dblock_status status;

    (void)state;
    assert_int_equal(DBLOCK_OK, take(DBLOCK_LEASE, "broken", 0, &lock));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "broken", 0, &second));
    end_session();
    status = dblock_confirm(second, &error);
    assert_int_equal(DBLOCK_LOST, status);
    assert_int_equal(DBLOCK_CAUSE_CONNECTION, dblock_lock_cause(second));
    assert_int_equal(DBLOCK_E_CONNECTION, dblock_confirm(lock, &error));
    dblock_lock_free(lock);
    dblock_lock_free(second);
}

static void advisory_lock_of_the_application__is_busy(void **state)
{
    dblock_lock *lock = NULL, *second = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    assert_int_equal(DBLOCK_BUSY, take(DBLOCK_ADVISORY, "counted", 30, &second));
    give_back(lock);
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    dblock_close(client); /* the session goes on, and holds nothing for it */
    client = NULL;
    dblock_lock_free(lock);
    assert_int_equal(DBLOCK_OK, open_on(0));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_ADVISORY, "counted", 0, &lock));
    give_back(lock);
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
        TEST(clock_that_the_application_has_set__is_set_aside),
        TEST(guard__is_not_misled_by_a_clock_that_is_set),
        TEST(completion_type__is_set_aside),
        TEST(limits_of_statements__are_set_aside),
        TEST(session_that_may_only_read__is_told_so),
        TEST(temporary_tables__are_refused),
        TEST(other_default_database__is_kept),
        TEST(connection_that_is_not_free__is_refused),
        TEST(failure__is_in_time_and_leaves_it_usable),
        TEST(broken_connection__is_told),
        TEST(advisory_lock_of_the_application__is_busy),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("mysql_borrowed", tests, NULL, NULL);
    application->database->stop();
    return n_failed == 0 ? 0 : 1;
}
