/* SPDX-License-Identifier: MIT */
/* pgsql_connection_test.c - the PostgreSQL driver's connections: round trips, what a failure is
 * called and whether it had an effect, URLs and rights. Alone on its server. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pgsql_fixture.h"
#include "pgsql_proxy.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY

enum { SECOND = 1000000 };

static struct pgsql_fixture f;
static struct dblock_connection *direct;
static struct pgsql_proxy proxy;
static struct dblock_target *proxied;

static const char *admin_url(void)
{
    return getenv("DBLOCK_TEST_PGSQL_ADMIN");
}

static int turns(void)
{
    return atomic_exchange(&proxy.n_turns, 0);
}

static void steps__take_one_round_trip(void **state)
{
    struct dblock_connection *c = pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT);
    struct dblock_connection *row = pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_ROW);
    struct dblock_connection *advisory =
        pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_ADVISORY);
    int round;

    (void)state;
    assert_non_null(advisory);
    (void)turns();
    for (round = 0; round < 2; ++round) { /* the first one prepares its statements, too */
        assert_int_equal(YES, pgsql_begin(&f, c, round == 0 ? "rt-0" : "rt-1", 60 * SECOND));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_renew(&f, c, "rt-0", 60 * SECOND));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "rt", "o1", "rt-0", 0));
        assert_int_equal(1, turns());
        assert_int_equal(BUSY, pgsql_take(&f, c, DBLOCK_LEASE, "rt", "o2", NULL, SECOND));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_look(&f, c, DBLOCK_LEASE, "rt"));
        assert_int_equal(1, turns());
        assert_int_equal(NO, pgsql_drop(&f, c, DBLOCK_LEASE, "rt", "o2", 0));
        assert_int_equal(2, turns()); /* is it locked, or not mine? */
        assert_int_equal(YES, pgsql_drop(&f, c, DBLOCK_LEASE, "rt", "o1", 0));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_INSERT, "rt", "o1", NULL, SECOND));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_drop(&f, c, DBLOCK_INSERT, "rt", "o1", 0));
        assert_int_equal(1, turns());
        /* over an ended grant the second message clears it away */
        assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "rt", "o3", NULL, 1000));
        test_pass_ms(2);
        (void)turns();
        assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "rt", "o4", NULL, SECOND));
        assert_int_equal(2, turns());
        assert_int_equal(YES, pgsql_drop(&f, c, DBLOCK_LEASE, "rt", "o4", 0));
        assert_int_equal(YES, pgsql_seed(&f, c, "rt"));
        (void)turns();
        assert_int_equal(YES, pgsql_lock(&f, row, DBLOCK_ROW, "rt", 0));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_prove(&f, row, DBLOCK_ROW, "rt"));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_unlock(&f, row, DBLOCK_ROW, "rt"));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_lock(&f, advisory, DBLOCK_ADVISORY, "rt", 0));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_draw(&f, advisory, DBLOCK_ADVISORY, "rt"));
        assert_int_equal(1, turns());
        assert_int_equal(YES, pgsql_unlock(&f, advisory, DBLOCK_ADVISORY, "rt"));
        assert_int_equal(1, turns());
    }
}

static void lost_answer__is_uncertain_for_writes_alone(void **state)
{
    struct dblock_connection *c = pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT);

    (void)state;
    atomic_store(&proxy.mode, PROXY_LOSES_ANSWER);
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "lost", "o1", NULL, 60 * SECOND));
    assert_int_equal(DBLOCK_E_UNCERTAIN, f.status);
    assert_int_equal(1, f.error.is_transient);
    assert_false(f.driver->connection.is_alive(c));
    /* I1: it had been done */
    assert_int_equal(YES, pgsql_look(&f, direct, DBLOCK_LEASE, "lost"));
    assert_string_equal("6f310000000000000000000000000000", f.grant.owner);

    /* a dead connection has certainly no effect */
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "lost-2", "o1", NULL, 60 * SECOND));
    assert_int_equal(DBLOCK_E_CONNECTION, f.status);

    c = pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT);
    atomic_store(&proxy.mode, PROXY_LOSES_ANSWER);
    assert_int_equal(-1, pgsql_look(&f, c, DBLOCK_LEASE, "lost"));
    assert_int_equal(DBLOCK_E_CONNECTION, f.status);
    assert_int_equal(YES, pgsql_drop(&f, direct, DBLOCK_LEASE, "lost", "o1", 0));
}

