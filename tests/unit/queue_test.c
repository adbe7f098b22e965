/* SPDX-License-Identifier: MIT */
/* queue_test.c - threads of one client that want the same name: a grant goes from one to the next
 * without the database if it would be the same grant, and else by way of the database. */
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
#include "test_wait.h"

#define WORLD "queue_test"

static dblock_client *client;
static struct dblock_error error;
static atomic_int n_handed; /* releases that went to another thread */

static void note(const struct dblock_trace *trace, void *context)
{
    (void)context;
    if (trace->kind == DBLOCK_TRACE_RELEASE && trace->detail != NULL &&
        strstr(trace->detail, "another thread") != NULL)
        (void)atomic_fetch_add(&n_handed, 1);
}

static int begin(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    config.on_trace = note;
    config.io_timeout_ms = 2000;
    atomic_store(&n_handed, 0);
    return sim_open(sim_driver(), "sim:" WORLD, &config, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

struct job {
    struct dblock_options options;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
    pthread_t thread;
};

static struct dblock_options of(int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = 10000;
    return options;
}

static void *wait_for_it(void *context)
{
    struct job *job = context;

    job->status = dblock_acquire(client, "x", &job->options, &job->lock, &job->error);
    return NULL;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.waiters >= *(uint32_t *)context;
}

static void start(struct job *job, uint32_t n_waiters)
{
    job->lock = NULL;
    assert_int_equal(0, pthread_create(&job->thread, NULL, wait_for_it, job));
    assert_true(test_until(is_waiting, &n_waiters, 5000));
}

/* A grant goes on so for a twentieth of a second only: a busy machine may miss that. */
enum { N_TRIES = 20, LEAST_TTL_MS = 100, TTL_MS = 800 };

enum before {
    NOTHING,
    EXPORTED,
    EXTENDED,
    GUARDED,
    WORKED /* so long that a fiftieth of the shortest ttl is gone */
};

static const struct {
    const char *label;
    int strategy;
    enum before before; /* what its holder has done with it */
    int is_handed;
    uint64_t min_hold_ms, ttl_ms, ttl_of_next_ms; /* 0 as usual */
    int heartbeat, heartbeat_of_next;
    const char *label_of_next;
} cases[] = {
    { "a lease", DBLOCK_LEASE, NOTHING, 1, 0, 0, 0, 0, 0, NULL },
    { "a row", DBLOCK_ROW, NOTHING, 1, 0, 0, 0, 0, 0, NULL },
    { "an advisory", DBLOCK_ADVISORY, NOTHING, 1, 0, 0, 0, 0, 0, NULL },
    { "of another ttl", DBLOCK_LEASE, NOTHING, 0, 0, 0, 5000, 0, 0, NULL },
    { "of another label", DBLOCK_LEASE, NOTHING, 0, 0, 0, 0, 0, 0, "other" },
    { "stays a while", DBLOCK_LEASE, NOTHING, 0, 50, 0, 0, 0, 0, NULL },
    { "has been exported", DBLOCK_LEASE, EXPORTED, 0, 0, 0, 0, 0, 0, NULL },
    { "has been guarded", DBLOCK_LEASE, GUARDED, 0, 0, 0, 0, 0, 0, NULL },
    { "a timed lease", DBLOCK_LEASE, NOTHING, 1, 0, 30000, 30000, DBLOCK_HEARTBEAT_OFF,
        DBLOCK_HEARTBEAT_OFF, NULL },
    { "a timed insert", DBLOCK_INSERT, NOTHING, 1, 0, 0, 0, 0, 0, NULL },
    { "is timed, and the next is not", DBLOCK_LEASE, NOTHING, 0, 0, 3000, 3000,
        DBLOCK_HEARTBEAT_OFF, 0, NULL },
    { "is not timed, and the next is", DBLOCK_LEASE, NOTHING, 0, 0, 3000, 3000, 0,
        DBLOCK_HEARTBEAT_OFF, NULL },
    { "is timed otherwise", DBLOCK_INSERT, NOTHING, 0, 0, 0, 5000, 0, 0, NULL },
    { "is timed, and stays a while", DBLOCK_INSERT, NOTHING, 0, 50, 0, 0, 0, 0, NULL },
    { "is timed, and too much of it is gone", DBLOCK_INSERT, WORKED, 0, 0, LEAST_TTL_MS,
        LEAST_TTL_MS, 0, 0, NULL },
    { "has been extended", DBLOCK_INSERT, EXTENDED, 0, 0, 3000, 3000, 0, 0, NULL },
    { "a row that was guarded", DBLOCK_ROW, GUARDED, 0, 0, 0, 0, 0, 0, NULL },
};

static void prepare(dblock_lock *lock, enum before before)
{
    char text[DBLOCK_GRANT_TEXT_SIZE + 3];
    struct dblock_guarded guarded;

    if (before == EXPORTED)
        assert_int_equal(DBLOCK_OK, dblock_lock_export(lock, text, sizeof text, &error));
    if (before == EXTENDED)
        assert_int_equal(DBLOCK_OK, dblock_extend(lock, 3000, &error));
    if (before == WORKED)
        test_pass_ms(LEAST_TTL_MS / 50);
    if (before == GUARDED) {
        assert_int_equal(DBLOCK_OK, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
        assert_int_equal(DBLOCK_OK, dblock_guard_end(lock, DBLOCK_OK, &error));
    }
}

static void handed__if_it_is_the_same_grant(void **state)
{
    size_t i;
    int n_tries = 0;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct job job = { .options = of(cases[i].strategy) };
        struct dblock_options options = of(cases[i].strategy);
        dblock_lock *lock = NULL;

        atomic_store(&n_handed, 0);
        options.min_hold_ms = cases[i].min_hold_ms;
        options.ttl_ms = cases[i].ttl_ms;
        options.heartbeat = cases[i].heartbeat;
        if (cases[i].before == GUARDED && cases[i].strategy == DBLOCK_ROW)
            options.flags = DBLOCK_FENCED;
        job.options.ttl_ms = cases[i].ttl_of_next_ms;
        job.options.heartbeat = cases[i].heartbeat_of_next;
        job.options.label = cases[i].label_of_next;
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        start(&job, 1);
        prepare(lock, cases[i].before);
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        assert_int_equal(0, pthread_join(job.thread, NULL));
        assert_int_equal(DBLOCK_OK, job.status);
        assert_int_equal(1, dblock_lock_is_held(job.lock));
        assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
        dblock_lock_free(job.lock);
        dblock_lock_free(lock);
        if (atomic_load(&n_handed) > cases[i].is_handed || n_tries == N_TRIES)
            fail_msg("%s: %s", cases[i].label, cases[i].is_handed ? "not handed" : "handed");
        if (atomic_load(&n_handed) < cases[i].is_handed) {
            ++n_tries;
            --i;
        }
    }
}

static dblock_status pass_on_once(struct job *job, int strategy)
{
    struct dblock_options options = of(strategy);
    dblock_lock *lock = NULL;

    atomic_store(&n_handed, 0);
    job->options = of(strategy);
    job->options.flags = DBLOCK_FENCED;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    start(job, 1);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_equal(0, pthread_join(job->thread, NULL));
    dblock_lock_free(lock);
    return job->status;
}

/* From one thread to another, who wants the number; which is drawn so. */
static dblock_status pass_on(struct job *job, int strategy, int32_t answer, dblock_status failure)
{
    int n_tries;

    for (n_tries = 0; n_tries < N_TRIES; ++n_tries) {
        sim_fault_clear(WORLD);
        if (answer != DBLOCK_ANSWER_YES)
            sim_answer_set(WORLD, SIM_STEP_DRAW, 1, answer);
        if (failure != DBLOCK_OK)
            sim_fail_set(WORLD, SIM_STEP_DRAW, 1, failure);
        (void)pass_on_once(job, strategy);
        if (atomic_load(&n_handed) > 0)
            return job->status;
        dblock_lock_free(job->lock);
    }
    return DBLOCK_BUSY;
}

/* The number of a grant that came from another thread is drawn for its new holder. */
static void handed_with_a_token__draws_it(void **state)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_ROW, DBLOCK_ADVISORY, DBLOCK_INSERT };
    size_t i;

    (void)state;
    for (i = 0; i < 4; ++i) {
        static const int32_t passing[] = { DBLOCK_ANSWER_YES, DBLOCK_ANSWER_PINNED,
            DBLOCK_ANSWER_AGAIN };
        struct job job;
        size_t j;

        for (j = 0; j < 3; ++j) {
            int64_t token = 0;

            assert_int_equal(DBLOCK_OK, pass_on(&job, strategies[i], passing[j], DBLOCK_OK));
            assert_int_equal(DBLOCK_OK, dblock_lock_token(job.lock, &token, &error));
            assert_true(token > 0);
            dblock_lock_free(job.lock);
        }
        assert_int_equal(DBLOCK_E_READ_ONLY,
            pass_on(&job, strategies[i], DBLOCK_ANSWER_YES, DBLOCK_E_READ_ONLY));
        assert_true(pass_on(&job, strategies[i], DBLOCK_ANSWER_NO, DBLOCK_OK) < 0);
        assert_null(job.lock);
    }
}

