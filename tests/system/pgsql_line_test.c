/* SPDX-License-Identifier: MIT */
/* pgsql_line_test.c - the lines of those who wait for lease and insert on PostgreSQL,
 * step by step: who is first, who is woken, who may pass, and what is left behind. With
 * real processes: pgsql_crowd_test.c. Alone on its server. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY
#define AGAIN DBLOCK_ANSWER_AGAIN

enum {
    SECOND = 1000000,
    N_LINES = 12,
    SOON_MS = 500, /* less than what is left of a slice, at whose end all would look anyway */
    N_TRIES = 5    /* of which a busy machine may make some late */
};

static struct pgsql_fixture f;
static struct dblock_connection *taker, *line[N_LINES];
static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };

#define FOR_BOTH(strategy) for (i = 0, strategy = both[0]; i < 2; strategy = both[++i % 2])

/* Of all lines, tickets and slots that sessions of this program have or wait for. */
static int count_places(void)
{
    char text[300];

    (void)snprintf(text, sizeof text,
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype ="
        " 'advisory' AND l.objsubid = 2 AND a.application_name LIKE 'dblock %% %ld line'",
        (long)getpid());
    return (int)pgsql_number(f.plain, text);
}

static int has_no_place(void *context)
{
    (void)context;
    return count_places() == 0;
}

static int is_waiting(void *context)
{
    const int *n = context;
    char text[400];

    (void)snprintf(text, sizeof text,
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'dblock %% %ld line'"
        " AND wait_event_type = 'Lock'", (long)getpid());
    return pgsql_number(f.plain, text) >= *n;
}

struct waiter {
    struct pgsql_fixture fixture; /* a copy: the steps write into it */
    struct dblock_connection *connection;
    pthread_t thread;
    int strategy;
    int is_fair;
    uint64_t wait_us;
    int outcome;
    atomic_uint_fast64_t ended_ms; /* 0: not yet */
};

static void *stand_elsewhere(void *argument)
{
    struct waiter *waiter = argument;

    waiter->outcome = pgsql_stand(&waiter->fixture, waiter->connection, waiter->strategy, "x",
        waiter->wait_us, waiter->is_fair);
    atomic_store(&waiter->ended_ms, test_now_ms());
    return NULL;
}

static void start_waiter(struct waiter *waiter, struct dblock_connection *connection,
    int strategy, int is_fair, int cancel_fd)
{
    waiter->fixture = f;
    waiter->fixture.call.cancel_fd = cancel_fd;
    waiter->connection = connection;
    waiter->strategy = strategy;
    waiter->is_fair = is_fair;
    waiter->wait_us = 15 * SECOND;
    atomic_store(&waiter->ended_ms, 0);
    assert_int_equal(0, pthread_create(&waiter->thread, NULL, stand_elsewhere, waiter));
}

static int end_waiter(struct waiter *waiter)
{
    assert_int_equal(0, pthread_join(waiter->thread, NULL));
    return waiter->outcome;
}

static void leave(struct dblock_connection *connection)
{
    f.driver->line.leave(connection);
}

static void first__is_heeded_and_woken(void **state)
{
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take_heeding(&f, taker, strategy, "x", "o1", 60 * SECOND));
        assert_int_equal(YES, pgsql_stand(&f, line[0], strategy, "x", SECOND, 0));
        assert_int_equal(BUSY, pgsql_stand(&f, line[1], strategy, "x", 0, 0));
        assert_int_equal(BUSY, pgsql_stand(&f, line[1], strategy, "x", 100000, 0));
        assert_int_equal(NO, pgsql_rest(&f, line[0], 50000));
        assert_int_equal(YES, pgsql_drop(&f, taker, strategy, "x", "o1", 0));
        assert_int_equal(YES, pgsql_rest(&f, line[0], 5 * SECOND));
        assert_int_equal(NO, pgsql_rest(&f, line[0], 50000));
        /* free, but there is somebody */
        assert_int_equal(BUSY, pgsql_take_heeding(&f, taker, strategy, "x", "o2", 60 * SECOND));
        assert_true(f.answer.remaining_us == 0);
        assert_string_equal("", f.grant.owner);
        assert_int_equal(YES, pgsql_take_heeding(&f, taker, strategy, "y", "o3", 60 * SECOND));
        assert_int_equal(YES, pgsql_drop(&f, taker, strategy, "y", "o3", 0));
        assert_int_equal(NO, pgsql_rest(&f, line[0], 50000));
        assert_int_equal(YES, pgsql_take(&f, taker, strategy, "x", "o4", NULL, 60 * SECOND));
        /* also by a break, and if the time that is left is another one */
        assert_int_equal(YES, pgsql_extend(&f, taker, strategy, "x", "o4", 50 * SECOND));
        assert_int_equal(YES, pgsql_rest(&f, line[0], 5 * SECOND));
        assert_int_equal(YES, pgsql_break(&f, taker, strategy, "x", 0));
        assert_int_equal(YES, pgsql_rest(&f, line[0], 5 * SECOND));
        leave(line[0]);
        assert_int_equal(YES, pgsql_stand(&f, line[1], strategy, "x", 5 * SECOND, 0));
        assert_int_equal(NO, pgsql_rest(&f, line[1], 50000));
        leave(line[1]);
        assert_true(test_until(has_no_place, NULL, 5000));
    }
}

