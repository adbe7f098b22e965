/* SPDX-License-Identifier: MIT */
/* mysql_url_test.c - what the parameters of a URL do to a real connection: TLS and option
 * files, on the server of DBLOCK_TEST_MYSQL. Their parsing: unit/mysql_target_test.c.
 * Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct mysql_fixture fixture;

static int set_up(void **state)
{
    (void)state;
    return mysql_fixture_open(&fixture);
}

static int tear_down(void **state)
{
    (void)state;
    mysql_fixture_close(&fixture);
    return 0;
}

static struct dblock_connection *open_with(const char *parameters)
{
    char plain[MYSQL_FIXTURE_URL_MAX], url[MYSQL_FIXTURE_URL_MAX + 200];
    struct dblock_target *target;
    struct dblock_connection *connection;

    (void)snprintf(url, sizeof url, "%s%s",
        mysql_fixture_url(&fixture, plain, NULL, NULL, NULL), parameters);
    target = mysql_fixture_target(&fixture, url);
    assert_non_null(target);
    connection = mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    /* what the connection still needs of its target it asked for when it opened */
    fixture.driver->target_close(target);
    return connection;
}

static void tls__is_used_as_the_url_says(void **state)
{
    static const char *const modes[] = {
        "?ssl-mode=REQUIRED", "?ssl-mode=VERIFY_CA", "?ssl-mode=VERIFY_IDENTITY"};
    struct dblock_connection *connection = open_with("?ssl-mode=DISABLED");
    size_t i;

    (void)state;
    /* a password that the server has not cached may not go without TLS (MySQL 8) */
    assert_true(connection != NULL || fixture.status == DBLOCK_E_LOGIN);
    if (connection != NULL)
        assert_false(mysql_fixture_is_encrypted(connection));
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    connection = open_with("?ssl-mode=PREFERRED");
    assert_non_null(connection);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    for (i = 0; i < sizeof modes / sizeof *modes; ++i) {
        connection = open_with(modes[i]);
        if (connection != NULL) {
            assert_true(mysql_fixture_is_encrypted(connection));
            assert_int_equal(i, 0); /* a certificate that nobody knows is never verified */
        } else {
            assert_int_equal(fixture.status, DBLOCK_E_LOGIN);
        }
        fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    }
}

/* [mine], with how to log in; `more` is the rest of it. Removed by the caller. */
static struct dblock_target *target_of_file(char path[200], const char *more)
{
    char url[MYSQL_FIXTURE_URL_MAX + 200];
    struct dblock_target *target;
    FILE *file;

    (void)snprintf(path, 200, "%s/dblock-options-%d.cnf",
        getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "[mine]\nuser=%s\npassword=\"%s\"\nhost=%s\nport=%u\n%s",
        mysql_fixture_user(&fixture), mysql_fixture_password(&fixture),
        mysql_fixture_host(&fixture), mysql_fixture_port(&fixture), more);
    (void)fclose(file);
    (void)snprintf(url, sizeof url, "mysql:///%s?option-file=%s&option-group=mine",
        mysql_fixture_database(&fixture), path);
    target = mysql_fixture_target(&fixture, url);
    assert_non_null(target);
    return target;
}

static void option_file__gives_what_the_url_leaves_open(void **state)
{
    char path[200];
    struct dblock_target *target = target_of_file(path, "");
    struct dblock_connection *connection =
        mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);

    (void)state;
    (void)remove(path);
    assert_non_null(connection);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
}

/* What is granted after a COMMIT that chains is in a transaction that nobody ends. */
static void option_file__does_not_make_a_commit_of_ours_chain(void **state)
{
    char path[200];
    struct dblock_target *target = target_of_file(path, "init-command=SET completion_type = 1\n");
    struct dblock_connection *connection =
        mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    MYSQL *plain = mysql_fixture_plain(&fixture);

    (void)state;
    (void)remove(path);
    assert_non_null(connection);
    assert_non_null(plain);
    assert_int_equal(DBLOCK_ANSWER_YES,
        mysql_take(&fixture, connection, DBLOCK_LEASE, "first", "first", NULL, 60000000));
    assert_int_equal(
        DBLOCK_ANSWER_YES, mysql_break(&fixture, connection, DBLOCK_LEASE, "first", 0));
    assert_false(mysql_fixture_is_in_transaction(connection));
    assert_int_equal(DBLOCK_ANSWER_YES,
        mysql_take(&fixture, connection, DBLOCK_LEASE, "second", "second", NULL, 60000000));
    assert_int_equal(1,
        mysql_fixture_number(plain, "SELECT COUNT(*) FROM dblock_lease WHERE name = 'second'"));
    mysql_close(plain);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls__is_used_as_the_url_says),
        cmocka_unit_test(option_file__gives_what_the_url_leaves_open),
        cmocka_unit_test(option_file__does_not_make_a_commit_of_ours_chain),
    };

    return cmocka_run_group_tests_name("mysql_url", tests, set_up, tear_down);
}
