/* SPDX-License-Identifier: MIT */
/* contended_test.c - who wants a name that others had of late does not ask first whether it is
 * free, but waits for it at once; and asks again after some times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>

#include "core/contended.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "contended_test"

static dblock_client *client, *rival;
static dblock_lock *theirs;
static struct dblock_error error;

static int begin(void **state)
{
    (void)state;
    theirs = NULL;
    if (dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error) != DBLOCK_OK)
        return -1;
    return sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_lock_free(theirs);
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    return 0;
}

static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY, DBLOCK_LEASE, DBLOCK_INSERT };
enum { N_STRATEGIES = 4 };

/* How often a call asked for the name: once more if it does not wait at once. */
static unsigned count_takes(
    int strategy, const char *name, uint64_t wait_ms, dblock_status expected)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error why; /* in two threads at once */
    uint64_t before = sim_n_steps(WORLD, SIM_STEP_TAKE);
    dblock_lock *lock = NULL;
    unsigned n_takes;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    assert_int_equal(expected, dblock_acquire(client, name, &options, &lock, &why));
    n_takes = (unsigned)(sim_n_steps(WORLD, SIM_STEP_TAKE) - before);
    if (lock != NULL)
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &why));
    dblock_lock_free(lock);
    return n_takes;
}

static void hold(int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", &options, &theirs, &error));
}

static void give_back(void)
{
    assert_int_equal(DBLOCK_OK, dblock_release(theirs, &error));
    dblock_lock_free(theirs);
    theirs = NULL;
}

static void name_that_others_have__is_waited_for_at_once(void **state)
{
    size_t i;
    int k;

    (void)state;
    for (i = 0; i < N_STRATEGIES; ++i) {
        unsigned n_takes;

        hold(strategies[i]);
        n_takes = count_takes(strategies[i], "x", 60, DBLOCK_BUSY);
        for (k = 0; k < DBLK_CONTENDED_TIMES; ++k)
            assert_int_equal(n_takes - 1, count_takes(strategies[i], "x", 60, DBLOCK_BUSY));
        assert_int_equal(n_takes, count_takes(strategies[i], "x", 60, DBLOCK_BUSY));
        give_back();
    }
}

static void name_that_is_free_again__is_had_at_once(void **state)
{
    size_t i;
    int k;

    (void)state;
    for (i = 0; i < N_STRATEGIES; ++i) {
        hold(strategies[i]);
        (void)count_takes(strategies[i], "x", 60, DBLOCK_BUSY);
        give_back();
        for (k = 0; k < 2 * DBLK_CONTENDED_TIMES; ++k)
            assert_int_equal(1, count_takes(strategies[i], "x", 10000, DBLOCK_OK));
    }
}

static void try_and_other_names__know_nothing_of_it(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_STRATEGIES; ++i) {
        hold(strategies[i]);
        (void)count_takes(strategies[i], "x", 60, DBLOCK_BUSY);
        assert_int_equal(1, count_takes(strategies[i], "x", 0, DBLOCK_BUSY));
        give_back();
        assert_int_equal(1, count_takes(strategies[i], "x", 0, DBLOCK_OK));
        (void)count_takes(strategies[i], "y", 0, DBLOCK_OK); /* its row is made */
        assert_int_equal(1, count_takes(strategies[i], "y", 10, DBLOCK_OK));
    }
}

static void *take_and_give_back(void *context)
{
    (void)count_takes(*(int *)context, "x", 10000, DBLOCK_OK);
    return NULL;
}

static int has_asked(void *context)
{
    return sim_n_steps(WORLD, SIM_STEP_TAKE) > *(uint64_t *)context;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.waiters > 0;
}

/* The slower one of two threads finds that the other one has it: it waits for that here. */
static void name_that_this_client_has__is_not_one_of_others(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    int i, k;

    (void)state;
    for (i = 2; i < N_STRATEGIES; ++i) {
        uint64_t n_takes = sim_n_steps(WORLD, SIM_STEP_TAKE);
        int strategy = strategies[i];
        dblock_lock *lock = NULL;
        pthread_t slower;

        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 300000);
        assert_int_equal(0, pthread_create(&slower, NULL, take_and_give_back, &strategy));
        assert_true(test_until(has_asked, &n_takes, 5000));
        options.strategy = strategy;
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        assert_true(test_until(is_waiting, NULL, 5000)); /* the slower one has been told */
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        assert_int_equal(0, pthread_join(slower, NULL));
        for (k = 0; k < DBLK_CONTENDED_TIMES; ++k)
            assert_int_equal(1, count_takes(strategy, "x", 10000, DBLOCK_OK));
    }
    assert_int_equal(0, sim_n_steps(WORLD, SIM_STEP_STAND));
}

