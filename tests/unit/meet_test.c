/* SPDX-License-Identifier: MIT */
/* meet_test.c - calls that meet each other: for the last connection, on one lock, and with the
 * client's close. */
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

#define WORLD "meet_test"

enum { IO_MS = 1000 };

static dblock_client *client;
static struct dblock_error error;

static int begin(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    config.io_timeout_ms = IO_MS;
    config.connections_max = 1;
    return sim_open(sim_driver(), "sim:" WORLD, &config, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

enum call { PING, ACQUIRE, MANY, FENCED_ROW, CONFIRM, EXTEND };

struct job {
    enum call call;
    int strategy;
    uint64_t number; /* wait_ms or ttl_ms */
    dblock_canceller *canceller;
    dblock_lock *lock, *more[2];
    dblock_status status;
    struct dblock_error error;
    pthread_t thread;
};

static void *run(void *context)
{
    static const char *const names[] = { "m1", "m2" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct job *job = context;

    options.strategy = job->strategy;
    options.canceller = job->canceller;
    options.wait_ms = job->number;
    switch (job->call) {
    case PING:
        job->status = dblock_ping(client, &job->error);
        break;
    case MANY:
        job->status = dblock_acquire_many(client, names, 2, &options, job->more, &job->error);
        break;
    case CONFIRM:
        job->status = dblock_confirm(job->lock, &job->error);
        break;
    case EXTEND:
        job->status = dblock_extend(job->lock, job->number, &job->error);
        break;
    default:
        options.flags = job->call == FENCED_ROW ? DBLOCK_FENCED : 0;
        job->status = dblock_acquire(client, "x", &options, &job->lock, &job->error);
        break;
    }
    return NULL;
}

struct seen {
    enum sim_step step;
    uint64_t n;
};

static int is_under_way(void *context)
{
    const struct seen *seen = context;

    return sim_n_steps(WORLD, seen->step) > seen->n;
}

/* Begins the job, whose `step` then takes so long. */
static void start(struct job *job, enum sim_step step, uint64_t delay_ms)
{
    struct seen seen = { step, sim_n_steps(WORLD, step) };

    sim_fault_set(WORLD, step, 1, SIM_FAULT_DELAY, delay_ms * 1000);
    assert_int_equal(0, pthread_create(&job->thread, NULL, run, job));
    assert_true(test_until(is_under_way, &seen, 5000));
}

static dblock_status finish(struct job *job)
{
    assert_int_equal(0, pthread_join(job->thread, NULL));
    return job->status;
}

/* The only connection is in use: who comes second waits for it, as long as a call may take. */
static void last_connection__is_waited_for(void **state)
{
    struct job first = { .call = PING }, second = { .call = PING };

    (void)state;
    start(&first, SIM_STEP_VERIFY, 300);
    (void)run(&second);
    assert_int_equal(DBLOCK_OK, second.status);
    assert_int_equal(DBLOCK_OK, finish(&first));
    start(&first, SIM_STEP_VERIFY, 2 * IO_MS); /* given up at its own limit */
    (void)run(&second);
    assert_true(second.status == DBLOCK_E_CONNECTION || second.status == DBLOCK_OK);
    assert_int_equal(DBLOCK_OK, dblock_ping(client, &error));
    (void)finish(&first);
}

static void last_connection__is_not_waited_for_when_cancelled(void **state)
{
    struct job first = { .call = PING };
    struct job second = { .call = ACQUIRE, .strategy = DBLOCK_LEASE, .number = 5000 };

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&second.canceller, &error));
    start(&first, SIM_STEP_VERIFY, 600);
    dblock_cancel(second.canceller);
    (void)run(&second);
    assert_int_equal(DBLOCK_CANCELLED, second.status);
    assert_int_equal(DBLOCK_OK, finish(&first));
    dblock_canceller_free(second.canceller);
}

/* The client is closed in the middle of a step of each kind: the call ends soon, with that, or with
 * what it had by then; and nothing is left in the database. */
static void close__ends_what_is_under_way(void **state)
{
    static const struct {
        struct job job;
        enum sim_step step;
    } cases[] = {
        { { .call = PING }, SIM_STEP_VERIFY },
        { { .call = PING }, SIM_STEP_OPEN },
        { { .call = ACQUIRE, .strategy = DBLOCK_LEASE, .number = 5000 }, SIM_STEP_BEGIN },
        { { .call = ACQUIRE, .strategy = DBLOCK_LEASE, .number = 5000 }, SIM_STEP_TAKE },
        { { .call = ACQUIRE, .strategy = DBLOCK_INSERT, .number = 5000 }, SIM_STEP_TAKE },
        { { .call = ACQUIRE, .strategy = DBLOCK_ROW, .number = 5000 }, SIM_STEP_TAKE },
        { { .call = ACQUIRE, .strategy = DBLOCK_ADVISORY, .number = 5000 }, SIM_STEP_TAKE },
        { { .call = ACQUIRE, .strategy = DBLOCK_ROW, .number = 5000 }, SIM_STEP_SEED },
        { { .call = FENCED_ROW, .strategy = DBLOCK_ROW, .number = 5000 }, SIM_STEP_DRAW },
        { { .call = MANY, .strategy = DBLOCK_LEASE, .number = 5000 }, SIM_STEP_TAKE },
        { { .call = MANY, .strategy = DBLOCK_INSERT, .number = 5000 }, SIM_STEP_TAKE },
    };
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    dblock_client *witness = NULL;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    size_t i;

    (void)state;
    (void)filter;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &witness, &error));
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        static const char *const names[] = { "x", "m1", "m2" };
        struct job job = cases[i].job;
        uint64_t begun_ms;
        size_t j;

        if (client == NULL)
            assert_int_equal(0, begin(state));
        start(&job, cases[i].step, 200);
        begun_ms = test_now_ms();
        dblock_close(client);
        client = NULL;
        (void)finish(&job);
        assert_true(test_now_ms() - begun_ms < 3000);
        if (job.status != DBLOCK_OK && job.status != DBLOCK_E_CLOSED)
            fail_msg("case %zu: %s", i, job.error.message);
        dblock_lock_free(job.lock);
        dblock_lock_free(job.more[0]);
        dblock_lock_free(job.more[1]);
        for (j = 0; j < 3; ++j)
            if (job.strategy != 0 &&
                dblock_inspect(witness, names[j], job.strategy, &grant, &error) == DBLOCK_OK)
                fail_msg("case %zu: \"%s\" is left", i, names[j]);
    }
    dblock_close(witness);
}

