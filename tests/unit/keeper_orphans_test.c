/* SPDX-License-Identifier: MIT */
/* keeper_orphans_test.c - what callers left behind: given back, or seen to be over, or given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/client.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "keeper_orphans_test"
#define URL "sim:" WORLD

enum { IO_MS = 1000, MANY = 100 };

static dblock_client *client, *rival;
static struct dblock_error error;
static int tells_no_time;
static atomic_int is_stuck, is_staying; /* a drop, whatever its limit */
static atomic_int n_waits;              /* for what is being given back */

static dblock_status drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_call no_limit = { DBLK_NEVER, -1 };
    dblock_status status;

    (void)call;
    if (atomic_load(&is_stuck)) {
        atomic_store(&is_staying, 1);
        (void)test_until(test_is_zero, &is_stuck, 10000);
        atomic_store(&is_staying, 0);
    }
    status = sim_driver()->insert.drop(
        connection, &no_limit, subject, owner, keep_us, answer, reterr);
    if (tells_no_time)
        answer->now_us = 0;
    return status;
}

static _Atomic(pthread_cond_t *) counted; /* of the client; threads of the rival ask, too */

static void count_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    if (condition == atomic_load(&counted))
        (void)atomic_fetch_add(&n_waits, 1);
    dblk_real_environment.wait_condition(condition, mutex, until_us);
}

static int begin(void **state)
{
    static struct dblk_environment environment;
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    environment = dblk_real_environment;
    environment.wait_condition = count_wait;
    dblk_environment_set(&environment);
    driver = *sim_driver();
    driver.insert.drop = drop;
    tells_no_time = 0;
    atomic_store(&is_stuck, 0);
    atomic_store(&n_waits, 0);
    config.ttl_ms = 1000;
    config.io_timeout_ms = IO_MS;
    if (sim_open(&driver, URL, &config, &client, &error) != 0)
        return -1;
    atomic_store(&counted, &client->given_back);
    return sim_open(sim_driver(), URL, NULL, &rival, &error);
}

static int end(void **state)
{
    (void)state;
    atomic_store(&is_stuck, 0);
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    dblk_environment_set(NULL);
    return 0;
}

static dblock_status acquire(
    dblock_client *by, int strategy, uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    if (strategy == DBLOCK_INSERT)
        options.ttl_ms = 60000;
    *ret_lock = NULL;
    return dblock_acquire(by, "x", &options, ret_lock, &error);
}

static int has_no_orphans(void *context)
{
    int is_empty;

    (void)context;
    dblk_lock_client(client);
    is_empty = client->orphans.first == NULL;
    dblk_unlock_client(client);
    return is_empty;
}

static void expect_free(int strategy)
{
    dblock_lock *theirs;

    assert_int_equal(DBLOCK_OK, acquire(rival, strategy, 5000, &theirs));
    dblock_lock_free(theirs);
}

/* Nothing is in force any more, and nothing can come any more: that is an end, too. */
static void freed__when_it_was_broken(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        dblock_lock *lock;

        assert_int_equal(DBLOCK_OK, acquire(client, strategies[i], 0, &lock));
        assert_int_equal(DBLOCK_OK, dblock_break(rival, "x", strategies[i], 0, &error));
        dblock_lock_free(lock);
        assert_true(test_until(has_no_orphans, NULL, 5000));
        expect_free(strategies[i]);
    }
}

static void given_back__by_a_driver_that_tells_no_time(void **state)
{
    dblock_lock *lock;
    unsigned nth;

    (void)state;
    tells_no_time = 1;
    assert_int_equal(DBLOCK_OK, acquire(client, DBLOCK_INSERT, 0, &lock));
    dblock_lock_free(lock);
    assert_true(test_until(has_no_orphans, NULL, 5000));
    expect_free(DBLOCK_INSERT);
    /* and one of which it is not known whether it was taken */
    sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
    for (nth = 1; nth <= MANY; ++nth)
        sim_fail_set(WORLD, SIM_STEP_LOOK, nth, DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_UNCERTAIN, acquire(client, DBLOCK_INSERT, 0, &lock));
    assert_true(test_until(has_no_orphans, NULL, 5000));
    expect_free(DBLOCK_INSERT);
}

