/* SPDX-License-Identifier: MIT */
/* some.c - P1 for as many of several names as are free. */
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <stdio.h>
#include <string.h>

#include "contract.h"

enum { N_NAMES = 4, N_CALLERS = 4, HAMMER_MS = 500, BRIEF_MS = 200 };

struct set {
    const char *names[N_NAMES];
    dblock_lock *locks[N_NAMES];
    size_t n_granted;
};

static struct set own_set(struct contract *contract)
{
    struct set set = { { own_name(contract, "c"), own_name(contract, "a"), own_name(contract, "d"),
                           own_name(contract, "b") },
        { NULL }, 77 };

    return set;
}

static dblock_status attempt_some(struct contract *contract, dblock_client *client,
    struct set *set, const struct dblock_options *options)
{
    dblock_status status = dblock_acquire_some(client, set->names, N_NAMES, options, set->locks,
        &set->n_granted, &contract->error);
    size_t n_granted = 0;
    size_t i;

    for (i = 0; i < N_NAMES; ++i)
        if (set->locks[i] != NULL) {
            ++n_granted;
            (void)note_lock(contract, set->locks[i]);
            assert_string_equal(set->names[i], dblock_lock_name(set->locks[i]));
        }
    assert_int_equal(n_granted, set->n_granted);
    return status;
}

static void release_all(struct contract *contract, const struct set *set)
{
    expect_status(contract, DBLOCK_OK, dblock_release_many(set->locks, N_NAMES, &contract->error));
}

/* ------------------------------------------------------------------------ cases */

static void free_ones__are_taken_and_held(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct set set = own_set(contract);
    dblock_lock *held[2] = { take(contract, b, set.names[0]), take(contract, b, set.names[3]) };

    options.busy = &busy;
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(2, set.n_granted);
    assert_null(set.locks[0]);
    assert_null(set.locks[3]);
    assert_true(strcmp(busy.owner, dblock_lock_owner(held[0])) == 0 ||
        strcmp(busy.owner, dblock_lock_owner(held[1])) == 0);
    expect_busy(contract, b, set.names[1]);
    expect_busy(contract, b, set.names[2]);
    expect_status(contract, DBLOCK_OK, dblock_confirm(set.locks[1], &contract->error));
    assert_true(token_of(contract, set.locks[2]) > 0);
    release_all(contract, &set);
    expect_status(contract, DBLOCK_OK, dblock_confirm(held[0], &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(held[1], &contract->error));
    release(contract, held[0]);
    release(contract, held[1]);
    expect_status(contract, DBLOCK_OK, attempt_some(contract, b, &set, &options));
    assert_int_equal(N_NAMES, set.n_granted);
    release_all(contract, &set);
}

static void none_free__is_busy_or_quietly_ok(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set held = own_set(contract), set = held;

    expect_status(contract, DBLOCK_OK, attempt_some(contract, b, &held, &options));
    expect_status(contract, DBLOCK_BUSY, attempt_some(contract, a, &set, &options));
    assert_int_equal(0, set.n_granted);
    options.flags = DBLOCK_QUIET_OK;
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(0, set.n_granted);
    release_all(contract, &held);
}

static void round_trips__are_two(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);
    dblock_lock *held[2] = { take(contract, b, set.names[1]), take(contract, b, set.names[2]) };
    uint64_t before = contract->database->n_takes();

    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(2, contract->database->n_takes() - before);
    release_all(contract, &set);
    release(contract, held[0]);
    release(contract, held[1]);
    before = contract->database->n_takes();
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(1, contract->database->n_takes() - before);
    release_all(contract, &set);
}

/* The grant is over; its row cannot be had while the transaction stands on it. */
static void guarded_one__is_left_out(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);
    dblock_lock *lock;

    options.ttl_ms = BRIEF_MS;
    lock = take_with(contract, b, set.names[1], &options);
    contract->guard = contract->database->guard(contract->kind->strategy, set.names[1]);
    assert_true(is_lost_within(lock, 5000));
    test_pass_ms(BRIEF_MS); /* the database's ttl ends after the holder's */
    options.ttl_ms = 0;
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(N_NAMES - 1, set.n_granted);
    assert_null(set.locks[1]);
    release_all(contract, &set);
    contract->database->unguard(contract->guard);
    contract->guard = NULL;
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(N_NAMES, set.n_granted);
    release_all(contract, &set);
}

struct caller {
    struct contract *contract;
    dblock_client *client;
    struct set set;
    atomic_int *inside; /* of each name */
    atomic_int *n_overlaps;
    uint64_t end_ms;
    pthread_t thread;
    unsigned n_grants;
    dblock_status failure;
    struct dblock_error error;
};

