/* SPDX-License-Identifier: MIT */
/* borrowed_test.c - a client over a connection of the application: what it refuses without a way
 * of its own, which way it takes with one, and that a connection that is in use is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "borrowed_test"
#define URL "sim:" WORLD

static dblock_client *client, *rival;
static struct dblock_error error;
static int is_in_use; /* the application has begun a transaction */
static int n_checks;

static dblock_status target_open(void *connection, const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    struct dblock_target_config own = *config;

    own.url = connection;
    return sim_driver()->target_open(&own, ret_target, reterr);
}

static dblock_status check(struct dblock_target *target, const char *action, const char *name,
    struct dblock_error *reterr)
{
    (void)target;
    ++n_checks;
    return is_in_use ? dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
                           "cannot %s \"%s\": the connection is in a transaction", action, name)
                     : DBLOCK_OK;
}

static void open_over(unsigned more_roles, int has_own_locks, const char *keeper_url)
{
    static char url[] = URL;
    struct dblock_borrowing borrowing = { url, target_open, check,
        1u << DBLOCK_ROLE_SHORT | 1u << DBLOCK_ROLE_KEEPER | more_roles, has_own_locks };
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.keeper_url = keeper_url;
    assert_int_equal(DBLOCK_OK,
        dblock_open_borrowed(sim_driver(), &borrowing, &config, &client, &error));
}

static int begin(void **state)
{
    (void)state;
    client = NULL;
    is_in_use = n_checks = 0;
    return dblock_open(sim_driver(), URL, NULL, &rival, &error) == DBLOCK_OK &&
            dblock_schema_install(rival, &error) == DBLOCK_OK
        ? 0
        : -1;
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    return 0;
}

static struct dblock_options of(int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    if (strategy == DBLOCK_LEASE)
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    return options;
}

static dblock_status take(const struct dblock_options *options, dblock_lock **ret_lock)
{
    return dblock_acquire(client, "x", options, ret_lock, &error);
}

static void alone__refuses_what_needs_another_way(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    dblock_lock *lock = NULL;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, NULL);
    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, take(&options, &lock));
    assert_non_null(strstr(error.hint, "keeper_url"));
    options = of(DBLOCK_ROW);
    assert_int_equal(DBLOCK_E_UNSUPPORTED, take(&options, &lock));
    options = of(DBLOCK_LEASE);
    options.flags = DBLOCK_FAIR; /* who stands in line does so on a connection of his own */
    options.wait_ms = 100;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, take(&options, &lock));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_schema_install(client, &error));
    assert_null(lock);
}

static void alone__takes_what_it_can(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, NULL);
    for (i = 0; i < 3; ++i) {
        struct dblock_options options = of(strategies[i]);
        dblock_lock *lock = NULL, *theirs = NULL;

        assert_int_equal(DBLOCK_OK, take(&options, &lock));
        assert_int_equal(
            DBLOCK_BUSY, dblock_acquire(rival, "x", &options, &theirs, &error));
        assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
    assert_true(n_checks > 0);
}

/* Nothing is believed to be released that could not be. */
static void in_use__is_left_alone(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, NULL);
    for (i = 0; i < 2; ++i) {
        struct dblock_options options = of(strategies[i]);
        dblock_lock *lock = NULL, *none = NULL;

        assert_int_equal(DBLOCK_OK, take(&options, &lock));
        is_in_use = 1;
        assert_int_equal(
            DBLOCK_E_ARGUMENT, dblock_acquire(client, "y", &options, &none, &error));
        assert_int_equal(DBLOCK_E_ARGUMENT, dblock_release(lock, &error));
        assert_int_equal(1, dblock_lock_is_held(lock));
        is_in_use = 0;
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        is_in_use = 1; /* nothing is to be sent any more */
        assert_int_equal(DBLOCK_NOT_HELD, dblock_release(lock, &error));
        is_in_use = 0;
        dblock_lock_free(lock);
    }
}

static int can_be_had(void *context)
{
    struct dblock_options options = of(*(int *)context);
    dblock_lock *lock = NULL;

    if (dblock_acquire(rival, "x", &options, &lock, NULL) != DBLOCK_OK)
        return 0;
    (void)dblock_release(lock, NULL);
    dblock_lock_free(lock);
    return 1;
}

/* Freed while held: given back by the next call, if the connection is free then. */
static void freed__is_given_back_by_the_next_call(void **state)
{
    static int strategies[] = { DBLOCK_LEASE, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, NULL);
    for (i = 0; i < 2; ++i) {
        struct dblock_options options = of(strategies[i]);
        dblock_lock *lock = NULL, *other = NULL;

        assert_int_equal(DBLOCK_OK, take(&options, &lock));
        is_in_use = 1;
        dblock_lock_free(lock);
        assert_int_equal(DBLOCK_E_ARGUMENT, dblock_acquire(client, "y", &options, &other, &error));
        assert_int_equal(0, can_be_had(&strategies[i]));
        is_in_use = 0;
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "y", &options, &other, &error));
        assert_int_equal(1, can_be_had(&strategies[i]));
        assert_int_equal(DBLOCK_OK, dblock_release(other, &error));
        dblock_lock_free(other);
    }
}