static void wake_up__before_the_rest_counts_and_of_another_place_does_not(void **state)
{
    (void)state;
    assert_int_equal(YES, pgsql_take(&f, taker, DBLOCK_LEASE, "x", "o1", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, 0));
    assert_int_equal(YES, pgsql_drop(&f, taker, DBLOCK_LEASE, "x", "o1", 0));
    assert_true(test_readable(f.driver->connection.fd(line[0]), 5000));
    assert_int_equal(YES, pgsql_rest(&f, line[0], 0));
    assert_int_equal(YES, pgsql_take(&f, taker, DBLOCK_LEASE, "x", "o2", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_drop(&f, taker, DBLOCK_LEASE, "x", "o2", 0));
    /* not read yet, as is the answer to this */
    leave(line[0]);
    assert_int_equal(-1, f.driver->connection.fd(line[0]));
    assert_true(f.driver->connection.is_alive(line[0]));
    assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_INSERT, "x", SECOND, 0));
    assert_true(f.driver->connection.fd(line[0]) >= 0);
    assert_int_equal(NO, pgsql_rest(&f, line[0], 50000));
    leave(line[0]);
    assert_int_equal(AGAIN, pgsql_rest(&f, line[0], 50000)); /* has no place */
}

static void release__sends_nothing_if_nobody_waits(void **state)
{
    char text[400];
    PGresult *result;
    PGnotify *heard;

    (void)state;
    assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, 0));
    (void)snprintf(text, sizeof text,
        "SELECT 'LISTEN dblock_' || lpad(to_hex(classid::bigint), 8, '0') ||"
        " lpad(to_hex(objid::bigint), 8, '0') FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE"
        " locktype = 'advisory' AND objsubid = 2 AND classid <> 1684171883"
        " AND application_name LIKE 'dblock %% %ld line'", (long)getpid());
    result = PQexec(f.plain, text);
    assert_int_equal(1, PQntuples(result));
    pgsql_run(f.plain, PQgetvalue(result, 0, 0));
    PQclear(result);
    assert_int_equal(YES, pgsql_take(&f, taker, DBLOCK_LEASE, "x", "o1", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_drop(&f, taker, DBLOCK_LEASE, "x", "o1", 0));
    pgsql_run(f.plain, "SELECT 1");
    heard = PQnotifies(f.plain);
    assert_non_null(heard);
    PQfreemem(heard);
    leave(line[0]);
    assert_true(test_until(has_no_place, NULL, 5000));
    assert_int_equal(YES, pgsql_take(&f, taker, DBLOCK_LEASE, "x", "o2", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_drop(&f, taker, DBLOCK_LEASE, "x", "o2", 0));
    pgsql_run(f.plain, "SELECT 1");
    assert_null(PQnotifies(f.plain));
    pgsql_run(f.plain, "UNLISTEN *");
}

/* How long one who stands behind another waits once that one dies, and the next once he leaves. */
static void see_them_go(int strategy, int is_fair, uint64_t took_ms[2])
{
    struct dblock_connection *mortal = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);
    struct waiter waiter;
    uint64_t begun_ms;
    int one = 1;

    assert_int_equal(YES, pgsql_take(&f, taker, strategy, "x", "o1", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_stand(&f, mortal, strategy, "x", SECOND, is_fair));
    start_waiter(&waiter, line[0], strategy, is_fair, -1);
    assert_true(test_until(is_waiting, &one, 5000));
    test_pass_ms(1000); /* more than one slice */
    begun_ms = test_now_ms();
    pgsql_fixture_disconnect(&f, mortal, DBLOCK_CLOSE_ABORT);
    assert_int_equal(YES, end_waiter(&waiter));
    took_ms[0] = waiter.ended_ms - begun_ms;
    start_waiter(&waiter, line[1], strategy, is_fair, -1);
    assert_true(test_until(is_waiting, &one, 5000));
    begun_ms = test_now_ms();
    leave(line[0]);
    assert_int_equal(YES, end_waiter(&waiter));
    took_ms[1] = waiter.ended_ms - begun_ms;
    leave(line[1]);
    assert_int_equal(YES, pgsql_drop(&f, taker, strategy, "x", "o1", 0));
}

static void next__comes_when_the_first_leaves_or_dies(void **state)
{
    uint64_t took_ms[2];
    int strategy, i, n, is_fair;

    (void)state;
    FOR_BOTH (strategy)
        for (is_fair = 0; is_fair < 2; ++is_fair) {
            took_ms[0] = took_ms[1] = SOON_MS;
            for (n = 0; n < N_TRIES && (took_ms[0] >= SOON_MS || took_ms[1] >= SOON_MS); ++n)
                see_them_go(strategy, is_fair, took_ms);
            assert_in_range(took_ms[0], 0, SOON_MS - 1);
            assert_in_range(took_ms[1], 0, SOON_MS - 1);
        }
}

/* A first one that was stopped, in both kinds of lines. */
static void free_name__may_be_taken_past_the_first(void **state)
{
    struct waiter waiters[2];
    uint64_t begun_ms;
    int strategy, i, is_fair, one = 1, two = 2;

    (void)state;
    FOR_BOTH (strategy)
        for (is_fair = 0; is_fair < 2; ++is_fair) {
            assert_int_equal(YES, pgsql_take(&f, taker, strategy, "x", "o1", NULL, 60 * SECOND));
            assert_int_equal(YES, pgsql_stand(&f, line[0], strategy, "x", SECOND, is_fair));
            start_waiter(&waiters[0], line[1], strategy, is_fair, -1);
            assert_true(test_until(is_waiting, &one, 5000));
            if (is_fair) {
                start_waiter(&waiters[1], line[2], strategy, is_fair, -1);
                assert_true(test_until(is_waiting, &two, 5000));
            }
            test_pass_ms(1000);
            begun_ms = test_now_ms();
            assert_int_equal(YES, pgsql_drop(&f, taker, strategy, "x", "o1", 0));
            assert_int_equal(AGAIN, end_waiter(&waiters[0]));
            assert_in_range(waiters[0].ended_ms - begun_ms, 500, 5000);
            if (is_fair) { /* he, too, is passed: nobody takes it */
                assert_int_equal(AGAIN, end_waiter(&waiters[1]));
                assert_in_range(waiters[1].ended_ms - begun_ms, 500, 7000);
            }
            leave(line[0]);
            assert_true(test_until(has_no_place, NULL, 5000));
        }
}

/* One that was stopped between two statements of his wait: he has a ticket, but waits for
 * nothing, so he does not become the first. */
static void idle_ticket__is_passed_in_order(void **state)
{
    struct waiter waiter;
    char text[600];
    int one = 1;

    (void)state;
    assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, 1));
    (void)snprintf(text, sizeof text,
        "SELECT pg_advisory_lock(('x' || lpad(to_hex(l.classid::bigint), 8, '0'))::bit(32)::int,"
        " ('x' || lpad(to_hex((l.objid::bigint & 4026531840)"
        " | (nextval('dblock_token_count') & 268435455)), 8, '0'))::bit(32)::int) FROM pg_locks l JOIN pg_stat_activity a USING"
        " (pid) WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid <> 1684171883"
        " AND a.application_name LIKE 'dblock %% %ld line' AND (l.objid::bigint & 268435455)"
        " = (SELECT last_value FROM dblock_token_count)", (long)getpid());
    pgsql_run(f.plain, text);
    assert_int_equal(1, pgsql_number(f.plain, "SELECT count(*) FROM pg_locks WHERE pid ="
                                              " pg_backend_pid() AND locktype = 'advisory'"));
    start_waiter(&waiter, line[1], DBLOCK_LEASE, 1, -1);
    assert_true(test_until(is_waiting, &one, 5000));
    leave(line[0]);
    assert_int_equal(AGAIN, end_waiter(&waiter));
    /* he goes: the line goes on */
    start_waiter(&waiter, line[1], DBLOCK_LEASE, 1, -1);
    assert_true(test_until(is_waiting, &one, 5000));
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
    assert_int_equal(YES, end_waiter(&waiter));
    leave(line[1]);
    assert_true(test_until(has_no_place, NULL, 5000));
}

