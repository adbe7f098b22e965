/* SPDX-License-Identifier: MIT */
/* guard_test.c - what a driver is told of a lock that it binds to a transaction, and what the
 * library makes of what it finds. The transaction itself is the drivers'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "guard_test"

static dblock_client *client;
static struct dblock_error error;

static int begin(void **state)
{
    (void)state;
    return sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

static dblock_lock *take(int strategy, uint32_t flags)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    options.flags = flags;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    return lock;
}

static void held__is_named_with_its_token(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    for (i = 0; i < 4; ++i) {
        dblock_lock *lock = take(strategies[i], DBLOCK_FENCED);
        struct dblock_guarded guarded;
        int64_t token = 0;

        memset(&guarded, 0, sizeof guarded);
        assert_int_equal(
            DBLOCK_OK, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
        assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
        assert_int_equal(strategies[i], guarded.strategy);
        assert_int_equal(token, guarded.token);
        assert_string_equal("x", guarded.subject.name);
        assert_int_equal(DBLOCK_OK, dblock_guard_end(lock, DBLOCK_OK, &error));
        assert_int_equal(
            DBLOCK_E_DATABASE, dblock_guard_end(lock, DBLOCK_E_DATABASE, &error));
        assert_int_equal(i < 2 ? DBLOCK_OK : DBLOCK_E_UNSUPPORTED,
            dblock_guard_check_release(lock, &error));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    assert_int_equal(DBLOCK_OK, dblock_guard_check_release(NULL, &error));
}

static void without_a_token__is_refused(void **state)
{
    dblock_driver other = *sim_driver();
    struct dblock_guarded guarded;
    dblock_lock *lock = take(DBLOCK_ROW, 0);

    (void)state;
    assert_int_equal(
        DBLOCK_E_ARGUMENT, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    assert_non_null(strstr(error.hint, "DBLOCK_FENCED"));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_guard_begin(lock, &other, &guarded, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_guard_begin(NULL, sim_driver(), &guarded, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_equal(
        DBLOCK_E_ARGUMENT, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    dblock_lock_free(lock);
}

/* The number in the row is another one: a lease is lost by that. A lock that lives in a connection
 * is asked for there, and what is still held is not called lost. */
static void another_token__is_a_loss_unless_it_is_held(void **state)
{
    struct dblock_guarded guarded;
    dblock_lock *lock = take(DBLOCK_LEASE, 0);

    (void)state;
    assert_int_equal(DBLOCK_LOST, dblock_guard_end(lock, DBLOCK_LOST, &error));
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_int_equal(DBLOCK_LOST, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    assert_int_equal(DBLOCK_LOST, dblock_release(lock, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_guard_end(lock, DBLOCK_LOST, &error));
    dblock_lock_free(lock);
    lock = take(DBLOCK_ROW, DBLOCK_FENCED);
    assert_int_equal(DBLOCK_E_DATABASE, dblock_guard_end(lock, DBLOCK_LOST, &error));
    assert_int_equal(1, dblock_lock_is_held(lock));
    sim_cut(WORLD, NULL);
    assert_int_equal(DBLOCK_LOST, dblock_guard_end(lock, DBLOCK_LOST, &error));
    dblock_lock_free(lock);
}

static int is_over(void *context)
{
    return !dblock_lock_is_held(context);
}

/* Its deadline comes while the transaction is at it. */
static void over_meanwhile__is_lost(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    (void)state;
    options.strategy = DBLOCK_INSERT;
    options.ttl_ms = 200;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    assert_true(test_until(is_over, lock, 5000));
    assert_int_equal(DBLOCK_LOST, dblock_guard_end(lock, DBLOCK_OK, &error));
    dblock_lock_free(lock);
}

/* The transaction gives it back with its COMMIT: that this is found later is no loss. */
static void given_back__is_no_loss(void **state)
{
    dblock_lock *lock = take(DBLOCK_LEASE, 0);
    struct dblock_guarded guarded;
    int n_events = 0;
    struct dblock_event event = DBLOCK_EVENT_INIT;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    dblock_guard_gives_back(lock);
    assert_int_equal(DBLOCK_OK, dblock_guard_end(lock, DBLOCK_OK, &error));
    sim_hold_delete(sim_world_lock(WORLD), DBLOCK_LEASE, "x");
    sim_world_unlock(WORLD);
    assert_int_equal(DBLOCK_NOT_HELD, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release(lock, &error));
    while (dblock_client_next_event(client, &event) == DBLOCK_OK && event.kind != 0)
        ++n_events;
    assert_int_equal(0, n_events);
    dblock_lock_free(lock);
    lock = take(DBLOCK_LEASE, 0);
    assert_int_equal(DBLOCK_OK, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    dblock_guard_gives_back(lock);
    sim_hold_delete(sim_world_lock(WORLD), DBLOCK_LEASE, "x");
    sim_world_unlock(WORLD);
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release(lock, &error)); /* the release finds it */
    dblock_lock_free(lock);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(held__is_named_with_its_token),
        TEST(without_a_token__is_refused),
        TEST(another_token__is_a_loss_unless_it_is_held),
        TEST(over_meanwhile__is_lost),
        TEST(given_back__is_no_loss),
    };

    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
