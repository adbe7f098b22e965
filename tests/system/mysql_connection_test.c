/* SPDX-License-Identifier: MIT */
/* mysql_connection_test.c - the MySQL driver's connections and failures: what has been lost,
 * what has not been sent, who lacks which right, and that no password shows.
 * Alone on its server. Also on oracle. */
#include <mysql.h> /* first: functions that take its type are there then */

#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u
#define YES DBLOCK_ANSWER_YES

/* How much later than asked a call may end: Oracle's client library counts in its own
 * time-outs, in whole seconds. */
#ifdef MARIADB_BASE_VERSION
#define LATE_MS 0u
#else
#define LATE_MS 6000u
#endif

static struct mysql_fixture fixture;
static struct dblock_connection *mine;
static MYSQL *plain;

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    mine = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    return mine != NULL && mysql_begin(&fixture, mine, "mine", 60 * SECOND) == YES ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fixture.driver->connection.close(mine, DBLOCK_CLOSE_POLITE);
    mysql_close(plain);
    mysql_fixture_close(&fixture);
    return 0;
}

static void open__tells_the_clock_and_the_server(void **state)
{
    struct dblock_connection *connection = mysql_fixture_connect(&fixture, DBLOCK_ROLE_KEEPER);

    (void)state;
    assert_non_null(connection);
    assert_int_equal(fixture.answer.outcome, YES);
    assert_true(fixture.answer.now_us > (int64_t)1600000000 * 1000000);
    assert_true(fixture.driver->connection.fd(connection) >= 0);
    assert_int_equal(
        fcntl(fixture.driver->connection.fd(connection), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_true(fixture.driver->connection.is_alive(connection));
    assert_int_equal(mysql_fixture_is_mariadb(connection),
        mysql_fixture_number(plain, "SELECT VERSION() LIKE '%%MariaDB%%'"));
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->connection.close(NULL, DBLOCK_CLOSE_POLITE);
}

static void open__leaves_the_handling_of_signals_alone(void **state)
{
    struct sigaction action;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
}

/* A URL that fails: the status of opening a connection of it. */
static dblock_status open_url(const char *url)
{
    struct dblock_target *target = mysql_fixture_target(&fixture, url);
    struct dblock_connection *connection;

    assert_non_null(target);
    connection = mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    assert_null(connection);
    fixture.driver->target_close(target);
    return fixture.status;
}

static void login__failures_show_no_password(void **state)
{
    char url[MYSQL_FIXTURE_URL_MAX];

    (void)state;
    assert_int_equal(
        open_url(mysql_fixture_url(&fixture, url, NULL, "wr0ng-w0rd", NULL)), DBLOCK_E_LOGIN);
    assert_null(strstr(fixture.error.message, "wr0ng"));
    assert_null(strstr(fixture.error.hint, "wr0ng"));
    assert_int_equal(fixture.error.native_code, 1045);
    assert_string_equal(fixture.error.sqlstate, "28000");
    assert_int_equal(
        open_url(mysql_fixture_url(&fixture, url, NULL, NULL, "no_such_db")), DBLOCK_E_LOGIN);
    assert_int_equal(
        open_url(mysql_fixture_url(&fixture, url, NULL, NULL, "")), DBLOCK_E_SCHEMA);
}

static void open__of_an_unreachable_server_fails_in_time(void **state)
{
    char url[MYSQL_FIXTURE_URL_MAX];
    struct dblock_target *target;
    struct sockaddr_in address;
    struct dblock_connection *connection = NULL;
    socklen_t size = sizeof address;
    int silent = socket(AF_INET, SOCK_STREAM, 0);
    int ends[2];
    uint64_t begun;

    (void)state;
    assert_int_equal(open_url("mysql://u:p@127.0.0.1:1/d"), DBLOCK_E_CONNECTION);
    assert_int_equal(fixture.error.is_transient, 1);
    assert_int_equal(
        open_url("mysql://u:p@localhost/d?socket=/nonexistent/s"), DBLOCK_E_CONNECTION);
    /* somebody listens, and says nothing */
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(silent, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(silent, 5), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof url, "mysql://u:p@127.0.0.1:%u/d", ntohs(address.sin_port));
    target = mysql_fixture_target(&fixture, url);
    begun = test_now_ms();
    mysql_fixture_limit(&fixture, 300000, -1);
    assert_int_equal(fixture.driver->connection.open(target, DBLOCK_ROLE_SHORT, &fixture.call,
                         &connection, &fixture.answer, &fixture.error),
        DBLOCK_E_CONNECTION);
    assert_true(test_now_ms() - begun >= 290 && test_now_ms() - begun < 900 + LATE_MS);
    /* and a canceller ends it */
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    begun = test_now_ms();
    mysql_fixture_limit(&fixture, 3 * SECOND, ends[0]);
    assert_int_equal(fixture.driver->connection.open(target, DBLOCK_ROLE_SHORT, &fixture.call,
                         &connection, &fixture.answer, &fixture.error),
        DBLOCK_CANCELLED);
    assert_true(test_now_ms() - begun < 1500);
    fixture.call.cancel_fd = -1;
    (void)close(ends[0]);
    (void)close(ends[1]);
    fixture.driver->target_close(target);
    (void)close(silent);
}

static dblock_status take_within(struct dblock_connection *connection, const char *name,
    const char *owner, uint64_t limit_us)
{
    struct dblock_take take = mysql_take_of(name, owner, NULL, 60 * SECOND);

    mysql_fixture_limit(&fixture, limit_us, -1);
    return fixture.driver->lease.take(
        connection, &fixture.call, &take, NULL, &fixture.answer, &fixture.error);
}

static void killed_connection__is_known_before_the_next_statement(void **state)
{
    struct dblock_connection *connection = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);

    (void)state;
    assert_int_equal(mysql_fixture_run(plain, "KILL CONNECTION %lu", mysql_fixture_server_id(connection)), 0);
    assert_int_equal(test_readable(fixture.driver->connection.fd(connection), 2000), 1);
    test_pass_ms(10); /* a connection that is in use all the time is not looked at before */
    assert_int_equal(take_within(connection, "k", "k", SECOND), DBLOCK_E_CONNECTION);
    assert_false(fixture.driver->connection.is_alive(connection));
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
}

static void forked_child__leaves_the_parents_connection_alone(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        fixture.driver->connection.close(mine, DBLOCK_CLOSE_FORKED);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->connection.ping(
                         mine, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
}

static void missing_tables__are_e_schema(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    char url[MYSQL_FIXTURE_URL_MAX];
    struct dblock_connection *connection;
    struct dblock_target *target;

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin,
                         "DROP DATABASE IF EXISTS dblock_test_empty; "
                         "CREATE DATABASE dblock_test_empty; "
                         "GRANT ALL ON dblock_test_empty.* TO '%s'@'127.0.0.1'",
                         mysql_fixture_user(&fixture)),
        0);
    target = mysql_fixture_target(
        &fixture, mysql_fixture_url(&fixture, url, NULL, NULL, "dblock_test_empty"));
    connection = mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    assert_non_null(connection);
    assert_int_equal(take_within(connection, "x", "x", SECOND), DBLOCK_E_SCHEMA);
    assert_string_equal(fixture.error.hint, "run: dblock init");
    assert_int_equal(fixture.error.native_code, 1146);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_E_SCHEMA);
    /* the same connection works once they are there */
    assert_int_equal(
        fixture.driver->install(target, &fixture.call, &fixture.error), DBLOCK_OK);
    assert_int_equal(take_within(connection, "x", "x", SECOND), DBLOCK_OK);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    /* tables of a later release, and names that a collation compares */
    assert_int_equal(
        mysql_fixture_run(admin, "UPDATE dblock_test_empty.dblock_meta SET version = 2"), 0);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_E_SCHEMA);
    assert_int_equal(
        mysql_fixture_run(admin,
            "UPDATE dblock_test_empty.dblock_meta SET version = 1; "
            "ALTER TABLE dblock_test_empty.dblock_lease MODIFY name VARCHAR(255) NOT NULL"),
        0);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_E_SCHEMA);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
    assert_int_equal(mysql_fixture_run(admin, "DROP DATABASE dblock_test_empty"), 0);
    mysql_close(admin);
}

