/* SPDX-License-Identifier: MIT */
/* pgsql_quiet_test.c - sixteen that wait are in nobody's way on the server: not of the
 * holder who makes an index, nor of vacuum and of changes to dblock's own tables, and not
 * in the server's log. All four strategies (C5, C16). Alone on its server. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES

/* A wait for old snapshots is at most a slice long, and there are three of them in the making of
 * an index; most often they are over together. */
enum { SECOND = 1000000, N_WAITERS = 16, INDEX_MS = 5000, CHANGE_MS = 2500 };

static struct pgsql_fixture f;

struct waiter {
    struct pgsql_fixture fixture;
    struct dblock_connection *connection;
    pthread_t thread;
    int strategy;
    int is_fair;
    int cancel[2];
    int outcome;
};

static int role_of(int strategy)
{
    return strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW
        : strategy == DBLOCK_ADVISORY ? DBLOCK_ROLE_ADVISORY
                                      : DBLOCK_ROLE_LINE;
}

static int is_line(int strategy)
{
    return role_of(strategy) == DBLOCK_ROLE_LINE;
}

static void *wait_elsewhere(void *argument)
{
    struct waiter *waiter = argument;

    if (waiter->strategy == DBLOCK_ADVISORY && waiter->is_fair) {
        struct dblock_take take = pgsql_take_of("held", "o2", NULL, 0);

        take.wait_us = 60 * SECOND;
        take.is_fair = 1;
        waiter->outcome =
            pgsql_take_as(&waiter->fixture, waiter->connection, DBLOCK_ADVISORY, &take);
        return NULL;
    }
    waiter->outcome = is_line(waiter->strategy)
        ? pgsql_stand(&waiter->fixture, waiter->connection, waiter->strategy, "held", 60 * SECOND,
              waiter->is_fair)
        : pgsql_lock(
              &waiter->fixture, waiter->connection, waiter->strategy, "held", 60 * SECOND);
    return NULL;
}

static int are_waiting(void *context)
{
    char text[300];

    (void)context;
    (void)snprintf(text, sizeof text,
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'dblock %% %ld %%'"
        " AND wait_event_type = 'Lock'", (long)getpid());
    return pgsql_number(f.plain, text) >= N_WAITERS - 2; /* some are between two slices */
}

static uint64_t time_of(const char *sql)
{
    uint64_t begun_ms = test_now_ms();

    pgsql_run(f.plain, sql);
    return test_now_ms() - begun_ms;
}

/* A slice is 0.85 s. One may end late on a busy machine, and is not long then: of all snapshots that
 * are seen at any moment hardly one may be older than 0.9 s. */
static void watch_snapshots(void)
{
    static const char format[] =
        "SELECT 1000 * count(*) FILTER (WHERE clock_timestamp() - xact_start > interval '%s')"
        " + count(*) FROM pg_stat_activity WHERE application_name LIKE 'dblock %% %ld %%'"
        " AND backend_xmin IS NOT NULL";
    uint64_t begun_ms = test_now_ms();
    int64_t n_seen = 0, n_old = 0, n_too_old = 0;
    char old[400], too_old[400];

    (void)snprintf(old, sizeof old, format, "0.9 s", (long)getpid());
    (void)snprintf(too_old, sizeof too_old, format, "1.8 s", (long)getpid());
    while (test_now_ms() - begun_ms < 2200) {
        int64_t seen = pgsql_number(f.plain, old);

        n_seen += seen % 1000;
        n_old += seen / 1000;
        n_too_old += pgsql_number(f.plain, too_old) / 1000;
        test_pass_ms(20);
    }
    print_message("# of %d snapshots seen %d were older than 0.9 s\n", (int)n_seen, (int)n_old);
    assert_true(n_old * 20 <= n_seen);
    assert_int_equal(0, n_too_old);
}

