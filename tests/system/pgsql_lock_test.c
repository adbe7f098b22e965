/* SPDX-License-Identifier: MIT */
/* pgsql_lock_test.c - strategies row and advisory on PostgreSQL, which live in a connection; and
 * what a pooler and a standby make of them. Alone on its server. Also on pgsql18. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY

enum { SECOND = 1000000, N_TRIES = 5 /* of what a busy machine may make late */ };

static struct pgsql_fixture f;
static struct dblock_connection *short_one, *row[2], *advisory[2];
static const int both[] = { DBLOCK_ROW, DBLOCK_ADVISORY };

#define FOR_BOTH(strategy) for (i = 0, strategy = both[0]; i < 2; strategy = both[++i % 2])

static struct dblock_connection *first_of(int strategy)
{
    return strategy == DBLOCK_ROW ? row[0] : advisory[0];
}

static struct dblock_connection *second_of(int strategy)
{
    return strategy == DBLOCK_ROW ? row[1] : advisory[1];
}

static void lock__is_held_by_its_connection(void **state)
{
    int strategy, i;

    (void)state;
    assert_int_equal(DBLOCK_ANSWER_UNSEEDED, pgsql_lock(&f, row[0], DBLOCK_ROW, "held", 0));
    assert_int_equal(YES, pgsql_seed(&f, short_one, "held"));
    assert_int_equal(YES, pgsql_seed(&f, short_one, "held"));
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        assert_true(f.answer.remaining_us == DBLOCK_NO_END);
        assert_int_equal(BUSY, pgsql_lock(&f, second_of(strategy), strategy, "held", 0));
        assert_string_equal("held", f.grant.name);
        assert_int_equal(getpid(), f.grant.pid);
        assert_string_equal("host_with_blank", f.grant.host);
        assert_true(f.grant.server_pid > 0);
        assert_true(f.grant.remaining_ms == DBLOCK_FOREVER);
        assert_int_equal(YES, pgsql_prove(&f, first_of(strategy), strategy, "held"));
        assert_int_equal(NO, pgsql_prove(&f, second_of(strategy), strategy, "held"));
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
        assert_int_equal(NO, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
        assert_int_equal(YES, pgsql_lock(&f, second_of(strategy), strategy, "held", 0));
        assert_int_equal(YES, pgsql_unlock(&f, second_of(strategy), strategy, "held"));
    }
}

/* S11: the server would count it. */
static void advisory__is_busy_for_the_session_that_has_it(void **state)
{
    struct dblock_take take = pgsql_take_of("other name, same id", "x", NULL, 0);

    (void)state;
    assert_int_equal(YES, pgsql_lock(&f, advisory[0], DBLOCK_ADVISORY, "twice", 0));
    assert_int_equal(BUSY, pgsql_lock(&f, advisory[0], DBLOCK_ADVISORY, "twice", 0));
    assert_int_equal(getpid(), f.grant.pid);
    assert_int_equal(BUSY, pgsql_lock(&f, advisory[0], DBLOCK_ADVISORY, "twice", 100000));
    take.subject.has_advisory_id = 1;
    take.subject.advisory_id = pgsql_number(f.plain,
        "SELECT ('x'||encode(substr(sha256('twice'),1,8),'hex'))::bit(64)::bigint");
    assert_int_equal(BUSY, pgsql_take_as(&f, advisory[0], DBLOCK_ADVISORY, &take));
    assert_int_equal(YES, pgsql_unlock(&f, advisory[0], DBLOCK_ADVISORY, "twice"));
    assert_int_equal(0,
        pgsql_number(f.plain, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                              " AND objsubid = 1 AND database = (SELECT oid FROM pg_database"
                              " WHERE datname = current_database()) AND pid <> pg_backend_pid()"
                              " AND granted AND ((classid::bigint << 32) | objid::bigint)"
                              " = ('x'||encode(substr(sha256('twice'),1,8),'hex'))::bit(64)::bigint"));
}