/* A break that a guarded transaction is in the way of is finished by a later call, too. */
static void break__goes_on_with_the_next_call(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    int strategy = DBLOCK_LEASE;
    dblock_lock *theirs = NULL, *lock = NULL;

    (void)state;
    open_over(0, 0, NULL);
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", &options, &theirs, &error));
    assert_int_equal(1, sim_hold_guard(sim_world_lock(WORLD), DBLOCK_LEASE, "x", 1));
    sim_world_unlock(WORLD);
    assert_int_equal(DBLOCK_PENDING, dblock_break(client, "x", DBLOCK_LEASE, 0, &error));
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_LEASE, "x", -1);
    sim_world_unlock(WORLD);
    assert_int_equal(0, can_be_had(&strategy));
    test_pass_ms(300); /* it is tried again after a while */
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "y", &options, &lock, &error));
    assert_int_equal(1, can_be_had(&strategy));
    dblock_lock_free(lock);
    dblock_lock_free(theirs);
}

/* With a way of its own the keeper does all that the application's connection must not. */
static void keeper_url__gives_it_all(void **state)
{
    static int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    size_t i;
    int has_own_locks;

    (void)state;
    for (has_own_locks = 0; has_own_locks < 2; ++has_own_locks) {
        open_over(1u << DBLOCK_ROLE_ADVISORY | (has_own_locks ? 1u << DBLOCK_ROLE_ROW : 0),
            has_own_locks, URL);
        assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
        for (i = 0; i < 4; ++i) {
            struct dblock_options options = of(strategies[i]);
            dblock_lock *lock = NULL;

            options.heartbeat = DBLOCK_HEARTBEAT_DEFAULT;
            options.flags = DBLOCK_FENCED;
            options.wait_ms = 100;
            assert_int_equal(DBLOCK_OK, take(&options, &lock));
            assert_int_equal(0, can_be_had(&strategies[i]));
            assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
            dblock_lock_free(lock);
            assert_int_equal(DBLOCK_OK, take(&options, &lock));
            dblock_lock_free(lock); /* by the keeper, or by the next call */
            assert_int_equal(DBLOCK_OK, dblock_ping(client, &error));
        }
        dblock_close(client);
        client = NULL;
        for (i = 0; i < 4; ++i)
            assert_true(test_until(can_be_had, &strategies[i], 5000));
    }
}

static dblock_status check_joined(void *connection, const char *name, struct dblock_error *reterr)
{
    (void)connection;
    (void)name;
    (void)reterr;
    return DBLOCK_OK;
}

static dblock_status take_joined(const struct dblock_joining *joining, uint64_t wait_us,
    int cancel_fd, int *ret_outcome, struct dblock_error *reterr)
{
    (void)wait_us;
    (void)cancel_fd;
    (void)reterr;
    *ret_outcome = joining->is_seeded ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_UNSEEDED;
    return DBLOCK_OK;
}

/* The row of a new name cannot be made in the transaction: by the keeper's way, or not at all. */
static void joined__makes_the_row_by_another_way(void **state)
{
    static const struct dblock_join_steps steps = { .check = check_joined, .take = take_joined };
    struct dblock_options options = of(DBLOCK_ROW);

    (void)state;
    open_over(0, 0, NULL);
    assert_int_equal(DBLOCK_E_UNSUPPORTED,
        dblock_join(client, sim_driver(), &steps, NULL, "x", &options, NULL, &error));
    assert_non_null(strstr(error.hint, "keeper_url"));
    dblock_close(client);
    open_over(0, 0, URL);
    assert_int_equal(DBLOCK_OK,
        dblock_join(client, sim_driver(), &steps, NULL, "x", &options, NULL, &error));
}

/* A watch cancels by a way of its own, if there is one. */
static void watched__by_the_way_of_the_keeper(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    struct dblock_target *targets[2] = { NULL, NULL };
    dblock_driver other = *sim_driver();
    dblock_lock *lock = NULL;
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        open_over(0, 0, i == 0 ? NULL : URL);
        assert_int_equal(DBLOCK_OK, take(&options, &lock));
        assert_int_equal(
            DBLOCK_OK, dblock_watch_check(lock, sim_driver(), &targets[i], &error));
        assert_non_null(targets[i]);
        assert_int_equal(
            DBLOCK_E_ARGUMENT, dblock_watch_check(lock, &other, &targets[i], &error));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        dblock_close(client);
        client = NULL;
    }
    assert_int_equal(
        DBLOCK_E_ARGUMENT, dblock_watch_check(NULL, sim_driver(), &targets[0], &error));
}