/* A guarded transaction of an earlier holder stands on the row: the new one has no number until it
 * ends, and says so if it has no time, is cancelled or closed. */
static void handed_while_it_is_pinned__waits_for_the_number(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_canceller *canceller = NULL;
    struct job job;
    dblock_lock *lock = NULL;
    int64_t token;
    int i;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&canceller, &error));
    options.flags = DBLOCK_FENCED;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    for (i = 0; i < 2; ++i) {
        uint64_t begun_ms = test_now_ms();

        options.flags = 0;
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        job.options = of(DBLOCK_ROW);
        job.options.flags = DBLOCK_FENCED;
        job.options.wait_ms = i == 0 ? 400 : 10000;
        job.options.canceller = canceller;
        start(&job, 1);
        assert_int_equal(1, sim_lock_guard(sim_world_lock(WORLD), DBLOCK_ROW, "x", 1));
        sim_world_unlock(WORLD);
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        if (i == 1) {
            test_pass_ms(100); /* at its first pause, or before it */
            dblock_cancel(canceller);
        }
        assert_int_equal(0, pthread_join(job.thread, NULL));
        assert_int_equal(i == 0 ? DBLOCK_BUSY : DBLOCK_CANCELLED, job.status);
        assert_null(job.lock);
        assert_true(test_now_ms() - begun_ms < 5000);
        (void)sim_lock_guard(sim_world_lock(WORLD), DBLOCK_ROW, "x", -1);
        sim_world_unlock(WORLD);
    }
    dblock_canceller_free(canceller);
}

