/* SPDX-License-Identifier: MIT */
/* release.c - P4: what ends a grant ends this very grant, whatever way it ends:
 * release, free, close. */
#include "contract.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLACK_MS = 1500 };

static void release__twice_is_not_held(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *next;

    release(contract, lock);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    next = take(contract, b, name);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    expect_busy(contract, a, name);
}

static void release__takes_no_error_to_fill(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    expect_status(contract, DBLOCK_OK, dblock_release(lock, NULL));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, NULL));
}

/* E1: whose grant it is, is told by an owner of its own, not by the client or the name. */
static void release__after_expiry_leaves_the_new_holder_alone(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    dblock_lock *next;

    options.ttl_ms = 150;
    lock = take_with(contract, client, name, &options);
    next = take_within(contract, client, name, 3000);
    expect_status(contract, DBLOCK_LOST, dblock_release(lock, &contract->error));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    release(contract, next);
}

static void release__by_another_thread_counts(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct contract_job *job;

    job = start_job(contract, client, name, &options);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
    release(contract, job->lock); /* taken on the job's thread, which has ended */
    release(contract, take(contract, client, name));
}

static void release__then_take_again_many_times(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *clients[2];
    int i;

    clients[0] = open_client(contract, "a");
    clients[1] = open_client(contract, "b");
    for (i = 0; i < 30; ++i) {
        dblock_lock *lock = take(contract, clients[i % 2], name);

        release(contract, lock);
        free_lock(contract, lock);
    }
}

static void free__of_a_held_lock_gives_it_back_soon(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");

    free_lock(contract, take(contract, a, name));
    release(contract, take_within(contract, b, name, SLACK_MS));
    /* and the client that freed it is as good as before */
    release(contract, take_within(contract, a, name, SLACK_MS));
}

/* What the keeper has not given back yet is not somebody else's. */
static void free__lets_a_try_of_the_same_client_have_it(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "a");
    int i;

    for (i = 0; i < 10; ++i)
        free_lock(contract, take(contract, client, name));
}

static void free__of_many_held_locks_gives_them_all_back(struct contract *contract)
{
    const char *names[10];
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    size_t i;

    for (i = 0; i < 10; ++i) {
        names[i] = own_name(contract, "many");
        free_lock(contract, take(contract, a, names[i]));
    }
    for (i = 0; i < 10; ++i)
        (void)take_within(contract, b, names[i], 3000);
}

static void free__wakes_a_waiter(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct contract_job *job;
    dblock_lock *lock = take(contract, a, name);

    options.wait_ms = 20000;
    job = start_waiting(contract, b, name, &options);
    free_lock(contract, lock);
    assert_true(job_ends(job, SLACK_MS + 1000));
    expect_status(contract, DBLOCK_OK, job->status);
}

static void free__keeps_the_name_for_min_hold(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();

    options.min_hold_ms = 700;
    free_lock(contract, take_with(contract, a, name, &options));
    (void)take_within(contract, b, name, 3000);
    assert_in_range(test_now_ms() - begun_ms, 690, 700 + SLACK_MS);
}

static void close__releases_what_is_held(struct contract *contract)
{
    const char *names[5];
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = NULL;
    size_t i;

    for (i = 0; i < 5; ++i) {
        names[i] = own_name(contract, "many");
        lock = take(contract, a, names[i]);
    }
    close_client(contract, a);
    for (i = 0; i < 5; ++i)
        (void)take_within(contract, b, names[i], 500);
    /* locks stay valid objects, not held */
    assert_int_equal(0, dblock_lock_is_held(lock));
    assert_int_equal(0, dblock_lock_remaining_ms(lock));
    assert_string_equal(names[4], dblock_lock_name(lock));
    assert_true(dblock_confirm(lock, &contract->error) != DBLOCK_OK);
    assert_true(dblock_release(lock, &contract->error) != DBLOCK_OK);
}

struct taker {
    dblock_client *client;
    const char *name;
    struct dblock_options options;
    atomic_int n_taken;
    dblock_lock *lock; /* had when the client was closed; NULL none */
};

