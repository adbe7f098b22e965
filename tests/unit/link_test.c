/* SPDX-License-Identifier: MIT */
/* link_test.c - the connections of a client: when all are in use, when one has died while it was
 * idle, and when a call is given up before it is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/client.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "link_test"
#define URL "sim:" WORLD

enum { IO_MS = 600 };

static dblock_client *client, *rival;
static struct dblock_error error;
static dblock_canceller *canceller;

static dblock_driver driver;
static atomic_int is_stuck;   /* the next verify stays until this is 0 again, whatever its limit */
static atomic_int is_staying; /* and does so now */
static atomic_int n_waits;    /* for a connection, a session */
static int is_cancelled_in_open;
static int ends[2]; /* of the socket that each connection shows */

static void stay(void)
{
    if (!atomic_load(&is_stuck))
        return;
    atomic_store(&is_staying, 1);
    (void)test_until(test_is_zero, &is_stuck, 10000);
    atomic_store(&is_staying, 0);
}

static dblock_status verify(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    stay();
    return sim_driver()->connection.verify(connection, call, answer, reterr);
}

static dblock_status begin_session(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_call no_limit = { DBLK_NEVER, -1 };

    (void)call;
    stay();
    return sim_driver()->session.begin(connection, &no_limit, session, ttl_us, answer, reterr);
}

static dblock_status open_connection(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (is_cancelled_in_open) {
        dblock_cancel(canceller);
        return DBLOCK_CANCELLED;
    }
    return sim_driver()->connection.open(target, role, call, ret_connection, answer, reterr);
}

/* So that no keeper hears of a connection that ends. */
static int show_nothing(const struct dblock_connection *connection)
{
    (void)connection;
    return -1;
}

static int show_socket(const struct dblock_connection *connection)
{
    (void)connection;
    return ends[0];
}

static _Atomic(pthread_cond_t *) counted; /* of the client; threads of the rival ask, too */

static void count_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    if (condition == atomic_load(&counted))
        (void)atomic_fetch_add(&n_waits, 1);
    dblk_real_environment.wait_condition(condition, mutex, until_us);
}

static int begin_with(unsigned connections_max)
{
    static struct dblk_environment environment;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    environment = dblk_real_environment;
    environment.wait_condition = count_wait;
    dblk_environment_set(&environment);
    driver = *sim_driver();
    driver.connection.open = open_connection;
    driver.connection.verify = verify;
    driver.session.begin = begin_session;
    atomic_store(&is_stuck, 0);
    is_cancelled_in_open = 0;
    config.connections_max = connections_max;
    config.io_timeout_ms = IO_MS;
    if (sim_open(&driver, URL, &config, &client, &error) != 0)
        return -1;
    atomic_store(&counted, &client->changed);
    return sim_open(sim_driver(), URL, NULL, &rival, &error) +
        (dblock_canceller_new(&canceller, &error) == DBLOCK_OK ? 0 : -1);
}

static int begin(void **state)
{
    (void)state;
    return begin_with(8);
}

static int begin_with_one(void **state)
{
    (void)state;
    return begin_with(1);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    dblock_close(rival);
    dblock_canceller_free(canceller);
    sim_forget(WORLD);
    dblk_environment_set(NULL);
    return 0;
}

struct job {
    const char *name; /* NULL: a ping */
    struct dblock_options options;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
    pthread_t thread;
};

static void *run(void *context)
{
    struct job *job = context;

    job->status = job->name == NULL
        ? dblock_ping(client, &job->error)
        : dblock_acquire(client, job->name, &job->options, &job->lock, &job->error);
    return NULL;
}

static struct job job_of(const char *name, int strategy)
{
    struct job job = { .name = name, .options = DBLOCK_OPTIONS_INIT };

    job.options.strategy = strategy;
    return job;
}

static void start(struct job *job)
{
    assert_int_equal(0, pthread_create(&job->thread, NULL, run, job));
}

static void start_and_stay(struct job *job)
{
    atomic_store(&is_stuck, 1);
    start(job);
    assert_true(test_until(test_is_set, &is_staying, 5000));
    atomic_store(&n_waits, 0);
}

static dblock_status finish(struct job *job)
{
    atomic_store(&is_stuck, 0);
    assert_int_equal(0, pthread_join(job->thread, NULL));
    return job->status;
}

