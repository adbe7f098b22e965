/* SPDX-License-Identifier: MIT */
/* guard_test.c - a transaction of the application that is bound to a grant, on each
 * database: what it writes is atomic with holding the lock, also if its process was
 * stopped in between; and the plain SQL that does the same (S2, S4, S7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>

#include "application.h"
#include "test_wait.h"

enum { DATABASES_MAX = 4, CASES_MAX = 200, LONG_MS = 20000, HOLD_MS = 300 };

static const struct kind {
    const char *name;
    int strategy;
    int heartbeat;
} kinds[] = {
    { "lease", DBLOCK_LEASE, DBLOCK_HEARTBEAT_ON },
    { "timed lease", DBLOCK_LEASE, DBLOCK_HEARTBEAT_OFF },
    { "insert", DBLOCK_INSERT, DBLOCK_HEARTBEAT_OFF },
};

/* Two clients, and two connections of the application; freed after each test. */
struct world {
    const struct application *application;
    const struct kind *kind;
    dblock_client *clients[2];
    void *connections[2];
    char name[64];
    dblock_lock *locks[2];
    struct dblock_error error;
};

static void expect_at(
    struct world *world, dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s, %s: line %d: %s instead of %s: %s\n", world->application->database->name,
        world->kind->name, line, dblock_status_name(actual), dblock_status_name(expected),
        actual < 0 ? world->error.message : "");
    _fail(__FILE__, line);
}

#define expect(world, expected, actual) expect_at(world, expected, actual, __LINE__)

static struct dblock_options options_of(const struct world *world, uint64_t ttl_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = world->kind->strategy;
    options.heartbeat = world->kind->heartbeat;
    options.ttl_ms = ttl_ms;
    return options;
}

static dblock_status take(struct world *world, int who, uint64_t ttl_ms, uint64_t wait_ms)
{
    struct dblock_options options = options_of(world, ttl_ms);

    options.wait_ms = wait_ms;
    return dblock_acquire(
        world->clients[who], world->name, &options, &world->locks[who], &world->error);
}

static dblock_status release(struct world *world, int who)
{
    dblock_status status = dblock_release(world->locks[who], &world->error);

    dblock_lock_free(world->locks[who]);
    world->locks[who] = NULL;
    return status;
}

static void run(struct world *world, int who, const char *sql)
{
    if (world->application->run(world->connections[who], sql) != 0) {
        print_error("%s: %s\n", world->application->database->name, sql);
        fail();
    }
}

static int64_t number(struct world *world, int who, const char *sql)
{
    return world->application->number(world->connections[who], sql);
}

static dblock_status guard(struct world *world, int who)
{
    return world->application->guard(
        world->locks[who], world->connections[who], &world->error);
}

/* ------------------------------------------------------------------------ cases */

static void guarded__is_written_with_the_lock(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    expect(world, DBLOCK_OK, guard(world, 0)); /* as often as one likes */
    run(world, 0, "UPDATE account SET balance = 7 WHERE id = 1");
    run(world, 0, "COMMIT");
    assert_int_equal(7, number(world, 1, "SELECT balance FROM account WHERE id = 1"));
    expect(world, DBLOCK_OK, release(world, 0));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0)); /* nothing of it is left */
    expect(world, DBLOCK_OK, release(world, 1));
}

/* The ttl is over and somebody waits: he gets it after the transaction, and not before. */
static void guard__outlasts_the_ttl(struct world *world)
{
    uint64_t begun_ms;

    if (world->application->has_one_writer || world->kind->heartbeat == DBLOCK_HEARTBEAT_ON)
        return; /* SQLite: guarded__excludes_every_writer */
    expect(world, DBLOCK_OK, take(world, 0, HOLD_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    test_pass_ms(HOLD_MS); /* that it is over is what is tested */
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 300));
    run(world, 0, "UPDATE account SET balance = 8 WHERE id = 1");
    run(world, 0, "COMMIT");
    begun_ms = test_now_ms();
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    assert_true(test_now_ms() - begun_ms < 3000);
    assert_int_equal(8, number(world, 1, "SELECT balance FROM account WHERE id = 1"));
    expect(world, DBLOCK_LOST, release(world, 0));
    expect(world, DBLOCK_OK, release(world, 1));
}