static dblock_lock *take(int strategy, uint64_t ttl_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    options.ttl_ms = ttl_ms;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    return lock;
}

/* What may still be carried out counts: after an extend whose answer was lost no longer time is
 * believed than it asked for, until it can not come any more. */
static void extend__whose_answer_is_lost_bounds_the_next(void **state)
{
    dblock_lock *lock = take(DBLOCK_INSERT, 20000);

    (void)state;
    sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_LOSE, 0);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 8000, &error)); /* asked for again */
    assert_true(dblock_lock_remaining_ms(lock) <= 8000);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 30000, &error));
    assert_true(dblock_lock_remaining_ms(lock) <= 8000);
    sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_LOSE, 0);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 9000, &error));
    assert_true(dblock_lock_remaining_ms(lock) <= 8000);
    sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_LOSE, 0);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 6000, &error));
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 5000, &error));
    assert_true(dblock_lock_remaining_ms(lock) <= 5000);
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error)); /* says nothing of what may come */
    assert_true(dblock_lock_remaining_ms(lock) <= 5000);
    test_pass_ms(2 * IO_MS + 100);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 30000, &error));
    assert_true(dblock_lock_remaining_ms(lock) > 20000);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* An extend is under way, and one that fails, a confirm, a release, or the end of the time meets it. */
