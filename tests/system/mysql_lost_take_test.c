/* SPDX-License-Identifier: MIT */
/* mysql_lost_take_test.c - a take of a row or advisory lock whose answer is lost is one that may have
 * been granted: until the server sees the end of the connection, the lock may be in the way of the
 * next try, which must not take it for somebody else's. Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tcp_proxy.h"
#include "test_wait.h"

#define SECOND 1000000u

enum { N_CUTS_MAX = 100 };

static struct mysql_fixture f;
static struct tcp_proxy *proxy;

/* The server's own, with the port of the proxy. */
static const char *proxied_url(void)
{
    static char url[MYSQL_FIXTURE_URL_MAX];
    char port[16];
    const char *end;

    (void)snprintf(port, sizeof port, ":%u/", mysql_fixture_port(&f));
    end = strstr(f.url, port);
    assert_non_null(end);
    (void)snprintf(url, sizeof url, "%.*s:%u/%s", (int)(end - f.url), f.url,
        tcp_proxy_port(proxy), end + strlen(port));
    return url;
}

struct attempt {
    const struct dblock_driver_session_lock *steps;
    struct dblock_connection *connection;
    struct dblock_take take;
};

static int is_taken(void *context)
{
    struct attempt *attempt = context;

    assert_int_equal(DBLOCK_OK, attempt->steps->take(attempt->connection, &f.call, &attempt->take,
                                    NULL, &f.answer, &f.error));
    return f.answer.outcome == DBLOCK_ANSWER_YES;
}

/* 1: it was cut before message `at`; 0: it has no more messages than that. */
static int take_with_cut(int strategy, uint64_t wait_us, unsigned int at)
{
    struct dblock_target *target = mysql_fixture_target(&f, proxied_url());
    struct attempt attempt = { strategy == DBLOCK_ROW ? &f.driver->row : &f.driver->advisory, NULL,
        mysql_take_of("lost-take", "o", NULL, 0) };
    int was_cut;

    assert_non_null(target);
    attempt.connection = mysql_fixture_connect_to(&f, target,
        strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY);
    assert_non_null(attempt.connection);
    mysql_fixture_limit(&f, 20 * SECOND, -1);
    /* Once before: the statement is prepared, and only that can be lost that takes. What was lost
     * the last time is in the way until the server has seen that. */
    assert_true(test_until(is_taken, &attempt, 10000));
    assert_int_equal(DBLOCK_OK, attempt.steps->drop(attempt.connection, &f.call,
                                    &attempt.take.subject, &f.answer, &f.error));
    memset(&f.answer, 0, sizeof f.answer);
    attempt.take.wait_us = wait_us;
    tcp_proxy_arm(proxy, at, PROXY_CUTS_BEFORE, 0);
    f.status = attempt.steps->take(
        attempt.connection, &f.call, &attempt.take, NULL, &f.answer, &f.error);
    was_cut = tcp_proxy_disarm(proxy);
    if (was_cut) {
        assert_int_equal(DBLOCK_E_UNCERTAIN, f.status);
    } else {
        assert_int_equal(DBLOCK_OK, f.status);
        assert_int_equal(DBLOCK_ANSWER_YES, f.answer.outcome);
    }
    f.driver->connection.close(attempt.connection, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
    return was_cut;
}

static void expect_uncertain(int strategy, uint64_t wait_us)
{
    struct dblock_connection *short_one = mysql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    unsigned int at = 1;

    assert_non_null(short_one);
    assert_int_equal(DBLOCK_ANSWER_YES, mysql_seed(&f, short_one, "lost-take"));
    while (at < N_CUTS_MAX && take_with_cut(strategy, wait_us, at))
        ++at;
    (void)printf("strategy %d: cut before each of %u messages\n", strategy, at - 1);
    assert_in_range(at, 3, N_CUTS_MAX - 1);
    f.driver->connection.close(short_one, DBLOCK_CLOSE_POLITE);
}

static void try_of_a_row__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ROW, 0);
}

static void wait_for_a_row__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ROW, 5 * SECOND);
}

static void try_of_an_advisory_lock__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ADVISORY, 0);
}

static void wait_for_an_advisory_lock__is_uncertain(void **state)
{
    (void)state;
    expect_uncertain(DBLOCK_ADVISORY, 5 * SECOND);
}

static int open_fixture(void **state)
{
    (void)state;
    if (mysql_fixture_open(&f) != 0)
        return -1;
    proxy = tcp_proxy_start(PROXY_WIRE_MYSQL, mysql_fixture_port(&f));
    return proxy != NULL ? 0 : -1;
}

static int close_fixture(void **state)
{
    (void)state;
    tcp_proxy_stop(proxy);
    mysql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(try_of_a_row__is_uncertain),
        cmocka_unit_test(wait_for_a_row__is_uncertain),
        cmocka_unit_test(try_of_an_advisory_lock__is_uncertain),
        cmocka_unit_test(wait_for_an_advisory_lock__is_uncertain),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