/* As long as a call may take, and then it is said why, and what can be done. */
static void all_in_use__all_the_time(void **state)
{
    struct job first = job_of(NULL, 0);
    uint64_t begun_ms;

    (void)state;
    start_and_stay(&first);
    begun_ms = test_now_ms();
    assert_int_equal(DBLOCK_E_CONNECTION, dblock_ping(client, &error));
    assert_true(test_now_ms() - begun_ms >= IO_MS - 1);
    assert_non_null(strstr(error.message, "1 connections"));
    assert_non_null(strstr(error.hint, "connections_max"));
    assert_int_equal(DBLOCK_OK, finish(&first));
    assert_int_equal(DBLOCK_OK, dblock_ping(client, &error));
}

static void all_in_use__and_cancelled(void **state)
{
    struct job first = job_of(NULL, 0);
    struct job second = job_of("x", DBLOCK_INSERT);

    (void)state;
    second.options.canceller = canceller;
    second.options.wait_ms = 10000;
    start_and_stay(&first);
    start(&second);
    assert_true(test_until(test_is_set, &n_waits, 5000));
    dblock_cancel(canceller);
    assert_int_equal(0, pthread_join(second.thread, NULL)); /* while it is in use still */
    assert_int_equal(DBLOCK_CANCELLED, second.status);
    assert_int_equal(1, atomic_load(&is_staying));
    assert_int_equal(DBLOCK_OK, finish(&first));
}

static void connecting__and_cancelled(void **state)
{
    struct job job = job_of("x", DBLOCK_ROW);

    (void)state;
    job.options.canceller = canceller;
    is_cancelled_in_open = 1;
    (void)run(&job);
    assert_int_equal(DBLOCK_CANCELLED, job.status);
    is_cancelled_in_open = 0;
    job.options.canceller = NULL;
    (void)run(&job);
    assert_int_equal(DBLOCK_OK, job.status);
    dblock_lock_free(job.lock);
}

/* Another thread is about to begin the session that both need. */
static void session__that_does_not_begin(void **state)
{
    struct job first = job_of("x", DBLOCK_LEASE), second = job_of("y", DBLOCK_LEASE);

    (void)state;
    first.options.wait_ms = 10000;
    start_and_stay(&first);
    (void)run(&second);
    assert_int_equal(DBLOCK_E_CONNECTION, second.status);
    assert_true(second.error.message[0] != 0);
    assert_int_equal(DBLOCK_OK, finish(&first));
    (void)run(&second);
    assert_int_equal(DBLOCK_OK, second.status);
    dblock_lock_free(first.lock);
    dblock_lock_free(second.lock);
}

static void *close_client(void *context)
{
    (void)context;
    dblock_close(client);
    return NULL;
}

static void session__that_is_waited_for_as_the_client_closes(void **state)
{
    struct job first = job_of("x", DBLOCK_LEASE), second = job_of("y", DBLOCK_LEASE);
    pthread_t closer;

    (void)state;
    second.options.wait_ms = 10000;
    start_and_stay(&first);
    start(&second);
    assert_true(test_until(test_is_set, &n_waits, 5000));
    assert_int_equal(0, pthread_create(&closer, NULL, close_client, NULL));
    assert_int_equal(0, pthread_join(second.thread, NULL));
    assert_int_equal(DBLOCK_E_CLOSED, second.status);
    assert_int_equal(DBLOCK_E_CLOSED, finish(&first));
    assert_int_equal(0, pthread_join(closer, NULL));
    client = NULL;
}

static dblock_status answer_late(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pollfd other_end = { ends[1], POLLIN, 0 };

    if (call->cancel_fd == DBLOCK_CALL_IS_WATCHED) /* its end: the library shuts the socket down */
        (void)poll(&other_end, 1, 10000);
    return sim_driver()->connection.verify(connection, call, answer, reterr);
}

/* The answer is there, and the connection was given up at the same moment: whether the answer was
 * its own nobody can say any more. */