static void extend__meets_others(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct job job = { .call = EXTEND, .number = 5000 };
    dblock_lock *lock;

    (void)state;
    dblock_close(client);
    config.io_timeout_ms = IO_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    job.lock = lock = take(DBLOCK_INSERT, 20000);
    start(&job, SIM_STEP_EXTEND, 300);
    sim_fail_set(WORLD, SIM_STEP_EXTEND, 1, DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_DATABASE, dblock_extend(lock, 9000, &error));
    assert_true(dblock_lock_remaining_ms(lock) <= 5000);
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_OK, finish(&job));
    assert_true(dblock_lock_remaining_ms(lock) <= 5000);
    start(&job, SIM_STEP_EXTEND, 300);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_not_equal(DBLOCK_OK, finish(&job));
    assert_int_equal(0, dblock_lock_is_held(lock));
    dblock_lock_free(lock);
    job.lock = lock = take(DBLOCK_INSERT, 300);
    start(&job, SIM_STEP_EXTEND, 600); /* the database may do it, and it is too late to believe */
    assert_int_equal(DBLOCK_LOST, finish(&job));
    dblock_lock_free(lock);
    job.call = CONFIRM;
    job.lock = lock = take(DBLOCK_INSERT, 300);
    start(&job, SIM_STEP_LOOK, 600);
    assert_int_equal(DBLOCK_LOST, finish(&job));
    dblock_lock_free(lock);
}

/* A confirm of a lock that lives in a connection, while it is released, and while that dies. */
static void confirm__meets_others(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct job job = { .call = CONFIRM };

        job.lock = take(strategies[i], 0);
        start(&job, SIM_STEP_PROVE, 200);
        assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
        assert_int_not_equal(DBLOCK_LOST, finish(&job));
        dblock_lock_free(job.lock);
        job.lock = take(strategies[i], 0);
        sim_fail_set(WORLD, SIM_STEP_PROVE, 1, DBLOCK_E_DATABASE); /* says nothing of the lock */
        assert_int_equal(DBLOCK_E_DATABASE, dblock_confirm(job.lock, &error));
        assert_int_equal(1, dblock_lock_is_held(job.lock));
        start(&job, SIM_STEP_PROVE, 200);
        sim_cut(WORLD, NULL);
        assert_int_equal(DBLOCK_LOST, finish(&job));
        assert_int_equal(DBLOCK_LOST, dblock_release(job.lock, &error));
        dblock_lock_free(job.lock);
        job.lock = take(strategies[i], 0);
        start(&job, SIM_STEP_PROVE, 300);
        dblock_close(client);
        assert_true(finish(&job) != DBLOCK_OK);
        dblock_lock_free(job.lock);
        assert_int_equal(0, begin(state));
    }
}

/* The answer comes when the grant is not believed any more: it is given back, and taken again. */
static void take__that_is_late_is_given_back(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    static const char *const names[] = { "m1", "m2" };
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        dblock_lock *locks[2] = { NULL, NULL };
        dblock_lock *lock = NULL;

        options.strategy = strategies[i];
        options.ttl_ms = 300;
        options.wait_ms = 5000;
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 500000);
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        assert_int_equal(1, dblock_lock_is_held(lock));
        dblock_lock_free(lock);
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 500000);
        assert_int_equal(
            DBLOCK_OK, dblock_acquire_many(client, names, 2, &options, locks, &error));
        assert_int_equal(1, dblock_lock_is_held(locks[0]));
        assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 2, &error));
        dblock_lock_free(locks[0]);
        dblock_lock_free(locks[1]);
    }
}

static int n_late; /* answers that are to come late */

static dblock_status take_many_late(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = sim_driver()->lease.take_many(
        connection, call, terms, many, ret_place, holder, answer, reterr);

    if (n_late-- > 0)
        test_pass_ms(500);
    return status;
}

