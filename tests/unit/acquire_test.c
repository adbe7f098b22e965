/* SPDX-License-Identifier: MIT */
/* acquire_test.c - an acquire that meets the end of its client, at the moments that
 * the contract suite cannot choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "acquire_test"

struct job {
    dblock_client *client;
    int strategy;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
};

static void *acquire_fenced(void *context)
{
    struct job *job = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = job->strategy;
    options.flags = DBLOCK_FENCED;
    job->status = dblock_acquire(job->client, "x", &options, &job->lock, &job->error);
    return NULL;
}

static int is_drawing(void *context)
{
    (void)context;
    return sim_n_steps(WORLD, SIM_STEP_DRAW) > 0;
}

/* The lock is had, its token is under way, and dblock_close() takes the lock back: that is the
 * client's end, and not a connection that is worth another try. */
static void fenced__that_meets_close_is_closed(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof strategies / sizeof strategies[0]; ++i) {
        struct job job = { .strategy = strategies[i] };
        struct dblock_error error;
        pthread_t thread;

        assert_int_equal(
            DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &job.client, &error));
        assert_int_equal(DBLOCK_OK, dblock_schema_install(job.client, &error));
        sim_fault_set(WORLD, SIM_STEP_DRAW, 1, SIM_FAULT_DELAY, 300000);
        assert_int_equal(0, pthread_create(&thread, NULL, acquire_fenced, &job));
        assert_true(test_until(is_drawing, NULL, 5000));
        dblock_close(job.client);
        assert_int_equal(0, pthread_join(thread, NULL));
        assert_null(job.lock);
        assert_int_equal(DBLOCK_E_CLOSED, job.status);
        assert_int_equal(DBLOCK_E_CLOSED, job.error.status);
        sim_forget(WORLD);
    }
}

static dblock_lock *take(
    dblock_client *client, const char *name, int strategy, const struct dblock_options *given)
{
    struct dblock_options options = *given;
    struct dblock_error error;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    return lock;
}

/* A connection that was idle for longer than the ttl is used again, and the clock strikes while the
 * take is under way: what its last lock was believed by is over, and is not this one's. */
static void row__on_an_idle_connection_has_a_time_of_its_own(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_options timed = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client;
    dblock_lock *first, *striking, *second;

    (void)state;
    config.ttl_ms = 400; /* belief of a row lock: 350 */
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    first = take(client, "x", DBLOCK_ROW, &options);
    assert_int_equal(DBLOCK_OK, dblock_release(first, &error));
    dblock_lock_free(first);
    timed.heartbeat = DBLOCK_HEARTBEAT_OFF;
    timed.ttl_ms = 800; /* the clock strikes at 700 */
    striking = take(client, "y", DBLOCK_INSERT, &timed);
    test_pass_ms(500);
    sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 400000);
    second = take(client, "x", DBLOCK_ROW, &options);
    assert_int_equal(1, dblock_lock_is_held(second));
    assert_int_equal(DBLOCK_OK, dblock_confirm(second, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(second, &error));
    dblock_lock_free(second);
    dblock_lock_free(striking);
    dblock_close(client);
    sim_forget(WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fenced__that_meets_close_is_closed),
        cmocka_unit_test(row__on_an_idle_connection_has_a_time_of_its_own),
    };

    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
