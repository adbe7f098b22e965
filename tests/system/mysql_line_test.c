/* SPDX-License-Identifier: MIT */
/* mysql_line_test.c - the lines of those who wait for lease and insert on MySQL and MariaDB,
 * step by step: who is first, who is woken by what, what a dead or idle one costs, and what
 * is left behind. With real processes: crowd_test.c. Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mysql_waiter.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY
#define AGAIN DBLOCK_ANSWER_AGAIN

enum {
    SECOND = 1000000,
    N_LINES = 6,
    N_BELLS = 32,
    SOON_MS = 5000 /* for one who is woken: far from MYSQL_WAIT_MS, and enough for a busy machine */
};

static struct mysql_fixture fixture;
static struct dblock_connection *taker, *other, *line[N_LINES];
static MYSQL *plain;

static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
#define FOR_BOTH(strategy) for (i = 0, strategy = both[0]; i < 2; strategy = both[++i % 2])

#define TAKE(who, strategy, name, owner)                                                           \
    mysql_take(&fixture, who, strategy, name, owner, NULL, 60 * SECOND)
#define DROP(who, strategy, name, owner) mysql_drop(&fixture, who, strategy, name, owner, 0)
#define STAND(who, strategy, name) mysql_stand(&fixture, who, strategy, name, 5 * SECOND)
#define REST(who, owner) mysql_rest(&fixture, who, owner, 5 * SECOND)

static void leave(struct dblock_connection *connection)
{
    fixture.driver->line.leave(connection);
}

static void close_connection(struct dblock_connection *connection, int how)
{
    fixture.driver->connection.close(connection, how);
}

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    taker = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    other = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    plain = mysql_fixture_plain(&fixture);
    return taker == NULL || other == NULL ? -1 : 0;
}

/* Fresh for each test, as a place that idles is lost. */
static int open_lines(void **state)
{
    size_t i;

    (void)state;
    fixture.call.cancel_fd = -1;
    for (i = 0; i < N_LINES; ++i) {
        line[i] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
        if (line[i] == NULL)
            return -1;
    }
    return 0;
}

static int close_lines(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_LINES; ++i)
        close_connection(line[i], DBLOCK_CLOSE_ABORT);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mysql_close(plain);
    close_connection(taker, DBLOCK_CLOSE_POLITE);
    close_connection(other, DBLOCK_CLOSE_POLITE);
    mysql_fixture_close(&fixture);
    return 0;
}

static int is_gate_free(int strategy, const char *name)
{
    return mysql_gate(plain, "IS_FREE_LOCK", strategy, name, "");
}

static int is_bell_free(const char *owner)
{
    return mysql_bell_is_free(plain, owner);
}

static int is_line_empty(void *context)
{
    return is_gate_free(DBLOCK_LEASE, context) == 1 && is_gate_free(DBLOCK_INSERT, context) == 1;
}

static void start_one(struct mysql_waiter *waiter, struct dblock_connection *connection,
    int strategy, const char *owner, int is_napping)
{
    assert_true(
        mysql_waiter_start(waiter, &fixture, plain, connection, strategy, owner, is_napping));
}

static void start(struct mysql_waiter *waiter, struct dblock_connection *connection, int strategy,
    const char *owner)
{
    start_one(waiter, connection, strategy, owner, 0);
}

static int end(struct mysql_waiter *waiter)
{
    return mysql_waiter_end(waiter);
}

/* By one that may idle, other than those of the role LINE. */
static void stand_first(int strategy)
{
    assert_int_equal(mysql_gate(plain, "GET_LOCK", strategy, "x", ", 5"), 1);
}

static void leave_first(int strategy)
{
    assert_int_equal(mysql_gate(plain, "RELEASE_LOCK", strategy, "x", ""), 1);
}

static int64_t count_statements(void)
{
    return mysql_status(plain, "Questions");
}