static int is_free(void *context)
{
    struct world *world = context;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    return dblock_inspect(world->clients[1], world->name, world->kind->strategy, &grant,
               &world->error) == DBLOCK_NOT_HELD;
}

/* Release and break do not hang: they are done when the transaction has ended. */
static void guarded__is_released_when_it_ends(struct world *world)
{
    uint64_t begun_ms = test_now_ms();

    if (world->application->has_one_writer)
        return;
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    expect(world, DBLOCK_PENDING, release(world, 0));
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    expect(world, DBLOCK_PENDING, dblock_break(world->clients[1], world->name,
        world->kind->strategy, 0, &world->error));
    assert_true(test_now_ms() - begun_ms < 5000);
    run(world, 0, "COMMIT");
    assert_true(test_until(is_free, world, 5000));
}

/* SQLite: who writes is alone, whatever the name. */
static void guarded__excludes_every_writer(struct world *world)
{
    if (!world->application->has_one_writer)
        return;
    expect(world, DBLOCK_OK, take(world, 0, 5000, 0));
    run(world, 0, world->application->begin_snapshot);
    expect(world, DBLOCK_OK, guard(world, 0)); /* makes it the writer */
    assert_int_not_equal(0, world->application->run(world->connections[1],
        "PRAGMA busy_timeout = 0; BEGIN IMMEDIATE"));
    run(world, 0, "COMMIT");
    run(world, 1, "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE; COMMIT");
    expect(world, DBLOCK_OK, release(world, 0));
}

static void heartbeat__goes_on_under_a_guard(struct world *world)
{
    uint64_t end_ms = test_now_ms() + 1500;

    if (world->application->has_one_writer || world->kind->heartbeat != DBLOCK_HEARTBEAT_ON)
        return;
    expect(world, DBLOCK_OK, take(world, 0, 500, 0));
    run(world, 0, world->application->begin_snapshot);
    expect(world, DBLOCK_OK, guard(world, 0));
    while (test_now_ms() < end_ms) {
        assert_int_equal(1, dblock_lock_is_held(world->locks[0]));
        (void)test_readable(-1, 50);
    }
    run(world, 0, "COMMIT");
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 0));
}

/* The holder was stopped between reading and writing, and its lock was taken away meanwhile. */
static int64_t deposit_twice(struct world *world, int is_guarded)
{
    int64_t seen;

    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, "BEGIN");
    seen = number(world, 0, "SELECT balance FROM account WHERE id = 1");
    if (world->application->has_one_writer)
        run(world, 0, "COMMIT"); /* or the other one could not write */
    /* ... stopped; meanwhile another has the lock, and deposits one */
    expect(world, DBLOCK_OK, dblock_break(world->clients[1], world->name,
        world->kind->strategy, 0, &world->error));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    run(world, 1, "UPDATE account SET balance = balance + 1 WHERE id = 1");
    expect(world, DBLOCK_OK, release(world, 1));
    /* ... and goes on. It is believed held as long as no heartbeat has told */
    if (world->application->has_one_writer)
        run(world, 0, "BEGIN IMMEDIATE");
    if (!is_guarded || guard(world, 0) == DBLOCK_OK) {
        char sql[100];

        (void)snprintf(sql, sizeof sql, "UPDATE account SET balance = %lld WHERE id = 1",
            (long long)seen + 1);
        run(world, 0, sql);
        run(world, 0, "COMMIT");
    } else {
        assert_int_equal(0, dblock_lock_is_held(world->locks[0]));
        run(world, 0, "ROLLBACK");
    }
    (void)release(world, 0);
    return number(world, 1, "SELECT balance FROM account WHERE id = 1");
}

static void paused_holder__writes_nothing_under_a_guard(struct world *world)
{
    assert_int_equal(101, deposit_twice(world, 1));
}

/* What the guard is for: the same without one writes 101 over the other's 101, so one is lost. */
static void paused_holder__overwrites_without_a_guard(struct world *world)
{
    assert_int_equal(101, deposit_twice(world, 0));
}