static void cancel__leaves_nothing_behind(void **state)
{
    struct waiter waiter;
    uint64_t begun_ms;
    int ends[2];
    int is_fair, n, n_late, one = 1;

    (void)state;
    assert_int_equal(0, pipe(ends));
    for (is_fair = 0; is_fair < 2; ++is_fair) {
        assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, is_fair));
        for (n = 0, n_late = 0; n < 3;) { /* at different times of a slice */
            start_waiter(&waiter, line[1], DBLOCK_LEASE, is_fair, ends[0]);
            waiter.fixture.call.cancel_fd = ends[0];
            if (n > 0)
                assert_true(test_until(is_waiting, &one, 5000));
            test_pass_ms(n == 2 ? 400 : 0);
            begun_ms = test_now_ms();
            assert_int_equal(1, write(ends[1], "x", 1));
            assert_int_equal(-1, end_waiter(&waiter));
            assert_int_equal(DBLOCK_CANCELLED, waiter.fixture.status);
            if (waiter.ended_ms - begun_ms < SOON_MS)
                ++n;
            else
                assert_true(++n_late < N_TRIES);
            assert_int_equal(1, read(ends[0], &waiter.outcome, 1));
            if (!f.driver->connection.is_alive(line[1])) {
                pgsql_fixture_disconnect(&f, line[1], DBLOCK_CLOSE_ABORT);
                line[1] = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);
            }
        }
        assert_int_equal(1, write(ends[1], "x", 1));
        pgsql_fixture_limit(&f, 20000000, ends[0]);
        assert_int_equal(-1, pgsql_rest(&f, line[0], 5 * SECOND));
        assert_int_equal(DBLOCK_CANCELLED, f.status);
        assert_int_equal(1, read(ends[0], &waiter.outcome, 1));
        pgsql_fixture_limit(&f, 20000000, -1);
        assert_true(test_until(has_no_place, NULL, 5000));
        assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, is_fair));
        leave(line[0]);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Its session is ended by somebody, or its answer never comes. */