static void first__is_woken(void **state)
{
    struct mysql_waiter waiter;
    uint64_t begun_ms;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "w1"), YES);
        assert_int_equal(STAND(line[0], strategy, "x"), YES);
        start(&waiter, line[0], strategy, "w1");
        begun_ms = test_now_ms();
        assert_int_equal(DROP(taker, strategy, "x", "w1"), YES);
        assert_int_equal(end(&waiter), YES);
        assert_true(waiter.ended_ms - begun_ms < SOON_MS);
        /* free, but there is somebody */
        assert_int_equal(mysql_take_heeding(&fixture, other, strategy, "x", "w2"), BUSY);
        assert_int_equal(fixture.answer.remaining_us, 0);
        assert_int_equal(is_bell_free("w2"), 1);
        assert_int_equal(mysql_take_heeding(&fixture, other, strategy, "y", "w3"), YES);
        assert_int_equal(DROP(other, strategy, "y", "w3"), YES);
        assert_int_equal(TAKE(other, strategy, "x", "w4"), YES);
        assert_int_equal(is_bell_free("w4"), 0);
        /* while he did not rest */
        assert_int_equal(DROP(other, strategy, "x", "w4"), YES);
        begun_ms = test_now_ms();
        assert_int_equal(REST(line[0], "w4"), YES);
        assert_true(test_now_ms() - begun_ms < SOON_MS);
        leave(line[0]);
        assert_true(test_until(is_line_empty, (void *)"x", 5000));
        assert_int_equal(mysql_take_heeding(&fixture, other, strategy, "x", "w5"), YES);
        assert_int_equal(DROP(other, strategy, "x", "w5"), YES);
    }
}

/* Whoever ends it, and wherever its bell is. */
static void first__is_woken_by_others_than_the_holder(void **state)
{
    struct dblock_target *target = mysql_fixture_target(&fixture, fixture.url);
    struct dblock_connection *foreign =
        mysql_fixture_connect_to(&fixture, target, DBLOCK_ROLE_SHORT);
    static const char *const owners[] = { "o0", "o1", "o2", "o3", "o4" };
    struct mysql_waiter waiter;
    uint64_t begun_ms;
    int strategy, i, n;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(STAND(line[0], strategy, "x"), YES);
        for (n = 0; n < 5; ++n) {
            struct dblock_connection *ender = n == 0 ? foreign : other;

            assert_int_equal(TAKE(taker, strategy, "x", owners[n]), YES);
            start(&waiter, line[0], strategy, owners[n]);
            begun_ms = test_now_ms();
            if (n < 2)
                assert_int_equal(DROP(ender, strategy, "x", owners[n]), YES);
            else if (n == 2)
                assert_int_equal(mysql_break(&fixture, ender, strategy, "x", 0), YES);
            else /* that stays taken, but not as long as it was known */
                assert_int_equal(mysql_drop(&fixture, n == 3 ? taker : other, strategy, "x", owners[n],
                                     60 * SECOND),
                    YES);
            assert_int_equal(end(&waiter), YES);
            assert_true(waiter.ended_ms - begun_ms < SOON_MS);
            /* what another connection of this client gave back its own unlocks soon */
            assert_int_equal(TAKE(taker, strategy, "z", "z"), YES);
            assert_int_equal(DROP(taker, strategy, "z", "z"), YES);
            if (n != 0 && n != 2)
                assert_int_equal(is_bell_free(owners[n]), 1);
            if (n >= 3)
                assert_int_equal(DROP(taker, strategy, "x", owners[n]), YES);
        }
        leave(line[0]);
    }
    close_connection(foreign, DBLOCK_CLOSE_POLITE);
    fixture.driver->target_close(target);
}

/* A grant that shall end earlier than was known. */
static void first__is_woken_by_an_earlier_end(void **state)
{
    struct mysql_waiter waiter;
    uint64_t begun_ms;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "e1"), YES);
        assert_int_equal(STAND(line[0], strategy, "x"), YES);
        start(&waiter, line[0], strategy, "e1");
        begun_ms = test_now_ms();
        assert_int_equal(mysql_extend(&fixture, other, strategy, "x", "e1", SECOND), YES);
        assert_int_equal(end(&waiter), YES);
        assert_true(waiter.ended_ms - begun_ms < SOON_MS);
        leave(line[0]);
        (void)DROP(taker, strategy, "x", "e1");
        assert_true(test_until(is_line_empty, (void *)"x", 5000));
    }
}

static void rest__ends_in_time(void **state)
{
    uint64_t begun_ms;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "t1"), YES);
        assert_int_equal(STAND(line[0], strategy, "x"), YES);
        begun_ms = test_now_ms();
        assert_int_equal(mysql_rest(&fixture, line[0], "t1", 300000), NO);
        assert_in_range(test_now_ms() - begun_ms, 290, 300 + SOON_MS);
        assert_int_equal(mysql_rest(&fixture, line[0], "t1", 0), NO);
        begun_ms = test_now_ms();
        assert_int_equal(mysql_rest(&fixture, line[0], "t1", 1300000), NO);
        assert_in_range(test_now_ms() - begun_ms, 1290, 1300 + SOON_MS);
        begun_ms = test_now_ms();
        assert_int_equal(mysql_stand(&fixture, line[1], strategy, "x", 300000), BUSY);
        assert_in_range(test_now_ms() - begun_ms, 290, 300 + SOON_MS);
        assert_int_equal(mysql_rest(&fixture, line[1], "t1", 300000), AGAIN); /* has no place */
        leave(line[0]);
        assert_int_equal(DROP(taker, strategy, "x", "t1"), YES);
        assert_true(test_until(is_line_empty, (void *)"x", 5000));
    }
}

