/* SPDX-License-Identifier: MIT */
/* close_test.c - what dblock_close() still does, and for how long, when the server is silent, away,
 * or guards what was to be broken; and what is left to be done with the locks afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/client.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "close_test"
#define URL "sim:" WORLD

enum { IO_MS = 800, N_LOCKS = 6 };

static dblock_client *client, *rival;
static struct dblock_error error;
static atomic_int is_stuck, is_staying; /* a drop, which fails then */
static atomic_int is_slow;              /* and one that does not */

static dblock_status drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (atomic_load(&is_stuck)) {
        atomic_store(&is_staying, 1);
        (void)test_until(test_is_zero, &is_stuck, 10000);
        atomic_store(&is_staying, 0);
        return dblock_error_set(reterr, DBLOCK_E_DATABASE, NULL, "it fails");
    }
    if (atomic_load(&is_slow)) {
        atomic_store(&is_staying, 1);
        (void)test_until(test_is_zero, &is_slow, 10000);
        atomic_store(&is_staying, 0);
    }
    return sim_driver()->insert.drop(connection, call, subject, owner, keep_us, answer, reterr);
}

static int open_client(void)
{
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    driver = *sim_driver();
    driver.insert.drop = drop;
    config.io_timeout_ms = IO_MS;
    return sim_open(&driver, URL, &config, &client, &error);
}

static int begin(void **state)
{
    (void)state;
    atomic_store(&is_stuck, 0);
    return open_client() + sim_open(sim_driver(), URL, NULL, &rival, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    return 0;
}

static dblock_lock *take_with(const char *name, const struct dblock_options *options)
{
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, options, &lock, &error));
    return lock;
}

static dblock_lock *take(const char *name, int strategy, uint64_t ttl_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.ttl_ms = ttl_ms;
    return take_with(name, &options);
}

static dblock_status try_as_rival(const char *name, int strategy, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    dblock_status status;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    status = dblock_acquire(rival, name, &options, &lock, &error);
    if (status == DBLOCK_OK) /* else it would go when the keeper comes to it */
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    return status;
}

static uint64_t close_and_count(void)
{
    uint64_t begun_ms = test_now_ms();

    dblock_close(client);
    client = NULL;
    return test_now_ms() - begun_ms;
}

/* One limit for all that is held, however much that is. */
static void silent_server__is_waited_for_once(void **state)
{
    dblock_lock *locks[N_LOCKS];
    int i;

    (void)state;
    for (i = 0; i < N_LOCKS; ++i) {
        char name[] = "several-0";

        name[sizeof name - 2] = (char)('0' + i);
        locks[i] = take(name, i % 2 == 0 ? DBLOCK_INSERT : DBLOCK_LEASE, i % 2 == 0 ? 20000 : 0);
    }
    dblock_lock_free(locks[0]); /* which the keeper is giving back */
    sim_set_silent(WORLD, 1);
    assert_true(close_and_count() < 5 * IO_MS);
    for (i = 1; i < N_LOCKS; ++i) {
        assert_int_equal(0, dblock_lock_is_held(locks[i]));
        dblock_lock_free(locks[i]);
    }
    sim_set_silent(WORLD, 0);
}

/* The name stays taken as long as was asked for, whoever ends first. */
static void min_hold__outlives_the_client(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock;

    (void)state;
    options.min_hold_ms = 1500;
    lock = take_with("x", &options);
    assert_true(close_and_count() < 1000);
    assert_int_equal(DBLOCK_BUSY, try_as_rival("x", DBLOCK_LEASE, 0));
    assert_int_equal(DBLOCK_OK, try_as_rival("x", DBLOCK_LEASE, 10000));
    dblock_lock_free(lock);
}

static void hold_guard(int by)
{
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_INSERT, "theirs", by);
    sim_world_unlock(WORLD);
}

/* A break that was promised: finished if the guard ends in time, and given up with the server. */
static void promised_break__at_the_end(void **state)
{
    int is_down;

    (void)state;
    for (is_down = 0; is_down <= 1; ++is_down) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        dblock_lock *theirs = NULL;

        options.strategy = DBLOCK_INSERT;
        assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "theirs", &options, &theirs, &error));
        hold_guard(1);
        assert_int_equal(DBLOCK_PENDING, dblock_break(client, "theirs", DBLOCK_INSERT, 0, &error));
        sim_set_down(WORLD, is_down);
        hold_guard(-1);
        assert_true(close_and_count() < 5 * IO_MS);
        sim_set_down(WORLD, 0);
        assert_int_equal(is_down ? DBLOCK_OK : DBLOCK_LOST, dblock_confirm(theirs, &error));
        (void)dblock_release(theirs, &error);
        dblock_lock_free(theirs);
        assert_int_equal(0, open_client());
    }
}

static void *release(void *context)
{
    struct dblock_error own;

    (void)dblock_release(context, &own);
    return NULL;
}

static void *close_it(void *context)
{
    (void)context;
    dblock_close(client);
    return NULL;
}

static int is_closed(void *context)
{
    struct dblock_error own;

    (void)context;
    return dblock_ping(client, &own) == DBLOCK_E_CLOSED;
}

/* A release fails while the client closes, and there is no keeper any more to go on with it: tried
 * once more by itself, if the server can be reached. */