static void *take_until_closed(void *context)
{
    struct taker *taker = context;
    struct dblock_error error;
    dblock_status status;

    do {
        taker->lock = NULL;
        status = dblock_acquire(
            taker->client, taker->name, &taker->options, &taker->lock, &error);
        if (status == DBLOCK_OK) {
            (void)atomic_fetch_add(&taker->n_taken, 1);
            if (dblock_release(taker->lock, NULL) == DBLOCK_OK) {
                dblock_lock_free(taker->lock);
                taker->lock = NULL;
            }
        }
    } while (status >= 0 && taker->lock == NULL);
    return NULL;
}

static int has_taken(void *context)
{
    return atomic_load(&((struct taker *)context)->n_taken) > 3;
}

/* A grant that comes while the client is being closed is nobody's: it is given back, and not left
 * for its ttl. */
static void close__that_meets_an_acquire_leaves_nothing(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *witness = open_client(contract, "b");
    int i;

    for (i = 0; i < 8; ++i) {
        struct taker taker = { open_client(contract, "a"), name, own_options(contract), 0, NULL };
        /* as long as it is there, the client is, and a call that begins too late finds it closed */
        dblock_lock *other = take(contract, taker.client, own_name(contract, "other"));
        pthread_t thread;

        taker.options.ttl_ms = 30000;
        assert_int_equal(0, pthread_create(&thread, NULL, take_until_closed, &taker));
        assert_true(test_until(has_taken, &taker, 10000));
        close_client(contract, taker.client);
        assert_int_equal(0, pthread_join(thread, NULL));
        dblock_lock_free(taker.lock);
        free_lock(contract, other);
        free_lock(contract, take_within(contract, witness, name, 3000));
    }
}

static void close__after_the_locks_were_freed(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");

    /* the keeper may be at work on it just now: it is given back all the same */
    free_lock(contract, take(contract, a, name));
    close_client(contract, a);
    (void)take_within(contract, b, name, 500);
}

static void locks__may_be_freed_after_their_client(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *held = take(contract, client, own_name(contract, "held"));
    dblock_lock *released = take(contract, client, own_name(contract, "released"));

    release(contract, released);
    close_client(contract, client);
    free_lock(contract, held);
    free_lock(contract, released);
}

/* PITFALL(D11): the caller's canceller and his wait are over; a release has its own time. */
static void release__does_not_end_with_the_canceller(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.wait_ms = 5;
    options.canceller = new_canceller(contract);
    lock = take_with(contract, a, name, &options);
    dblock_cancel(options.canceller);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, open_client(contract, "b"), name));
}

const struct contract_case release_cases[] = {
    { "release__twice_is_not_held", release__twice_is_not_held, ALL, NULL },
    { "release__takes_no_error_to_fill", release__takes_no_error_to_fill, ALL, NULL },
    { "release__after_expiry_leaves_the_new_holder_alone",
        release__after_expiry_leaves_the_new_holder_alone, TIMED, NULL },
    { "release__does_not_end_with_the_canceller", release__does_not_end_with_the_canceller, ALL,
        NULL },
    { "release__by_another_thread_counts", release__by_another_thread_counts, ALL, NULL },
    { "release__then_take_again_many_times", release__then_take_again_many_times, ALL, NULL },
    { "free__of_a_held_lock_gives_it_back_soon", free__of_a_held_lock_gives_it_back_soon, ALL,
        NULL },
    { "free__lets_a_try_of_the_same_client_have_it", free__lets_a_try_of_the_same_client_have_it,
        ALL, NULL },
    { "free__of_many_held_locks_gives_them_all_back", free__of_many_held_locks_gives_them_all_back,
        ALL, NULL },
    { "free__wakes_a_waiter", free__wakes_a_waiter, ALL, NULL },
    { "free__keeps_the_name_for_min_hold", free__keeps_the_name_for_min_hold, RECORDED, NULL },
    { "close__releases_what_is_held", close__releases_what_is_held, ALL, NULL },
    { "close__that_meets_an_acquire_leaves_nothing", close__that_meets_an_acquire_leaves_nothing,
        TIMED | LIVE, NULL },
    { "close__after_the_locks_were_freed", close__after_the_locks_were_freed, ALL, NULL },
    { "locks__may_be_freed_after_their_client", locks__may_be_freed_after_their_client, ALL, NULL },
    { NULL, NULL, 0, NULL },
};