/* The transaction read before the grant: a lost update under a valid guard, if it were not told. */
static void old_snapshot__is_told(struct world *world)
{
    run(world, 0, world->application->begin_snapshot);
    assert_int_equal(100, number(world, 0, "SELECT balance FROM account WHERE id = 1"));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0));
    run(world, 1, "UPDATE account SET balance = 50 WHERE id = 1");
    expect(world, DBLOCK_OK, release(world, 1));
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 5000));
    expect(world, DBLOCK_STALE_SNAPSHOT, guard(world, 0));
    assert_int_equal(1, dblock_lock_is_held(world->locks[0])); /* it is not the lock's fault */
    run(world, 0, "ROLLBACK");
    run(world, 0, world->application->begin_snapshot);
    expect(world, DBLOCK_OK, guard(world, 0));
    assert_int_equal(50, number(world, 0, "SELECT balance FROM account WHERE id = 1"));
    run(world, 0, "COMMIT");
    /* one that reads what is committed sees it in any case */
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, release(world, 0));
}

static void lost_lock__is_told_and_pins_nothing(struct world *world)
{
    struct dblock_error *error = &world->error;

    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    expect(world, DBLOCK_OK,
        dblock_break(world->clients[1], world->name, world->kind->strategy, 0, error));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_LOST, guard(world, 0));
    assert_int_equal(0, dblock_lock_is_held(world->locks[0]));
    if (world->application->has_one_writer)
        run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 1)); /* not PENDING */
    if (!world->application->has_one_writer)
        run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_LOST, release(world, 0));
}