/* What stands in texts of ours beside its values is not taken for one of them. */
static void database_name__may_be_odd(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    MYSQL *admin = mysql_fixture_admin(&fixture);
    char url[MYSQL_FIXTURE_URL_MAX];
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin,
                         "DROP DATABASE IF EXISTS `dblock_test_a?``b`; "
                         "CREATE DATABASE `dblock_test_a?``b`; "
                         "GRANT ALL ON `dblock_test_a?``b`.* TO '%s'@'127.0.0.1'",
                         mysql_fixture_user(&fixture)),
        0);
    config.schema = "dblock_test_a?`b";
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    assert_int_equal(dblock_open(dblock_mysql_driver(),
                         mysql_fixture_url(&fixture, url, NULL, NULL, NULL), &config, &client,
                         &fixture.error),
        DBLOCK_OK);
    assert_int_equal(dblock_schema_install(client, &fixture.error), DBLOCK_OK);
    assert_int_equal(
        dblock_acquire(client, "odd", &options, &lock, &fixture.error), DBLOCK_OK);
    assert_int_equal(mysql_fixture_run(admin, "START TRANSACTION"), 0);
    assert_int_equal(dblock_mysql_guard(lock, admin, &fixture.error), DBLOCK_OK);
    dblock_lock_free(lock);
    options.heartbeat = 0;
    options.strategy = DBLOCK_ROW;
    assert_int_equal(
        dblock_mysql_acquire_in(client, admin, "odd", &options, NULL, &fixture.error), DBLOCK_OK);
    assert_int_equal(mysql_fixture_run(admin, "ROLLBACK"), 0);
    dblock_close(client);
    assert_int_equal(mysql_fixture_run(admin, "DROP DATABASE `dblock_test_a?``b`"), 0);
    mysql_close(admin);
}

