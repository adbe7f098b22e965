/* SPDX-License-Identifier: MIT */
/* extend_test.c - extend and confirm, with something that happens between the database's answer
 * and the look at it: the end of the time, a release, another extend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <string.h>

#include "sim_driver.h"
#include "test_clock.h"
#include "test_wait.h"

#define WORLD "extend_test"
#define A_DAY_US (UINT64_C(24) * 3600 * 1000000)

static dblock_client *client, *rival;
static dblock_lock *lock;
static struct dblock_error error;

static void (*meanwhile)(void); /* once, after the next answer of the steps below */
static dblock_status failure;   /* of that one, unless OK */

static dblock_status let_happen(dblock_status status, struct dblock_error *reterr)
{
    void (*happens)(void) = meanwhile;

    if (happens == NULL)
        return status;
    meanwhile = NULL;
    happens();
    return failure != DBLOCK_OK ? dblock_error_set(reterr, failure, NULL, "it fails") : status;
}

static dblock_status look(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return let_happen(
        sim_driver()->insert.look(connection, call, subject, grant, answer, reterr), reterr);
}

static dblock_status extend(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return let_happen(
        sim_driver()->insert.extend(connection, call, subject, owner, ttl_us, answer, reterr),
        reterr);
}

static dblock_status prove_row(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return let_happen(
        sim_driver()->row.prove(connection, call, subject, answer, reterr), reterr);
}

static dblock_status prove_advisory(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return let_happen(
        sim_driver()->advisory.prove(connection, call, subject, answer, reterr), reterr);
}

static int begin(void **state)
{
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    driver = *sim_driver();
    driver.insert.look = look;
    driver.insert.extend = extend;
    driver.row.prove = prove_row;
    driver.advisory.prove = prove_advisory;
    test_clock_begin();
    meanwhile = NULL;
    failure = DBLOCK_OK;
    lock = NULL;
    config.io_timeout_ms = 1000;
    return sim_open(&driver, "sim:" WORLD, &config, &client, &error) +
        sim_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_lock_free(lock);
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    test_clock_end();
    return 0;
}

static dblock_lock *take(const char *name, int strategy, uint64_t ttl_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *taken = NULL;

    options.strategy = strategy;
    options.ttl_ms = ttl_ms;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &taken, &error));
    return taken;
}

static int count_losses(void)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;
    int n_lost = 0;

    while (dblock_client_next_event(client, &event) == DBLOCK_OK)
        n_lost += event.kind == DBLOCK_EVENT_LOST;
    return n_lost;
}

static void sleep_a_day(void)
{
    test_clock_forward(A_DAY_US);
}

/* PITFALL(B7): the machine slept when the answer had come already. However good that was, the time
 * of the lock is over, and nobody has noticed yet but this call. */
static void time_that_ends__behind_the_answer(void **state)
{
    static const struct {
        int strategy;
        int is_extend;
    } cases[] = { { DBLOCK_INSERT, 0 }, { DBLOCK_INSERT, 1 }, { DBLOCK_ROW, 0 },
        { DBLOCK_ADVISORY, 0 } };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        lock = take("x", cases[i].strategy, cases[i].strategy == DBLOCK_INSERT ? 20000 : 0);
        meanwhile = sleep_a_day;
        assert_int_equal(DBLOCK_LOST,
            cases[i].is_extend ? dblock_extend(lock, 20000, &error) : dblock_confirm(lock, &error));
        assert_int_equal(0, dblock_lock_is_held(lock));
        assert_int_not_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(lock));
        assert_int_equal(1, count_losses());
        assert_int_equal(DBLOCK_LOST, dblock_release(lock, &error));
        dblock_lock_free(lock);
        lock = NULL;
    }
}

static void extend_longer(void)
{
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 30000, &error));
}

/* The answer to a confirm is older than that to the extend which met it. */
static void confirm__does_not_undo_an_extend(void **state)
{
    (void)state;
    lock = take("x", DBLOCK_INSERT, 8000);
    meanwhile = extend_longer;
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
    assert_true(dblock_lock_remaining_ms(lock) > 20000);
}