static void line__is_in_order_of_arrival(void **state)
{
    struct mysql_waiter waiters[N_LINES];
    int strategy, i, n;

    (void)state;
    FOR_BOTH (strategy) {
        stand_first(strategy);
        for (n = 1; n < N_LINES; ++n)
            start(&waiters[n], line[n], strategy, NULL);
        for (n = 1; n < N_LINES; ++n) {
            assert_int_equal(waiters[n].ended_ms, 0);
            if (n == 1) {
                leave_first(strategy);
            } else if (n % 2 != 0) {
                leave(line[n - 1]);
            } else {
                close_connection(line[n - 1], DBLOCK_CLOSE_ABORT);
                line[n - 1] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
            }
            assert_int_equal(end(&waiters[n]), YES);
        }
        leave(line[N_LINES - 1]);
        assert_true(test_until(is_line_empty, (void *)"x", 5000));
    }
}

/* As one that is stopped or cut off. */
static void first__that_idles_loses_its_place(void **state)
{
    struct mysql_waiter waiter;
    uint64_t begun_ms;

    (void)state;
    assert_int_equal(STAND(line[0], DBLOCK_LEASE, "x"), YES);
    begun_ms = test_now_ms();
    start(&waiter, line[1], DBLOCK_LEASE, NULL);
    assert_int_equal(end(&waiter), YES);
    assert_in_range(waiter.ended_ms - begun_ms, 1000, 2000 + SOON_MS);
    assert_int_equal(REST(line[0], "i1"), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    assert_int_equal(fixture.driver->connection.is_alive(line[0]), 0);
    leave(line[1]);
    assert_int_equal(fixture.driver->connection.fd(line[1]), -1); /* an answer is due */
    /* one that has left may idle */
    close_connection(line[2], DBLOCK_CLOSE_ABORT);
    line[2] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    assert_int_equal(STAND(line[2], DBLOCK_LEASE, "x"), YES);
    leave(line[2]);
    test_pass_ms(3000);
    assert_int_equal(STAND(line[2], DBLOCK_INSERT, "x"), YES);
    assert_true(fixture.driver->connection.fd(line[2]) >= 0);
    /* and then it may not */
    test_pass_ms(3000);
    assert_true(test_until(is_line_empty, (void *)"x", 5000));
}

static void cancel__leaves_nothing_behind(void **state)
{
    struct mysql_waiter waiter;
    uint64_t begun_ms;
    int ends[2];
    int strategy, i, n;
    char byte;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "c1"), YES);
        for (n = 0; n < 4; ++n) { /* in line, at the bell, at a nap, before anything */
            fixture.call.cancel_fd = -1;
            if (n == 0)
                stand_first(strategy);
            else
                assert_int_equal(STAND(line[0], strategy, "x"), YES);
            if (n == 2) { /* a bell that nobody has, as of a holder that has died */
                assert_int_equal(REST(line[0], "c2"), YES);
                assert_int_equal(REST(line[0], "c2"), YES);
                assert_int_equal(REST(line[0], "c2"), YES);
            }
            fixture.call.cancel_fd = ends[0];
            if (n == 3) {
                assert_int_equal(write(ends[1], "x", 1), 1);
                assert_int_equal(REST(line[0], "c1"), -1);
                assert_int_equal(fixture.status, DBLOCK_CANCELLED);
            } else {
                start_one(
                    &waiter, line[0], strategy, n == 0 ? NULL : n == 1 ? "c1" : "c2", n == 2);
                begun_ms = test_now_ms();
                assert_int_equal(write(ends[1], "x", 1), 1);
                assert_int_equal(end(&waiter), -1);
                assert_int_equal(waiter.fixture.status, DBLOCK_CANCELLED);
                assert_true(waiter.ended_ms - begun_ms < SOON_MS);
            }
            assert_int_equal(read(ends[0], &byte, 1), 1);
            if (n == 0)
                leave_first(strategy);
            assert_true(fixture.driver->connection.is_alive(line[0]));
            assert_true(test_until(is_line_empty, (void *)"x", 5000));
            assert_int_equal(is_bell_free("c2"), 1);
        }
        fixture.call.cancel_fd = -1;
        assert_int_equal(DROP(taker, strategy, "x", "c1"), YES);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Its bell is free, and yet the grant stays: he looks now and then, not all the time. */
