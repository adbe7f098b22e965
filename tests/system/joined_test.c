/* SPDX-License-Identifier: MIT */
/* joined_test.c - row and advisory locks that belong to a transaction of the application, on each
 * database: freed by its end and by nothing else, waited for without harm to it, and met by the
 * locks of dblock's own connections. Runs beside others. */
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
#include "application_count.h"
#include "test_wait.h"

enum { DATABASES_MAX = 4, CASES_MAX = 200, WAIT_MS = 10000, N_COUNTERS = 4, N_COUNTS = 20 };

static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };

/* Two clients, and two connections of the application; freed after each test. */
struct world {
    const struct application *application;
    int strategy;
    dblock_client *clients[2];
    void *connections[2];
    char name[64];
    struct dblock_error error;
};

static void expect_at(struct world *world, dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s, %s: line %d: %s instead of %s: %s\n", world->application->database->name,
        dblock_strategy_name(world->strategy), line, dblock_status_name(actual),
        dblock_status_name(expected), actual < 0 ? world->error.message : "");
    _fail(__FILE__, line);
}

#define expect(world, expected, actual) expect_at(world, expected, actual, __LINE__)

static struct dblock_options options_of(const struct world *world, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = world->strategy;
    options.wait_ms = wait_ms;
    return options;
}

static dblock_status join(struct world *world, int who, uint64_t wait_ms)
{
    struct dblock_options options = options_of(world, wait_ms);

    return world->application->acquire_in(world->clients[who], world->connections[who],
        world->name, &options, NULL, &world->error);
}

static dblock_status take(struct world *world, int who, dblock_lock **ret_lock)
{
    struct dblock_options options = options_of(world, 0);

    return dblock_acquire(world->clients[who], world->name, &options, ret_lock, &world->error);
}

static void run(struct world *world, int who, const char *sql)
{
    if (world->application->run(world->connections[who], sql) != 0) {
        print_error("%s: %s\n", world->application->database->name, sql);
        fail();
    }
}

/* Where there is one writer, it becomes that when it has the lock. */
static void begin(struct world *world, int who)
{
    run(world, who, world->application->has_one_writer ? world->application->begin_snapshot
                                                       : world->application->begin);
}

static int64_t balance(struct world *world, int who)
{
    return world->application->number(
        world->connections[who], "SELECT balance FROM account WHERE id = 1");
}

/* A wait of the second client, on a thread of its own. */
struct job {
    struct world *world;
    struct dblock_options options;
    struct dblock_error error;
    dblock_status status;
    uint64_t end_ms;
    pthread_t thread;
};

static void *wait_for_it(void *context)
{
    struct job *job = context;
    struct world *world = job->world;

    job->status = world->application->acquire_in(world->clients[1], world->connections[1],
        world->name, &job->options, NULL, &job->error);
    job->end_ms = test_now_ms();
    return NULL;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(context, &stats) == DBLOCK_OK && stats.waiters > 0;
}

/* Returns once it waits, for at least `pause_ms`. */
static void start_wait(struct job *job, uint64_t pause_ms)
{
    assert_int_equal(0, pthread_create(&job->thread, NULL, wait_for_it, job));
    assert_true(test_until(is_waiting, job->world->clients[1], 5000));
    (void)test_readable(-1, pause_ms);
}

/* ------------------------------------------------------------------------ cases */

/* PITFALL(C21): not a moment before the commit. */
static void joined__is_freed_by_the_end(struct world *world)
{
    static const char *const ends[] = { "COMMIT", "ROLLBACK" };
    size_t i;

    for (i = 0; i < 2; ++i) {
        begin(world, 0);
        expect(world, DBLOCK_OK, join(world, 0, 0));
        expect(world, DBLOCK_OK, join(world, 0, 0)); /* as often as one likes */
        begin(world, 1);
        expect(world, DBLOCK_BUSY, join(world, 1, 0));
        run(world, 0, ends[i]);
        expect(world, DBLOCK_OK, join(world, 1, 0));
        run(world, 1, ends[i]);
    }
}