static _Thread_local int is_slow; /* this thread does not wake at once */
static atomic_int may_wake;

static int is_set(void *context)
{
    return atomic_load((atomic_int *)context);
}

/* Others are not kept out meanwhile: it is as if the thread had not been given a processor. */
static void wake_late(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    dblk_real_environment.wait_condition(condition, mutex, until_us);
    if (!is_slow) /* the first is that in the queue */
        return;
    is_slow = 0;
    (void)pthread_mutex_unlock(mutex);
    (void)test_until(is_set, &may_wake, 5000);
    (void)pthread_mutex_lock(mutex);
}

static void *wait_slowly(void *context)
{
    is_slow = 1;
    return wait_for_it(context);
}

static int has_no_session(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.sessions == 0;
}

/* Handed over, and what it lived in ended before the thread woke: it asks the database anew. */
static void handed_and_gone__is_taken_again(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY, DBLOCK_LEASE, DBLOCK_INSERT };
    struct dblk_environment environment = dblk_real_environment;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *rival = NULL;
    dblock_lock *theirs = NULL;
    uint32_t one = 1;
    int n_tries = 0;
    size_t i;

    (void)state;
    dblock_close(client);
    client = NULL;
    environment.wait_condition = wake_late;
    dblk_environment_set(&environment);
    config.on_trace = note;
    config.ttl_ms = TTL_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error));
    for (i = 0; i < 4; ++i) {
        struct job job = { .options = of(strategies[i]) };
        struct dblock_options options = of(strategies[i]);
        dblock_lock *lock = NULL;

        atomic_store(&n_handed, 0);
        atomic_store(&may_wake, 0);
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        assert_int_equal(0, pthread_create(&job.thread, NULL, wait_slowly, &job));
        assert_true(test_until(is_waiting, &one, 5000));
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        if (atomic_load(&n_handed) == 0 && n_tries++ < N_TRIES) {
            i -= 1;
        } else if (strategies[i] == DBLOCK_LEASE) {
            assert_true(n_tries <= N_TRIES);
            sim_answer_set(WORLD, SIM_STEP_RENEW, 1, DBLOCK_ANSWER_NO);
            assert_true(test_until(has_no_session, NULL, 5000));
        } else if (strategies[i] == DBLOCK_INSERT) {
            test_pass_ms(TTL_MS); /* it is timed */
        } else {
            sim_cut(WORLD, NULL);
        }
        atomic_store(&may_wake, 1);
        assert_int_equal(0, pthread_join(job.thread, NULL));
        assert_int_equal(DBLOCK_OK, job.status);
        assert_int_equal(DBLOCK_OK, dblock_confirm(job.lock, &error));
        options.wait_ms = 0;
        assert_int_equal(DBLOCK_BUSY, dblock_acquire(rival, "x", &options, &theirs, &error));
        assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
        dblock_lock_free(job.lock);
        dblock_lock_free(lock);
    }
    dblock_close(rival);
    dblock_close(client);
    client = NULL;
    dblk_environment_set(NULL);
}

/* Three wait: he who gives up goes out of the middle, and the others are served. */
static void one_gives_up__and_the_others_do_not(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    struct job jobs[3];
    dblock_lock *lock = NULL;
    uint32_t i;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    for (i = 0; i < 3; ++i) {
        jobs[i].options = of(DBLOCK_LEASE);
        if (i == 1)
            jobs[i].options.wait_ms = 200;
        start(&jobs[i], i + 1);
    }
    assert_int_equal(0, pthread_join(jobs[1].thread, NULL));
    assert_int_equal(DBLOCK_BUSY, jobs[1].status);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    assert_int_equal(0, pthread_join(jobs[0].thread, NULL));
    assert_int_equal(DBLOCK_OK, jobs[0].status);
    assert_int_equal(DBLOCK_OK, dblock_release(jobs[0].lock, &error));
    dblock_lock_free(jobs[0].lock);
    assert_int_equal(0, pthread_join(jobs[2].thread, NULL));
    assert_int_equal(DBLOCK_OK, jobs[2].status);
    dblock_lock_free(jobs[2].lock);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(handed__if_it_is_the_same_grant),
        TEST(handed_with_a_token__draws_it),
        TEST(handed_while_it_is_pinned__waits_for_the_number),
        TEST(handed_and_gone__is_taken_again),
        TEST(one_gives_up__and_the_others_do_not),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
