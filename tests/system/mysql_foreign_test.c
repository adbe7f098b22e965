/* SPDX-License-Identifier: MIT */
/* mysql_foreign_test.c - advisory locks on MySQL and MariaDB beside those of other programs, on a
 * server that is too old for them, and behind something that lends out sessions of its own. Alone
 * on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_proxy.h"

#define SECOND 1000000u
#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY

static struct mysql_fixture fixture;
static struct dblock_connection *mine, *other;

static int lock_as(
    int strategy, struct dblock_connection *connection, const char *name, uint64_t wait_us)
{
    struct dblock_take take = mysql_take_of(name, "owner", NULL, 0);

    take.wait_us = wait_us;
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    return mysql_take_as(&fixture, connection, strategy, &take);
}

static int lock(struct dblock_connection *connection, const char *name, uint64_t wait_us)
{
    return lock_as(DBLOCK_ADVISORY, connection, name, wait_us);
}

static int unlock(struct dblock_connection *connection, const char *name)
{
    const struct dblock_subject subject = mysql_subject(name);

    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status = fixture.driver->advisory.drop(
        connection, &fixture.call, &subject, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

/* A9: names that others use, and ours as a program without a library would write it. */
static void names_of_other_programs__block_nobody(void **state)
{
    static const char *const names[] = { "1", "-1", "job", "dblock:job", "3,12345" };
    MYSQL *plain = mysql_fixture_plain(&fixture);
    size_t i;

    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
        assert_int_equal(1, mysql_fixture_number(plain, "SELECT GET_LOCK('%s', 0)", names[i]));
        assert_int_equal(YES, lock(mine, names[i], 0));
        assert_int_equal(BUSY, lock(other, names[i], 0));
        assert_int_equal(YES, unlock(mine, names[i]));
        assert_int_equal(YES, lock(other, names[i], SECOND));
        assert_int_equal(YES, unlock(other, names[i]));
    }
    mysql_close(plain);
}

/* ----------------------------------------------------------- what a server says */

static struct session_proxy *proxy;
static struct dblock_target *target;

static void begin(session_proxy_fn greet)
{
    char url[MYSQL_FIXTURE_URL_MAX];

    proxy = session_proxy_start(
        (unsigned int)strtoul(getenv("DBLOCK_TEST_MYSQL_PORT"), NULL, 10), greet);
    assert_non_null(proxy);
    (void)snprintf(url, sizeof url, "mysql://%s:%s@127.0.0.1:%u/%s?ssl-mode=DISABLED",
        mysql_fixture_user(&fixture), mysql_fixture_password(&fixture), session_proxy_port(proxy),
        mysql_fixture_database(&fixture));
    target = mysql_fixture_target(&fixture, url);
    assert_non_null(target);
}

static struct dblock_connection *come(int role)
{
    struct dblock_connection *connection = mysql_fixture_connect_to(&fixture, target, role);

    if (connection == NULL)
        fail_msg("%s", fixture.error.message);
    return connection;
}

static void leave(struct dblock_connection *connection)
{
    fixture.driver->connection.close(connection, DBLOCK_CLOSE_ABORT);
}

static void end(void)
{
    fixture.driver->target_close(target);
    session_proxy_stop(proxy);
}

/* The text of the version stands behind the header of the packet and the version of the protocol;
 * it becomes another one of the same length. `last` is its last digit. */
static void say_version(unsigned char *bytes, size_t size, char last)
{
    char *version = (char *)bytes + 5;
    int is_mariadb;
    size_t length;

    if (size < 20 || memchr(version, 0, size - 5) == NULL)
        return;
    is_mariadb = strstr(version, "MariaDB") != NULL;
    if (strncmp(version, "5.5.5-", 6) == 0)
        version += 6;
    length = strspn(version, "0123456789.");
    if (length < 5)
        return;
    memset(version, '0', length);
    memcpy(version, is_mariadb ? "10." : "5.7.", is_mariadb ? 3 : 4);
    if (is_mariadb)
        version[length - 2] = '.';
    version[length - 1] = last;
}

/* MariaDB 10.0.1, MySQL 5.7.4 */
static void say_too_old(unsigned char *bytes, size_t size)
{
    say_version(bytes, size, strstr((char *)bytes + 5, "MariaDB") != NULL ? '1' : '4');
}

/* MariaDB 10.0.2, MySQL 5.7.5 */
static void say_just_new_enough(unsigned char *bytes, size_t size)
{
    say_version(bytes, size, strstr((char *)bytes + 5, "MariaDB") != NULL ? '2' : '5');
}

/* The number of the connection stands behind the version. */
static void say_another_number(unsigned char *bytes, size_t size)
{
    unsigned char *end_of_version = size > 20 ? memchr(bytes + 5, 0, size - 15) : NULL;

    if (end_of_version != NULL)
        end_of_version[1] ^= 0x55;
}