static void joined__meets_the_locks_of_dblock(struct world *world)
{
    dblock_lock *lock = NULL;

    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    expect(world, DBLOCK_BUSY, take(world, 1, &lock));
    expect(world, DBLOCK_BUSY, take(world, 0, &lock)); /* by the same client, too */
    run(world, 0, "COMMIT");
    expect(world, DBLOCK_OK, take(world, 1, &lock));
    begin(world, 0);
    expect(world, DBLOCK_BUSY, join(world, 0, 0));
    expect(world, DBLOCK_BUSY, join(world, 0, 100));
    expect(world, DBLOCK_OK, dblock_release(lock, &world->error));
    dblock_lock_free(lock);
    expect(world, DBLOCK_OK, join(world, 0, 2000));
    run(world, 0, "ROLLBACK");
}

static void joined__ends_with_the_connection(struct world *world)
{
    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    expect(world, DBLOCK_BUSY, join(world, 1, 0));
    world->application->close(world->connections[0]);
    world->connections[0] = NULL;
    expect(world, DBLOCK_OK, join(world, 1, 5000));
    run(world, 1, "COMMIT");
}

static void savepoint__is_undone_with_what_was_locked(struct world *world)
{
    begin(world, 0);
    run(world, 0, "SAVEPOINT before_it");
    expect(world, DBLOCK_OK, join(world, 0, 0));
    run(world, 0, "ROLLBACK TO SAVEPOINT before_it");
    begin(world, 1);
    if (world->application->savepoint_frees)
        expect(world, DBLOCK_OK, join(world, 1, 0));
    run(world, 1, "ROLLBACK");
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    expect(world, DBLOCK_BUSY, join(world, 1, 0));
    run(world, 1, "ROLLBACK");
    run(world, 0, "COMMIT");
}

static void wait__ends_with_the_holder(struct world *world)
{
    struct job job = { .world = world, .options = options_of(world, WAIT_MS) };
    uint64_t begun_ms;

    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    start_wait(&job, 100);
    run(world, 0, "UPDATE account SET balance = 7 WHERE id = 1");
    begun_ms = test_now_ms();
    run(world, 0, "COMMIT");
    (void)pthread_join(job.thread, NULL);
    expect(world, DBLOCK_OK, job.status);
    assert_true(job.end_ms - begun_ms < 5000);
    assert_int_equal(7, balance(world, 1));
    begin(world, 0);
    expect(world, DBLOCK_BUSY, join(world, 0, 0));
    run(world, 0, "ROLLBACK");
    run(world, 1, "COMMIT");
}

/* The same beyond one slice of the wait. */
static void wait__outlasts_a_slice(struct world *world)
{
    struct job job = { .world = world, .options = options_of(world, DBLOCK_FOREVER) };

    if (world->strategy != DBLOCK_ROW || world->application->has_one_writer)
        return; /* it is the same wait, or has no slices */
    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    start_wait(&job, 1150);
    run(world, 0, "COMMIT");
    (void)pthread_join(job.thread, NULL);
    expect(world, DBLOCK_OK, job.status);
    run(world, 1, "COMMIT");
}

/* PITFALL(C4), PITFALL(C18): it can be used, and others get the name.
 * What the transaction did before stands, and what it locked, and it goes on. */
static void wait__ends_in_time_and_the_transaction_goes_on(struct world *world)
{
    size_t length = strlen(world->name);
    uint64_t begun_ms;

    if (world->application->has_one_writer)
        return; /* sqlite_joined_test */
    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    memcpy(world->name + length, "-other", 7);
    expect(world, DBLOCK_OK, join(world, 1, 0));
    run(world, 1, "UPDATE account SET balance = balance + 1 WHERE id = 1");
    world->name[length] = 0;
    begun_ms = test_now_ms();
    expect(world, DBLOCK_BUSY, join(world, 1, 250));
    assert_in_range(test_now_ms() - begun_ms, 250, 3000);
    memcpy(world->name + length, "-other", 7);
    expect(world, DBLOCK_BUSY, join(world, 0, 0));
    run(world, 1, "UPDATE account SET balance = balance + 1 WHERE id = 1");
    run(world, 1, "COMMIT");
    run(world, 0, "COMMIT");
    assert_int_equal(102, balance(world, 0));
}