static void dead_holder__makes_nobody_busy(void **state)
{
    struct dblock_connection *mortal = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    uint64_t begun_ms;
    int64_t before;
    int n_rests = 0;

    (void)state;
    assert_int_equal(TAKE(mortal, DBLOCK_LEASE, "x", "d1"), YES);
    assert_int_equal(STAND(line[0], DBLOCK_LEASE, "x"), YES);
    assert_int_equal(mysql_fixture_run(plain, "KILL %lu", mysql_fixture_server_id(mortal)), 0);
    begun_ms = test_now_ms();
    before = count_statements();
    while (test_now_ms() - begun_ms < 3000) {
        assert_int_equal(REST(line[0], "d1"), YES);
        assert_int_equal(TAKE(taker, DBLOCK_LEASE, "x", "d2"), BUSY);
        ++n_rests;
    }
    assert_in_range(n_rests, 4, 14); /* 0, 0, 20, 40, 80, 160, 320, 500, 500 ms */
    assert_in_range(count_statements() - before, 10, 60);
    /* who gives it back wakes him all the same */
    begun_ms = test_now_ms();
    assert_int_equal(DROP(other, DBLOCK_LEASE, "x", "d1"), YES);
    assert_int_equal(REST(line[0], NULL), YES);
    assert_int_equal(TAKE(taker, DBLOCK_LEASE, "x", "d3"), YES);
    leave(line[0]);
    assert_int_equal(DROP(taker, DBLOCK_LEASE, "x", "d3"), YES);
    close_connection(mortal, DBLOCK_CLOSE_ABORT);
}

/* Somebody wakes the first, who has gone on to wait elsewhere. */
static void stray_wake_up__harms_nobody(void **state)
{
    struct mysql_waiter waiter;

    (void)state;
    stand_first(DBLOCK_LEASE);
    start(&waiter, line[1], DBLOCK_LEASE, NULL);
    assert_int_equal(
        mysql_fixture_run(plain, "KILL QUERY %lu", mysql_fixture_server_id(line[1])), 0);
    test_pass_ms(100);
    assert_int_equal(waiter.ended_ms, 0);
    leave_first(DBLOCK_LEASE);
    assert_int_equal(end(&waiter), YES);
    leave(line[1]);
}

/* A take that came too late for a free name has locked its bell already. */
static void bell_of_a_take_that_failed__is_unlocked(void **state)
{
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "f1"), YES);
        assert_int_equal(DROP(taker, strategy, "x", "f1"), YES);
        assert_int_equal(is_bell_free("f1"), 1);
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain, "SELECT * FROM %s WHERE name = 'x' FOR UPDATE",
                             strategy == DBLOCK_INSERT ? "dblock_insert" : "dblock_lease"),
            0);
        assert_int_equal(TAKE(taker, strategy, "x", "f2"), AGAIN);
        assert_int_equal(mysql_fixture_run(plain, "ROLLBACK"), 0);
        assert_int_equal(is_bell_free("f2"), 1);
    }
}