static void gone__is_a_loss(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, NULL);
    for (i = 0; i < 2; ++i) {
        struct dblock_options options = of(strategies[i]);
        dblock_lock *lock = NULL;
        dblock_status status;

        assert_int_equal(DBLOCK_OK, take(&options, &lock));
        sim_cut(WORLD, NULL);
        status = dblock_confirm(lock, &error);
        assert_int_equal(i == 0 ? DBLOCK_OK : DBLOCK_LOST, status);
        (void)dblock_release(lock, &error);
        dblock_lock_free(lock);
    }
}

/* A connection of the application that died with a lock of it is the application's business: the
 * keeper does not touch it, and it is let go with the next call. */
static void gone__is_not_for_the_keeper(void **state)
{
    struct dblock_options options = of(DBLOCK_ADVISORY);
    struct dblock_stats before = DBLOCK_STATS_INIT, after = DBLOCK_STATS_INIT;
    dblock_lock *lock = NULL, *beat = NULL;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, URL);
    assert_int_equal(DBLOCK_OK, take(&options, &lock));
    assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &before));
    sim_cut(WORLD, NULL);
    assert_int_equal(DBLOCK_LOST, dblock_confirm(lock, &error));
    dblock_lock_free(lock);
    lock = NULL;
    options.strategy = DBLOCK_LEASE; /* for which the keeper wakes up */
    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "y", &options, &beat, &error));
    options = of(DBLOCK_ADVISORY);
    assert_int_equal(DBLOCK_OK, take(&options, &lock));
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &after));
    assert_true(after.connections <= before.connections + 2); /* the keeper's, the session's */
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    dblock_lock_free(beat);
}

/* The number of a row lock is committed by another connection: there is none. */
static void row__without_a_way_for_its_token(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_lock *lock = NULL;
    int64_t token;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ROW, 0, NULL);
    assert_int_equal(DBLOCK_OK, take(&options, &lock));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_lock_token(lock, &token, &error));
    assert_non_null(strstr(error.hint, "keeper_url"));
    assert_int_equal(1, dblock_lock_is_held(lock));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    lock = NULL;
    options.flags = DBLOCK_FENCED;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, take(&options, &lock));
    assert_null(lock);
}

/* Some are given back, one cannot be for now: it is held still, and the others are not. */
static void release_many__in_use(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    dblock_lock *locks[2] = { NULL, NULL };
    size_t i;

    (void)state;
    open_over(0, 0, NULL);
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &locks[0], &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "y", &options, &locks[1], &error));
    is_in_use = 1;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_release_many(locks, 2, &error));
    assert_int_equal(1, dblock_lock_is_held(locks[0]));
    assert_int_equal(1, dblock_lock_is_held(locks[1]));
    is_in_use = 0;
    assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 2, &error));
    for (i = 0; i < 2; ++i)
        dblock_lock_free(locks[i]);
}

/* Freed while the connection is in use: a call by another way leaves it alone, too. */
static void freed__waits_until_it_is_free(void **state)
{
    struct dblock_options options = of(DBLOCK_ADVISORY);
    int strategy = DBLOCK_ADVISORY;
    dblock_lock *lock = NULL, *row = NULL;

    (void)state;
    open_over(1u << DBLOCK_ROLE_ADVISORY, 0, URL);
    assert_int_equal(DBLOCK_OK, take(&options, &lock));
    is_in_use = 1;
    dblock_lock_free(lock);
    options = of(DBLOCK_ROW); /* on a connection that the keeper's url leads to */
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "y", &options, &row, &error));
    assert_int_equal(0, can_be_had(&strategy));
    is_in_use = 0;
    dblock_lock_free(row);
    row = NULL;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "z", &options, &row, &error));
    assert_int_equal(1, can_be_had(&strategy));
    dblock_lock_free(row);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alone__refuses_what_needs_another_way),
        TEST(alone__takes_what_it_can),
        TEST(in_use__is_left_alone),
        TEST(freed__is_given_back_by_the_next_call),
        TEST(break__goes_on_with_the_next_call),
        TEST(keeper_url__gives_it_all),
        TEST(joined__makes_the_row_by_another_way),
        TEST(watched__by_the_way_of_the_keeper),
        TEST(gone__is_a_loss),
        TEST(gone__is_not_for_the_keeper),
        TEST(row__without_a_way_for_its_token),
        TEST(release_many__in_use),
        TEST(freed__waits_until_it_is_free),
    };

    return cmocka_run_group_tests_name("borrowed", tests, NULL, NULL);
}