static void cancelled__and_the_transaction_goes_on(struct world *world)
{
    struct job job = { .world = world, .options = options_of(world, DBLOCK_FOREVER) };
    dblock_canceller *canceller = NULL;
    uint64_t begun_ms;

    expect(world, DBLOCK_OK, dblock_canceller_new(&canceller, &world->error));
    job.options.canceller = canceller;
    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    if (!world->application->has_one_writer)
        run(world, 1, "UPDATE account SET balance = 3 WHERE id = 1");
    start_wait(&job, 100);
    begun_ms = test_now_ms();
    dblock_cancel(canceller);
    (void)pthread_join(job.thread, NULL);
    expect(world, DBLOCK_CANCELLED, job.status);
    assert_true(job.end_ms - begun_ms < 900); /* a slice is longer */
    run(world, 1, "COMMIT");
    run(world, 0, "COMMIT");
    assert_int_equal(world->application->has_one_writer ? 100 : 3, balance(world, 0));
    dblock_canceller_free(canceller);
}

static void closed_client__ends_the_wait(struct world *world)
{
    struct job job = { .world = world, .options = options_of(world, DBLOCK_FOREVER) };

    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    start_wait(&job, 50);
    dblock_close(world->clients[1]);
    world->clients[1] = NULL;
    (void)pthread_join(job.thread, NULL);
    expect(world, DBLOCK_E_CLOSED, job.status);
    run(world, 1, "COMMIT");
    run(world, 0, "COMMIT");
}

static void *update_account(void *context)
{
    struct world *world = context;

    return world->application->run(world->connections[0],
               "UPDATE account SET balance = balance + 1 WHERE id = 1") == 0
        ? context
        : NULL;
}

/* One of the two waits is given up by the server. If it is ours, that is said, and the transaction
 * holds nothing any more. */
static void deadlock__is_told(struct world *world)
{
    pthread_t thread;
    void *went_well = NULL;
    uint64_t begun_ms = test_now_ms();
    dblock_status status;

    if (world->strategy != DBLOCK_ROW || world->application->has_one_writer)
        return; /* where there is one writer, the other fails when it wants to write */
    begin(world, 0);
    expect(world, DBLOCK_OK, join(world, 0, 0));
    begin(world, 1);
    run(world, 1, "UPDATE account SET balance = balance + 10 WHERE id = 1");
    assert_int_equal(0, pthread_create(&thread, NULL, update_account, world));
    (void)test_readable(-1, 200); /* it waits for the row by now, most likely */
    status = join(world, 1, 30000);
    if (status == DBLOCK_OK) { /* the other was chosen */
        run(world, 1, "COMMIT");
        (void)pthread_join(thread, &went_well);
        assert_null(went_well);
        run(world, 0, "ROLLBACK");
        assert_int_equal(110, balance(world, 0));
    } else {
        expect(world, DBLOCK_ROLLED_BACK, status);
        (void)pthread_join(thread, &went_well);
        assert_non_null(went_well);
        run(world, 1, "ROLLBACK");
        run(world, 0, "COMMIT");
        assert_int_equal(101, balance(world, 0));
    }
    assert_true(test_now_ms() - begun_ms < 10000);
}

static void busy__tells_the_holder(struct world *world)
{
    struct dblock_options options = options_of(world, 0);
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    dblock_lock *lock = NULL;

    options.busy = &holder;
    expect(world, DBLOCK_OK, take(world, 0, &lock));
    begin(world, 1);
    expect(world, DBLOCK_BUSY,
        world->application->acquire_in(world->clients[1], world->connections[1], world->name,
            &options, NULL, &world->error));
    assert_int_equal(world->strategy, holder.strategy);
    assert_true(holder.remaining_ms == DBLOCK_FOREVER);
    run(world, 1, "ROLLBACK");
    dblock_lock_free(lock);
}

