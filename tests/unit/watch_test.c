/* SPDX-License-Identifier: MIT */
/* watch_test.c - when a watch cancels, when it does not, and that one that does not get
 * through keeps nobody else waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_exit.h"
#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "watch_test"

/* What a driver would do on a connection. */
struct connection {
    atomic_uint n_cancels;
    atomic_uint n_frees;
    atomic_int is_under_way;
    int hangs; /* nobody answers: until the deadline, or it is told to end */
};

struct world {
    dblock_client *clients[2];
    dblock_lock *locks[2];
    struct connection connections[2];
    struct dblock_error error;
};

static void cancel(void *context, const struct dblock_call *call)
{
    struct connection *connection = context;

    atomic_store(&connection->is_under_way, 1);
    (void)atomic_fetch_add(&connection->n_cancels, 1);
    if (connection->hangs)
        (void)dblock_fd_wait(-1, 0, call, 1);
    atomic_store(&connection->is_under_way, 0);
}

static void free_connection(void *context)
{
    (void)atomic_fetch_add(&((struct connection *)context)->n_frees, 1);
}

static dblock_status watch(struct world *world, int lock, int connection)
{
    const struct dblock_watch way = { cancel, free_connection, &world->connections[connection] };
    struct dblock_target *target;
    dblock_status status =
        dblock_watch_check(world->locks[lock], sim_driver(), &target, &world->error);

    return status == DBLOCK_OK ? dblock_watch_begin(world->locks[lock], &way, &world->error)
                               : status;
}

static void take(struct world *world, int lock, const char *name)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.ttl_ms = 600;
    assert_int_equal(DBLOCK_OK, dblock_acquire(world->clients[0], name, &options,
        &world->locks[lock], &world->error));
}

static void lose(struct world *world, const char *name)
{
    assert_int_equal(
        DBLOCK_OK, dblock_break(world->clients[1], name, DBLOCK_LEASE, 0, &world->error));
}

static int is_cancelled(void *context)
{
    return atomic_load(&((struct connection *)context)->n_cancels) > 0;
}

static int is_cancelled_again(void *context)
{
    return atomic_load(&((struct connection *)context)->n_cancels) > 2;
}

static int is_lost(void *context)
{
    return !dblock_lock_is_held(context);
}

static int begin_world(void **state)
{
    static struct world world;
    static const struct world empty;
    int i;

    world = empty;
    *state = &world;
    for (i = 0; i < 2; ++i)
        if (dblock_open(sim_driver(), "sim:" WORLD, NULL, &world.clients[i], &world.error) !=
            DBLOCK_OK)
            return -1;
    return dblock_schema_install(world.clients[0], &world.error) == DBLOCK_OK ? 0 : -1;
}

static int end_world(void **state)
{
    struct world *world = *state;
    int i;

    for (i = 0; i < 2; ++i)
        dblock_lock_free(world->locks[i]);
    for (i = 0; i < 2; ++i)
        dblock_close(world->clients[i]);
    sim_forget(WORLD);
    return 0;
}

static void lost__cancels_until_it_is_unwatched(void **state)
{
    struct world *world = *state;
    struct connection *connection = &world->connections[0];
    unsigned n_cancels;

    take(world, 0, "x");
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    test_pass_ms(300); /* heartbeats come and go */
    assert_int_equal(0, atomic_load(&connection->n_cancels));
    lose(world, "x");
    assert_true(test_until(is_cancelled_again, connection, 5000));
    assert_int_equal(0, dblock_lock_is_held(world->locks[0]));
    dblock_watch_end(world->locks[0]);
    assert_int_equal(1, atomic_load(&connection->n_frees));
    n_cancels = atomic_load(&connection->n_cancels);
    test_pass_ms(200); /* longer than the pause would be now */
    assert_int_equal(n_cancels, atomic_load(&connection->n_cancels));
    dblock_watch_end(world->locks[0]); /* nothing is left to undo */
}

/* Also a second watch of the same lock, and on another connection. */
static void lost__cancels_on_each_connection(void **state)
{
    struct world *world = *state;

    take(world, 0, "x");
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    assert_int_equal(DBLOCK_OK, watch(world, 0, 1));
    lose(world, "x");
    assert_true(test_until(is_cancelled, &world->connections[0], 5000));
    assert_true(test_until(is_cancelled, &world->connections[1], 5000));
    assert_int_equal(DBLOCK_LOST, dblock_release(world->locks[0], &world->error));
    assert_int_equal(1, atomic_load(&world->connections[0].n_frees));
    assert_int_equal(1, atomic_load(&world->connections[1].n_frees));
}