static void *run_install(void *argument)
{
    struct dblock_error error;
    struct dblock_call call = { dblock_clock_us() + 20 * SECOND, -1 };
    dblock_status *status = argument;

    *status = fixture.driver->install(fixture.target, &call, &error);
    if (*status != DBLOCK_OK)
        (void)fprintf(stderr, "%s\n", error.message);
    mysql_thread_end();
    return NULL;
}

static void install__may_run_by_many_at_once(void **state)
{
    pthread_t threads[6];
    dblock_status statuses[6];
    int i;

    (void)state;
    for (i = 0; i < 6; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, run_install, &statuses[i]), 0);
    for (i = 0; i < 6; ++i) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(statuses[i], DBLOCK_OK);
    }
}

static void missing_rights__are_e_permission(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    char url[MYSQL_FIXTURE_URL_MAX];
    struct dblock_connection *connection, *adviser;
    struct dblock_target *target;

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin,
                         "DROP USER IF EXISTS dblock_test_poor@'127.0.0.1'; "
                         "CREATE USER dblock_test_poor@'127.0.0.1' IDENTIFIED BY 'p0or'; "
                         "GRANT SELECT ON `%s`.* TO dblock_test_poor@'127.0.0.1'",
                         mysql_fixture_database(&fixture)),
        0);
    target = mysql_fixture_target(
        &fixture, mysql_fixture_url(&fixture, url, "dblock_test_poor", "p0or", NULL));
    connection = mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    assert_non_null(connection);
    assert_int_equal(take_within(connection, "x", "x", SECOND), DBLOCK_E_PERMISSION);
    assert_non_null(strstr(fixture.error.hint, "dblock schema -g USER@HOST mysql"));
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->connection.verify(
                         connection, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_E_PERMISSION);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(
        fixture.driver->install(target, &fixture.call, &fixture.error), DBLOCK_E_PERMISSION);
    assert_non_null(strstr(fixture.error.hint, "dblock schema -g"));
    /* another user's advisory lock */
    adviser = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ADVISORY);
    assert_int_equal(mysql_take(&fixture, adviser, DBLOCK_ADVISORY, "x", "x", NULL, 0), YES);
    assert_int_equal(mysql_break(&fixture, connection, DBLOCK_ADVISORY, "x", 0), -1);
    assert_int_equal(fixture.status, DBLOCK_E_PERMISSION);
    assert_non_null(strstr(fixture.error.hint, "CONNECTION"));
    fixture.driver->connection.close(adviser, DBLOCK_CLOSE_POLITE);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
    assert_int_equal(mysql_fixture_run(admin, "DROP USER dblock_test_poor@'127.0.0.1'"), 0);
    mysql_close(admin);
}