static void wrong_calls__are_refused(struct world *world)
{
    struct dblock_options options = options_of(world, LONG_MS);
    dblock_lock *row = NULL;

    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    expect(world, DBLOCK_E_ARGUMENT, guard(world, 0)); /* in no transaction */
    assert_true(world->error.hint[0] != 0);
    expect(world, DBLOCK_E_ARGUMENT,
        world->application->guard(world->locks[0], NULL, &world->error));
    expect(world, DBLOCK_E_ARGUMENT,
        world->application->guard(NULL, world->connections[0], &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "ROLLBACK");
    options.strategy = DBLOCK_ADVISORY;
    options.heartbeat = DBLOCK_HEARTBEAT_DEFAULT;
    expect(world, DBLOCK_OK,
        dblock_acquire(world->clients[0], world->name, &options, &row, &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_E_UNSUPPORTED,
        world->application->guard(row, world->connections[0], &world->error));
    run(world, 0, "ROLLBACK");
    dblock_lock_free(row);
    expect(world, DBLOCK_OK, dblock_release(world->locks[0], &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_NOT_HELD, guard(world, 0));
    run(world, 0, "ROLLBACK");
}

static void doomed_transaction__is_told(struct world *world)
{
    if (world->application->database != &contract_pgsql)
        return; /* elsewhere a statement that fails dooms nothing */
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, "BEGIN");
    assert_int_not_equal(0, world->application->run(world->connections[0], "SELECT nonsense"));
    expect(world, DBLOCK_ROLLED_BACK, guard(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 0));
}

static const char *fill(const struct world *world, int64_t token, const char *format)
{
    static char sql[2000];

    application_fill(sql, sizeof sql, format, world->name, token);
    return sql;
}

static void plain_sql__guards_as_well(struct world *world)
{
    const struct application *application = world->application;
    int64_t token = 0;

    if (world->kind->strategy != DBLOCK_LEASE && !application->has_function)
        return; /* the same statement with another table */
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    expect(world, DBLOCK_OK, dblock_lock_token(world->locks[0], &token, &world->error));
    run(world, 0, application->begin);
    if (application->has_function)
        run(world, 0, fill(world, token, "SELECT dblock_guard('%', #)"));
    else if (application->is_guard_a_change)
        run(world, 0, fill(world, token, application->plain_guard));
    else
        assert_int_equal(1, number(world, 0, fill(world, token, application->plain_guard)));
    if (!application->has_one_writer)
        expect(world, DBLOCK_PENDING, release(world, 0));
    run(world, 0, "COMMIT");
    if (application->has_one_writer)
        expect(world, DBLOCK_OK, release(world, 0));
    assert_true(test_until(is_free, world, 5000));
    run(world, 0, application->begin);
    if (application->has_function)
        assert_int_not_equal(0, application->run(world->connections[0],
            fill(world, token, "SELECT dblock_guard('%', #)")));
    else if (application->is_guard_a_change) {
        run(world, 0, fill(world, token, application->plain_guard));
        assert_int_equal(0, number(world, 0, "SELECT ROW_COUNT()"));
    } else
        assert_int_equal(-1, number(world, 0, fill(world, token, application->plain_guard)));
    run(world, 0, "ROLLBACK");
}

struct job {
    struct world *world;
    dblock_status status;
    dblock_lock *lock;
    atomic_int is_done;
};

static void *wait_for_it(void *context)
{
    struct job *job = context;
    struct dblock_options options = options_of(job->world, LONG_MS);
    struct dblock_error error;

    options.wait_ms = 10000;
    job->status = dblock_acquire(
        job->world->clients[0], job->world->name, &options, &job->lock, &error);
    atomic_store(&job->is_done, 1);
    return NULL;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(context, &stats) == DBLOCK_OK && stats.waiters > 0;
}

/* Another thread of the same client would get it without asking the database. */
static void guarded__does_not_go_to_another_thread(struct world *world)
{
    struct job job = { world, DBLOCK_OK, NULL, 0 };
    pthread_t thread;

    if (world->application->has_one_writer)
        return;
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    assert_int_equal(0, pthread_create(&thread, NULL, wait_for_it, &job));
    assert_true(test_until(is_waiting, world->clients[0], 5000));
    expect(world, DBLOCK_PENDING, release(world, 0));
    (void)test_readable(-1, 100);
    assert_int_equal(0, atomic_load(&job.is_done));
    run(world, 0, "COMMIT");
    (void)pthread_join(thread, NULL);
    expect(world, DBLOCK_OK, job.status);
    dblock_lock_free(job.lock);
}

static dblock_status release_in(struct world *world, int who)
{
    return world->application->release_in(
        world->locks[who], world->connections[who], &world->error);
}

static void released_with_the_commit__is_free_then(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "UPDATE account SET balance = 9 WHERE id = 1");
    expect(world, DBLOCK_OK, release_in(world, 0));
    if (!world->application->has_one_writer) {
        expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
        assert_int_equal(1, dblock_lock_is_held(world->locks[0]));
    }
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0));
    assert_int_equal(9, number(world, 1, "SELECT balance FROM account WHERE id = 1"));
    expect(world, DBLOCK_NOT_HELD, dblock_confirm(world->locks[0], &world->error));
    assert_int_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(world->locks[0])); /* no loss */
    expect(world, DBLOCK_NOT_HELD, release(world, 0));
    expect(world, DBLOCK_OK, release(world, 1));
}

static void released_and_rolled_back__is_still_held(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, release_in(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    expect(world, DBLOCK_OK, dblock_confirm(world->locks[0], &world->error));
    expect(world, DBLOCK_OK, release(world, 0));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0));
    expect(world, DBLOCK_OK, release(world, 1));
}

/* Who waits on another client is woken, and not by the look that makes good for a lost wake-up. */
static void released_with_the_commit__wakes(struct world *world)
{
    struct job job = { world, DBLOCK_OK, NULL, 0 };
    dblock_client *first = world->clients[0];
    uint64_t begun_ms;
    pthread_t thread;

    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0));
    assert_int_equal(0, pthread_create(&thread, NULL, wait_for_it, &job));
    assert_true(test_until(is_waiting, first, 5000));
    (void)test_readable(-1, 200); /* by then it is the first in line, and rests */
    run(world, 1, world->application->begin);
    expect(world, DBLOCK_OK, release_in(world, 1));
    begun_ms = test_now_ms();
    run(world, 1, "COMMIT");
    dblock_lock_free(world->locks[1]);
    world->locks[1] = NULL;
    (void)pthread_join(thread, NULL);
    expect(world, DBLOCK_OK, job.status);
    print_message("woken after %llu ms\n", (unsigned long long)(test_now_ms() - begun_ms));
    assert_true(test_now_ms() - begun_ms < 2500);
    dblock_lock_free(job.lock);
}