static void swallowed_packets__end_at_the_deadline(void **state)
{
    struct dblock_connection *c = pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT);
    uint64_t begun_ms;

    (void)state;
    atomic_store(&proxy.mode, PROXY_SWALLOWS);
    pgsql_fixture_limit(&f, 300000, -1);
    begun_ms = test_now_ms();
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "gone", "o1", NULL, SECOND));
    assert_int_equal(DBLOCK_E_UNCERTAIN, f.status);
    assert_true(test_now_ms() - begun_ms >= 295 && test_now_ms() - begun_ms < 1500);
    assert_false(f.driver->connection.is_alive(c));
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_ABORT);

    pgsql_fixture_limit(&f, 300000, -1);
    begun_ms = test_now_ms();
    assert_null(pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT));
    assert_int_equal(DBLOCK_E_CONNECTION, f.status);
    assert_true(test_now_ms() - begun_ms >= 295 && test_now_ms() - begun_ms < 1500);
    atomic_store(&proxy.mode, PROXY_PASSES);
}

static void connecting__heeds_the_cancel(void **state)
{
    int ends[2];
    uint64_t begun_ms;

    (void)state;
    assert_int_equal(0, pipe(ends));
    assert_int_equal(1, write(ends[1], "x", 1));
    pgsql_fixture_limit(&f, 5000000, ends[0]);
    atomic_store(&proxy.mode, PROXY_SWALLOWS);
    begun_ms = test_now_ms();
    assert_null(pgsql_fixture_connect_to(&f, proxied, DBLOCK_ROLE_SHORT));
    assert_int_equal(DBLOCK_CANCELLED, f.status);
    assert_true(test_now_ms() - begun_ms < 1000);
    atomic_store(&proxy.mode, PROXY_PASSES);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void terminated_session__had_no_effect(void **state)
{
    struct dblock_connection *c = pgsql_fixture_connect(&f, DBLOCK_ROLE_KEEPER);

    (void)state;
    pgsql_run(f.plain, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                       " WHERE application_name LIKE 'dblock % keeper'");
    assert_true(test_readable(f.driver->connection.fd(c), 5000));
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "ended", "o1", NULL, SECOND));
    assert_int_equal(DBLOCK_E_CONNECTION, f.status);
    assert_string_equal("57P01", f.error.sqlstate);
    assert_false(f.driver->connection.is_alive(c));
    assert_int_equal(NO, pgsql_look(&f, direct, DBLOCK_LEASE, "ended"));
}

static void descriptors__close_on_exec(void **state)
{
    int flags = fcntl(f.driver->connection.fd(direct), F_GETFD);

    (void)state;
    assert_true(flags >= 0 && (flags & FD_CLOEXEC) != 0);
}

static dblock_status connect_status(const char *url)
{
    struct dblock_target *target = pgsql_fixture_target(&f, url, f.schema, SECOND);
    struct dblock_connection *c;

    if (target == NULL)
        return f.status;
    c = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_SHORT);
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
    return f.status;
}

static void expect_message(const char *secret)
{
    size_t length = strlen(f.error.message);

    assert_true(length > 0);
    assert_null(strchr(f.error.message, '\n'));
    assert_true(f.error.message[length - 1] != '.');
    assert_null(strstr(f.error.message, secret));
    assert_null(strstr(f.error.hint, secret));
}