/* A holder of many grants: not all of them have a bell, and all wake. */
static void bells__are_few(void **state)
{
    enum { N_CLEARED = 8, N_GRANTS = N_BELLS + 1 + N_CLEARED + 1 };
    struct dblock_connection *holder = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    struct mysql_waiter waiter;
    uint64_t begun_ms, took_ms = MYSQL_WAIT_MS;
    int64_t before;
    char name[16];
    int n, n_bells = 0;

    (void)state;
    for (n = 0; n < N_GRANTS; ++n) {
        (void)snprintf(name, sizeof name, n == N_GRANTS - 1 ? "x" : "m%d", n);
        assert_int_equal(TAKE(holder, DBLOCK_LEASE, name, name), YES);
    }
    for (n = 0; n < N_GRANTS - 1; ++n) {
        (void)snprintf(name, sizeof name, "m%d", n);
        n_bells += is_bell_free(name) == 0;
    }
    assert_int_equal(n_bells, N_BELLS); /* the oldest are gone */
    assert_int_equal(is_bell_free("m0"), 1);
    assert_int_equal(is_bell_free("x"), 1);
    assert_int_equal(STAND(line[0], DBLOCK_LEASE, "x"), YES);
    for (n = 0; n < 6; ++n)
        assert_int_equal(REST(line[0], "x"), YES);
    /* he naps for half a second; on a busy machine that may be over before he is interrupted */
    for (n = 0; n < 20 && took_ms >= 250; ++n) {
        start_one(&waiter, line[0], DBLOCK_LEASE, "x", 1);
        begun_ms = test_now_ms();
        waiter.is_napping = 0;
        assert_int_equal(
            mysql_fixture_run(plain, "KILL QUERY %lu", mysql_fixture_server_id(line[0])), 0);
        assert_int_equal(end(&waiter), YES);
        took_ms = waiter.ended_ms - begun_ms;
    }
    assert_in_range(took_ms, 0, 249);
    /* as is done by who gives it back, who cannot ring */
    before = mysql_status(plain, "Com_kill");
    assert_int_equal(DROP(holder, DBLOCK_LEASE, "x", "x"), YES);
    assert_int_equal(mysql_status(plain, "Com_kill") - before, 1);
    leave(line[0]);
    /* more of the oldest make room after a while, in case that nobody gives them back */
    test_pass_ms(1100);
    assert_int_equal(TAKE(holder, DBLOCK_LEASE, "n1", "n1"), YES);
    assert_int_equal(TAKE(holder, DBLOCK_LEASE, "n2", "n2"), YES);
    assert_int_equal(is_bell_free("n2"), 0);
    assert_int_equal(is_bell_free("m15"), 1);
    assert_int_equal(is_bell_free("m16"), 0);
    assert_int_equal(DROP(holder, DBLOCK_LEASE, "m0", "m0"), YES);
    assert_int_equal(DROP(holder, DBLOCK_LEASE, "m16", "m16"), YES);
    assert_int_equal(is_bell_free("m16"), 1);
    close_connection(holder, DBLOCK_CLOSE_POLITE);
}

static int note_waiters(const struct dblock_grant *grant, void *context)
{
    *(uint32_t *)context = grant->n_waiters;
    return 0;
}

static uint32_t list_waiters(int strategy, const char *name)
{
    struct dblock_page page;
    uint32_t n_waiters = 1000;

    memset(&page, 0, sizeof page);
    page.strategy = strategy;
    page.name = name;
    page.limit = 10;
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    assert_int_equal(DBLOCK_OK, fixture.driver->observe.list(taker, &fixture.call, &page,
                                    note_waiters, &n_waiters, &fixture.answer, &fixture.error));
    return n_waiters;
}

static void waiters__are_counted_and_ask_nothing(void **state)
{
    struct mysql_waiter waiters[3];
    int64_t before;
    int strategy, i, n;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(TAKE(taker, strategy, "x", "n1"), YES);
        assert_int_equal(TAKE(taker, strategy, "'x", "n2"), YES);
        assert_int_equal(list_waiters(strategy, "x"), 0);
        assert_int_equal(STAND(line[0], strategy, "x"), YES);
        start(&waiters[0], line[0], strategy, "n1");
        for (n = 1; n < 3; ++n)
            start(&waiters[n], line[n], strategy, NULL);
        assert_int_equal(list_waiters(strategy, "x"), 3);
        assert_int_equal(list_waiters(strategy, "'x"), 0);
        before = count_statements();
        test_pass_ms(1500);
        /* the first looks once, a moment after he began; and this question itself */
        assert_in_range(count_statements() - before, 1, 4);
        assert_int_equal(DROP(taker, strategy, "x", "n1"), YES);
        for (n = 0; n < 3; ++n) {
            assert_int_equal(end(&waiters[n]), YES);
            leave(line[n]);
        }
        assert_int_equal(DROP(taker, strategy, "'x", "n2"), YES);
        assert_true(test_until(is_line_empty, (void *)"x", 5000));
    }
}

int main(void)
{
#define LINE_TEST(name) cmocka_unit_test_setup_teardown(name, open_lines, close_lines)
    const struct CMUnitTest tests[] = {
        LINE_TEST(first__is_woken),
        LINE_TEST(first__is_woken_by_others_than_the_holder),
        LINE_TEST(first__is_woken_by_an_earlier_end),
        LINE_TEST(rest__ends_in_time),
        LINE_TEST(line__is_in_order_of_arrival),
        LINE_TEST(first__that_idles_loses_its_place),
        LINE_TEST(cancel__leaves_nothing_behind),
        LINE_TEST(dead_holder__makes_nobody_busy),
        LINE_TEST(stray_wake_up__harms_nobody),
        LINE_TEST(bell_of_a_take_that_failed__is_unlocked),
        LINE_TEST(bells__are_few),
        LINE_TEST(waiters__are_counted_and_ask_nothing),
    };

    return cmocka_run_group_tests_name("mysql_line", tests, set_up, tear_down);
}