static void lost_connection__is_noticed_and_loses_the_place(void **state)
{
    struct waiter waiter;
    struct dblock_connection *mortal = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);
    char text[400];
    int one = 1;

    (void)state;
    (void)snprintf(text, sizeof text,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = (SELECT pid FROM"
        " pg_stat_activity WHERE application_name LIKE 'dblock %% %ld line' ORDER BY backend_start"
        " DESC LIMIT 1)", (long)getpid());
    assert_int_equal(YES, pgsql_stand(&f, mortal, DBLOCK_LEASE, "x", SECOND, 0));
    assert_int_equal(1, pgsql_number(f.plain, text));
    assert_int_equal(-1, pgsql_rest(&f, mortal, 10 * SECOND));
    assert_int_equal(DBLOCK_E_CONNECTION, f.status);
    assert_false(f.driver->connection.is_alive(mortal));
    pgsql_fixture_disconnect(&f, mortal, DBLOCK_CLOSE_ABORT);

    mortal = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);
    assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, 0));
    start_waiter(&waiter, mortal, DBLOCK_LEASE, 0, -1);
    assert_true(test_until(is_waiting, &one, 5000));
    assert_int_equal(1, pgsql_number(f.plain, text));
    assert_int_equal(-1, end_waiter(&waiter));
    assert_int_equal(DBLOCK_E_CONNECTION, waiter.fixture.status);
    assert_false(f.driver->connection.is_alive(mortal));
    pgsql_fixture_disconnect(&f, mortal, DBLOCK_CLOSE_ABORT);
    leave(line[0]);
}