/* Granted, and the answer came when it was not to be believed any more: given back, taken again. */
static void many__whose_answer_is_late_is_given_back(void **state)
{
    static const char *const names[] = { "m1", "m2" };
    dblock_driver late = *sim_driver();
    dblock_client *other = NULL;
    int i;

    (void)state;
    late.lease.take_many = take_many_late;
    assert_int_equal(DBLOCK_OK, dblock_open(&late, "sim:" WORLD, NULL, &other, &error));
    for (i = 0; i < 3; ++i) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        dblock_lock *locks[2] = { NULL, NULL };

        options.ttl_ms = 300;
        options.wait_ms = 5000;
        n_late = 1;
        if (i == 1)
            sim_fault_set(WORLD, SIM_STEP_DROP, 1, SIM_FAULT_LOSE, 0);
        if (i == 2)
            sim_fail_set(WORLD, SIM_STEP_DROP, 1, DBLOCK_E_DATABASE);
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
        if (dblock_acquire_many(other, names, 2, &options, locks, &error) == DBLOCK_OK) {
            assert_int_equal(1, dblock_lock_is_held(locks[0]));
            assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 2, &error));
            dblock_lock_free(locks[0]);
            dblock_lock_free(locks[1]);
        } else {
            assert_int_not_equal(0, i); /* it could not be given back at once */
        }
    }
    dblock_close(other);
}

/* The name that is in the way is another one after a while: it waits for that. */
static void many__waits_for_one_after_the_other(void **state)
{
    static const char *const names[] = { "m2", "m1", "m2" };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *rival = NULL;
    dblock_lock *locks[3] = { NULL };
    size_t i;

    (void)state;
    dblock_close(client); /* one connection is not enough */
    config.io_timeout_ms = IO_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error));
    for (i = 0; i < 2; ++i) {
        struct job job = { .call = MANY, .strategy = DBLOCK_LEASE, .number = 5000 };
        struct seen seen = { SIM_STEP_REST, sim_n_steps(WORLD, SIM_STEP_REST) };

        assert_int_equal(DBLOCK_OK, dblock_acquire(rival, names[i], NULL, &locks[i], &error));
        assert_int_equal(0, pthread_create(&job.thread, NULL, run, &job));
        assert_true(test_until(is_under_way, &seen, 5000));
        assert_int_equal(
            DBLOCK_OK, dblock_acquire(rival, names[i + 1], NULL, &locks[i + 1], &error));
        seen.n = sim_n_steps(WORLD, SIM_STEP_TAKE);
        seen.step = SIM_STEP_TAKE;
        assert_int_equal(DBLOCK_OK, dblock_release(locks[i], &error));
        assert_true(test_until(is_under_way, &seen, 5000));
        test_pass_ms(100);
        assert_int_equal(DBLOCK_OK, dblock_release(locks[i + 1], &error));
        assert_int_equal(DBLOCK_OK, finish(&job));
        assert_int_equal(DBLOCK_OK, dblock_release_many(job.more, 2, &error));
        dblock_lock_free(job.more[0]);
        dblock_lock_free(job.more[1]);
        dblock_lock_free(locks[i]);
        dblock_lock_free(locks[i + 1]);
    }
    dblock_close(rival);
}

/* What a driver calls cancelled, by the descriptor that only a close raises, is the client's end. */
static void cancelled_by_nobody__is_closed(void **state)
{
    dblock_lock *lock = take(DBLOCK_ROW, 0);
    int64_t token;

    (void)state;
    sim_fail_set(WORLD, SIM_STEP_PROVE, 1, DBLOCK_CANCELLED);
    assert_int_equal(DBLOCK_E_CLOSED, dblock_confirm(lock, &error));
    sim_fail_set(WORLD, SIM_STEP_DRAW, 1, DBLOCK_CANCELLED);
    assert_int_equal(DBLOCK_E_CLOSED, dblock_lock_token(lock, &token, &error));
    dblock_lock_free(lock);
    sim_fail_set(WORLD, SIM_STEP_INSTALL, 1, DBLOCK_CANCELLED);
    assert_int_equal(DBLOCK_E_CLOSED, dblock_schema_install(client, &error));
    dblock_close(client);
    assert_int_equal(0, begin(state));
    sim_fail_set(WORLD, SIM_STEP_OPEN, 1, DBLOCK_CANCELLED);
    assert_int_equal(DBLOCK_E_CLOSED, dblock_ping(client, &error));
}

