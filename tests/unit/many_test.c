/* SPDX-License-Identifier: MIT */
/* many_test.c - several names at once, when an answer is lost and others have been there since,
 * when a look does not say enough, and when nobody seems to be in the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "many_test"
#define URL "sim:" WORLD

enum { IO_MS = 1000, N = 3, MANY = 100 };

static const char *const names[] = { "m1", "m2", "m3" };
static dblock_client *client, *rival;
static struct dblock_error error;
static const char *breaks; /* before the next look */
static int judges_itself;  /* the driver says what became of a drop of several */

static dblock_status look(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    const char *name = breaks;

    breaks = NULL;
    if (name != NULL) {
        struct dblock_error own;

        assert_int_equal(DBLOCK_OK, dblock_break(rival, name, DBLOCK_LEASE, 0, &own));
    }
    return sim_driver()->lease.look(connection, call, subject, grant, answer, reterr);
}

static dblock_status drop_many(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status = sim_driver()->lease.drop_many(connection, call, many, answer, reterr);

    if (judges_itself && status == DBLOCK_OK)
        answer->outcome = DBLOCK_ANSWER_YES;
    return status;
}

static int begin(void **state)
{
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    driver = *sim_driver();
    driver.lease.look = look;
    driver.lease.drop_many = drop_many;
    breaks = NULL;
    judges_itself = 0;
    config.io_timeout_ms = IO_MS;
    return sim_open(&driver, URL, &config, &client, &error) +
        sim_open(sim_driver(), URL, NULL, &rival, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    return 0;
}

static dblock_status take(int heartbeat, uint64_t wait_ms, dblock_lock **ret_locks)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.heartbeat = heartbeat;
    options.ttl_ms = 20000;
    options.wait_ms = wait_ms;
    memset(ret_locks, 0, N * sizeof *ret_locks);
    return dblock_acquire_many(client, names, N, &options, ret_locks, &error);
}

static void free_all(dblock_lock **locks)
{
    int i;

    for (i = 0; i < N; ++i)
        dblock_lock_free(locks[i]);
}

static void release_all(dblock_lock **locks)
{
    assert_int_equal(DBLOCK_OK, dblock_release_many(locks, N, &error));
    free_all(locks);
}

static void expect_all_free(void)
{
    int i;

    for (i = 0; i < N; ++i) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        dblock_lock *lock = NULL;

        options.wait_ms = 5000;
        assert_int_equal(DBLOCK_OK, dblock_acquire(rival, names[i], &options, &lock, &error));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
}

/* All were taken, the answer was lost, and one has been broken since: whoever is told that he has
 * them has all. What was left is given back, and all are taken anew as long as he waits. */
static void lost_answer__and_one_is_broken(void **state)
{
    static const int heartbeats[] = { DBLOCK_HEARTBEAT_ON, DBLOCK_HEARTBEAT_OFF };
    size_t i;
    int j;

    (void)state;
    for (i = 0; i < 2; ++i) {
        dblock_lock *locks[N];

        judges_itself = (int)i;
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
        breaks = names[1];
        assert_int_equal(DBLOCK_OK, take(heartbeats[i], 10000, locks));
        assert_null(breaks);
        for (j = 0; j < N; ++j)
            assert_int_equal(DBLOCK_OK, dblock_confirm(locks[j], &error));
        release_all(locks);
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
        breaks = names[1];
        /* a try, which nobody was in the way of */
        assert_int_equal(DBLOCK_E_CONNECTION, take(heartbeats[i], 0, locks));
        expect_all_free();
    }
}

/* The look at what became of it fails for one of them, or does not say: it is asked again. */
static void lost_answer__and_a_look_says_nothing(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < 3; ++way) {
        dblock_lock *locks[N];
        uint64_t n_looks = sim_n_steps(WORLD, SIM_STEP_LOOK);

        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
        if (way == 0)
            sim_fail_set(WORLD, SIM_STEP_LOOK, 2, DBLOCK_E_DATABASE);
        if (way == 1)
            sim_answer_set(WORLD, SIM_STEP_LOOK, 2, DBLOCK_ANSWER_AGAIN);
        if (way == 2) /* nor can be asked at first */
            sim_fault_set(WORLD, SIM_STEP_OPEN, 1, SIM_FAULT_REFUSE, 0);
        assert_int_equal(DBLOCK_OK, take(DBLOCK_HEARTBEAT_OFF, 0, locks));
        assert_true(sim_n_steps(WORLD, SIM_STEP_LOOK) >= n_looks + N + (way < 2 ? 2 : 0));
        assert_int_equal(DBLOCK_OK, dblock_confirm(locks[0], &error));
        assert_int_equal(DBLOCK_OK, dblock_confirm(locks[2], &error));
        release_all(locks);
        sim_fault_clear(WORLD);
    }
    expect_all_free();
}

static void session__that_cannot_be_begun(void **state)
{
    dblock_lock *locks[N];

    (void)state;
    sim_fail_set(WORLD, SIM_STEP_BEGIN, 1, DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_DATABASE, take(DBLOCK_HEARTBEAT_ON, 0, locks));
    assert_int_equal(DBLOCK_OK, take(DBLOCK_HEARTBEAT_ON, 0, locks));
    release_all(locks);
}

/* Busy, and nobody is in the way of any of them: others went first. It is asked some times more. */
static void some__that_others_go_before(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[N] = { NULL, NULL, NULL };
    unsigned nth;
    int i;

    (void)state;
    sim_answer_set(WORLD, SIM_STEP_TAKE, 1, DBLOCK_ANSWER_AGAIN);
    assert_int_equal(
        DBLOCK_OK, dblock_acquire_some(client, names, N, &options, locks, NULL, &error));
    for (i = 0; i < N; ++i)
        assert_non_null(locks[i]);
    release_all(locks);
    for (nth = 1; nth <= MANY; ++nth)
        sim_answer_set(WORLD, SIM_STEP_TAKE, nth, DBLOCK_ANSWER_AGAIN);
    memset(locks, 0, sizeof locks);
    assert_int_equal(
        DBLOCK_BUSY, dblock_acquire_some(client, names, N, &options, locks, NULL, &error));
    for (i = 0; i < N; ++i)
        assert_null(locks[i]);
    sim_fault_clear(WORLD);
    expect_all_free();
}

static void *wait_for_the_second(void *context)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error own;

    options.wait_ms = 10000;
    options.ttl_ms = 20000;
    if (dblock_acquire(client, names[1], &options, context, &own) != DBLOCK_OK)
        *(dblock_lock **)context = NULL;
    return NULL;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.waiters > 0;
}

/* One of them goes to a thread of this client that waits for it, the others to the database. */
static void released__to_one_who_waits(void **state)
{
    dblock_lock *locks[N], *handed = NULL;
    pthread_t thread;

    (void)state;
    assert_int_equal(DBLOCK_OK, take(DBLOCK_HEARTBEAT_ON, 0, locks));
    assert_int_equal(0, pthread_create(&thread, NULL, wait_for_the_second, &handed));
    assert_true(test_until(is_waiting, NULL, 5000));
    release_all(locks);
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_non_null(handed);
    assert_int_equal(DBLOCK_OK, dblock_confirm(handed, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(handed, &error));
    dblock_lock_free(handed);
    expect_all_free();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lost_answer__and_one_is_broken),
        TEST(lost_answer__and_a_look_says_nothing),
        TEST(session__that_cannot_be_begun),
        TEST(some__that_others_go_before),
        TEST(released__to_one_who_waits),
    };

    return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