/* PITFALL(F5), PITFALL(F4): a lock that lives in one server alone would be had there, too. */
static void read_only_server__is_e_read_only(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    struct dblock_connection *adviser;

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin, "SET GLOBAL read_only = 1"), 0);
    fixture.status = take_within(mine, "ro", "ro", SECOND);
    adviser = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ADVISORY);
    assert_int_equal(mysql_fixture_run(admin, "SET GLOBAL read_only = 0"), 0);
    mysql_close(admin);
    assert_int_equal(fixture.status, DBLOCK_OK); /* of opening */
    assert_int_equal(mysql_take(&fixture, adviser, DBLOCK_ADVISORY, "ro", "ro", NULL, 0), -1);
    assert_int_equal(fixture.status, DBLOCK_E_READ_ONLY);
    fixture.driver->connection.close(adviser, DBLOCK_CLOSE_POLITE);
}

static void read_only_server__refuses_takes(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    dblock_status status;

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin, "SET GLOBAL read_only = 1"), 0);
    status = take_within(mine, "ro", "ro", SECOND);
    assert_int_equal(mysql_fixture_run(admin, "SET GLOBAL read_only = 0"), 0);
    mysql_close(admin);
    assert_int_equal(status, DBLOCK_E_READ_ONLY);
    assert_true(fixture.driver->connection.is_alive(mine));
    assert_int_equal(take_within(mine, "ro", "ro", SECOND), DBLOCK_OK);
    assert_int_equal(mysql_drop(&fixture, mine, DBLOCK_LEASE, "ro", "ro", 0), YES);
}

/* PITFALL(B2), PITFALL(A5): zone, sql_mode and autocommit are set by the driver. */
static void settings__of_the_server_do_not_matter(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    struct dblock_connection *connection;
    char longer[300];

    (void)state;
    if (admin == NULL)
        return;
    assert_int_equal(mysql_fixture_run(admin,
                         "SET GLOBAL init_connect = \"SET autocommit = 0, sql_mode = '', "
                         "time_zone = '+05:30'\""),
        0);
    connection = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    assert_int_equal(mysql_fixture_run(admin, "SET GLOBAL init_connect = ''"), 0);
    mysql_close(admin);
    assert_non_null(connection);
    assert_int_equal(
        mysql_take(&fixture, connection, DBLOCK_LEASE, "set", "s1", "mine", 0), YES);
    assert_int_equal(mysql_look(&fixture, mine, DBLOCK_LEASE, "set"), YES); /* committed */
    assert_true(
        fixture.answer.now_us - fixture.grant.since_us >= 0 &&
        fixture.answer.now_us - fixture.grant.since_us < 5 * (int64_t)SECOND);
    assert_int_equal(mysql_drop(&fixture, connection, DBLOCK_LEASE, "set", "s1", 0), YES);
    memset(longer, 'x', 256);
    longer[256] = 0;
    assert_int_equal(
        mysql_take(&fixture, connection, DBLOCK_LEASE, longer, "s2", "mine", 0), -1);
    assert_int_equal(fixture.status, DBLOCK_E_DATABASE); /* never cut */
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open__tells_the_clock_and_the_server),
        cmocka_unit_test(open__leaves_the_handling_of_signals_alone),
        cmocka_unit_test(login__failures_show_no_password),
        cmocka_unit_test(open__of_an_unreachable_server_fails_in_time),
        cmocka_unit_test(killed_connection__is_known_before_the_next_statement),
        cmocka_unit_test(forked_child__leaves_the_parents_connection_alone),
        cmocka_unit_test(missing_tables__are_e_schema),
        cmocka_unit_test(database_name__may_be_odd),
        cmocka_unit_test(install__may_run_by_many_at_once),
        cmocka_unit_test(missing_rights__are_e_permission),
        cmocka_unit_test(read_only_server__is_e_read_only),
        cmocka_unit_test(read_only_server__refuses_takes),
        cmocka_unit_test(settings__of_the_server_do_not_matter),
    };

    return cmocka_run_group_tests_name("mysql_connection", tests, set_up, tear_down);
}