/* It cannot be said for ever that it is to be tried again. */
static void victim_each_time__is_a_failure(void **state)
{
    dblock_lock *lock = take(DBLOCK_LEASE, 0);
    unsigned nth;

    (void)state;
    for (nth = 1; nth <= 100; ++nth)
        sim_answer_set(WORLD, SIM_STEP_EXTEND, nth, DBLOCK_ANSWER_AGAIN);
    assert_int_equal(DBLOCK_E_DATABASE, dblock_lock_detach(lock, 5000, &error));
    assert_int_equal(1, error.is_transient);
    sim_fault_clear(WORLD);
    assert_int_equal(1, dblock_lock_is_held(lock));
    sim_fault_set(WORLD, SIM_STEP_EXTEND, 1, SIM_FAULT_LOSE, 0);
    sim_fail_set(WORLD, SIM_STEP_EXTEND, 2, DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_UNCERTAIN, dblock_lock_detach(lock, 5000, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* PITFALL(B11): the wait was longer than the ttl, which begins with the grant and not before. */
static void wait__longer_than_the_ttl(void **state)
{
    struct job job = { .call = ACQUIRE, .strategy = DBLOCK_LEASE, .number = 10000 };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *rival = NULL;
    dblock_lock *theirs = NULL;

    (void)state;
    dblock_close(client);
    config.ttl_ms = 600;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", NULL, &theirs, &error));
    assert_int_equal(0, pthread_create(&job.thread, NULL, run, &job));
    test_pass_ms(1500);
    assert_int_equal(DBLOCK_OK, dblock_release(theirs, &error));
    assert_int_equal(DBLOCK_OK, finish(&job));
    assert_int_equal(1, dblock_lock_is_held(job.lock));
    assert_int_equal(DBLOCK_OK, dblock_confirm(job.lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
    dblock_lock_free(job.lock);
    dblock_lock_free(theirs);
    dblock_close(rival);
}

/* In one call: of two clients, of two strategies, with a time to stay, one that was lost, one that
 * had been released, and none. */
static void release_many__of_all_kinds(void **state)
{
    dblock_client *other = NULL;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[8] = { NULL };
    size_t i;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &other, &error));
    for (i = 0; i < 7; ++i) {
        char name[] = "several-0";

        name[sizeof name - 2] = (char)('0' + i);
        options.strategy = i == 1 ? DBLOCK_ROW : i == 2 ? DBLOCK_INSERT : DBLOCK_LEASE;
        options.min_hold_ms = i == 3 ? 50 : 0;
        assert_int_equal(DBLOCK_OK,
            dblock_acquire(i == 4 ? other : client, name, &options, &locks[i], &error));
    }
    assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 5, &error));
    assert_int_equal(DBLOCK_OK, dblock_break(other, "several-5", DBLOCK_LEASE, 0, &error));
    assert_int_equal(DBLOCK_LOST, dblock_release_many(&locks[3], 4, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release_many(locks, 8, &error));
    assert_int_equal(DBLOCK_OK, dblock_release_many(&locks[7], 1, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_release_many(locks, SIZE_MAX, &error));
    for (i = 0; i < 7; ++i)
        dblock_lock_free(locks[i]);
    dblock_close(other);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(last_connection__is_waited_for),
        TEST(last_connection__is_not_waited_for_when_cancelled),
        TEST(close__ends_what_is_under_way),
        TEST(extend__whose_answer_is_lost_bounds_the_next),
        TEST(extend__meets_others),
        TEST(confirm__meets_others),
        TEST(take__that_is_late_is_given_back),
        TEST(many__whose_answer_is_late_is_given_back),
        TEST(many__waits_for_one_after_the_other),
        TEST(cancelled_by_nobody__is_closed),
        TEST(victim_each_time__is_a_failure),
        TEST(wait__longer_than_the_ttl),
        TEST(release_many__of_all_kinds),
    };

    return cmocka_run_group_tests_name("meet", tests, NULL, NULL);
}