static void release__that_fails_meanwhile(void **state)
{
    int is_down;

    (void)state;
    for (is_down = 0; is_down <= 1; ++is_down) {
        dblock_lock *lock = take("x", DBLOCK_INSERT, 6000);
        pthread_t releaser, closer;

        atomic_store(&is_stuck, 1);
        assert_int_equal(0, pthread_create(&releaser, NULL, release, lock));
        assert_true(test_until(test_is_set, &is_staying, 5000));
        assert_int_equal(0, pthread_create(&closer, NULL, close_it, NULL));
        assert_true(test_until(is_closed, NULL, 5000));
        assert_int_equal(0, pthread_join(closer, NULL));
        sim_set_down(WORLD, is_down);
        atomic_store(&is_stuck, 0);
        assert_int_equal(0, pthread_join(releaser, NULL));
        sim_set_down(WORLD, 0);
        assert_int_equal(is_down ? DBLOCK_BUSY : DBLOCK_OK, try_as_rival("x", DBLOCK_INSERT, 0));
        assert_int_equal(DBLOCK_OK, try_as_rival("x", DBLOCK_INSERT, 10000)); /* or by its time */
        assert_int_equal(0, dblock_lock_is_held(lock));
        dblock_lock_free(lock);
        assert_int_equal(0, open_client());
    }
}

static int has_ended_session(void *context)
{
    (void)context;
    return sim_n_steps(WORLD, SIM_STEP_END) > 0;
}

static void *release_and_tell(void *context)
{
    struct dblock_error own;
    dblock_lock **lock = context;

    return dblock_release(*lock, &own) == DBLOCK_OK ? lock : NULL;
}

/* The client closes in the midst of a release: its session ends after that, and not before, which
 * would be told as a loss. */
static void release_under_way__is_not_lost(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    pthread_t releaser, closer;
    void *is_released = NULL;
    dblock_lock *lock;

    (void)state;
    options.strategy = DBLOCK_INSERT;
    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    lock = take_with("x", &options);
    atomic_store(&is_slow, 1);
    assert_int_equal(0, pthread_create(&releaser, NULL, release_and_tell, &lock));
    assert_true(test_until(test_is_set, &is_staying, 5000));
    assert_int_equal(0, pthread_create(&closer, NULL, close_it, NULL));
    assert_true(test_until(is_closed, NULL, 5000));
    (void)test_until(has_ended_session, NULL, IO_MS / 4);
    atomic_store(&is_slow, 0);
    assert_int_equal(0, pthread_join(releaser, &is_released));
    assert_int_equal(0, pthread_join(closer, NULL));
    client = NULL;
    assert_non_null(is_released);
    assert_true(has_ended_session(NULL));
    dblock_lock_free(lock);
}

static void closed__has_released_them_all(void **state)
{
    dblock_lock *locks[3] = { take("x", DBLOCK_LEASE, 0), NULL, take("y", DBLOCK_ROW, 0) };

    (void)state;
    (void)close_and_count();
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release_many(locks, 3, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release(locks[0], &error));
    assert_int_equal(DBLOCK_OK, try_as_rival("x", DBLOCK_LEASE, 0));
    assert_int_equal(DBLOCK_OK, try_as_rival("y", DBLOCK_ROW, 0));
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[2]);
}

static void *wait_as_rival(void *context)
{
    *(dblock_status *)context = try_as_rival("x", DBLOCK_LEASE, 20000);
    return NULL;
}

static int is_stopping(void *context)
{
    int is_told;

    (void)context;
    dblk_lock_client(client);
    is_told = client->keeper.is_stopping;
    dblk_unlock_client(client);
    return is_told;
}

static int is_rival_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(rival, &stats) == DBLOCK_OK && stats.waiters == 1 &&
        sim_n_steps(WORLD, SIM_STEP_REST) > 0;
}

/* Freed, and closed before the keeper came to it: whoever waits for it is woken, as by a release. */
static void freed_and_closed__wakes_who_waits(void **state)
{
    dblock_lock *lock = take("x", DBLOCK_LEASE, 0);
    dblock_status status = DBLOCK_BUSY;
    uint64_t closed_ms;
    pthread_t waiter, closer;

    (void)state;
    assert_int_equal(0, pthread_create(&waiter, NULL, wait_as_rival, &status));
    assert_true(test_until(is_rival_waiting, NULL, 5000));
    atomic_store(&is_stuck, 1);
    dblock_lock_free(take("y", DBLOCK_INSERT, 0)); /* the keeper is at this one */
    assert_true(test_until(test_is_set, &is_staying, 5000));
    dblock_lock_free(lock);
    assert_int_equal(0, pthread_create(&closer, NULL, close_it, NULL));
    assert_true(test_until(is_stopping, NULL, 5000));
    atomic_store(&is_stuck, 0);
    assert_int_equal(0, pthread_join(closer, NULL));
    client = NULL;
    closed_ms = test_now_ms();
    assert_int_equal(0, pthread_join(waiter, NULL));
    assert_int_equal(DBLOCK_OK, status);
    assert_true(test_now_ms() - closed_ms < 2000); /* not at the look that comes in any case */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(silent_server__is_waited_for_once),
        TEST(min_hold__outlives_the_client),
        TEST(promised_break__at_the_end),
        TEST(release__that_fails_meanwhile),
        TEST(release_under_way__is_not_lost),
        TEST(closed__has_released_them_all),
        TEST(freed_and_closed__wakes_who_waits),
    };

    return cmocka_run_group_tests_name("close", tests, NULL, NULL);
}