/* A8: published, so that plain SQL takes the same lock. */
static void advisory_id__is_what_is_published(void **state)
{
    struct dblock_take take = pgsql_take_of("#4711", "x", NULL, 0);

    (void)state;
    pgsql_run(f.plain, "SELECT pg_advisory_lock(('x'||encode(substr(sha256('sql'),1,8),'hex'))"
                       "::bit(64)::bigint)");
    pgsql_run(f.plain, "SELECT pg_advisory_lock(4711)");
    assert_int_equal(BUSY, pgsql_lock(&f, advisory[0], DBLOCK_ADVISORY, "sql", 0));
    assert_int_equal(0, f.grant.pid);
    assert_true(f.grant.server_pid > 0);
    take.subject.has_advisory_id = 1;
    take.subject.advisory_id = 4711;
    assert_int_equal(BUSY, pgsql_take_as(&f, advisory[0], DBLOCK_ADVISORY, &take));
    assert_int_equal(-1, pgsql_break(&f, short_one, DBLOCK_ADVISORY, "sql", 0));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, f.status);
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
    assert_int_equal(YES, pgsql_take_as(&f, advisory[0], DBLOCK_ADVISORY, &take));
    assert_int_equal(0, pgsql_number(f.plain, "SELECT pg_try_advisory_lock(4711)::int"));
    assert_int_equal(DBLOCK_OK,
        f.driver->advisory.drop(advisory[0], &f.call, &take.subject, &f.answer, &f.error));
    assert_int_equal(YES, f.answer.outcome);
}

static void wait__ends_in_time_and_holds_no_old_snapshot(void **state)
{
    uint64_t begun_ms;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        begun_ms = test_now_ms();
        assert_int_equal(BUSY, pgsql_lock(&f, second_of(strategy), strategy, "held", 300000));
        assert_true(test_now_ms() - begun_ms >= 295 && test_now_ms() - begun_ms < 3000);
        assert_int_equal(getpid(), f.grant.pid);
        /* it is not left in a queue, and its transaction is over */
        assert_int_equal(0,
            pgsql_number(f.plain, "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
                                  " AND application_name LIKE 'dblock %' AND usename ="
                                  " current_user AND wait_event_type = 'Lock'"));
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
    }
}

struct waiter {
    struct pgsql_fixture fixture;
    struct dblock_connection *connection;
    int strategy;
    uint64_t wait_us;
    int outcome;
    uint64_t ended_ms;
};

static void *wait_elsewhere(void *argument)
{
    struct waiter *waiter = argument;

    waiter->outcome = pgsql_lock(
        &waiter->fixture, waiter->connection, waiter->strategy, "held", waiter->wait_us);
    waiter->ended_ms = test_now_ms();
    return NULL;
}

static void start_waiter(struct waiter *waiter, pthread_t *thread, int strategy, int cancel_fd)
{
    waiter->fixture = f;
    waiter->fixture.call.cancel_fd = cancel_fd;
    waiter->connection = second_of(strategy);
    waiter->strategy = strategy;
    waiter->wait_us = 15 * SECOND;
    assert_int_equal(0, pthread_create(thread, NULL, wait_elsewhere, waiter));
}

static int is_waiting(void *context)
{
    (void)context;
    return pgsql_number(f.plain, "SELECT count(*) FROM pg_stat_activity WHERE application_name"
                                 " LIKE 'dblock %' AND wait_event_type = 'Lock'") > 0;
}

static void wait__is_served_when_the_lock_is_given_back(void **state)
{
    struct waiter waiter;
    pthread_t thread;
    int64_t oldest_ms = 0;
    uint64_t begun_ms, took_ms;
    int strategy, i, n;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        start_waiter(&waiter, &thread, strategy, -1);
        assert_true(test_until(is_waiting, NULL, 5000));
        /* C16, no snapshot is old: two slices long, and each of 0.9 s may end late on a busy machine */
        for (begun_ms = test_now_ms(); test_now_ms() - begun_ms < 2200;) {
            int64_t age_ms = pgsql_number(f.plain,
                "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::int, 0)"
                " FROM pg_stat_activity WHERE application_name LIKE 'dblock %'"
                " AND backend_xmin IS NOT NULL");

            oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
            test_pass_ms(20);
        }
        assert_in_range(oldest_ms, 200, 1800);
        for (n = 0, took_ms = 500; n < N_TRIES && took_ms >= 500; ++n) {
            if (n > 0) {
                assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
                start_waiter(&waiter, &thread, strategy, -1);
                assert_true(test_until(is_waiting, NULL, 5000));
            }
            begun_ms = test_now_ms();
            assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
            assert_int_equal(0, pthread_join(thread, NULL));
            assert_int_equal(YES, waiter.outcome);
            took_ms = waiter.ended_ms - begun_ms;
            assert_int_equal(YES, pgsql_prove(&f, second_of(strategy), strategy, "held"));
            assert_int_equal(YES, pgsql_unlock(&f, second_of(strategy), strategy, "held"));
        }
        assert_in_range(took_ms, 0, 499);
    }
}