static void visit(struct caller *caller)
{
    size_t i;

    for (i = 0; i < N_NAMES; ++i)
        if (caller->set.locks[i] != NULL && atomic_fetch_add(&caller->inside[i], 1) != 0)
            (void)atomic_fetch_add(caller->n_overlaps, 1);
    for (i = 0; i < N_NAMES; ++i)
        if (caller->set.locks[i] != NULL)
            (void)atomic_fetch_sub(&caller->inside[i], 1);
}

static void *hammer(void *context)
{
    struct caller *caller = context;
    struct dblock_options options = own_options(caller->contract);
    struct set *set = &caller->set;
    size_t i;

    while (test_now_ms() < caller->end_ms && caller->failure == DBLOCK_OK) {
        dblock_status status = dblock_acquire_some(caller->client, set->names, N_NAMES, &options,
            set->locks, &set->n_granted, &caller->error);

        if (status == DBLOCK_BUSY)
            continue;
        if (status == DBLOCK_OK) {
            visit(caller);
            caller->n_grants += (unsigned)set->n_granted;
            status = dblock_release_many(set->locks, N_NAMES, &caller->error);
        }
        caller->failure = status;
        for (i = 0; i < N_NAMES; ++i)
            dblock_lock_free(set->locks[i]);
    }
    return NULL;
}

static void callers__share_what_there_is(struct contract *contract)
{
    atomic_int inside[N_NAMES] = { 0 }, n_overlaps = 0;
    struct caller callers[N_CALLERS];
    unsigned n_grants = 0;
    size_t i;

    memset(callers, 0, sizeof callers);
    for (i = 0; i < N_CALLERS; ++i) {
        callers[i].contract = contract;
        callers[i].client = open_client(contract, NULL);
        callers[i].set = i == 0 ? own_set(contract) : callers[0].set;
        callers[i].inside = inside;
        callers[i].n_overlaps = &n_overlaps;
        callers[i].end_ms = test_now_ms() + HAMMER_MS;
    }
    for (i = 0; i < N_CALLERS; ++i)
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, hammer, &callers[i]));
    for (i = 0; i < N_CALLERS; ++i)
        assert_int_equal(0, pthread_join(callers[i].thread, NULL));
    for (i = 0; i < N_CALLERS; ++i) {
        contract->error = callers[i].error;
        expect_status(contract, DBLOCK_OK, callers[i].failure);
        n_grants += callers[i].n_grants;
    }
    assert_int_equal(0, atomic_load(&n_overlaps));
    assert_true(n_grants > 0);
    for (i = 0; i < N_NAMES; ++i)
        release(contract, take_within(contract, callers[0].client, callers[0].set.names[i], 2000));
}

static void lost_answer__is_settled(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);

    contract->database->hurt(CONTRACT_LOSE_TAKE);
    expect_status(contract, DBLOCK_OK, attempt_some(contract, a, &set, &options));
    assert_int_equal(N_NAMES, set.n_granted);
    expect_busy(contract, b, set.names[2]);
    release_all(contract, &set);
}

static void wrong_wishes__are_refused(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);

    options.wait_ms = 1;
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt_some(contract, client, &set, &options));
    assert_non_null(strstr(contract->error.message, "wait_ms"));
    assert_int_equal(0, set.n_granted);
    options.wait_ms = 0;
    options.strategy = DBLOCK_ROW;
    expect_status(contract, DBLOCK_E_UNSUPPORTED, attempt_some(contract, client, &set, &options));
    options.strategy = DBLOCK_LEASE;
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, NULL, 1, &options, set.locks, NULL, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, set.names, 0, &options, set.locks, NULL, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, set.names, 1, &options, NULL, NULL, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_some(NULL, set.names, 1, &options, set.locks, NULL, &contract->error));
}

static int has_many_and_counts(const struct contract_database *database)
{
    return has_many(database) && database->n_takes != NULL;
}

const struct contract_case some_cases[] = {
    { "free_ones__are_taken_and_held", free_ones__are_taken_and_held, RECORDED, has_many },
    { "none_free__is_busy_or_quietly_ok", none_free__is_busy_or_quietly_ok, LEASE | INSERT,
        has_many },
    { "round_trips__are_two", round_trips__are_two, LEASE, has_many_and_counts },
    { "guarded_one__is_left_out", guarded_one__is_left_out, TIMED, has_many_and_guards },
    { "callers__share_what_there_is", callers__share_what_there_is, LEASE | INSERT, has_many },
    { "lost_answer__is_settled", lost_answer__is_settled, LEASE, has_many_and_hurts },
    { "wrong_wishes__are_refused", wrong_wishes__are_refused, ONCE, NULL },
    { NULL, NULL, 0, NULL },
};
