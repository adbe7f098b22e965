/* SPDX-License-Identifier: MIT */
/* contended_test.c - who wants a name that others had of late does not ask first whether it is
 * free, but waits for it at once; and asks again after some times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>

#include "core/contended.h"
#include "sim_driver.h"

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
static unsigned count_takes(int strategy, const char *name, uint64_t wait_ms, dblock_status expected)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    uint64_t before = sim_n_steps(WORLD, SIM_STEP_TAKE);
    dblock_lock *lock = NULL;
    unsigned n_takes;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    assert_int_equal(expected, dblock_acquire(client, name, &options, &lock, &error));
    n_takes = (unsigned)(sim_n_steps(WORLD, SIM_STEP_TAKE) - before);
    if (lock != NULL)
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
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
        n_takes = count_takes(strategies[i], "x", 10, DBLOCK_BUSY);
        for (k = 0; k < DBLK_CONTENDED_TIMES; ++k)
            assert_int_equal(n_takes - 1, count_takes(strategies[i], "x", 10, DBLOCK_BUSY));
        assert_int_equal(n_takes, count_takes(strategies[i], "x", 10, DBLOCK_BUSY));
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
        (void)count_takes(strategies[i], "x", 10, DBLOCK_BUSY);
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
        (void)count_takes(strategies[i], "x", 10, DBLOCK_BUSY);
        assert_int_equal(1, count_takes(strategies[i], "x", 0, DBLOCK_BUSY));
        give_back();
        assert_int_equal(1, count_takes(strategies[i], "x", 0, DBLOCK_OK));
        (void)count_takes(strategies[i], "y", 0, DBLOCK_OK); /* its row is made */
        assert_int_equal(1, count_takes(strategies[i], "y", 10, DBLOCK_OK));
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
        cmocka_unit_test(names_in_one_place__forget_each_other),
    };

    return cmocka_run_group_tests_name("contended", tests, NULL, NULL);
}
