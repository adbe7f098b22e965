/* SPDX-License-Identifier: MIT */
/* guard_test.c - a transaction of the application that is bound to a grant, on each
 * database: what it writes is atomic with holding the lock, also if its process was
 * stopped in between; and the plain SQL that does the same (S2, S4, S7). Runs beside others. */
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

#include "guard_world.h"
#include "test_wait.h"

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

    if (world->application->has_one_writer || world->kind->heartbeat != DBLOCK_HEARTBEAT_OFF)
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

/* A COMMIT whose answer is lost, and which comes late: who gives the lock back and takes it again
 * before he looks gets it when that transaction is over, and sees what it did. */
static void late_commit__is_over_before_the_next_grant(struct world *world)
{
    struct dblock_options options = options_of(world, LONG_MS);

    if (world->application->has_one_writer)
        return; /* nobody else would write meanwhile in any case */
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "UPDATE account SET balance = 5 WHERE id = 1");
    expect(world, is_live(world) ? DBLOCK_OK : DBLOCK_PENDING, release(world, 0));
    expect(world, DBLOCK_BUSY, dblock_acquire(world->clients[0], world->name, &options,
        &world->locks[0], &world->error));
    run(world, 0, "COMMIT");
    options.wait_ms = 5000;
    expect(world, DBLOCK_OK, dblock_acquire(world->clients[0], world->name, &options,
        &world->locks[0], &world->error));
    assert_int_equal(5, number(world, 1, "SELECT balance FROM account WHERE id = 1"));
    expect(world, DBLOCK_OK, release(world, 0));
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
    expect(world, is_live(world) ? DBLOCK_OK : DBLOCK_PENDING, release(world, 0));
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    if (can_break(world)) /* what is live is not held any more */
        expect(world, is_live(world) ? DBLOCK_NOT_HELD : DBLOCK_PENDING,
            dblock_break(
                world->clients[1], world->name, world->kind->strategy, 0, &world->error));
    assert_true(test_now_ms() - begun_ms < 5000);
    run(world, 0, "COMMIT");
    assert_true(test_until(is_free, world, 5000));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    expect(world, DBLOCK_OK, release(world, 1));
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

/* PITFALL(E12) */
static void paused_holder__writes_nothing_under_a_guard(struct world *world)
{
    if (!can_break(world))
        return;
    assert_int_equal(101, deposit_twice(world, 1));
}

/* What the guard is for: the same without one writes 101 over the other's 101, so one is lost. */
static void paused_holder__overwrites_without_a_guard(struct world *world)
{
    if (!can_break(world))
        return;
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

    if (!can_break(world))
        return;
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
    dblock_lock *unfenced = NULL;

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
    options.strategy = world->kind->strategy == DBLOCK_ROW ? DBLOCK_ROW : DBLOCK_ADVISORY;
    options.heartbeat = DBLOCK_HEARTBEAT_DEFAULT;
    options.ttl_ms = 0;
    options.flags = 0;
    expect(world, DBLOCK_OK,
        dblock_acquire(world->clients[0], "unfenced", &options, &unfenced, &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_E_ARGUMENT,
        world->application->guard(unfenced, world->connections[0], &world->error));
    assert_string_equal("acquire it with DBLOCK_FENCED", world->error.hint);
    run(world, 0, "ROLLBACK");
    dblock_lock_free(unfenced);
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

/* One statement in SQL: does it guard? It need not be answered by an error. */
static int guard_plainly(struct world *world, int who, int64_t token)
{
    const struct application *application = world->application;
    const char *text = is_live(world) ? application->plain_row_guard : application->plain_guard;

    if (application->has_function)
        return application->run(world->connections[who],
                   fill(world, token, "SELECT dblock_guard('%', #)")) == 0;
    if (!application->is_guard_a_change)
        return number(world, who, fill(world, token, text)) == 1;
    run(world, who, fill(world, token, text));
    return number(world, who, "SELECT ROW_COUNT()") == 1;
}

static void plain_sql__guards_as_well(struct world *world)
{
    const struct application *application = world->application;
    int64_t token = 0;

    if (world->kind->strategy != DBLOCK_LEASE && world->kind->strategy != DBLOCK_ROW &&
        !application->has_function)
        return; /* the same statement with another table, or from C alone */
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    expect(world, DBLOCK_OK, dblock_lock_token(world->locks[0], &token, &world->error));
    run(world, 0, application->begin);
    assert_true(guard_plainly(world, 0, token));
    if (!application->has_one_writer) {
        expect(world, is_live(world) ? DBLOCK_OK : DBLOCK_PENDING, release(world, 0));
        expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    }
    run(world, 0, "COMMIT");
    if (application->has_one_writer)
        expect(world, DBLOCK_OK, release(world, 0));
    assert_true(test_until(is_free, world, 5000));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    run(world, 0, application->begin);
    assert_false(guard_plainly(world, 0, token));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 1));
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
    expect(world, is_live(world) ? DBLOCK_OK : DBLOCK_PENDING, release(world, 0));
    (void)test_readable(-1, 100);
    assert_int_equal(0, atomic_load(&job.is_done));
    run(world, 0, "COMMIT");
    (void)pthread_join(thread, NULL);
    expect(world, DBLOCK_OK, job.status);
    dblock_lock_free(job.lock);
}

