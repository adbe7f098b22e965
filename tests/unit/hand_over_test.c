/* SPDX-License-Identifier: MIT */
/* hand_over_test.c - a grant is released, and wanted by another thread of the client, while something
 * else is under way with it: an extend, the drawing of its token, the keeper's reading of what the
 * session holds. Whoever gets the name believes no longer than the database does. */
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
#include "core/session.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "hand_over_test"
#define URL "sim:" WORLD

enum { N_TRIES = 20, SHORT_MS = 500 };

static dblock_client *client, *rival;
static struct dblock_error error;
static atomic_int n_handed; /* releases that went to another thread */

struct job {
    struct dblock_options options;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
    pthread_t thread;
    atomic_int is_done;
};

static dblock_lock *released; /* once, by what is under way */
static struct job *next;      /* it waits for that */

static void note(const struct dblock_trace *trace, void *context)
{
    (void)context;
    if (trace->kind == DBLOCK_TRACE_RELEASE && trace->detail != NULL &&
        strstr(trace->detail, "another thread") != NULL)
        (void)atomic_fetch_add(&n_handed, 1);
}

static void let_happen(void)
{
    dblock_lock *lock = released;
    struct dblock_error ignored;

    released = NULL;
    if (lock == NULL)
        return;
    (void)dblock_release(lock, &ignored);
    if (next != NULL)
        (void)test_until(test_is_set, &next->is_done, 5000);
}

static _Thread_local int is_extending; /* once it looks at the clock, and others can get in */

static uint64_t read_clock(void)
{
    uint64_t now_us = dblk_real_environment.now_us();

    if (is_extending && pthread_mutex_trylock(&client->mutex) == 0) {
        (void)pthread_mutex_unlock(&client->mutex);
        is_extending = 0;
        let_happen();
    }
    return now_us;
}

static dblock_status draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    let_happen();
    return sim_driver()->insert.draw(connection, call, subject, owner, answer, reterr);
}

static dblock_status holds(struct dblock_connection *connection, const struct dblock_call *call,
    const unsigned char *session, dblock_grant_fn fn, void *context, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    let_happen();
    return sim_driver()->session.holds(connection, call, session, fn, context, answer, reterr);
}

static _Thread_local int is_slow; /* this thread does not wake at once */
static atomic_int may_wake;

static void wake_late(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    dblk_real_environment.wait_condition(condition, mutex, until_us);
    if (!is_slow) /* the first is that in the queue */
        return;
    is_slow = 0;
    (void)pthread_mutex_unlock(mutex);
    (void)test_until(test_is_set, &may_wake, 5000);
    (void)pthread_mutex_lock(mutex);
}

static int begin(void **state)
{
    static struct dblk_environment environment;
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    environment = dblk_real_environment;
    environment.now_us = read_clock;
    environment.wait_condition = wake_late;
    dblk_environment_set(&environment);
    driver = *sim_driver();
    driver.insert.draw = draw;
    driver.session.holds = holds;
    config.on_trace = note;
    released = NULL;
    next = NULL;
    atomic_store(&n_handed, 0);
    atomic_store(&may_wake, 0);
    return sim_open(&driver, URL, &config, &client, &error) +
        sim_open(sim_driver(), URL, NULL, &rival, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    dblk_environment_set(NULL);
    return 0;
}

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
    atomic_store(&job->is_done, 1);
    return NULL;
}

static void *wait_slowly(void *context)
{
    is_slow = 1;
    return wait_for_it(context);
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.waiters == 1;
}

static void start(struct job *job, void *(*run)(void *))
{
    job->lock = NULL;
    atomic_init(&job->is_done, 0);
    assert_int_equal(0, pthread_create(&job->thread, NULL, run, job));
    assert_true(test_until(is_waiting, NULL, 5000));
}

static void finish(struct job *job)
{
    assert_int_equal(0, pthread_join(job->thread, NULL));
    assert_int_equal(DBLOCK_OK, job->status);
}