/* ----------------------------------------------------------------------- running */

static const struct test {
    const char *name;
    void (*run)(struct world *world);
} tests[] = {
    { "guarded__is_written_with_the_lock", guarded__is_written_with_the_lock },
    { "guard__outlasts_the_ttl", guard__outlasts_the_ttl },
    { "guarded__is_released_when_it_ends", guarded__is_released_when_it_ends },
    { "guarded__excludes_every_writer", guarded__excludes_every_writer },
    { "heartbeat__goes_on_under_a_guard", heartbeat__goes_on_under_a_guard },
    { "paused_holder__writes_nothing_under_a_guard",
        paused_holder__writes_nothing_under_a_guard },
    { "paused_holder__overwrites_without_a_guard", paused_holder__overwrites_without_a_guard },
    { "old_snapshot__is_told", old_snapshot__is_told },
    { "lost_lock__is_told_and_pins_nothing", lost_lock__is_told_and_pins_nothing },
    { "wrong_calls__are_refused", wrong_calls__are_refused },
    { "doomed_transaction__is_told", doomed_transaction__is_told },
    { "plain_sql__guards_as_well", plain_sql__guards_as_well },
    { "guarded__does_not_go_to_another_thread", guarded__does_not_go_to_another_thread },
    { "released_with_the_commit__is_free_then", released_with_the_commit__is_free_then },
    { "released_and_rolled_back__is_still_held", released_and_rolled_back__is_still_held },
    { "released_with_the_commit__wakes", released_with_the_commit__wakes },
};

struct run {
    struct world world;
    const struct test *test;
    char title[160];
};

static int begin_world(void **state)
{
    static unsigned n_worlds;
    struct world *world = &((struct run *)*state)->world;
    const struct contract_database *database = world->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    int i;

    if (database->schema != NULL)
        config.schema = database->schema();
    (void)snprintf(world->name, sizeof world->name, "guard-%u", ++n_worlds);
    for (i = 0; i < 2; ++i) {
        if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config,
                &world->clients[i], &world->error) != DBLOCK_OK)
            return -1;
        world->connections[i] = world->application->open();
    }
    return application_set_account(world->application, world->connections[0]);
}

static void run_one(void **state)
{
    struct run *run_state = *state;

    run_state->test->run(&run_state->world);
}

static int end_world(void **state)
{
    struct world *world = &((struct run *)*state)->world;
    int i;

    for (i = 0; i < 2; ++i) /* what a test that failed has left open keeps others out */
        if (world->connections[i] != NULL)
            world->application->close(world->connections[i]);
    for (i = 0; i < 2; ++i) {
        dblock_lock_free(world->locks[i]);
        dblock_close(world->clients[i]);
    }
    return 0;
}

int main(void)
{
    static struct run runs[CASES_MAX];
    static struct CMUnitTest cases[CASES_MAX];
    const struct application *started[DATABASES_MAX];
    size_t n_started = 0, n_runs = 0, i, d, k;
    int n_failed;

    for (i = 0; applications[i] != NULL; ++i) {
        int why_not = n_started > 0 && started[n_started - 1]->database == applications[i]->database
            ? 0
            : application_start(applications[i]);

        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (k = 0; k < sizeof kinds / sizeof kinds[0]; ++k)
            for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
                struct run *run_state = &runs[n_runs];

                run_state->world.application = started[d];
                run_state->world.kind = &kinds[k];
                run_state->test = &tests[i];
                (void)snprintf(run_state->title, sizeof run_state->title, "%s, %s: %s",
                    started[d]->title != NULL ? started[d]->title : started[d]->database->name,
                    kinds[k].name, tests[i].name);
                cases[n_runs++] = (struct CMUnitTest){ run_state->title, run_one, begin_world,
                    end_world, run_state };
            }
    n_failed = _cmocka_run_group_tests("guard", cases, n_runs, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        if (d + 1 == n_started || started[d + 1]->database != started[d]->database)
            started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