/* One that had no effect puts back the time that was there before it, unless another has come. */
static void failed_extend__does_not_undo_another(void **state)
{
    (void)state;
    lock = take("x", DBLOCK_INSERT, 8000);
    meanwhile = extend_longer;
    failure = DBLOCK_E_DATABASE;
    assert_int_equal(DBLOCK_E_DATABASE, dblock_extend(lock, 4000, &error));
    assert_true(dblock_lock_remaining_ms(lock) > 20000);
}

static void release_it(void)
{
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
}

static void failed_extend__of_what_was_released(void **state)
{
    (void)state;
    lock = take("x", DBLOCK_INSERT, 8000);
    meanwhile = release_it;
    failure = DBLOCK_E_DATABASE;
    assert_int_equal(DBLOCK_E_DATABASE, dblock_extend(lock, 9000, &error));
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_int_equal(0, dblock_lock_remaining_ms(lock));
}

static void hold_guard(int by)
{
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_INSERT, "x", by);
    sim_world_unlock(WORLD);
}

/* A guarded transaction stands on the row: that may last, so it is said, and the lock stays as it
 * was; also if the looks at it take long. */
static void guarded__is_extended_later(void **state)
{
    int is_slow;

    (void)state;
    lock = take("x", DBLOCK_INSERT, 8000);
    for (is_slow = 0; is_slow <= 1; ++is_slow) {
        hold_guard(1);
        if (is_slow)
            sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_DELAY, 60000);
        assert_int_equal(DBLOCK_E_DATABASE, dblock_extend(lock, 30000, &error));
        assert_int_equal(1, error.is_transient);
        assert_non_null(strstr(error.message, "guarded"));
        assert_int_equal(1, dblock_lock_is_held(lock));
        assert_true(dblock_lock_remaining_ms(lock) <= 8000);
        hold_guard(-1);
    }
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 30000, &error));
    assert_true(dblock_lock_remaining_ms(lock) > 20000);
}

/* It was to get an end of its own, and that is all that is known: its holder believes no longer
 * than to that end, and then it is given back, although its session lives on. */
static void detached_without_an_answer__ends_in_time(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *other = take("y", DBLOCK_LEASE, 0);
    dblock_lock *theirs = NULL;

    (void)state;
    lock = take("x", DBLOCK_LEASE, 0);
    sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_DELAY, 5000000);
    assert_int_not_equal(DBLOCK_OK, dblock_lock_detach(lock, 300, &error));
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_int_equal(1, count_losses());
    options.wait_ms = 5000;
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", &options, &theirs, &error));
    assert_int_equal(1, dblock_lock_is_held(other));
    dblock_lock_free(theirs);
    dblock_lock_free(other);
}

/* Whoever got it as text cannot give a time to what another client's heartbeat keeps. */
static void imported_heartbeat__has_no_end_of_its_own(void **state)
{
    char text[4 * DBLOCK_GRANT_TEXT_SIZE];
    dblock_lock *copy = NULL;

    (void)state;
    lock = take("x", DBLOCK_LEASE, 0);
    assert_int_equal(DBLOCK_OK, dblock_lock_export(lock, text, sizeof text, &error));
    assert_int_equal(DBLOCK_OK, dblock_lock_import(rival, text, &copy, &error));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_extend(copy, 5000, &error));
    assert_non_null(strstr(error.hint, "detach"));
    assert_int_equal(DBLOCK_OK, dblock_extend(copy, 0, &error));
    dblock_lock_free(copy);
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(time_that_ends__behind_the_answer),
        TEST(confirm__does_not_undo_an_extend),
        TEST(failed_extend__does_not_undo_another),
        TEST(failed_extend__of_what_was_released),
        TEST(guarded__is_extended_later),
        TEST(detached_without_an_answer__ends_in_time),
        TEST(imported_heartbeat__has_no_end_of_its_own),
    };

    return cmocka_run_group_tests_name("extend", tests, NULL, NULL);
}