/* The end that an extend sets is not to be that of the next holder's grant, who does not know of it. */
static void extend__does_not_shorten_what_the_next_one_has(void **state)
{
    static const int strategies[] = { DBLOCK_INSERT, DBLOCK_LEASE };
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct dblock_options options = of(strategies[i]);
        struct dblock_grant grant = DBLOCK_GRANT_INIT;
        struct job job = { .options = of(strategies[i]) };
        dblock_lock *lock = NULL;

        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        start(&job, wait_for_it);
        released = lock;
        next = &job;
        is_extending = 1;
        assert_int_equal(DBLOCK_NOT_HELD,
            strategies[i] == DBLOCK_INSERT ? dblock_extend(lock, SHORT_MS, &error)
                                           : dblock_lock_detach(lock, SHORT_MS, &error));
        assert_int_equal(0, is_extending);
        finish(&job);
        assert_int_equal(DBLOCK_OK, dblock_inspect(rival, "x", strategies[i], &grant, &error));
        assert_true(dblock_lock_remaining_ms(job.lock) > SHORT_MS);
        assert_true(grant.remaining_ms >= dblock_lock_remaining_ms(job.lock));
        assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
        dblock_lock_free(job.lock);
        dblock_lock_free(lock);
    }
}

/* A number that was drawn for an earlier holder is not written over that of the next one. */
static void token__of_the_next_one_is_the_last(void **state)
{
    struct job first = { .options = of(DBLOCK_INSERT) }, second = { .options = of(DBLOCK_INSERT) };
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_options options = of(DBLOCK_INSERT);
    dblock_lock *lock;
    int64_t token = 0;
    int n_tries = 0;

    (void)state;
    for (;;) { /* until he has a grant without a number */
        assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
        start(&first, wait_for_it);
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        finish(&first);
        if (atomic_load(&n_handed) > 0)
            break;
        dblock_lock_free(first.lock);
        assert_true(++n_tries < N_TRIES);
    }
    second.options.flags = DBLOCK_FENCED;
    start(&second, wait_for_it);
    released = first.lock;
    next = &second;
    assert_int_equal(DBLOCK_NOT_HELD, dblock_lock_token(first.lock, &token, &error));
    finish(&second);
    assert_int_equal(DBLOCK_OK, dblock_lock_token(second.lock, &token, &error));
    assert_int_equal(DBLOCK_OK, dblock_inspect(rival, "x", DBLOCK_INSERT, &grant, &error));
    assert_true(grant.token == token);
    dblock_lock_free(first.lock);
    dblock_lock_free(second.lock);
}

static int is_lost(void *context)
{
    return !dblock_lock_is_held(context);
}

static int was_judged(void *context)
{
    uint64_t read_us;

    dblk_lock_client(client);
    read_us = client->sessions->read_us;
    dblk_unlock_client(client);
    return read_us != *(uint64_t *)context;
}

/* Broken, and handed over while the keeper reads what is left: the next holder is told. Also if he
 * had not woken when the reading was over. */
static void broken__is_told_to_the_next_one(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct job job = { .options = of(DBLOCK_LEASE) };
        dblock_lock *lock = NULL;
        int n_tries = 0;
        uint64_t read_us;

        for (;;) {
            assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
            start(&job, i == 0 ? wait_for_it : wait_slowly);
            assert_int_equal(DBLOCK_OK, dblock_break(rival, "x", DBLOCK_LEASE, 0, &error));
            atomic_store(&n_handed, 0);
            atomic_store(&may_wake, 0);
            dblk_lock_client(client);
            released = lock;
            next = i == 0 ? &job : NULL;
            read_us = client->sessions->read_us;
            dblk_session_read_back(client, client->sessions, dblk_now_us());
            dblk_unlock_client(client);
            assert_true(test_until(was_judged, &read_us, 5000));
            if (atomic_load(&n_handed) > 0)
                break;
            atomic_store(&may_wake, 1);
            finish(&job);
            dblock_lock_free(job.lock);
            dblock_lock_free(lock);
            assert_true(++n_tries < N_TRIES);
        }
        atomic_store(&may_wake, 1);
        finish(&job);
        assert_true(test_until(is_lost, job.lock, 5000));
        assert_int_equal(DBLOCK_LOST, dblock_release(job.lock, &error));
        dblock_lock_free(job.lock);
        dblock_lock_free(lock);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(extend__does_not_shorten_what_the_next_one_has),
        TEST(token__of_the_next_one_is_the_last),
        TEST(broken__is_told_to_the_next_one),
    };

    return cmocka_run_group_tests_name("hand_over", tests, NULL, NULL);
}