static void name_whose_database_was_away__is_asked_for(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    unsigned nth;

    (void)state;
    dblock_close(client);
    config.outage_ms = 10000;
    assert_int_equal(DBLOCK_OK, sim_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    for (nth = 1; nth <= 4; ++nth)
        sim_fault_set(WORLD, SIM_STEP_TAKE, nth, SIM_FAULT_REFUSE, 0);
    assert_true(count_takes(DBLOCK_LEASE, "x", 10000, DBLOCK_OK) > 1);
    assert_int_equal(1, count_takes(DBLOCK_LEASE, "x", 10000, DBLOCK_OK));
    assert_int_equal(0, sim_n_steps(WORLD, SIM_STEP_STAND));
}

/* Who waits for another thread of the client has not asked the database. */
static void wait_in_this_client__is_none_of_the_times(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    uint64_t n_stands;
    int k;

    (void)state;
    hold(DBLOCK_LEASE);
    (void)count_takes(DBLOCK_LEASE, "x", 10, DBLOCK_BUSY);
    give_back();
    options.strategy = DBLOCK_LEASE;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    for (k = 0; k < DBLK_CONTENDED_TIMES; ++k)
        (void)count_takes(DBLOCK_LEASE, "x", 60, DBLOCK_BUSY); /* in the queue of this client */
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    n_stands = sim_n_steps(WORLD, SIM_STEP_STAND);
    (void)count_takes(DBLOCK_LEASE, "x", 10000, DBLOCK_OK);
    assert_int_equal(n_stands + 1, sim_n_steps(WORLD, SIM_STEP_STAND));
}

/* A wait has a connection of its own; the one that all tries share is there already. */
static void advisory__without_a_connection_for_the_wait_is_asked_for(void **state)
{
    static const char *const names[] = { "a", "b" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[2] = { NULL, NULL };
    dblock_lock *lock = NULL;
    int i;

    (void)state;
    options.strategy = DBLOCK_ADVISORY;
    for (i = 0; i < 2; ++i) {
        assert_int_equal(DBLOCK_OK, dblock_acquire(rival, names[i], &options, &lock, &error));
        (void)count_takes(DBLOCK_ADVISORY, names[i], 10, DBLOCK_BUSY);
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    options.wait_ms = 10000;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "a", &options, &locks[0], &error));
    sim_fault_set(WORLD, SIM_STEP_OPEN, 1, SIM_FAULT_REFUSE, 0);
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "b", &options, &locks[1], &error));
    for (i = 0; i < 2; ++i) {
        assert_int_equal(DBLOCK_OK, dblock_release(locks[i], &error));
        dblock_lock_free(locks[i]);
    }
}

static void short_wait__asks_first(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_STRATEGIES; ++i) {
        unsigned n_takes;

        hold(strategies[i]);
        n_takes = count_takes(strategies[i], "x", 60, DBLOCK_BUSY);
        assert_int_equal(n_takes, count_takes(strategies[i], "x", 10, DBLOCK_BUSY));
        assert_int_equal(n_takes - 1, count_takes(strategies[i], "x", 60, DBLOCK_BUSY));
        give_back();
    }
}

static void names_in_one_place__forget_each_other(void **state)
{
    struct dblk_contended contended = { { 0 }, { 0 } };

    (void)state;
    assert_false(dblk_contended_use(&contended, 0));
    dblk_contended_note(&contended, 5);
    dblk_contended_note(&contended, 6);
    assert_true(dblk_contended_use(&contended, 5));
    assert_false(dblk_contended_use(&contended, 5 + DBLK_CONTENDED_NAMES));
    dblk_contended_note(&contended, 5 + DBLK_CONTENDED_NAMES);
    assert_false(dblk_contended_use(&contended, 5));
    assert_true(dblk_contended_use(&contended, 6));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(name_that_others_have__is_waited_for_at_once),
        TEST(name_that_is_free_again__is_had_at_once),
        TEST(try_and_other_names__know_nothing_of_it),
        TEST(name_that_this_client_has__is_not_one_of_others),
        TEST(name_whose_database_was_away__is_asked_for),
        TEST(wait_in_this_client__is_none_of_the_times),
        TEST(advisory__without_a_connection_for_the_wait_is_asked_for),
        TEST(short_wait__asks_first),
        cmocka_unit_test(names_in_one_place__forget_each_other),
    };

    return cmocka_run_group_tests_name("contended", tests, NULL, NULL);
}