static void refusals__have_their_own_status(void **state)
{
    const char *tcp = getenv("DBLOCK_TEST_PGSQL_TCP");
    char url[300];

    (void)state;
    assert_int_equal(DBLOCK_E_CONNECTION, connect_status("postgresql://u:s3cret@127.0.0.1:1/d"));
    expect_message("s3cret");
    assert_int_equal(DBLOCK_E_CONNECTION, connect_status("postgresql://u:s3cret@/d?host=/nowhere"));
    expect_message("s3cret");
    /* a name may have several addresses, too: what each has said */
    assert_int_equal(
        DBLOCK_E_CONNECTION, connect_status("postgresql://u:s3cret@127.0.0.1:1,127.0.0.1:2/d"));
    expect_message("s3cret");
    assert_non_null(strstr(f.error.message, "port 1 "));
    assert_non_null(strstr(f.error.message, "; connection to server at \"127.0.0.1\", port 2 "));
    if (tcp == NULL)
        skip();
    (void)snprintf(url, sizeof url, "%s?sslmode=require", tcp);
    assert_int_equal(DBLOCK_E_LOGIN, connect_status(url));
    expect_message("never-print-me");
    (void)snprintf(url, sizeof url, "%s_no_such_database", tcp);
    assert_int_equal(DBLOCK_E_LOGIN, connect_status(url));
    assert_string_equal("3D000", f.error.sqlstate);
    assert_non_null(strstr(f.error.hint, "CREATE DATABASE"));
    expect_message("never-print-me");
    (void)snprintf(url, sizeof url, "%s?password=wr0ng", tcp);
    assert_int_equal(DBLOCK_E_LOGIN, connect_status(url));
    assert_string_equal("28P01", f.error.sqlstate);
    expect_message("wr0ng");
    assert_int_equal(0, f.error.is_transient);
}

static void urls__are_judged_without_showing_them(void **state)
{
    static const char *const wrong[] = { "postgresql://u:s3cret@[::1/d", "http://u:s3cret@h/d",
        "host=x password=s3cret s3cret", "postgresql://u:s3%zzcret@h/d",
        "postgresql://u:s3cret@h/d?s3cret=1", "postgresql://u:s3cret@h:port/d",
        "postgresql://u:s3cret@h:0/d", "postgresql://u:s3cret@h:65536/d",
        "postgresql://u:s3cret@h:1,h:x/d", "s3cret", "host='x password=s3cret" };
    static const char *const right[] = { "postgresql://", "postgres://u@h:5432,i:5433/d", "host=x",
        "service=some", "postgresql:///d?host=/tmp&application_name=mine" };
    struct dblock_target *target;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        assert_null(pgsql_fixture_target(&f, wrong[i], NULL, SECOND));
        assert_int_equal(DBLOCK_E_ARGUMENT, f.status);
        expect_message("s3");
    }
    for (i = 0; i < sizeof right / sizeof right[0]; ++i) {
        target = pgsql_fixture_target(&f, right[i], "odd \"schema\"; --", SECOND);
        assert_non_null(target);
        f.driver->target_close(target);
    }
}

/* What would end a text of ours in which it stands, or be taken for a mark in it. */
static void schema_name_that_is_unfit__is_refused(void **state)
{
    static const char *const names[] = { "a'b", "a\\b", "we\"ird, x$dblock$", "x@NAME@y", "@HIGH@" };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
        assert_null(pgsql_fixture_target(&f, "host=x", names[i], SECOND));
        assert_int_equal(DBLOCK_E_ARGUMENT, f.status);
        assert_non_null(strstr(f.error.message, "config.schema"));
    }
}