static void released__cancels_nothing(void **state)
{
    struct world *world = *state;

    take(world, 0, "x");
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    assert_int_equal(DBLOCK_OK, dblock_release(world->locks[0], &world->error));
    assert_int_equal(1, atomic_load(&world->connections[0].n_frees));
    assert_int_equal(0, atomic_load(&world->connections[0].n_cancels));
}

/* The database says at the release that it had been lost: the caller hears it, and does not need
 * to be stopped. */
static void released_after_the_loss__cancels_nothing(void **state)
{
    struct world *world = *state;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.ttl_ms = 20000; /* no heartbeat finds it before */
    assert_int_equal(DBLOCK_OK, dblock_acquire(world->clients[0], "x", &options,
        &world->locks[0], &world->error));
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    lose(world, "x");
    assert_int_equal(DBLOCK_LOST, dblock_release(world->locks[0], &world->error));
    assert_int_equal(0, atomic_load(&world->connections[0].n_cancels));
}

static void closed__cancels_nothing(void **state)
{
    struct world *world = *state;

    take(world, 0, "x");
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    dblock_close(world->clients[0]);
    world->clients[0] = NULL;
    assert_int_equal(1, atomic_load(&world->connections[0].n_frees));
    assert_int_equal(0, atomic_load(&world->connections[0].n_cancels));
}

static void cancel_that_hangs__delays_nobody(void **state)
{
    struct world *world = *state;
    uint64_t begun_ms;

    take(world, 0, "x");
    take(world, 1, "y");
    world->connections[0].hangs = 1;
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    assert_int_equal(DBLOCK_OK, watch(world, 1, 1));
    lose(world, "x");
    assert_true(test_until(is_cancelled, &world->connections[0], 5000));
    test_pass_ms(700); /* heartbeats go on: else "y" would be over by now */
    assert_int_equal(1, dblock_lock_is_held(world->locks[1]));
    assert_int_equal(1, atomic_load(&world->connections[0].is_under_way));
    lose(world, "y");
    assert_true(test_until(is_cancelled, &world->connections[1], 2000));
    begun_ms = test_now_ms();
    dblock_watch_end(world->locks[0]);
    assert_true(test_now_ms() - begun_ms < 1000);
    assert_int_equal(0, atomic_load(&world->connections[0].is_under_way));
    assert_int_equal(1, atomic_load(&world->connections[0].n_cancels));
}

static void lost_lock__is_not_watched(void **state)
{
    struct world *world = *state;

    take(world, 0, "x");
    lose(world, "x");
    assert_true(test_until(is_lost, world->locks[0], 5000));
    assert_int_equal(DBLOCK_LOST, watch(world, 0, 0));
    assert_int_equal(DBLOCK_LOST, dblock_release(world->locks[0], &world->error));
    assert_int_equal(DBLOCK_NOT_HELD, watch(world, 0, 0));
    assert_int_equal(0, atomic_load(&world->connections[0].n_frees));
}

/* A child has neither the thread nor the right to cancel for its parent. */
static void forked__frees_and_cancels_nothing(void **state)
{
    struct world *world = *state;
    int result = -1;
    pid_t child;

    take(world, 0, "x");
    assert_int_equal(DBLOCK_OK, watch(world, 0, 0));
    child = fork();
    if (child == 0) {
        dblock_lock_free(world->locks[0]);
        dblock_close(world->clients[0]);
        child_exit(atomic_load(&world->connections[0].n_frees) == 1 &&
                    atomic_load(&world->connections[0].n_cancels) == 0
                ? 0
                : 1);
    }
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_int_equal(0, result);
    lose(world, "x");
    assert_true(test_until(is_cancelled, &world->connections[0], 5000));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lost__cancels_until_it_is_unwatched),
        TEST(lost__cancels_on_each_connection),
        TEST(released__cancels_nothing),
        TEST(released_after_the_loss__cancels_nothing),
        TEST(closed__cancels_nothing),
        TEST(cancel_that_hangs__delays_nobody),
        TEST(lost_lock__is_not_watched),
        TEST(forked__frees_and_cancels_nothing),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
