/* SPDX-License-Identifier: MIT */
/* watch_test.c - a lock is lost, and what runs on the application's connection ends, on each
 * database; what runs after a release or an unwatch goes on. Runs beside others. Also on
 * oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>

#include "application.h"
#include "test_wait.h"

enum { DATABASES_MAX = 4, CASES_MAX = 100, LONG_MS = 20000, SHORT_MS = 300, TTL_MS = 400 };

static const struct kind {
    const char *name;
    int strategy;
    int heartbeat;
} kinds[] = {
    { "lease", DBLOCK_LEASE, DBLOCK_HEARTBEAT_ON },
    { "timed insert", DBLOCK_INSERT, DBLOCK_HEARTBEAT_OFF },
};

/* Two clients, and a connection of the application whose statements run in a thread. */
struct world {
    const struct application *application;
    const struct kind *kind;
    dblock_client *clients[2];
    void *connection;
    char name[64];
    dblock_lock *lock;
    pthread_t thread;
    int is_running;
    atomic_int has_begun;
    uint64_t pause_ms;
    int64_t result; /* 0: it ran to its end */
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

static dblock_status take(struct world *world, int who, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = world->kind->strategy;
    options.heartbeat = world->kind->heartbeat;
    options.ttl_ms = TTL_MS;
    options.wait_ms = 5000;
    return dblock_acquire(world->clients[who], world->name, &options, ret_lock, &world->error);
}

static dblock_status watch(struct world *world)
{
    return world->application->watch(world->lock, world->connection, &world->error);
}

static void begin_watch(struct world *world)
{
    expect(world, DBLOCK_OK, take(world, 0, &world->lock));
    expect(world, DBLOCK_OK, watch(world));
}

static void *run_statement(void *context)
{
    struct world *world = context;
    char sql[200];

    application_fill(sql, sizeof sql, world->application->pause, "", (int64_t)world->pause_ms);
    atomic_store(&world->has_begun, 1);
    world->result = world->application->number(world->connection, sql);
    return NULL;
}

static int has_begun(void *context)
{
    return atomic_load(&((struct world *)context)->has_begun);
}

static void begin_statement(struct world *world, uint64_t pause_ms)
{
    world->pause_ms = pause_ms;
    world->result = -1;
    atomic_store(&world->has_begun, 0);
    assert_int_equal(0, pthread_create(&world->thread, NULL, run_statement, world));
    world->is_running = 1;
    assert_true(test_until(has_begun, world, 5000));
}

/* 0: it ran to its end. */
static int64_t end_statement(struct world *world)
{
    assert_int_equal(0, pthread_join(world->thread, NULL));
    world->is_running = 0;
    return world->result;
}

/* It is lost: by somebody who breaks it, or because its time is over. */
static void lose(struct world *world)
{
    if (world->kind->heartbeat == DBLOCK_HEARTBEAT_ON)
        expect(world, DBLOCK_OK, dblock_break(world->clients[1], world->name,
            world->kind->strategy, 0, &world->error));
}

static int is_lost(void *context)
{
    return !dblock_lock_is_held(((struct world *)context)->lock);
}

/* The connection is as good as before. MySQL: a KILL may be in wait for the next statement. */
static void expect_usable(struct world *world)
{
    (void)world->application->run(world->connection, "SELECT 0");
    begin_statement(world, 100);
    assert_int_equal(0, end_statement(world));
}

/* ------------------------------------------------------------------------ cases */

static void lost__ends_the_statement(struct world *world)
{
    uint64_t begun_ms = test_now_ms();

    begin_watch(world);
    begin_statement(world, LONG_MS);
    lose(world);
    assert_int_not_equal(0, end_statement(world));
    assert_true(test_now_ms() - begun_ms < 4000);
    assert_int_equal(0, dblock_lock_is_held(world->lock));
    world->application->unwatch(world->lock);
    expect_usable(world);
    expect(world, DBLOCK_LOST, dblock_release(world->lock, &world->error));
}

/* The application had looked, and then the lock was lost: the cancel found nothing to end. */
static void lost__ends_what_is_begun_afterwards(struct world *world)
{
    uint64_t begun_ms;

    begin_watch(world);
    lose(world);
    assert_true(test_until(is_lost, world, 5000));
    begun_ms = test_now_ms();
    begin_statement(world, LONG_MS);
    assert_int_not_equal(0, end_statement(world));
    assert_true(test_now_ms() - begun_ms < 4000);
    expect(world, DBLOCK_LOST, dblock_release(world->lock, &world->error));
    expect_usable(world);
}

/* The rows are gone, as after a restore from a backup. */
static void dead_session__ends_the_statement(struct world *world)
{
    begin_watch(world);
    begin_statement(world, LONG_MS);
    world->application->database->delete_session(world->kind->strategy, world->name);
    assert_int_not_equal(0, end_statement(world));
    expect(world, DBLOCK_LOST, dblock_release(world->lock, &world->error));
    expect_usable(world);
}

static void unwatched__goes_on_after_a_loss(struct world *world)
{
    begin_watch(world);
    world->application->unwatch(world->lock);
    begin_statement(world, TTL_MS + SHORT_MS);
    lose(world);
    assert_true(test_until(is_lost, world, 5000));
    assert_int_equal(0, end_statement(world));
    expect(world, DBLOCK_LOST, dblock_release(world->lock, &world->error));
}

static void released__goes_on(struct world *world)
{
    dblock_lock *other = NULL;

    begin_watch(world);
    begin_statement(world, SHORT_MS);
    expect(world, DBLOCK_OK, dblock_release(world->lock, &world->error));
    expect(world, DBLOCK_OK, take(world, 1, &other));
    dblock_lock_free(other);
    assert_int_equal(0, end_statement(world));
}

static void freed__goes_on(struct world *world)
{
    begin_watch(world);
    begin_statement(world, SHORT_MS);
    dblock_lock_free(world->lock);
    world->lock = NULL;
    dblock_close(world->clients[0]);
    world->clients[0] = NULL;
    assert_int_equal(0, end_statement(world));
}

static void wrong_calls__are_refused(struct world *world)
{
    const struct application *application = world->application;

    expect(world, DBLOCK_E_ARGUMENT, application->watch(NULL, world->connection, &world->error));
    application->unwatch(NULL);
    expect(world, DBLOCK_OK, take(world, 0, &world->lock));
    expect(world, DBLOCK_E_ARGUMENT, application->watch(world->lock, NULL, &world->error));
    application->unwatch(world->lock);
    lose(world);
    assert_true(test_until(is_lost, world, 5000));
    expect(world, DBLOCK_LOST, watch(world));
    expect(world, DBLOCK_LOST, dblock_release(world->lock, &world->error));
    expect(world, DBLOCK_NOT_HELD, watch(world));
}

/* ------------------------------------------------------------------------ all of it */

static const struct test {
    const char *name;
    void (*run)(struct world *world);
} tests[] = {
    { "lost__ends_the_statement", lost__ends_the_statement }, /* the first: of all kinds */
    { "lost__ends_what_is_begun_afterwards", lost__ends_what_is_begun_afterwards },
    { "dead_session__ends_the_statement", dead_session__ends_the_statement },
    { "unwatched__goes_on_after_a_loss", unwatched__goes_on_after_a_loss },
    { "released__goes_on", released__goes_on },
    { "freed__goes_on", freed__goes_on },
    { "wrong_calls__are_refused", wrong_calls__are_refused },
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
    (void)snprintf(world->name, sizeof world->name, "watch-%u", ++n_worlds);
    for (i = 0; i < 2; ++i)
        if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config,
                &world->clients[i], &world->error) != DBLOCK_OK)
            return -1;
    world->connection = world->application->open();
    return 0;
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

    if (world->is_running)
        (void)pthread_join(world->thread, NULL);
    dblock_lock_free(world->lock);
    for (i = 0; i < 2; ++i)
        dblock_close(world->clients[i]);
    world->application->close(world->connection);
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
        int why_not;

        if (n_started > 0 && started[n_started - 1]->database == applications[i]->database)
            continue;
        why_not = application_start(applications[i]);
        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (k = 0; k < sizeof kinds / sizeof kinds[0]; ++k)
            for (i = 0; i < (k == 0 ? sizeof tests / sizeof tests[0] : 1); ++i) {
                struct run *run_state = &runs[n_runs];

                run_state->world.application = started[d];
                run_state->world.kind = &kinds[k];
                run_state->test = &tests[i];
                (void)snprintf(run_state->title, sizeof run_state->title, "%s, %s: %s",
                    started[d]->database->name, kinds[k].name, tests[i].name);
                cases[n_runs++] = (struct CMUnitTest){ run_state->title, run_one, begin_world,
                    end_world, run_state };
            }
    n_failed = _cmocka_run_group_tests("watch", cases, n_runs, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
