/* SPDX-License-Identifier: MIT */
/* seat_test.c - where threads of one client rest: a few of the seats stay for the next ones, only
 * who has a canceller needs a descriptor, and a call that comes after its thread has left gives
 * nothing to who sits there now. */
#include "core/seat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "seat_test"

enum { N_CROWD = 20, N_KEPT = 16 };

static dblock_client *client;
static struct dblock_error error;

static int begin(void **state)
{
    (void)state;
    return sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

static struct dblk_seat *take(int has_canceller)
{
    struct dblk_seat *seat;

    dblk_lock_client(client);
    seat = dblk_seat_take(client, has_canceller);
    dblk_unlock_client(client);
    assert_non_null(seat);
    return seat;
}

static void put(struct dblk_seat *seat)
{
    dblk_lock_client(client);
    dblk_seat_put(client, seat);
    dblk_unlock_client(client);
}

static void promise(struct dblk_seat *seat)
{
    dblk_lock_client(client);
    dblk_seat_promise(seat);
    dblk_unlock_client(client);
}

static int is_called(const struct dblk_seat *seat)
{
    struct pollfd descriptor = { seat->fd, POLLIN, 0 };

    return poll(&descriptor, 1, 0) == 1;
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

static void next__has_the_seat_and_not_the_call(void **state)
{
    struct dblk_seat *seat = take(1);

    (void)state;
    promise(seat);
    dblk_seat_call(seat);
    assert_true(is_called(seat));
    put(seat);
    assert_ptr_equal(seat, take(1));
    assert_false(is_called(seat));
    put(seat);
}

static void descriptor__is_for_who_has_a_canceller(void **state)
{
    struct dblk_seat *seat = take(0);

    (void)state;
    assert_int_equal(-1, seat->fd);
    put(seat);
    assert_ptr_equal(seat, take(1));
    assert_true(is_open(seat->fd));
    put(seat);
    assert_ptr_equal(seat, take(0));
    promise(seat);
    dblk_seat_call(seat);
    assert_false(is_called(seat)); /* nobody would read that */
    put(seat);
}

static void crowd__leaves_a_few_and_those_that_are_still_to_be_called(void **state)
{
    struct dblk_seat *seats[N_CROWD], *promised;
    int descriptors[N_CROWD];
    int i, n_open = 0;

    (void)state;
    for (i = 0; i < N_CROWD; ++i) {
        seats[i] = take(1);
        descriptors[i] = seats[i]->fd;
    }
    promised = seats[N_CROWD - 1];
    promise(promised);
    for (i = 0; i < N_CROWD; ++i)
        put(seats[i]);
    for (i = 0; i < N_CROWD; ++i)
        n_open += is_open(descriptors[i]);
    assert_int_equal(N_KEPT + 1, n_open);
    assert_true(is_open(promised->fd));
    dblk_seat_call(promised);
    assert_ptr_equal(promised, take(1));
    put(promised); /* now one of too many */
    assert_false(is_open(descriptors[N_CROWD - 1]));
}

struct job {
    pthread_t thread;
    dblock_canceller *canceller;
    dblock_status status;
    atomic_int is_over;
    dblock_lock *lock;
    struct dblock_error error;
};

static void *wait_for_it(void *context)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct job *job = context;

    options.wait_ms = 10000;
    options.canceller = job->canceller;
    job->status = dblock_acquire(client, "x", &options, &job->lock, &job->error);
    atomic_store(&job->is_over, 1);
    return NULL;
}

static int is_seated(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)context;
    return dblock_client_stats(client, &stats) == DBLOCK_OK && stats.waiters == 1;
}

static int is_unheard(void *context)
{
    return !is_called(context);
}

static void expect_late_call_ignored(dblock_canceller *canceller)
{
    struct job job = { .canceller = canceller };
    struct dblk_seat *seat = take(canceller != NULL);
    dblock_lock *lock = NULL;

    atomic_init(&job.is_over, 0);
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", NULL, &lock, &error));
    promise(seat);
    put(seat);
    assert_int_equal(0, pthread_create(&job.thread, NULL, wait_for_it, &job));
    assert_true(test_until(is_seated, NULL, 5000));
    dblk_seat_call(seat);
    if (canceller != NULL)
        assert_true(test_until(is_unheard, seat, 5000)); /* it was his seat: he has heard it */
    assert_true(test_until(is_seated, NULL, 5000));
    assert_int_equal(0, atomic_load(&job.is_over));
    assert_int_equal(1, dblock_lock_is_held(lock));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_equal(0, pthread_join(job.thread, NULL));
    assert_int_equal(DBLOCK_OK, job.status);
    assert_int_equal(DBLOCK_OK, dblock_release(job.lock, &error));
    dblock_lock_free(job.lock);
    dblock_lock_free(lock);
}

static void late_call__gives_nothing_to_who_sits_there_now(void **state)
{
    dblock_canceller *canceller = NULL;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&canceller, &error));
    expect_late_call_ignored(NULL);
    expect_late_call_ignored(canceller);
    dblock_canceller_free(canceller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(next__has_the_seat_and_not_the_call, begin, end),
        cmocka_unit_test_setup_teardown(descriptor__is_for_who_has_a_canceller, begin, end),
        cmocka_unit_test_setup_teardown(
            crowd__leaves_a_few_and_those_that_are_still_to_be_called, begin, end),
        cmocka_unit_test_setup_teardown(
            late_call__gives_nothing_to_who_sits_there_now, begin, end),
    };

    return cmocka_run_group_tests_name("seat", tests, NULL, NULL);
}