/* It cannot be dropped, and then its session is over: with that there is nothing to drop. */
static void freed__whose_session_ends(void **state)
{
    dblock_lock *lock;
    unsigned nth;

    (void)state;
    assert_int_equal(DBLOCK_OK, acquire(client, DBLOCK_LEASE, 0, &lock));
    for (nth = 1; nth <= MANY; ++nth)
        sim_fail_set(WORLD, SIM_STEP_DROP, nth, DBLOCK_E_DATABASE);
    sim_answer_set(WORLD, SIM_STEP_RENEW, 1, DBLOCK_ANSWER_NO);
    dblock_lock_free(lock);
    assert_true(test_until(has_no_orphans, NULL, 10000));
    expect_free(DBLOCK_LEASE);
}

static dblock_status tried; /* of a try that met what this client was giving back */

static void *try_it(void *context)
{
    dblock_lock *lock;

    (void)context;
    tried = acquire(client, DBLOCK_INSERT, 0, &lock);
    dblock_lock_free(lock);
    return NULL;
}

/* Busy with what this client itself has freed: it waits for that, but no longer than a call may. */
static void freed__that_is_stuck(void **state)
{
    uint64_t begun_ms;
    dblock_lock *lock;

    (void)state;
    assert_int_equal(DBLOCK_OK, acquire(client, DBLOCK_INSERT, 0, &lock));
    atomic_store(&is_stuck, 1);
    dblock_lock_free(lock);
    assert_true(test_until(test_is_set, &is_staying, 5000));
    begun_ms = test_now_ms();
    (void)try_it(NULL);
    assert_int_equal(DBLOCK_BUSY, tried);
    assert_true(test_now_ms() - begun_ms >= IO_MS - 1);
    assert_true(atomic_load(&n_waits) > 0);
    atomic_store(&is_stuck, 0);
    assert_true(test_until(has_no_orphans, NULL, 5000));
    expect_free(DBLOCK_INSERT);
}

static void *close_client(void *context)
{
    (void)context;
    dblock_close(client);
    return NULL;
}

static void freed__that_is_stuck_as_the_client_closes(void **state)
{
    pthread_t thread, closer;
    dblock_lock *lock;
    uint64_t begun_ms;

    (void)state;
    assert_int_equal(DBLOCK_OK, acquire(client, DBLOCK_INSERT, 0, &lock));
    atomic_store(&is_stuck, 1);
    dblock_lock_free(lock);
    assert_true(test_until(test_is_set, &is_staying, 5000));
    begun_ms = test_now_ms();
    assert_int_equal(0, pthread_create(&thread, NULL, try_it, NULL));
    assert_true(test_until(test_is_set, &n_waits, 5000));
    assert_int_equal(0, pthread_create(&closer, NULL, close_client, NULL));
    assert_int_equal(0, pthread_join(thread, NULL)); /* as the drop is stuck still */
    assert_int_equal(1, atomic_load(&is_staying));
    assert_true(tried == DBLOCK_BUSY || tried == DBLOCK_E_CLOSED);
    assert_true(test_now_ms() - begun_ms < 5000);
    atomic_store(&is_stuck, 0);
    assert_int_equal(0, pthread_join(closer, NULL));
    client = NULL;
    expect_free(DBLOCK_INSERT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(freed__when_it_was_broken),
        TEST(given_back__by_a_driver_that_tells_no_time),
        TEST(freed__whose_session_ends),
        TEST(freed__that_is_stuck),
        TEST(freed__that_is_stuck_as_the_client_closes),
    };

    return cmocka_run_group_tests_name("keeper_orphans", tests, NULL, NULL);
}