static void schema_name__may_be_odd(void **state)
{
    struct dblock_target *target =
        pgsql_fixture_target(&f, f.url, "dblock \"odd\"; $x$ a@b, -- \xc3\xa4", 5 * SECOND);
    struct dblock_connection *c, *holder, *waiter;

    (void)state;
    c = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_SHORT);
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "odd", "o1", NULL, SECOND));
    assert_int_equal(DBLOCK_E_SCHEMA, f.status);
    assert_string_equal("run: dblock init", f.error.hint);
    assert_int_equal(DBLOCK_E_SCHEMA,
        f.driver->connection.verify(c, &f.call, &f.answer, &f.error));
    assert_int_equal(DBLOCK_OK, f.driver->install(target, &f.call, &f.error));
    assert_int_equal(DBLOCK_OK, f.driver->install(target, &f.call, &f.error));
    assert_int_equal(
        DBLOCK_OK, f.driver->connection.verify(c, &f.call, &f.answer, &f.error));
    assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "odd", "o1", NULL, SECOND));
    assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_INSERT, "odd", "o1", NULL, SECOND));
    assert_int_equal(YES, pgsql_seed(&f, c, "odd"));
    holder = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ROW);
    waiter = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ROW);
    assert_int_equal(YES, pgsql_lock(&f, holder, DBLOCK_ROW, "odd", 0));
    assert_int_equal(BUSY, pgsql_lock(&f, waiter, DBLOCK_ROW, "odd", SECOND / 10));
    pgsql_fixture_disconnect(&f, holder, DBLOCK_CLOSE_POLITE);
    pgsql_fixture_disconnect(&f, waiter, DBLOCK_CLOSE_POLITE);
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
    pgsql_run(f.plain, "DROP SCHEMA \"dblock \"\"odd\"\"; $x$ a@b, -- \xc3\xa4\" CASCADE");
}

static void missing_rights_and_read_only__are_told_apart(void **state)
{
    struct dblock_target *target;
    struct dblock_connection *c;
    PGconn *admin;
    char text[1200];
    char url[300];

    (void)state;
    if (admin_url() == NULL)
        skip();
    admin = pgsql_plain(&f, admin_url());
    (void)snprintf(text, sizeof text,
        "DROP ROLE IF EXISTS %s_poor; CREATE ROLE %s_poor LOGIN PASSWORD 'p00r';"
        " GRANT USAGE ON SCHEMA %s TO %s_poor; GRANT SELECT ON %s.dblock_meta TO %s_poor",
        f.schema, f.schema, f.schema, f.schema, f.schema, f.schema);
    pgsql_run(admin, text);
    (void)snprintf(url, sizeof url, "host=%s port=5432 dbname=%s user=%s_poor password=p00r",
        proxy.folder, PQdb(admin), f.schema);
    target = pgsql_fixture_target(&f, url, f.schema, 5 * SECOND);
    c = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_SHORT);
    assert_non_null(c);
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "poor", "o1", NULL, SECOND));
    assert_int_equal(DBLOCK_E_PERMISSION, f.status);
    assert_non_null(strstr(f.error.hint, "GRANT"));
    assert_int_equal(DBLOCK_E_PERMISSION,
        f.driver->connection.verify(c, &f.call, &f.answer, &f.error));
    /* the hint is enough */
    (void)snprintf(text, sizeof text, "SET search_path = %s", f.schema);
    pgsql_run(admin, text);
    *strstr(f.error.hint, " (tables of") = 0;
    pgsql_run(admin, f.error.hint);
    assert_int_equal(
        DBLOCK_OK, f.driver->connection.verify(c, &f.call, &f.answer, &f.error));
    assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "poor", "o1", NULL, SECOND));
    assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_INSERT, "poor", "o1", NULL, SECOND));
    assert_int_equal(YES, pgsql_seed(&f, c, "poor"));
    assert_int_equal(YES, pgsql_draw(&f, c, DBLOCK_ROW, "poor"));
    assert_int_equal(YES, pgsql_purge(&f, c));
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);

    (void)snprintf(
        text, sizeof text, "ALTER ROLE %s_poor SET default_transaction_read_only = on", f.schema);
    pgsql_run(admin, text);
    c = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_SHORT);
    assert_int_equal(-1, pgsql_take(&f, c, DBLOCK_LEASE, "poor-2", "o1", NULL, SECOND));
    assert_int_equal(DBLOCK_E_READ_ONLY, f.status);
    assert_false(f.driver->connection.is_alive(c)); /* F4 */
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
    (void)snprintf(
        text, sizeof text, "DROP OWNED BY %s_poor; DROP ROLE %s_poor", f.schema, f.schema);
    pgsql_run(admin, text);
    PQfinish(admin);
}

/* PITFALL(B2):
 * A role whose defaults would break every promise; and a search_path that leads astray. */
