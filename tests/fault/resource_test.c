/* SPDX-License-Identifier: MIT */
/* resource_test.c - every single thing that a client asks of the system is refused: memory,
 * descriptors, threads, conditions, random bytes. What fails says so, nobody holds what another
 * holds, and nothing is left. memory_test.c does so with the allocations of the drivers, too.
 * A third of the places is visited, another one each time; all with DBLOCK_TEST_STEPS=all.
 * Runs beside others. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/environment.h"
#include "life.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "resource_test"
#define EXPORTED __attribute__((visibility("default")))

static atomic_ulong n_asked, fails_at;
static atomic_int fails_thread;

static int must_fail(void)
{
    unsigned long n = atomic_fetch_add(&n_asked, 1) + 1;

    return n == atomic_load(&fails_at);
}

/* The C library's own, which those below stand before. */
static void find(void *ret_function, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    memcpy(ret_function, &function, sizeof function);
}

EXPORTED int eventfd(unsigned int count, int flags)
{
    int (*real)(unsigned int, int);

    if (must_fail()) {
        errno = EMFILE;
        return -1;
    }
    find(&real, "eventfd");
    return real(count, flags);
}

EXPORTED int epoll_create1(int flags)
{
    int (*real)(int);

    if (must_fail()) {
        errno = EMFILE;
        return -1;
    }
    find(&real, "epoll_create1");
    return real(flags);
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
    void *(*start)(void *), void *context)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (must_fail() || atomic_load(&fails_thread))
        return EAGAIN;
    find(&real, "pthread_create");
    return real(thread, attributes, start, context);
}

EXPORTED int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    int (*real)(pthread_cond_t *, const pthread_condattr_t *);

    if (must_fail())
        return ENOMEM;
    find(&real, "pthread_cond_init");
    return real(condition, attributes);
}

static void *allocate(size_t size)
{
    return must_fail() ? NULL : dblk_real_environment.allocate(size);
}

static int read_random(void *bytes, size_t size)
{
    return must_fail() ? EIO : dblk_real_environment.random(bytes, size);
}

static void refused__at_every_place(void **state)
{
    struct dblk_environment environment = dblk_real_environment;
    struct life life;
    const unsigned long one_of = getenv("DBLOCK_TEST_STEPS") != NULL ? 1 : 3;
    unsigned long n_all;
    int n_descriptors = life_count_descriptors();

    (void)state;
    environment.allocate = allocate;
    environment.random = read_random;
    dblk_environment_set(&environment);
    life_begin(&life, WORLD);
    atomic_store(&n_asked, 0);
    life_run(&life);
    n_all = atomic_load(&n_asked);
    assert_true(n_all > 50);
    life.fault = "refused";
    for (life.n = 1 + (unsigned long)getpid() % one_of; life.n <= n_all; life.n += one_of) {
        atomic_store(&n_asked, 0);
        atomic_store(&fails_at, life.n);
        life_run(&life);
        atomic_store(&fails_at, 0);
    }
    (void)life_is_over(&life);
    life_end(&life);
    dblk_environment_set(NULL);
    (void)printf("# %lu places, %d wrong\n", n_all, life.n_wrong);
    assert_int_equal(0, life.n_wrong);
    assert_int_equal(n_descriptors, life_count_descriptors());
}

struct waiting {
    dblock_client *client;
    dblock_status status;
    dblock_lock *lock;
};

static void *wait_for_it(void *context)
{
    struct waiting *waiting = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;

    options.wait_ms = 5000;
    waiting->status = dblock_acquire(waiting->client, "x", &options, &waiting->lock, &error);
    return NULL;
}

static int is_waiting(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(context, &stats) == DBLOCK_OK && stats.waiters > 0;
}

/* A thread that waits for what another one of its client holds: without a descriptor, or memory,
 * it does so by itself. */
static void wait__of_a_second_thread(void **state)
{
    struct dblk_environment environment = dblk_real_environment;
    struct dblock_error error;
    unsigned long n;

    (void)state;
    environment.allocate = allocate;
    dblk_environment_set(&environment);
    for (n = 1; n <= 8; ++n) {
        struct waiting waiting = { NULL, DBLOCK_OK, NULL };
        dblock_lock *lock = NULL;
        pthread_t thread;

        assert_int_equal(
            DBLOCK_OK, dblock_open(life_driver(), "sim:" WORLD, NULL, &waiting.client, &error));
        assert_int_equal(DBLOCK_OK, dblock_schema_install(waiting.client, &error));
        assert_int_equal(DBLOCK_OK, dblock_acquire(waiting.client, "x", NULL, &lock, &error));
        assert_int_equal(0, pthread_create(&thread, NULL, wait_for_it, &waiting));
        atomic_store(&n_asked, 0);
        atomic_store(&fails_at, n);
        (void)test_until(is_waiting, waiting.client, 300); /* or it has failed by then */
        atomic_store(&fails_at, 0);
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        assert_int_equal(0, pthread_join(thread, NULL));
        assert_true(waiting.status == DBLOCK_OK || waiting.status == DBLOCK_E_MEMORY ||
            waiting.status == DBLOCK_E_SYSTEM || waiting.status == DBLOCK_E_CONNECTION);
        dblock_lock_free(waiting.lock);
        dblock_close(waiting.client);
    }
    sim_forget(WORLD);
    dblk_environment_set(NULL);
}

/* What is to be finished later needs a thread, which the client may not have yet. */
static void break__that_cannot_go_on(void **state)
{
    struct dblock_error error;
    dblock_client *client = NULL, *holder = NULL;
    dblock_lock *lock = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_open(life_driver(), "sim:" WORLD, NULL, &holder, &error));
    assert_int_equal(DBLOCK_OK, dblock_open(life_driver(), "sim:" WORLD, NULL, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(holder, "x", NULL, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_ping(client, &error));
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_LEASE, "x", 1);
    sim_world_unlock(WORLD);
    atomic_store(&fails_thread, 1);
    assert_int_equal(DBLOCK_E_MEMORY, dblock_break(client, "x", DBLOCK_LEASE, 0, &error));
    atomic_store(&fails_thread, 0);
    assert_int_equal(DBLOCK_PENDING, dblock_break(client, "x", DBLOCK_LEASE, 0, &error));
    assert_int_equal(1, dblock_lock_is_held(lock));
    dblock_close(client); /* with that still to do */
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_LEASE, "x", -1);
    sim_world_unlock(WORLD);
    dblock_lock_free(lock);
    dblock_close(holder);
    sim_forget(WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused__at_every_place),
        cmocka_unit_test(wait__of_a_second_thread),
        cmocka_unit_test(break__that_cannot_go_on),
    };

    return cmocka_run_group_tests_name("resource", tests, NULL, NULL);
}
