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

static void option_file__gives_what_the_url_leaves_open(void **state)
{
    char path[200], url[MYSQL_FIXTURE_URL_MAX + 200];
    struct dblock_connection *connection;
    struct dblock_target *target;
    FILE *file;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/dblock-options-%d.cnf",
        getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "[mine]\nuser=%s\npassword=\"%s\"\nhost=%s\nport=%u\n",
        mysql_fixture_user(&fixture), mysql_fixture_password(&fixture),
        mysql_fixture_host(&fixture), mysql_fixture_port(&fixture));
    (void)fclose(file);
    (void)snprintf(url, sizeof url, "mysql:///%s?option-file=%s&option-group=mine",
        mysql_fixture_database(&fixture), path);
    target = mysql_fixture_target(&fixture, url);
    assert_non_null(target);
    connection = mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    (void)remove(path);
    assert_non_null(connection);
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls__is_used_as_the_url_says),
        cmocka_unit_test(option_file__gives_what_the_url_leaves_open),
    };

    return cmocka_run_group_tests_name("mysql_url", tests, set_up, tear_down);
}
