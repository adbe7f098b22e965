/* SPDX-License-Identifier: MIT */
/* pgsql_lost_take_test.c - a try of a row or advisory lock whose answer is lost is one that may have
 * been granted: until the server sees the end of the connection, the lock may be in the way of the
 * next try, which must not take it for somebody else's.
 * Runs beside others. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "tcp_proxy.h"

enum { SECOND = 1000000, N_CUTS_MAX = 100 };

static struct pgsql_fixture f;
static struct tcp_proxy *proxy;

static unsigned int server_port(void)
{
    const char *port = getenv("DBLOCK_TEST_PGSQL_PORT");

    return port != NULL ? (unsigned int)strtoul(port, NULL, 10) : 0;
}

/* The server's own, with the port of the proxy. */
static const char *proxied_url(void)
{
    static char url[300];
    const char *tcp = getenv("DBLOCK_TEST_PGSQL_TCP");
    char port[16];
    const char *end;

    (void)snprintf(port, sizeof port, ":%u/", server_port());
    end = tcp != NULL ? strstr(tcp, port) : NULL;
    assert_non_null(end);
    (void)snprintf(url, sizeof url, "%.*s:%u/%s?sslmode=disable&gssencmode=disable",
        (int)(end - tcp), tcp, tcp_proxy_port(proxy), end + strlen(port));
    return url;
}

/* 1: it was cut before message `at`; 0: it has no more messages than that. */
static int try_with_cut(int role, int strategy, uint64_t wait_us, unsigned int at)
{
    struct dblock_target *target =
        pgsql_fixture_target(&f, proxied_url(), f.schema, 5 * SECOND);
    struct dblock_connection *connection;
    int outcome, was_cut;

    assert_non_null(target);
    connection = pgsql_fixture_connect_to(&f, target, role);
    assert_non_null(connection);
    pgsql_fixture_limit(&f, 10 * SECOND, -1);
    tcp_proxy_arm(proxy, at, PROXY_CUTS_BEFORE, 0);
    outcome = pgsql_lock(&f, connection, strategy, "lost-take", wait_us);
    was_cut = tcp_proxy_disarm(proxy);
    if (was_cut) {
        assert_int_equal(-1, outcome);
        assert_int_equal(DBLOCK_E_UNCERTAIN, f.status);
    } else {
        assert_int_equal(DBLOCK_ANSWER_YES, outcome);
    }
    pgsql_fixture_disconnect(&f, connection, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
    return was_cut;
}

static void expect_uncertain(int role, int strategy, uint64_t wait_us)
{
    struct dblock_connection *short_one = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    unsigned int at = 1;

    assert_non_null(short_one);
    assert_int_equal(DBLOCK_ANSWER_YES, pgsql_seed(&f, short_one, "lost-take"));
    while (at < N_CUTS_MAX && try_with_cut(role, strategy, wait_us, at))
        ++at;
    (void)printf("strategy %d: cut before each of %u messages\n", strategy, at - 1);
    assert_in_range(at, 3, N_CUTS_MAX - 1);
}

static void try_of_a_row__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ROLE_ROW, DBLOCK_ROW, 0);
}

static void try_of_an_advisory_lock__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ROLE_ADVISORY, DBLOCK_ADVISORY, 0);
}

static void wait_for_an_advisory_lock__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ROLE_ADVISORY, DBLOCK_ADVISORY, SECOND);
}

static int open_fixture(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    proxy = tcp_proxy_start(PROXY_WIRE_PGSQL, server_port());
    return proxy != NULL ? 0 : -1;
}

static int close_fixture(void **state)
{
    (void)state;
    tcp_proxy_stop(proxy);
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(try_of_a_row__is_uncertain),
        cmocka_unit_test(try_of_an_advisory_lock__is_uncertain),
        cmocka_unit_test(wait_for_an_advisory_lock__is_uncertain),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