/* Each NOTIFY of the database wakes all that LISTEN: so there are eight, and the others look. */
static void bells__are_eight(void **state)
{
    char name[32];
    uint64_t begun_ms;
    int n_looking = 0;
    int i;

    (void)state;
    for (i = 0; i < N_LINES; ++i) {
        (void)snprintf(name, sizeof name, "bell-%d", i);
        assert_int_equal(YES, pgsql_stand(&f, line[i], DBLOCK_LEASE, name, SECOND, 0));
    }
    assert_in_range(pgsql_number(f.plain, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                          " AND objsubid = 2 AND classid = 1684171883"),
        1, 8);
    for (i = 0; i < N_LINES; ++i) {
        begun_ms = test_now_ms();
        if (pgsql_rest(&f, line[i], 700000) == YES) {
            assert_in_range(test_now_ms() - begun_ms, 40, 699);
            ++n_looking;
        }
        leave(line[i]);
    }
    assert_true(n_looking >= N_LINES - 8);
    assert_true(test_until(has_no_place, NULL, 5000));
}

static int note_waiters(const struct dblock_grant *grant, void *context)
{
    *(uint32_t *)context = grant->n_waiters;
    return 0;
}

static uint32_t told_waiters(int strategy, const char *name)
{
    struct dblock_page page = { .strategy = strategy, .name = name, .limit = 10 };
    uint32_t n_waiters = 12345;

    assert_int_equal(DBLOCK_OK,
        f.driver->observe.list(
            taker, &f.call, &page, note_waiters, &n_waiters, &f.answer, &f.error));
    return n_waiters;
}

/* One of two waiters. */
static int leave_if_first(void *context)
{
    struct waiter *waiters = context;
    int i;

    for (i = 0; i < 2; ++i)
        if (waiters[i].ended_ms != 0 && waiters[i].connection != NULL) {
            leave(waiters[i].connection);
            waiters[i].connection = NULL;
            return 1;
        }
    return 0;
}

static void list__tells_how_many_wait(void **state)
{
    struct waiter waiters[2];
    int strategy, i, is_fair, two = 2;

    (void)state;
    FOR_BOTH (strategy)
        for (is_fair = 0; is_fair < 2; ++is_fair) {
            assert_int_equal(YES, pgsql_take(&f, taker, strategy, "x", "o1", NULL, 60 * SECOND));
            assert_int_equal(0, told_waiters(strategy, "x"));
            assert_int_equal(YES, pgsql_stand(&f, line[0], strategy, "x", SECOND, is_fair));
            assert_int_equal(1, told_waiters(strategy, "x"));
            start_waiter(&waiters[0], line[1], strategy, is_fair, -1);
            start_waiter(&waiters[1], line[2], strategy, is_fair, -1);
            assert_true(test_until(is_waiting, &two, 5000));
            assert_int_equal(3, told_waiters(strategy, "x"));
            assert_int_equal(12345, told_waiters(strategy, "y"));
            /* two may come the other way round, and the first of them must leave at once */
            leave(line[0]);
            assert_true(test_until(leave_if_first, waiters, 10000));
            assert_true(test_until(leave_if_first, waiters, 10000));
            assert_true(end_waiter(&waiters[0]) == YES && end_waiter(&waiters[1]) == YES);
            assert_int_equal(YES, pgsql_drop(&f, taker, strategy, "x", "o1", 0));
            assert_true(test_until(has_no_place, NULL, 5000));
        }
}

static void nobody_can_be_woken__is_said(void **state)
{
    const char *url = getenv("DBLOCK_TEST_PGBOUNCER");

    (void)state;
    pgsql_run(f.plain, "ALTER PROCEDURE dblock_stand RENAME TO dblock_gone");
    {
        struct dblock_connection *without = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);

        assert_int_equal(NO, pgsql_stand(&f, without, DBLOCK_LEASE, "x", SECOND, 0));
        pgsql_fixture_disconnect(&f, without, DBLOCK_CLOSE_ABORT);
    }
    pgsql_run(f.plain, "ALTER PROCEDURE dblock_gone RENAME TO dblock_stand");
    if (url != NULL) {
        struct dblock_target *target = pgsql_fixture_target(&f, url, f.schema, 5 * SECOND);
        struct dblock_connection *pooled =
            pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_LINE);

        assert_int_equal(NO, pgsql_stand(&f, pooled, DBLOCK_LEASE, "x", SECOND, 0));
        /* but takes and releases through it heed and wake */
        assert_int_equal(YES, pgsql_take(&f, pooled, DBLOCK_LEASE, "x", "o1", NULL, 60 * SECOND));
        assert_int_equal(YES, pgsql_stand(&f, line[0], DBLOCK_LEASE, "x", SECOND, 0));
        assert_int_equal(YES, pgsql_drop(&f, pooled, DBLOCK_LEASE, "x", "o1", 0));
        assert_int_equal(YES, pgsql_rest(&f, line[0], 5 * SECOND));
        assert_int_equal(BUSY, pgsql_take_heeding(&f, pooled, DBLOCK_LEASE, "x", "o2", SECOND));
        leave(line[0]);
        pgsql_fixture_disconnect(&f, pooled, DBLOCK_CLOSE_POLITE);
        f.driver->target_close(target);
    }
    assert_true(test_until(has_no_place, NULL, 5000));
}

