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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fenced__that_meets_close_is_closed),
    };

    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