/* PITFALL(I3): the server knows of the end of the wait, too. */
static void cancelled_wait__leaves_nothing_behind(void **state)
{
    struct waiter waiter;
    pthread_t thread;
    uint64_t begun_ms, took_ms;
    int pipe_ends[2];
    int strategy, i, n;
    char byte;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(0, pipe(pipe_ends));
        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        for (n = 0, took_ms = 500; n < N_TRIES && took_ms >= 500; ++n) {
            start_waiter(&waiter, &thread, strategy, pipe_ends[0]);
            assert_true(test_until(is_waiting, NULL, 5000));
            begun_ms = test_now_ms();
            assert_int_equal(1, write(pipe_ends[1], "x", 1));
            assert_int_equal(0, pthread_join(thread, NULL));
            assert_int_equal(-1, waiter.outcome);
            assert_int_equal(DBLOCK_CANCELLED, waiter.fixture.status);
            took_ms = waiter.ended_ms - begun_ms;
            assert_int_equal(1, read(pipe_ends[0], &byte, 1));
        }
        assert_in_range(took_ms, 0, 499);
        assert_false(is_waiting(NULL));
        assert_true(f.driver->connection.is_alive(second_of(strategy)));
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
        assert_int_equal(YES, pgsql_lock(&f, second_of(strategy), strategy, "held", 0));
        assert_int_equal(YES, pgsql_unlock(&f, second_of(strategy), strategy, "held"));
        (void)close(pipe_ends[0]);
        (void)close(pipe_ends[1]);
    }
}

/* At its end; NULL: it cannot be read here. */
static FILE *open_servers_log(void)
{
    const char *data = getenv("DBLOCK_TEST_PGSQL_DATA");
    char path[300];
    FILE *log = NULL;

    if (data != NULL) {
        (void)snprintf(path, sizeof path, "%s/../log", data);
        log = fopen(path, "r");
    }
    if (log != NULL)
        (void)fseek(log, 0, SEEK_END);
    return log;
}

/* Closes it. Those that came since with one of these words, up to NULL. */
static int count_lines(FILE *log, const char *const *words)
{
    char line[1024];
    int n_lines = 0;
    size_t i;

    (void)fseek(log, 0, SEEK_CUR);
    while (fgets(line, sizeof line, log) != NULL)
        for (i = 0; words[i] != NULL; ++i)
            if (strstr(line, words[i]) != NULL) {
                ++n_lines;
                break;
            }
    (void)fclose(log);
    return n_lines;
}

/* C5: neither a wait that ends in vain nor one that is cancelled is a line there. */
static void waiting__leaves_no_line_in_the_servers_log(void **state)
{
    const char *const words[] = { "lock timeout", "canceling statement", f.schema, NULL };
    FILE *log = open_servers_log();

    (void)state;
    if (log == NULL)
        skip();
    wait__ends_in_time_and_holds_no_old_snapshot(state);
    wait__is_served_when_the_lock_is_given_back(state);
    cancelled_wait__leaves_nothing_behind(state);
    assert_int_equal(0, count_lines(log, words));
}

/* A slice ends before the server looks for deadlocks, and logs that somebody waits. */
static void slices__are_shorter_than_deadlock_timeout(void **state)
{
    const char *const words[] = { "still waiting", NULL };
    const char *admin_url = getenv("DBLOCK_TEST_PGSQL_ADMIN");
    FILE *log = open_servers_log();
    struct pg_conn *admin;
    int strategy, i;

    (void)state;
    if (log == NULL || admin_url == NULL)
        skip();
    admin = pgsql_plain(&f, admin_url);
    pgsql_run(admin, "ALTER ROLE dblock_test SET deadlock_timeout = '400ms';"
                     "ALTER ROLE dblock_test SET log_lock_waits = on");
    FOR_BOTH (strategy) {
        struct dblock_connection *waiter = pgsql_fixture_connect(
            &f, strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY);

        assert_non_null(waiter);
        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        assert_int_equal(BUSY, pgsql_lock(&f, waiter, strategy, "held", 900000));
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
        pgsql_fixture_disconnect(&f, waiter, DBLOCK_CLOSE_POLITE);
    }
    pgsql_run(admin, "ALTER ROLE dblock_test RESET deadlock_timeout;"
                     "ALTER ROLE dblock_test RESET log_lock_waits");
    PQfinish(admin);
    assert_int_equal(0, count_lines(log, words));
}