/* Row and advisory queue in statements of their own then, and verify tells who did not `init`. */
static void wait_without_its_routines__is_a_wait_all_the_same(void **state)
{
    static const char *const routines[] = { "stand", "queue", "wait", "wait_row" };
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    static const int roles[] = { DBLOCK_ROLE_ROW, DBLOCK_ROLE_ADVISORY };
    char sql[100];
    size_t i, k;

    (void)state;
    assert_int_equal(YES, pgsql_seed(&f, taker, "bare"));
    for (i = 0; i < 4; ++i) {
        (void)snprintf(
            sql, sizeof sql, "ALTER ROUTINE dblock_%s RENAME TO dblock_gone", routines[i]);
        pgsql_run(f.plain, sql);
        assert_int_equal(DBLOCK_E_SCHEMA,
            f.driver->connection.verify(taker, &f.call, &f.answer, &f.error));
        for (k = 0; k < 2; ++k) {
            struct dblock_connection *holder = pgsql_fixture_connect(&f, roles[k]);
            struct dblock_connection *waiter = pgsql_fixture_connect(&f, roles[k]);

            assert_int_equal(YES, pgsql_lock(&f, holder, strategies[k], "bare", SECOND));
            assert_int_equal(BUSY, pgsql_lock(&f, waiter, strategies[k], "bare", SECOND / 10));
            assert_int_equal(YES, pgsql_unlock(&f, holder, strategies[k], "bare"));
            assert_int_equal(YES, pgsql_lock(&f, waiter, strategies[k], "bare", SECOND));
            pgsql_fixture_disconnect(&f, holder, DBLOCK_CLOSE_POLITE);
            pgsql_fixture_disconnect(&f, waiter, DBLOCK_CLOSE_POLITE);
        }
        (void)snprintf(
            sql, sizeof sql, "ALTER ROUTINE dblock_gone RENAME TO dblock_%s", routines[i]);
        pgsql_run(f.plain, sql);
    }
    assert_int_equal(
        DBLOCK_OK, f.driver->connection.verify(taker, &f.call, &f.answer, &f.error));
}

static int open_all(void **state)
{
    int i;

    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    taker = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    for (i = 0; i < N_LINES; ++i)
        line[i] = pgsql_fixture_connect(&f, DBLOCK_ROLE_LINE);
    return taker != NULL && line[N_LINES - 1] != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

static int renew_limit(void **state)
{
    (void)state;
    pgsql_fixture_limit(&f, 40000000, -1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(first__is_heeded_and_woken, renew_limit),
        cmocka_unit_test_setup(
            wake_up__before_the_rest_counts_and_of_another_place_does_not, renew_limit),
        cmocka_unit_test_setup(release__sends_nothing_if_nobody_waits, renew_limit),
        cmocka_unit_test_setup(next__comes_when_the_first_leaves_or_dies, renew_limit),
        cmocka_unit_test_setup(free_name__may_be_taken_past_the_first, renew_limit),
        cmocka_unit_test_setup(idle_ticket__is_passed_in_order, renew_limit),
        cmocka_unit_test_setup(cancel__leaves_nothing_behind, renew_limit),
        cmocka_unit_test_setup(lost_connection__is_noticed_and_loses_the_place, renew_limit),
        cmocka_unit_test_setup(bells__are_eight, renew_limit),
        cmocka_unit_test_setup(list__tells_how_many_wait, renew_limit),
        cmocka_unit_test_setup(nobody_can_be_woken__is_said, renew_limit),
        cmocka_unit_test_setup(wait_without_its_routines__is_a_wait_all_the_same, renew_limit),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