static void released_with_the_commit__is_free_then(struct world *world)
{
    if (is_live(world))
        return;
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

/* min_hold_ms holds for this release as for the plain one; to its holder it is given back. */
static void released_with_the_commit__keeps_min_hold(struct world *world)
{
    struct dblock_options options = options_of(world, LONG_MS);
    uint64_t begun_ms = test_now_ms();

    if (is_live(world))
        return;
    options.min_hold_ms = 1500;
    expect(world, DBLOCK_OK,
        dblock_acquire(
            world->clients[0], world->name, &options, &world->locks[0], &world->error));
    run(world, 0, world->application->begin);
    expect(world, DBLOCK_OK, release_in(world, 0));
    expect(world, DBLOCK_NOT_HELD, release_in(world, 0));
    run(world, 0, "COMMIT");
    options = options_of(world, LONG_MS);
    options.wait_ms = 20000;
    expect(world, DBLOCK_NOT_HELD, dblock_confirm(world->locks[0], &world->error));
    expect(world, DBLOCK_NOT_HELD, release(world, 0));
    expect(world, DBLOCK_OK,
        dblock_acquire(
            world->clients[1], world->name, &options, &world->locks[1], &world->error));
    assert_in_range(test_now_ms() - begun_ms, 1490, 15000);
    expect(world, DBLOCK_OK, release(world, 1));
}

static void released_and_rolled_back__is_still_held(struct world *world)
{
    if (is_live(world))
        return;
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

    if (is_live(world))
        return;
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

/* Nobody else can be granted the name until the open transaction ends, which is committed then. */
static void expect_pinned(struct world *world)
{
    if (world->application->has_one_writer) {
        assert_int_not_equal(0, world->application->run(world->connections[1],
            "PRAGMA busy_timeout = 0; BEGIN IMMEDIATE"));
        run(world, 0, "COMMIT");
        expect(world, DBLOCK_OK, release(world, 0));
        return;
    }
    expect(world, is_live(world) ? DBLOCK_OK : DBLOCK_PENDING, release(world, 0));
    expect(world, DBLOCK_BUSY, take(world, 1, LONG_MS, 0));
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 5000));
    expect(world, DBLOCK_OK, release(world, 1));
}

static void savepoint_after_the_guard__undoes_nothing_of_it(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin_snapshot);
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "SAVEPOINT after_it");
    run(world, 0, "UPDATE account SET balance = 5 WHERE id = 1");
    run(world, 0, "ROLLBACK TO SAVEPOINT after_it");
    expect_pinned(world);
}

/* A guard again is the way out: it pins the name anew, or tells that it was taken. */
static void savepoint_before_the_guard__is_guarded_again(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin_snapshot);
    run(world, 0, "SAVEPOINT before_it");
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "ROLLBACK TO SAVEPOINT before_it");
    expect(world, DBLOCK_OK, guard(world, 0));
    expect_pinned(world);
}

static void savepoint_before_the_guard__may_undo_it(struct world *world)
{
    if (is_live(world) || !world->application->savepoint_frees)
        return; /* elsewhere the pin stays, or it is not promised which */
    expect(world, DBLOCK_OK, take(world, 0, LONG_MS, 0));
    run(world, 0, world->application->begin);
    run(world, 0, "SAVEPOINT before_it");
    expect(world, DBLOCK_OK, guard(world, 0));
    run(world, 0, "ROLLBACK TO SAVEPOINT before_it");
    expect(world, DBLOCK_OK,
        dblock_break(
            world->clients[1], world->name, world->kind->strategy, 0, &world->error));
    expect(world, DBLOCK_OK, take(world, 1, LONG_MS, 0));
    expect(world, DBLOCK_LOST, guard(world, 0));
    run(world, 0, "ROLLBACK");
    expect(world, DBLOCK_OK, release(world, 1));
}

/* ----------------------------------------------------------------------- running */

static const struct kind kinds[] = {
    { "lease", DBLOCK_LEASE, DBLOCK_HEARTBEAT_ON },
    { "timed lease", DBLOCK_LEASE, DBLOCK_HEARTBEAT_OFF },
    { "insert", DBLOCK_INSERT, DBLOCK_HEARTBEAT_OFF },
    { "row", DBLOCK_ROW, DBLOCK_HEARTBEAT_DEFAULT },
    { "advisory", DBLOCK_ADVISORY, DBLOCK_HEARTBEAT_DEFAULT },
    { NULL, 0, 0 },
};

static const struct guard_case cases[] = {
    { "guarded__is_written_with_the_lock", guarded__is_written_with_the_lock },
    { "guard__outlasts_the_ttl", guard__outlasts_the_ttl },
    { "late_commit__is_over_before_the_next_grant", late_commit__is_over_before_the_next_grant },
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
    { "released_with_the_commit__keeps_min_hold", released_with_the_commit__keeps_min_hold },
    { "released_and_rolled_back__is_still_held", released_and_rolled_back__is_still_held },
    { "savepoint_after_the_guard__undoes_nothing_of_it",
        savepoint_after_the_guard__undoes_nothing_of_it },
    { "savepoint_before_the_guard__is_guarded_again",
        savepoint_before_the_guard__is_guarded_again },
    { "savepoint_before_the_guard__may_undo_it", savepoint_before_the_guard__may_undo_it },
    { "released_with_the_commit__wakes", released_with_the_commit__wakes },
    { NULL, NULL },
};

int main(void)
{
    return guard_run("guard", kinds, cases);
}