/* The end of the transaction is not seen from the object, so it claims nothing. */
static void object__claims_nothing(struct world *world)
{
    struct dblock_options options = options_of(world, 0);
    struct dblock_event event = DBLOCK_EVENT_INIT;
    struct dblock_error *error = &world->error;
    char text[512];
    dblock_lock *lock = NULL;
    int64_t token;
    int fd = -1;

    options.context = world;
    begin(world, 0);
    expect(world, DBLOCK_OK,
        world->application->acquire_in(
            world->clients[0], world->connections[0], world->name, &options, &lock, error));
    assert_string_equal(world->name, dblock_lock_name(lock));
    assert_int_equal(world->strategy, dblock_lock_strategy(lock));
    assert_int_equal(32, strlen(dblock_lock_owner(lock)));
    assert_ptr_equal(world, dblock_lock_context(lock));
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_int_equal(0, dblock_lock_remaining_ms(lock));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_confirm(lock, error));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_extend(lock, 0, error));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_extend(lock, 5000, error));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_lock_detach(lock, 5000, error));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_lock_export(lock, text, sizeof text, error));
    expect(world, DBLOCK_E_UNSUPPORTED, dblock_lock_token(lock, &token, error));
    expect(world, DBLOCK_E_UNSUPPORTED,
        world->application->guard(lock, world->connections[0], error));
    expect(world, DBLOCK_OK, dblock_lock_fd(lock, &fd, error));
    assert_int_equal(0, test_readable(fd, 0));
    run(world, 0, "COMMIT");
    assert_int_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(lock));
    expect(world, DBLOCK_EMPTY, dblock_client_next_event(world->clients[0], &event));
    expect(world, DBLOCK_PENDING, dblock_release(lock, error));
    assert_int_equal(1, test_readable(fd, 0));
    expect(world, DBLOCK_NOT_HELD, dblock_release(lock, error));
    expect(world, DBLOCK_NOT_HELD, dblock_confirm(lock, error));
    dblock_lock_free(lock);
}

/* P3, and the token is committed although the transaction is not. */
static void fenced__has_a_token(struct world *world)
{
    struct dblock_options options = options_of(world, 0);
    dblock_lock *lock = NULL;
    int64_t token = 0, last = 0;
    int i;

    options.flags = DBLOCK_FENCED;
    for (i = 0; i < 3; ++i) {
        begin(world, 0);
        if (world->strategy != DBLOCK_ROW || world->application->has_one_writer) {
            expect(world, DBLOCK_E_UNSUPPORTED,
                world->application->acquire_in(world->clients[0], world->connections[0],
                    world->name, &options, &lock, &world->error));
            run(world, 0, "ROLLBACK");
            return;
        }
        expect(world, DBLOCK_OK,
            world->application->acquire_in(world->clients[0], world->connections[0], world->name,
                &options, &lock, &world->error));
        expect(world, DBLOCK_OK, dblock_lock_token(lock, &token, &world->error));
        assert_true(token > last);
        last = token;
        dblock_lock_free(lock);
        run(world, 0, i == 1 ? "COMMIT" : "ROLLBACK");
    }
    expect(world, DBLOCK_OK, take(world, 1, &lock));
    expect(world, DBLOCK_OK, dblock_lock_token(lock, &token, &world->error));
    assert_true(token > last);
    dblock_lock_free(lock);
}