static void role_defaults__decide_nothing(void **state)
{
    struct dblock_connection *c;
    char text[300];

    (void)state;
    (void)snprintf(text, sizeof text,
        "ALTER ROLE %s SET default_transaction_isolation = 'serializable';"
        " ALTER ROLE %s SET synchronous_commit = off; ALTER ROLE %s SET search_path = pg_temp;"
        " ALTER ROLE %s SET timezone = 'Asia/Kathmandu'",
        PQuser(f.plain), PQuser(f.plain), PQuser(f.plain), PQuser(f.plain));
    pgsql_run(f.plain, text);
    c = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    assert_int_equal(YES, pgsql_take(&f, c, DBLOCK_LEASE, "defaults", "o1", NULL, 60 * SECOND));
    assert_int_equal(BUSY, pgsql_take(&f, direct, DBLOCK_LEASE, "defaults", "o2", NULL, SECOND));
    assert_true(f.answer.remaining_us > 50 * SECOND);
    assert_int_equal(YES, pgsql_drop(&f, c, DBLOCK_LEASE, "defaults", "o1", 0));
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);
    (void)snprintf(text, sizeof text, "ALTER ROLE %s RESET ALL", PQuser(f.plain));
    pgsql_run(f.plain, text);
}

/* S17: since PostgreSQL 17 a role may have a limit for whole transactions, and a row lock is one. */
static void transaction_timeout__ends_no_row_lock(void **state)
{
    struct dblock_connection *c;
    char text[120];

    (void)state;
    if (PQserverVersion(f.plain) < 170000)
        return;
    (void)snprintf(
        text, sizeof text, "ALTER ROLE %s SET transaction_timeout = 300", PQuser(f.plain));
    pgsql_run(f.plain, text);
    c = pgsql_fixture_connect(&f, DBLOCK_ROLE_ROW);
    assert_int_equal(YES, pgsql_seed(&f, direct, "long"));
    assert_int_equal(YES, pgsql_lock(&f, c, DBLOCK_ROW, "long", 0));
    test_pass_ms(800);
    assert_int_equal(YES, pgsql_prove(&f, c, DBLOCK_ROW, "long"));
    assert_int_equal(YES, pgsql_unlock(&f, c, DBLOCK_ROW, "long"));
    pgsql_fixture_disconnect(&f, c, DBLOCK_CLOSE_POLITE);
    (void)snprintf(text, sizeof text, "ALTER ROLE %s RESET ALL", PQuser(f.plain));
    pgsql_run(f.plain, text);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0 || pgsql_proxy_start(&proxy, f.url) != 0)
        return -1;
    direct = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    proxied = pgsql_fixture_target(&f, proxy.url, f.schema, 2 * SECOND);
    return direct != NULL && proxied != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    while (f.n_connections > 0)
        pgsql_fixture_disconnect(&f, f.connections[0], DBLOCK_CLOSE_ABORT);
    f.driver->target_close(proxied);
    pgsql_proxy_stop(&proxy);
    pgsql_fixture_close(&f);
    return 0;
}

static int renew_limit(void **state)
{
    (void)state;
    pgsql_fixture_limit(&f, 20000000, -1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(steps__take_one_round_trip, renew_limit),
        cmocka_unit_test_setup(lost_answer__is_uncertain_for_writes_alone, renew_limit),
        cmocka_unit_test_setup(swallowed_packets__end_at_the_deadline, renew_limit),
        cmocka_unit_test_setup(connecting__heeds_the_cancel, renew_limit),
        cmocka_unit_test_setup(terminated_session__had_no_effect, renew_limit),
        cmocka_unit_test_setup(descriptors__close_on_exec, renew_limit),
        cmocka_unit_test_setup(refusals__have_their_own_status, renew_limit),
        cmocka_unit_test_setup(urls__are_judged_without_showing_them, renew_limit),
        cmocka_unit_test(schema_name_that_is_unfit__is_refused),
        cmocka_unit_test_setup(schema_name__may_be_odd, renew_limit),
        cmocka_unit_test_setup(missing_rights_and_read_only__are_told_apart, renew_limit),
        cmocka_unit_test_setup(role_defaults__decide_nothing, renew_limit),
        cmocka_unit_test_setup(transaction_timeout__ends_no_row_lock, renew_limit),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
