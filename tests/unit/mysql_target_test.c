/* SPDX-License-Identifier: MIT */
/* mysql_target_test.c - URLs of the MySQL driver, and what its error numbers mean. */
#include <dblock/sys/driver.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "driver/mysql/mysql_error.h"
#include "driver/mysql/mysql_target.h"

static struct dblock_error error;
static dblock_status status;

static struct dblock_target *parse(const char *url)
{
    struct dblock_target_config config;
    struct dblock_target *target = NULL;

    memset(&config, 0, sizeof config);
    memset(&error, 0, sizeof error);
    config.url = url;
    config.host = "host";
    config.label = "label";
    status = mysql_target_open(&config, &target, &error);
    return target;
}

static void urls__are_parsed(void **state)
{
    struct dblock_target *target;

    (void)state;
    target = parse(
        "mysql://us%65r:p%40ss:%2F@[::1]:3307/d%20b?socket=%2Ftmp%2Fs&ssl-mode=verify_ca&"
        "ssl-ca=/c%61&ssl-cert=/cert&ssl-key=/key&option-file=/o&option-group=g");
    assert_non_null(target);
    assert_string_equal(target->user, "user");
    assert_string_equal(target->password, "p@ss:/");
    assert_string_equal(target->host, "::1");
    assert_int_equal(target->port, 3307);
    assert_string_equal(target->database, "d b");
    assert_string_equal(target->socket, "/tmp/s");
    assert_int_equal(target->tls, MYSQL_TLS_VERIFY_CA);
    assert_string_equal(target->ssl_ca, "/ca");
    assert_string_equal(target->option_group, "g");
    mysql_target_close(target);
    target = parse( "mariadb://host");
    assert_non_null(target);
    assert_null(target->user);
    assert_null(target->database);
    assert_int_equal(target->port, 0);
    mysql_target_close(target);
    target = parse( "mysql://");
    assert_non_null(target);
    assert_null(target->host);
    mysql_target_close(target);
}

static void urls__that_are_wrong_name_the_place(void **state)
{
    static const struct {
        const char *url;
        const char *part; /* of the message */
    } cases[] = {
        { "postgresql://h/d", "mysql://" },
        { "mysql:/h/d", "mysql://" },
        { "mysql://u:secret@h:0/d", "port" },
        { "mysql://u:secret@h:99999/d", "port" },
        { "mysql://u:secret@h:33x/d", "port" },
        { "mysql://u:secret@[::1/d", "]" },
        { "mysql://u:secret@[::1]x/d", "port" },
        { "mysql://u:secret%zz@h/d", "password" },
        { "mysql://u%4:secret@h/d", "user" },
        { "mysql://u:secret@h/d%00", "database" },
        { "mysql://u:secret@h/d/e", "database" },
        { "mysql://u:secret@h/d?colour=red", "colour" },
        { "mysql://u:secret@h/d?socket", "socket" },
        { "mysql://u:secret@h/d?ssl-mode=maybe", "maybe" },
        { "mysql://u:secret@h/d#x", "#" },
        { "mysql://u:12?secret@h/d", "?" },
        { "mysql://u:12/secret@h/d", "" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct dblock_target *target;

        target = parse( cases[i].url);
        if (target != NULL) {
            /* a password with an unescaped slash cannot be told from a database */
            assert_string_equal(cases[i].part, "");
            mysql_target_close(target);
            continue;
        }
        assert_int_equal(status, DBLOCK_E_ARGUMENT);
        assert_non_null(strstr(error.message, cases[i].part));
        assert_null(strstr(error.message, "secret"));
        assert_null(strstr(error.hint, "secret"));
    }
}

static void schema__is_the_database(void **state)
{
    struct dblock_target_config config;
    struct dblock_target *target = NULL;
    char host[400];

    (void)state;
    memset(&config, 0, sizeof config);
    memset(host, 'h', sizeof host);
    host[sizeof host - 1] = 0;
    config.url = "mysql://h/first";
    config.schema = "second";
    config.host = host;
    config.label = "label";
    assert_int_equal(mysql_target_open(&config, &target, &error), DBLOCK_OK);
    assert_string_equal(target->database, "second");
    assert_int_equal(strlen(target->client_host), 255);
    mysql_target_close(target);
    mysql_target_close(NULL);
}

static void errors__mean_what_the_table_says(void **state)
{
    static const struct {
        unsigned int code;
        enum mysql_class class_;
        int is_lost;
        dblock_status running, connecting;
    } cases[] = {
        { 1045, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_LOGIN, DBLOCK_E_LOGIN },
        { 1044, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_PERMISSION, DBLOCK_E_LOGIN },
        { 1049, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_LOGIN, DBLOCK_E_LOGIN },
        { 1040, MYSQL_CLASS_GONE, 0, DBLOCK_E_CONNECTION, DBLOCK_E_CONNECTION },
        { 1142, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_PERMISSION, DBLOCK_E_PERMISSION },
        { 1146, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_SCHEMA, DBLOCK_E_SCHEMA },
        { 1205, MYSQL_CLASS_LOCKED, 0, DBLOCK_E_DATABASE, DBLOCK_E_DATABASE },
        { 1213, MYSQL_CLASS_CONFLICT, 0, DBLOCK_E_DATABASE, DBLOCK_E_DATABASE },
        { 1290, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_READ_ONLY, DBLOCK_E_READ_ONLY },
        { 1665, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_UNSUPPORTED, DBLOCK_E_UNSUPPORTED },
        { 2003, MYSQL_CLASS_GONE, 0, DBLOCK_E_CONNECTION, DBLOCK_E_CONNECTION },
        { 2006, MYSQL_CLASS_GONE, 0, DBLOCK_E_CONNECTION, DBLOCK_E_CONNECTION },
        { 2013, MYSQL_CLASS_GONE, 1, DBLOCK_E_UNCERTAIN, DBLOCK_E_CONNECTION },
        { 2026, MYSQL_CLASS_GONE, 0, DBLOCK_E_LOGIN, DBLOCK_E_LOGIN },
        { 2999, MYSQL_CLASS_GONE, 0, DBLOCK_E_CONNECTION, DBLOCK_E_CONNECTION },
        { 3024, MYSQL_CLASS_TIMEOUT, 0, DBLOCK_E_DATABASE, DBLOCK_E_DATABASE },
        { 3572, MYSQL_CLASS_LOCKED, 0, DBLOCK_E_DATABASE, DBLOCK_E_DATABASE },
        { 9999, MYSQL_CLASS_REFUSED, 0, DBLOCK_E_DATABASE, DBLOCK_E_DATABASE },
    };
    const char *hint;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
        assert_int_equal(mysql_error_class(cases[i].code), cases[i].class_);
        assert_int_equal(mysql_error_is_lost_answer(cases[i].code), cases[i].is_lost);
        assert_int_equal(mysql_error_status(cases[i].code, 0, &hint), cases[i].running);
        assert_int_equal(mysql_error_status(cases[i].code, 1, &hint), cases[i].connecting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls__are_parsed),
        cmocka_unit_test(urls__that_are_wrong_name_the_place),
        cmocka_unit_test(schema__is_the_database),
        cmocka_unit_test(errors__mean_what_the_table_says),
    };

    return cmocka_run_group_tests_name("mysql_target", tests, NULL, NULL);
}