static void tokens__rise_and_are_told(void **state)
{
    int64_t token;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        struct dblock_connection *drawer = strategy == DBLOCK_ROW ? short_one : advisory[0];

        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        assert_int_equal(YES, pgsql_draw(&f, drawer, strategy, "held"));
        token = f.answer.token;
        assert_true(token > 0);
        assert_int_equal(BUSY, pgsql_lock(&f, second_of(strategy), strategy, "held", 0));
        assert_true(f.grant.token == token);
        pgsql_run(f.plain, "DELETE FROM dblock_token");
        assert_int_equal(YES, pgsql_draw(&f, drawer, strategy, "held"));
        assert_true(f.answer.token > token);
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
    }
}

static int note_name(const struct dblock_grant *grant, void *context)
{
    char *seen = context;

    (void)snprintf(seen + strlen(seen), 300 - strlen(seen), "%s%s ", grant->name,
        grant->server_pid != 0 ? "" : "?");
    return 0;
}

static const char *list(struct dblock_page *page)
{
    static char seen[300];

    seen[0] = 0;
    assert_int_equal(DBLOCK_OK,
        f.driver->observe.list(
            short_one, &f.call, page, note_name, seen, &f.answer, &f.error));
    return seen;
}

static void list__shows_dblocks_own(void **state)
{
    struct dblock_page page = { .strategy = DBLOCK_ROW, .limit = 100 };
    char expected[80];

    (void)state;
    assert_int_equal(YES, pgsql_seed(&f, short_one, "idle"));
    assert_int_equal(YES, pgsql_lock(&f, row[0], DBLOCK_ROW, "held", 0));
    assert_string_equal("held ", list(&page));
    page.is_idle = 1;
    assert_string_equal("held idle? ", list(&page));
    page.name = "idle";
    assert_string_equal("idle? ", list(&page));
    assert_int_equal(YES, pgsql_unlock(&f, row[0], DBLOCK_ROW, "held"));

    page = (struct dblock_page){ .strategy = DBLOCK_ADVISORY, .limit = 100 };
    pgsql_run(f.plain, "SELECT pg_advisory_lock(815)"); /* not of dblock */
    assert_int_equal(YES, pgsql_lock(&f, advisory[0], DBLOCK_ADVISORY, "told", 0));
    assert_int_equal(YES, pgsql_lock(&f, advisory[1], DBLOCK_ADVISORY, "untold", 0));
    assert_int_equal(YES, pgsql_draw(&f, advisory[0], DBLOCK_ADVISORY, "told"));
    (void)snprintf(expected, sizeof expected, "#%lld told ",
        (long long)pgsql_number(f.plain,
            "SELECT ('x'||encode(substr(sha256('untold'),1,8),'hex'))::bit(64)::bigint"));
    assert_string_equal(expected, list(&page));
    page.name = "untold";
    assert_string_equal("untold ", list(&page));
    /* of one name whoever has it: what a take finds in its way can be looked at */
    pgsql_run(f.plain, "SELECT pg_advisory_lock(('x'||encode(substr(sha256('foreign'),1,8),"
                       "'hex'))::bit(64)::bigint)");
    page.name = "foreign";
    assert_string_equal("foreign ", list(&page));
    page.name = "#815";
    assert_string_equal("#815 ", list(&page));
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
    assert_int_equal(YES, pgsql_unlock(&f, advisory[0], DBLOCK_ADVISORY, "told"));
    assert_int_equal(YES, pgsql_unlock(&f, advisory[1], DBLOCK_ADVISORY, "untold"));
}