static void expect_refused(const char *word)
{
    struct dblock_connection *connection = come(DBLOCK_ROLE_ADVISORY);
    static const uint64_t waits_us[] = { 0, SECOND };
    size_t i;

    for (i = 0; i < 2; ++i) {
        assert_int_equal(-1, lock(connection, "refused", waits_us[i]));
        assert_int_equal(DBLOCK_E_UNSUPPORTED, fixture.status);
        assert_non_null(strstr(fixture.error.message, word));
        assert_non_null(strstr(fixture.error.hint, "lease or insert"));
    }
    leave(connection);
    assert_int_equal(YES, lock(mine, "refused", 0));
    assert_int_equal(YES, unlock(mine, "refused"));
}

static void expect_row_and_lease(void)
{
    struct dblock_connection *connection = come(DBLOCK_ROLE_SHORT);

    assert_int_equal(
        YES, mysql_take(&fixture, connection, DBLOCK_LEASE, "old", "a", NULL, 10 * SECOND));
    assert_int_equal(
        BUSY, mysql_take(&fixture, connection, DBLOCK_LEASE, "old", "b", NULL, 10 * SECOND));
    assert_int_equal(YES, mysql_drop(&fixture, connection, DBLOCK_LEASE, "old", "a", 0));
    leave(connection);
}

/* PITFALL(D17): there a second GET_LOCK would free the first, and nobody would be told. */
static void old_server__is_refused_for_advisory(void **state)
{
    struct dblock_connection *connection;

    (void)state;
    begin(say_too_old);
    expect_refused("this version");
    expect_row_and_lease();
    end();
    begin(say_just_new_enough);
    connection = come(DBLOCK_ROLE_ADVISORY);
    assert_int_equal(YES, lock(connection, "first", 0));
    assert_int_equal(YES, lock(connection, "second", 0));
    assert_int_equal(BUSY, lock(mine, "first", 0));
    leave(connection);
    end();
}

/* PITFALL(D3): it has given us a number of its own, and the server another one. */
static void lent_session__is_refused_for_advisory(void **state)
{
    (void)state;
    begin(say_another_number);
    expect_refused("lends out connections");
    expect_row_and_lease();
    end();
}

/* D3: it has not, and changes the session later. The second client asks on the session of the
 * first, which has the lock already. */
static void changed_session__grants_nothing(void **state)
{
    struct dblock_connection *first, *second;

    (void)state;
    begin(NULL);
    first = come(DBLOCK_ROLE_ADVISORY);
    second = come(DBLOCK_ROLE_ADVISORY);
    session_proxy_route(proxy, 0);
    assert_int_equal(YES, lock(first, "switched", 0));
    assert_int_equal(BUSY, lock(second, "switched", 0));
    assert_int_equal(BUSY, lock(second, "switched", SECOND / 10));
    assert_int_equal(BUSY, lock(mine, "switched", 0));
    assert_int_equal(YES, unlock(first, "switched"));
    session_proxy_route(proxy, -1);
    leave(first);
    leave(second);
    end();
}

/* The session that answers has not prepared what is executed: it is prepared there, unseen. */
static void unknown_statement__is_prepared_anew(void **state)
{
    struct dblock_connection *first, *second;

    (void)state;
    begin(NULL);
    first = come(DBLOCK_ROLE_ADVISORY);
    second = come(DBLOCK_ROLE_ADVISORY);
    assert_int_equal(YES, lock(first, "anew", 0));
    assert_int_equal(YES, unlock(first, "anew"));
    session_proxy_route(proxy, 1);
    assert_int_equal(YES, lock(first, "anew", 0));
    assert_int_equal(BUSY, lock(mine, "anew", 0));
    assert_int_equal(YES, unlock(first, "anew"));
    assert_int_equal(YES, lock(mine, "anew", 0));
    assert_int_equal(YES, unlock(mine, "anew"));
    session_proxy_route(proxy, -1);
    leave(first);
    leave(second);
    end();
}

/* Something has set the session anew: it is no session for row locks any more, and nobody is to be
 * refused over it a second time. */
static void session_that_was_set_anew__is_given_up(void **state)
{
    struct dblock_connection *rows = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ROW);
    struct dblock_take take = mysql_take_of("anew", "owner", NULL, 0);

    (void)state;
    assert_non_null(rows);
    assert_int_equal(YES, mysql_seed(&fixture, rows, "anew"));
    assert_int_equal(0, mysql_fixture_run_on(rows, "SET autocommit = 1"));
    (void)mysql_take_as(&fixture, rows, DBLOCK_ROW, &take);
    assert_int_equal(DBLOCK_E_UNSUPPORTED, fixture.status);
    assert_false(fixture.driver->connection.is_alive(rows));
    fixture.driver->connection.close(rows, DBLOCK_CLOSE_ABORT);
}

static int open_all(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    mine = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ADVISORY);
    other = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ADVISORY);
    return mine != NULL && other != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    leave(mine);
    leave(other);
    mysql_fixture_close(&fixture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_other_programs__block_nobody),
        cmocka_unit_test(old_server__is_refused_for_advisory),
        cmocka_unit_test(lent_session__is_refused_for_advisory),
        cmocka_unit_test(changed_session__grants_nothing),
        cmocka_unit_test(unknown_statement__is_prepared_anew),
        cmocka_unit_test(session_that_was_set_anew__is_given_up),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