static void stand_in_nobodys_way(int strategy, int is_fair)
{
    struct waiter waiters[N_WAITERS];
    struct dblock_connection *holder = pgsql_fixture_connect(&f, role_of(strategy));
    int i;

    if (strategy == DBLOCK_ROW)
        assert_int_equal(YES, pgsql_seed(&f, holder, "held"));
    assert_int_equal(YES,
        is_line(strategy) ? pgsql_stand(&f, holder, strategy, "held", SECOND, is_fair)
                          : pgsql_lock(&f, holder, strategy, "held", 0));
    if (is_line(strategy)) /* not free, or those who wait would pass */
        assert_int_equal(
            YES, pgsql_take(&f, f.connections[0], strategy, "held", "o1", NULL, 600 * SECOND));
    for (i = 0; i < N_WAITERS; ++i) {
        waiters[i].connection = pgsql_fixture_connect(&f, role_of(strategy));
        assert_non_null(waiters[i].connection);
        waiters[i].fixture = f;
        assert_int_equal(0, pipe(waiters[i].cancel));
        waiters[i].fixture.call.cancel_fd = waiters[i].cancel[0];
        waiters[i].strategy = strategy;
        waiters[i].is_fair = is_fair;
        assert_int_equal(
            0, pthread_create(&waiters[i].thread, NULL, wait_elsewhere, &waiters[i]));
    }
    assert_true(test_until(are_waiting, NULL, 10000));
    assert_true(time_of("CREATE INDEX CONCURRENTLY ON indexed (number)") < INDEX_MS);
    assert_true(time_of("DROP INDEX CONCURRENTLY indexed_number_idx") < INDEX_MS);
    watch_snapshots();
    pgsql_run(f.plain, "SET lock_timeout = '5s'");
    assert_true(time_of("VACUUM dblock_lease, dblock_insert, dblock_session") < CHANGE_MS);
    assert_true(time_of("ALTER TABLE dblock_lease ADD COLUMN more integer") < CHANGE_MS);
    assert_true(time_of("ALTER TABLE dblock_lease DROP COLUMN more") < CHANGE_MS);
    assert_true(time_of("ALTER TABLE dblock_session SET (fillfactor = 50)") < CHANGE_MS);
    pgsql_run(f.plain, "RESET lock_timeout");
    assert_true(test_until(are_waiting, NULL, 10000));
    for (i = N_WAITERS - 1; i >= 0; --i) {
        assert_int_equal(1, write(waiters[i].cancel[1], "x", 1));
        assert_int_equal(0, pthread_join(waiters[i].thread, NULL));
        assert_int_equal(-1, waiters[i].outcome);
        assert_int_equal(DBLOCK_CANCELLED, waiters[i].fixture.status);
        pgsql_fixture_disconnect(&f, waiters[i].connection, DBLOCK_CLOSE_POLITE);
        (void)close(waiters[i].cancel[0]);
        (void)close(waiters[i].cancel[1]);
    }
    if (is_line(strategy))
        f.driver->line.leave(holder);
    pgsql_fixture_disconnect(&f, holder, DBLOCK_CLOSE_POLITE);
    if (is_line(strategy))
        assert_int_equal(YES, pgsql_drop(&f, f.connections[0], strategy, "held", "o1", 0));
}

static FILE *open_log(void)
{
    const char *data = getenv("DBLOCK_TEST_PGSQL_DATA");
    char path[300];
    FILE *log;

    if (data == NULL)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/../log", data);
    log = fopen(path, "r");
    if (log != NULL)
        (void)fseek(log, 0, SEEK_END);
    return log;
}

/* About our sessions; autovacuum says things, too. A cancel request that comes in the very moment
 * between two slices is not caught: one such may be. */
static int count_lines(FILE *log)
{
    char line[1024];
    int n_lines = 0;
    int n_missed = 0;

    while (fgets(line, sizeof line, log) != NULL) {
        if (strstr(line, "dblock_test") == NULL || strstr(line, "STATEMENT:") != NULL)
            continue;
        print_message("# log: %s", line);
        if (strstr(line, "CONTEXT:") != NULL)
            continue;
        ++*(strstr(line, "canceling statement due to user request") != NULL ? &n_missed : &n_lines);
    }
    return n_lines + (n_missed > 1 ? n_missed : 0);
}

static void check(int strategy, int is_fair)
{
    FILE *log = open_log();

    stand_in_nobodys_way(strategy, is_fair);
    if (log == NULL)
        return;
    assert_int_equal(0, count_lines(log));
    (void)fclose(log);
}

static void lease__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_LEASE, 0);
}

static void lease_in_order__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_LEASE, 1);
}

static void insert__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_INSERT, 0);
}

static void row__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_ROW, 0);
}

static void advisory__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_ADVISORY, 0);
}

static void advisory_in_order__is_in_nobodys_way(void **state)
{
    (void)state;
    check(DBLOCK_ADVISORY, 1);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    pgsql_run(f.plain, "CREATE TABLE indexed AS SELECT generate_series(1, 1000) AS number");
    return pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT) != NULL ? 0 : -1;
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
    pgsql_fixture_limit(&f, 90000000, -1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lease__is_in_nobodys_way, renew_limit),
        cmocka_unit_test_setup(lease_in_order__is_in_nobodys_way, renew_limit),
        cmocka_unit_test_setup(insert__is_in_nobodys_way, renew_limit),
        cmocka_unit_test_setup(row__is_in_nobodys_way, renew_limit),
        cmocka_unit_test_setup(advisory__is_in_nobodys_way, renew_limit),
        cmocka_unit_test_setup(advisory_in_order__is_in_nobodys_way, renew_limit),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