static void break__ends_the_servers_session(void **state)
{
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        struct dblock_connection *victim = pgsql_fixture_connect(
            &f, strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY);

        assert_int_equal(NO, pgsql_break(&f, short_one, strategy, "held", 0));
        assert_int_equal(YES, pgsql_lock(&f, victim, strategy, "held", 0));
        assert_int_equal(NO, pgsql_break(&f, short_one, strategy, "held", 12345));
        assert_int_equal(YES, pgsql_break(&f, short_one, strategy, "held", 0));
        assert_int_equal(YES, pgsql_lock(&f, second_of(strategy), strategy, "held", 0));
        /* the victim is told no, and is of no use any more */
        assert_int_equal(NO,
            strategy == DBLOCK_ROW ? pgsql_prove(&f, victim, strategy, "held")
                                   : pgsql_unlock(&f, victim, strategy, "held"));
        assert_false(f.driver->connection.is_alive(victim));
        pgsql_fixture_disconnect(&f, victim, DBLOCK_CLOSE_ABORT);
        assert_int_equal(YES, pgsql_unlock(&f, second_of(strategy), strategy, "held"));
    }
}

static void closing__frees_at_once(void **state)
{
    static const int ways[] = { DBLOCK_CLOSE_POLITE, DBLOCK_CLOSE_ABORT };
    int strategy, i, way;

    (void)state;
    for (way = 0; way < 2; ++way)
        FOR_BOTH (strategy) {
            struct dblock_connection *holder = pgsql_fixture_connect(
                &f, strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY);

            assert_int_equal(YES, pgsql_lock(&f, holder, strategy, "held", 0));
            pgsql_fixture_disconnect(&f, holder, ways[way]);
            assert_int_equal(YES, pgsql_lock(&f, second_of(strategy), strategy, "held", SECOND));
            assert_int_equal(YES, pgsql_unlock(&f, second_of(strategy), strategy, "held"));
        }
}

/* H7: what a child closes is the parent's still. */
static void forked_close__keeps_the_parents_lock(void **state)
{
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        pid_t child;
        int status = -1;

        assert_int_equal(YES, pgsql_lock(&f, first_of(strategy), strategy, "held", 0));
        child = fork();
        if (child == 0) {
            f.driver->connection.close(first_of(strategy), DBLOCK_CLOSE_FORKED);
            _exit(0);
        }
        assert_int_equal(child, waitpid(child, &status, 0));
        assert_int_equal(0, status);
        assert_int_equal(YES, pgsql_prove(&f, first_of(strategy), strategy, "held"));
        assert_int_equal(YES, pgsql_unlock(&f, first_of(strategy), strategy, "held"));
    }
}

/* A wait in order of arrival, where a place in the queue lasts for a slice. */
static void assert_fair_is_refused(
    struct dblock_connection *connection, int strategy, const char *hint)
{
    struct dblock_take take = pgsql_take_of("pooled", "o2", NULL, 0);

    take.is_fair = 1;
    assert_int_equal(YES, pgsql_take_as(&f, connection, strategy, &take)); /* waits for nothing */
    assert_int_equal(YES, pgsql_unlock(&f, connection, strategy, "pooled"));
    take.wait_us = 10 * SECOND;
    assert_int_equal(-1, pgsql_take_as(&f, connection, strategy, &take));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, f.status);
    assert_non_null(strstr(f.error.message, "in order of arrival"));
    assert_non_null(strstr(f.error.hint, hint));
}

/* The routines keep a place in the queue: without them a slice is all that is had of it. */
static void fair__is_refused_without_the_routines(void **state)
{
    struct dblock_target *target = pgsql_fixture_target(&f, f.url, "no_such_schema", 5 * SECOND);
    struct dblock_connection *connection;

    (void)state;
    connection = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ADVISORY);
    assert_non_null(connection);
    assert_fair_is_refused(connection, DBLOCK_ADVISORY, "rights");
    assert_false(f.driver->connection.is_alive(connection)); /* so the next one looks anew */
    pgsql_fixture_disconnect(&f, connection, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
}

