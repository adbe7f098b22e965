/* SPDX-License-Identifier: MIT */
/* event_test.c - events that nobody reads for a while, events at the end, and a callback that takes
 * its time. */
#include "child_exit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "event_test"
#define URL "sim:" WORLD

static dblock_client *client, *rival;
static struct dblock_error error;

static int begin(void **state)
{
    (void)state;
    return sim_open(sim_driver(), URL, NULL, &client, &error) +
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

static dblock_lock *take(const char *name, const struct dblock_options *options)
{
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, options, &lock, &error));
    return lock;
}

static int next_kind(void)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;

    return dblock_client_next_event(client, &event) == DBLOCK_OK ? event.kind : 0;
}

enum { TTL_MS = 2000, EXPIRING_MS = 1300, N_TRIES = 10 }; /* a beat each third of it */

static int has_beaten_twice(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(client, &stats) == DBLOCK_OK &&
        stats.heartbeats >= *(uint64_t *)context + 2;
}

static int is_soon(void *context) /* and has been for a moment */
{
    uint64_t left_ms = dblock_lock_remaining_ms(context);

    return left_ms > 0 && left_ms < EXPIRING_MS - 50;
}

/* Its holder wants to know so early that he is told before each heartbeat, and that it got through
 * after it. If he has not read for a while: what he reads last is what holds. */
static void unread__is_told_in_the_order_of_what_holds(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    dblock_lock *lock;
    int n_tries, n_read = 0, kind = 0, last = 0;

    (void)state;
    options.ttl_ms = TTL_MS;
    options.expiring_ms = EXPIRING_MS;
    lock = take("x", &options);
    for (n_tries = 0; n_tries < N_TRIES; ++n_tries) {
        assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &stats));
        assert_true(test_until(has_beaten_twice, &stats.heartbeats, 10000));
        assert_true(test_until(is_soon, lock, 10000));
        for (n_read = 0; (kind = next_kind()) != 0; ++n_read)
            last = kind;
        if (is_soon(lock)) /* still: no heartbeat has got through meanwhile */
            break;
    }
    assert_true(n_tries < N_TRIES);
    assert_int_equal(2, n_read);
    assert_int_equal(DBLOCK_EVENT_EXPIRING, last);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static void forked__has_no_events(void **state)
{
    dblock_lock *lock = take("x", NULL);
    int fd, status = -1;
    pid_t child;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_client_fd(client, &fd, &error));
    assert_int_equal(DBLOCK_OK, dblock_break(rival, "x", DBLOCK_LEASE, 0, &error));
    assert_int_equal(DBLOCK_LOST, dblock_confirm(lock, &error));
    assert_true(test_readable(fd, 5000));
    child = fork();
    if (child == 0) {
        struct dblock_event event = DBLOCK_EVENT_INIT;

        child_exit(dblock_client_next_event(client, &event) != DBLOCK_E_FORKED ||
            strcmp(dblock_lock_owner(lock), "") == 0);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    assert_int_equal(DBLOCK_EVENT_LOST, next_kind());
    dblock_lock_free(lock);
}

static atomic_int n_told, may_return;

static void stay(const struct dblock_event *event, void *context)
{
    (void)context;
    if (event->kind != DBLOCK_EVENT_LOST && event->kind != DBLOCK_EVENT_EXPIRING)
        return;
    (void)atomic_fetch_add(&n_told, 1);
    (void)test_until(test_is_set, &may_return, 10000);
}

static void *let_return(void *context)
{
    (void)context;
    test_pass_ms(200); /* until then the other thread has begun to wait for the callback */
    atomic_store(&may_return, 1);
    return NULL;
}

/* Each loss is told, also those that wait behind a slow callback when the client is closed. */
static void closed__with_losses_to_tell(void **state)
{
    static const char *const names[] = { "x", "y", "z" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[3];
    pthread_t thread;
    int i;

    (void)state;
    atomic_store(&n_told, 0);
    atomic_store(&may_return, 0);
    options.on_event = stay;
    for (i = 0; i < 3; ++i) {
        locks[i] = take(names[i], &options);
        assert_int_equal(DBLOCK_OK, dblock_break(rival, names[i], DBLOCK_LEASE, 0, &error));
        assert_int_equal(DBLOCK_LOST, dblock_confirm(locks[i], &error));
    }
    assert_true(test_until(test_is_set, &n_told, 5000));
    assert_int_equal(0, pthread_create(&thread, NULL, let_return, NULL));
    dblock_close(client);
    client = NULL;
    assert_int_equal(3, atomic_load(&n_told));
    assert_int_equal(0, pthread_join(thread, NULL));
    for (i = 0; i < 3; ++i)
        dblock_lock_free(locks[i]);
}

/* Released while its callback runs: done, and the object is there until the callback has ended. */
static void released__while_its_callback_runs(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock;
    pthread_t thread;

    (void)state;
    atomic_store(&n_told, 0);
    atomic_store(&may_return, 0);
    options.strategy = DBLOCK_INSERT;
    options.ttl_ms = 60000;
    options.expiring_ms = 50000;
    options.on_event = stay;
    lock = take("x", &options);
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 50000, &error)); /* expires soon, so to speak */
    assert_true(test_until(test_is_set, &n_told, 5000));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_equal(0, pthread_create(&thread, NULL, let_return, NULL));
    dblock_lock_free(lock);
    assert_int_equal(1, atomic_load(&may_return));
    assert_int_equal(0, pthread_join(thread, NULL));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unread__is_told_in_the_order_of_what_holds),
        TEST(forked__has_no_events),
        TEST(closed__with_losses_to_tell),
        TEST(released__while_its_callback_runs),
    };

    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
