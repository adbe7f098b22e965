/* SPDX-License-Identifier: MIT */
/* acquire_test.c - an acquire that meets what other threads of its client do, at the moments
 * that the contract suite cannot choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/environment.h"
#include "sim_driver.h"
#include "test_clock.h"
#include "test_wait.h"

#define WORLD "acquire_test"

struct job {
    dblock_client *client;
    int strategy;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
};

static dblock_client *open_client(const struct dblock_config *config)
{
    struct dblock_error error;
    dblock_client *client = NULL;

    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    return client;
}

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
        pthread_t thread;

        job.client = open_client(NULL);
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
    client = open_client(&config);
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

static dblock_driver late;
static int sleeps; /* behind the answer to the next take */

static dblock_status take_and_sleep(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status =
        sim_driver()->insert.take(connection, call, take, holder, answer, reterr);

    if (sleeps)
        test_clock_forward(59000000); /* not so long that the database would have ended it */
    sleeps = 0;
    return status;
}

static int is_gone; /* what is proved next: its transaction has ended, the connection lives */

static dblock_status prove_gone(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (is_gone)
        (void)sim_driver()->row.drop(connection, call, subject, answer, reterr);
    is_gone = 0;
    return sim_driver()->row.prove(connection, call, subject, answer, reterr);
}

/* Granted after a while, and gone when it is asked whether it is there still: not told so. */
static void late_grant__that_is_gone_is_none(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client;
    dblock_lock *lock;
    int i;

    (void)state;
    late = *sim_driver();
    late.row.prove = prove_gone;
    config.ttl_ms = 800; /* late: a third of it */
    assert_int_equal(0, sim_open(&late, "sim:" WORLD, &config, &client, &error));
    for (i = 0; i < 3; ++i) {
        is_gone = i > 0; /* the first one makes the row */
        if (is_gone)
            sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 400000);
        options.wait_ms = i == 2 ? 10000 : 0;
        lock = take(client, "x", DBLOCK_ROW, &options); /* asked for once more */
        assert_int_equal(0, is_gone);
        assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    dblock_close(client);
    sim_forget(WORLD);
}

/* Nothing can wake who stands in line here: to be served in order of arrival is refused. */
static void fair__where_nobody_can_be_woken(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client = open_client(NULL), *rival = open_client(NULL);
    dblock_lock *theirs, *lock = NULL;

    (void)state;
    options.flags = DBLOCK_FAIR;
    theirs = take(rival, "x", DBLOCK_LEASE, &options); /* a try needs no line */
    options.wait_ms = 10000;
    options.strategy = DBLOCK_LEASE;
    sim_answer_set(WORLD, SIM_STEP_STAND, 1, DBLOCK_ANSWER_NO);
    assert_int_equal(
        DBLOCK_E_UNSUPPORTED, dblock_acquire(client, "x", &options, &lock, &error));
    assert_null(lock);
    assert_true(error.message[0] != 0);
    dblock_lock_free(theirs);
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
}

/* A grant that came too late to be believed, and could not be given back at once: not known. */
static void late__and_not_given_back(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client;
    dblock_lock *lock = NULL;

    (void)state;
    test_clock_begin();
    late = *sim_driver();
    late.insert.take = take_and_sleep;
    config.io_timeout_ms = 1000;
    assert_int_equal(0, sim_open(&late, "sim:" WORLD, &config, &client, &error));
    options.strategy = DBLOCK_INSERT;
    options.ttl_ms = 60000;
    options.wait_ms = 10000;
    sleeps = 1;
    sim_fail_set(WORLD, SIM_STEP_DROP, 1, DBLOCK_E_DATABASE);
    assert_int_equal(
        DBLOCK_E_UNCERTAIN, dblock_acquire(client, "x", &options, &lock, &error));
    assert_non_null(strstr(error.hint, "keeper"));
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    dblock_close(client);
    sim_forget(WORLD);
    test_clock_end();
}

static _Atomic(void *) freed; /* the lock object that the keeper is going to destroy */
static atomic_int is_destroying, is_over;

static int is_set(void *context)
{
    return atomic_load((atomic_int *)context);
}

/* The keeper has given the lock back, and is kept from saying so as long as it depends on it. */
static void release_late(void *memory)
{
    if (memory != NULL && memory == atomic_load(&freed)) {
        atomic_store(&is_destroying, 1);
        (void)test_until(is_set, &is_over, 2000);
    }
    dblk_real_environment.release(memory);
}

static void after_busy(const struct dblock_trace *trace, void *context)
{
    (void)context;
    if (trace->kind == DBLOCK_TRACE_ATTEMPT && trace->status == DBLOCK_BUSY)
        (void)test_until(is_set, &is_destroying, 2000);
}

/* Busy with what this client has freed: it was given back between the answer and the look at it. */
static void try__that_meets_what_was_freed_is_repeated(void **state)
{
    struct dblk_environment environment = dblk_real_environment;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client;
    dblock_lock *lock;

    (void)state;
    environment.release = release_late;
    dblk_environment_set(&environment);
    config.on_trace = after_busy;
    client = open_client(&config);
    lock = take(client, "x", DBLOCK_INSERT, &options);
    atomic_store(&freed, lock);
    sim_fault_set(WORLD, SIM_STEP_DROP, 1, SIM_FAULT_DELAY, 100000);
    dblock_lock_free(lock);
    lock = take(client, "x", DBLOCK_INSERT, &options);
    assert_true(atomic_load(&is_destroying));
    atomic_store(&is_over, 1);
    dblock_lock_free(lock);
    dblock_close(client);
    sim_forget(WORLD);
    dblk_environment_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fenced__that_meets_close_is_closed),
        cmocka_unit_test(row__on_an_idle_connection_has_a_time_of_its_own),
        cmocka_unit_test(late_grant__that_is_gone_is_none),
        cmocka_unit_test(fair__where_nobody_can_be_woken),
        cmocka_unit_test(late__and_not_given_back),
        cmocka_unit_test(try__that_meets_what_was_freed_is_repeated),
    };

    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