static void wrong_calls__are_refused(struct world *world)
{
    const struct application *application = world->application;
    struct dblock_options options = options_of(world, 0);
    struct dblock_error *error = &world->error;

    expect(world, DBLOCK_E_ARGUMENT, join(world, 0, 0)); /* in no transaction */
    assert_true(error->hint[0] != 0);
    expect(world, DBLOCK_E_ARGUMENT,
        application->acquire_in(world->clients[0], NULL, world->name, &options, NULL, error));
    begin(world, 0);
    expect(world, DBLOCK_E_ARGUMENT,
        application->acquire_in(NULL, world->connections[0], world->name, &options, NULL, error));
    expect(world, DBLOCK_E_ARGUMENT,
        application->acquire_in(
            world->clients[0], world->connections[0], "", &options, NULL, error));
    options.flags = DBLOCK_FAIR;
    expect(world, DBLOCK_E_UNSUPPORTED,
        application->acquire_in(
            world->clients[0], world->connections[0], world->name, &options, NULL, error));
    options.flags = 0;
    for (options.strategy = DBLOCK_LEASE; options.strategy <= DBLOCK_ADVISORY; ++options.strategy) {
        if ((application->joins & 1u << options.strategy) != 0)
            continue;
        expect(world, DBLOCK_E_UNSUPPORTED,
            application->acquire_in(
                world->clients[0], world->connections[0], world->name, &options, NULL, error));
        assert_true(error->hint[0] != 0);
    }
    expect(world, DBLOCK_OK, join(world, 0, 0)); /* none of that has harmed the transaction */
    run(world, 0, "COMMIT");
}

static void counters__lose_nothing(struct world *world)
{
    assert_int_equal(
        0, application_count(world->application, world->strategy, world->name, N_COUNTERS, N_COUNTS));
    assert_int_equal(100 + N_COUNTERS * N_COUNTS, balance(world, 0));
}

/* ----------------------------------------------------------------------- running */

static const struct test {
    const char *name;
    void (*run)(struct world *world);
} tests[] = {
    { "joined__is_freed_by_the_end", joined__is_freed_by_the_end },
    { "joined__meets_the_locks_of_dblock", joined__meets_the_locks_of_dblock },
    { "joined__ends_with_the_connection", joined__ends_with_the_connection },
    { "savepoint__is_undone_with_what_was_locked", savepoint__is_undone_with_what_was_locked },
    { "wait__ends_with_the_holder", wait__ends_with_the_holder },
    { "wait__outlasts_a_slice", wait__outlasts_a_slice },
    { "wait__ends_in_time_and_the_transaction_goes_on",
        wait__ends_in_time_and_the_transaction_goes_on },
    { "cancelled__and_the_transaction_goes_on", cancelled__and_the_transaction_goes_on },
    { "closed_client__ends_the_wait", closed_client__ends_the_wait },
    { "deadlock__is_told", deadlock__is_told },
    { "busy__tells_the_holder", busy__tells_the_holder },
    { "object__claims_nothing", object__claims_nothing },
    { "fenced__has_a_token", fenced__has_a_token },
    { "wrong_calls__are_refused", wrong_calls__are_refused },
    { "counters__lose_nothing", counters__lose_nothing },
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

    (void)snprintf(world->name, sizeof world->name, "joined-%ld-%u", (long)test_now_ms(), ++n_worlds);
    return application_open_pair(
        world->application, world->clients, world->connections, &world->error);
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

    application_close_connections(world->application, world->connections);
    for (i = 0; i < 2; ++i)
        dblock_close(world->clients[i]);
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
        int why_not = applications[i]->joins == 0 ? 77 : application_start(applications[i]);

        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (k = 0; k < sizeof strategies / sizeof strategies[0]; ++k)
            for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
                struct run *run_state = &runs[n_runs];

                if ((started[d]->joins & 1u << strategies[k]) == 0)
                    continue;
                run_state->world.application = started[d];
                run_state->world.strategy = strategies[k];
                run_state->test = &tests[i];
                (void)snprintf(run_state->title, sizeof run_state->title, "%s, %s: %s",
                    started[d]->database->name, dblock_strategy_name(strategies[k]),
                    tests[i].name);
                cases[n_runs++] = (struct CMUnitTest){ run_state->title, run_one, begin_world,
                    end_world, run_state };
            }
    n_failed = _cmocka_run_group_tests("joined", cases, n_runs, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