static void answer__that_meets_its_limit(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_status status = DBLOCK_OK;
    int n_calls;

    (void)state;
    dblock_close(client);
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    driver.connection.fd = show_socket;
    driver.connection.verify = answer_late;
    config.io_timeout_ms = IO_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(&driver, URL, &config, &client, &error));
    for (n_calls = 0; n_calls < 10 && status == DBLOCK_OK; ++n_calls)
        status = dblock_ping(client, &error);
    assert_true(n_calls > 1); /* the first ones are not watched */
    assert_int_equal(DBLOCK_E_UNCERTAIN, status);
    assert_non_null(strstr(error.message, "in time"));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static dblock_lock *take(const char *name, int strategy, uint32_t flags)
{
    struct job job = job_of(name, strategy);

    job.options.flags = flags;
    (void)run(&job);
    assert_string_equal("", job.status == DBLOCK_OK ? "" : job.error.message);
    assert_int_equal(DBLOCK_OK, job.status);
    return job.lock;
}

static void release(dblock_lock *lock)
{
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* Ended by the server while nobody used it, and nobody heard of that: found out before it is used,
 * and the lock is had by a new one, at the first try. */
static void idle__and_dead(void **state)
{
    static const int strategies[] = { DBLOCK_ROW, DBLOCK_ADVISORY, DBLOCK_INSERT };
    size_t i;

    (void)state;
    dblock_close(client);
    driver.connection.fd = show_nothing;
    assert_int_equal(DBLOCK_OK, dblock_open(&driver, URL, NULL, &client, &error));
    for (i = 0; i < 3; ++i) {
        dblock_lock *locks[2];

        /* two, each on a connection of its own if that is how it is held */
        locks[0] = take("x", strategies[i], 0);
        locks[1] = take("y", strategies[i], 0);
        release(locks[0]);
        release(locks[1]);
        sim_cut(WORLD, NULL);
        locks[0] = take("x", strategies[i], 0);
        assert_int_equal(DBLOCK_OK, dblock_confirm(locks[0], &error));
        release(locks[0]);
    }
}

/* The tokens of row locks go by a connection of their own, which may have died as well. */
static void control__that_is_dead(void **state)
{
    int64_t first, second;
    dblock_lock *lock = take("x", DBLOCK_ROW, DBLOCK_FENCED);

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &first, &error));
    release(lock);
    sim_cut(WORLD, NULL);
    lock = take("x", DBLOCK_ROW, DBLOCK_FENCED);
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &second, &error));
    assert_true(second > first);
    release(lock);
}

static int are_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(client, &stats) == DBLOCK_OK &&
        stats.waiters >= *(uint32_t *)context;
}

static dblock_lock *take_as_rival(const char *name)
{
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, name, NULL, &lock, &error));
    return lock;
}

/* Who waits in line does so on a connection of his own. No more of them are kept than the client
 * may have for its calls, and one that has died meanwhile is not used. */
static void places__in_two_lines(void **state)
{
    static const char *const names[] = { "x", "y" };
    uint32_t both = 2;
    int round;

    (void)state;
    for (round = 0; round < 3; ++round) {
        struct dblock_stats stats = DBLOCK_STATS_INIT;
        struct job jobs[2];
        dblock_lock *locks[2];
        int i;

        for (i = 0; i < 2; ++i) {
            locks[i] = take_as_rival(names[i]);
            jobs[i] = job_of(names[i], DBLOCK_LEASE);
            jobs[i].options.wait_ms = 10000;
            start(&jobs[i]);
        }
        assert_true(test_until(are_waiting, &both, 5000));
        for (i = 0; i < 2; ++i)
            release(locks[i]);
        for (i = 0; i < 2; ++i) {
            assert_int_equal(DBLOCK_OK, finish(&jobs[i]));
            release(jobs[i].lock);
        }
        assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &stats));
        assert_true(stats.connections <= 3); /* a short one, the keeper's, an idle place */
        if (round == 1)
            sim_cut(WORLD, NULL);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
#define TEST_OF_ONE(function) cmocka_unit_test_setup_teardown(function, begin_with_one, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF_ONE(all_in_use__all_the_time),
        TEST_OF_ONE(all_in_use__and_cancelled),
        TEST(connecting__and_cancelled),
        TEST(session__that_does_not_begin),
        TEST(session__that_is_waited_for_as_the_client_closes),
        TEST(answer__that_meets_its_limit),
        TEST(idle__and_dead),
        TEST(control__that_is_dead),
        TEST_OF_ONE(places__in_two_lines),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