/* S12, D1, D4: leases work through a pooler, advisory and tokens of row say why not. */
static void pooler__is_noticed(void **state)
{
    const char *url = getenv("DBLOCK_TEST_PGBOUNCER");
    struct dblock_target *target;
    struct dblock_connection *pooled, *pooled_row;
    int n;

    (void)state;
    if (url == NULL)
        skip();
    target = pgsql_fixture_target(&f, url, f.schema, 5 * SECOND);
    pooled = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ADVISORY);
    assert_non_null(pooled);
    assert_int_equal(-1, pgsql_lock(&f, pooled, DBLOCK_ADVISORY, "pooled", 0));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, f.status);
    assert_non_null(strstr(f.error.message, "pooler"));
    for (n = 0; n < 100; ++n) {
        assert_int_equal(YES, pgsql_begin(&f, pooled, "pooled", 10 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, pooled, DBLOCK_LEASE, "pooled", "o1", "pooled", 0));
        assert_int_equal(BUSY, pgsql_take(&f, pooled, DBLOCK_LEASE, "pooled", "o2", NULL, 1));
        assert_int_equal(YES, pgsql_renew(&f, pooled, "pooled", 10 * SECOND));
        assert_int_equal(YES, pgsql_drop(&f, pooled, DBLOCK_LEASE, "pooled", "o1", 0));
        assert_int_equal(YES, pgsql_take(&f, pooled, DBLOCK_INSERT, "pooled", "o1", NULL, SECOND));
        assert_int_equal(YES, pgsql_drop(&f, pooled, DBLOCK_INSERT, "pooled", "o1", 0));
        assert_int_equal(YES, pgsql_end(&f, pooled, "pooled"));
    }
    pooled_row = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ROW);
    assert_int_equal(YES, pgsql_seed(&f, pooled, "pooled"));
    assert_int_equal(YES, pgsql_lock(&f, pooled_row, DBLOCK_ROW, "pooled", 0));
    assert_int_equal(BUSY, pgsql_lock(&f, row[0], DBLOCK_ROW, "pooled", 100000));
    assert_int_equal(YES, pgsql_prove(&f, pooled_row, DBLOCK_ROW, "pooled"));
    assert_int_equal(-1, pgsql_draw(&f, pooled, DBLOCK_ROW, "pooled"));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, f.status);
    assert_int_equal(YES, pgsql_unlock(&f, pooled_row, DBLOCK_ROW, "pooled"));
    assert_fair_is_refused(pooled_row, DBLOCK_ROW, "leads to the server directly");
    pgsql_fixture_disconnect(&f, pooled, DBLOCK_CLOSE_POLITE);
    pgsql_fixture_disconnect(&f, pooled_row, DBLOCK_CLOSE_POLITE);
    f.driver->target_close(target);
}

static int open_all(void **state)
{
    int i;

    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    short_one = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    for (i = 0; i < 2; ++i) {
        row[i] = pgsql_fixture_connect(&f, DBLOCK_ROLE_ROW);
        advisory[i] = pgsql_fixture_connect(&f, DBLOCK_ROLE_ADVISORY);
    }
    return short_one != NULL && row[1] != NULL && advisory[1] != NULL ? 0 : -1;
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
    pgsql_fixture_limit(&f, 20000000, -1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lock__is_held_by_its_connection, renew_limit),
        cmocka_unit_test_setup(advisory__is_busy_for_the_session_that_has_it, renew_limit),
        cmocka_unit_test_setup(advisory_id__is_what_is_published, renew_limit),
        cmocka_unit_test_setup(waiting__leaves_no_line_in_the_servers_log, renew_limit),
        cmocka_unit_test_setup(slices__are_shorter_than_deadlock_timeout, renew_limit),
        cmocka_unit_test_setup(wait__ends_in_time_and_holds_no_old_snapshot, renew_limit),
        cmocka_unit_test_setup(wait__is_served_when_the_lock_is_given_back, renew_limit),
        cmocka_unit_test_setup(cancelled_wait__leaves_nothing_behind, renew_limit),
        cmocka_unit_test_setup(tokens__rise_and_are_told, renew_limit),
        cmocka_unit_test_setup(list__shows_dblocks_own, renew_limit),
        cmocka_unit_test_setup(break__ends_the_servers_session, renew_limit),
        cmocka_unit_test_setup(closing__frees_at_once, renew_limit),
        cmocka_unit_test_setup(forked_close__keeps_the_parents_lock, renew_limit),
        cmocka_unit_test_setup(fair__is_refused_without_the_routines, renew_limit),
        cmocka_unit_test_setup(pooler__is_noticed, renew_limit),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
