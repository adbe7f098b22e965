/* SPDX-License-Identifier: MIT */
/* exclusion.c - P1: one holder at a time, and what the others are told. */
#include "contract.h"

#include <string.h>
#include <unistd.h>

static void second_client__is_busy_until_the_release(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);

    expect_busy(contract, b, name);
    expect_busy(contract, b, name);
    release(contract, lock);
    lock = take(contract, b, name);
    expect_busy(contract, a, name);
    release(contract, lock);
}

/* PITFALL(E16): no strategy lets its own client in twice. */
static void same_client__is_busy_with_its_own_grant(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);

    expect_busy(contract, client, name);
    assert_int_equal(1, dblock_lock_is_held(lock));
    release(contract, lock);
    release(contract, take(contract, client, name));
}

static void same_client__waits_in_vain_for_its_own_grant(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, client, name);

    options.wait_ms = 100;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, client, name, &options, NULL));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
}

static void other_names__are_free(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    int i;

    for (i = 0; i < 20; ++i)
        (void)take(contract, client, own_name(contract, "many"));
    for (i = 0; i < 20; ++i)
        release(contract, contract->locks[i]);
}

static void strategies__do_not_know_of_each_other(struct contract *contract)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    size_t i;

    for (i = 0; i < 4; ++i) {
        options.strategy = strategies[i];
        assert_int_equal(
            strategies[i], dblock_lock_strategy(take_with(contract, client, name, &options)));
    }
    for (i = 0; i < 4; ++i) {
        options.strategy = strategies[i];
        expect_status(contract, DBLOCK_BUSY, attempt(contract, client, name, &options, NULL));
    }
}

/* Many threads, and what they find inside is not atomic. */
enum { N_THREADS = 4, N_ROUNDS = 8 };

struct crowd {
    struct contract *contract;
    const char *name;
    dblock_client *clients[N_THREADS];
    atomic_int n_next;
    atomic_int n_inside;
    atomic_int n_overlaps;
    pthread_mutex_t mutex;
    dblock_status status;      /* the first one that was not OK */
    struct dblock_error error; /* of it */
    volatile int count;        /* guarded by the lock alone */
};

static void note_failure(
    struct crowd *crowd, dblock_status status, const struct dblock_error *error)
{
    (void)pthread_mutex_lock(&crowd->mutex);
    if (status != DBLOCK_OK && crowd->status == DBLOCK_OK) {
        crowd->status = status;
        crowd->error = *error;
    }
    (void)pthread_mutex_unlock(&crowd->mutex);
}

static void *join_crowd(void *argument)
{
    struct crowd *crowd = argument;
    dblock_client *client = crowd->clients[atomic_fetch_add(&crowd->n_next, 1)];
    struct dblock_options options = own_options(crowd->contract);
    int i;

    options.wait_ms = 30000;
    for (i = 0; i < N_ROUNDS; ++i) {
        struct dblock_error error = { 0 };
        dblock_lock *lock = NULL;

        note_failure(crowd, dblock_acquire(client, crowd->name, &options, &lock, &error), &error);
        if (lock == NULL)
            continue;
        if (atomic_fetch_add(&crowd->n_inside, 1) != 0)
            (void)atomic_fetch_add(&crowd->n_overlaps, 1);
        ++crowd->count;
        (void)atomic_fetch_sub(&crowd->n_inside, 1);
        note_failure(crowd, dblock_release(lock, &error), &error);
        dblock_lock_free(lock);
    }
    return NULL;
}

static void run_crowd(struct contract *contract, int n_clients)
{
    struct crowd crowd = { .contract = contract,
        .name = own_name(contract, "crowd"),
        .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[N_THREADS];
    int i;

    for (i = 0; i < N_THREADS; ++i)
        crowd.clients[i] = i < n_clients ? open_client(contract, NULL) : crowd.clients[0];
    for (i = 0; i < N_THREADS; ++i)
        assert_int_equal(0, pthread_create(&threads[i], NULL, join_crowd, &crowd));
    for (i = 0; i < N_THREADS; ++i)
        (void)pthread_join(threads[i], NULL);
    contract->error = crowd.error;
    expect_status(contract, DBLOCK_OK, crowd.status);
    assert_int_equal(0, atomic_load(&crowd.n_overlaps));
    assert_int_equal(N_THREADS * N_ROUNDS, crowd.count);
}

static void threads_of_one_client__are_never_inside_together(struct contract *contract)
{
    run_crowd(contract, 1);
}

/* PITFALL(B4): grants that last less than any clock ticks. */
static void clients__are_never_inside_together(struct contract *contract)
{
    run_crowd(contract, N_THREADS);
}

/* ------------------------------------------------------------- what BUSY tells */

static int shows_holder(const struct contract *contract)
{
    if (is_kind(contract, ROW))
        return contract->database->row_view == CONTRACT_VIEW_HOLDER;
    if (is_kind(contract, ADVISORY))
        return contract->database->advisory_view == CONTRACT_VIEW_HOLDER;
    return 1;
}

static void busy__tells_who_holds_it(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "client-a");
    dblock_client *b = open_client(contract, "client-b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    char host[256] = "";
    dblock_lock *lock;

    options.label = "label of a";
    lock = take_with(contract, a, name, &options);
    options.label = NULL;
    options.busy = &busy;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    assert_int_equal(contract->kind->strategy, busy.strategy);
    assert_int_equal(DBLOCK_EXCLUSIVE, busy.mode);
    assert_int_equal(0, busy.permits);
    assert_int_equal(is_kind(contract, BEAT), busy.is_heartbeat);
    assert_int_equal(0, busy.is_pinned);
    if (is_kind(contract, LIVE)) {
        assert_true(busy.remaining_ms == DBLOCK_FOREVER);
    } else {
        assert_in_range(busy.remaining_ms, 7000, 10000);
        assert_string_equal(dblock_lock_owner(lock), busy.owner);
        assert_string_equal("label of a", busy.label);
        assert_true(busy.token == token_of(contract, lock));
        assert_true(busy.now_us >= busy.since_us);
        assert_true(busy.since_us > 0);
        assert_true(busy.expires_us > busy.now_us);
    }
    if (!shows_holder(contract))
        return;
    assert_string_equal(name, busy.name);
    assert_int_equal(getpid(), busy.pid);
    (void)gethostname(host, sizeof host - 1);
    if (host[0] != 0 && busy.host[0] != 0)
        assert_int_equal(host[0], busy.host[0]); /* may be with or without its domain */
}

static void busy__is_untouched_on_success(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct dblock_grant before;

    memset(busy.name, 'x', sizeof busy.name);
    before = busy;
    options.busy = &busy;
    (void)take_with(contract, client, own_name(contract, "x"), &options);
    assert_memory_equal(&before, &busy, sizeof busy);
}

static void busy__respects_the_size_of_the_struct(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;

    (void)take(contract, client, name);
    memset(&busy, 'x', sizeof busy);
    busy.struct_size = offsetof(struct dblock_grant, permits);
    options.busy = &busy;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, client, name, &options, NULL));
    assert_int_equal(contract->kind->strategy, busy.strategy);
    assert_int_equal('x', *(const char *)&busy.permits);
    assert_int_equal('x', busy.name[0]);
}

static void grant__tells_about_itself(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.context = &options;
    lock = take_with(contract, client, name, &options);
    assert_string_equal(name, dblock_lock_name(lock));
    assert_int_equal(contract->kind->strategy, dblock_lock_strategy(lock));
    assert_ptr_equal(&options, dblock_lock_context(lock));
    assert_int_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(lock));
    assert_int_equal(32, strlen(dblock_lock_owner(lock)));
    assert_int_equal(32, strspn(dblock_lock_owner(lock), "0123456789abcdef"));
    assert_true(dblock_lock_remaining_ms(lock) > 0);
    assert_true(dblock_lock_remaining_ms(lock) != DBLOCK_FOREVER);
    release(contract, lock);
    assert_int_equal(0, dblock_lock_remaining_ms(lock));
    assert_string_equal(name, dblock_lock_name(lock));
    assert_int_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(lock));
}

static void owners__are_never_used_twice(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *first = take(contract, client, name);
    dblock_lock *second;

    release(contract, first);
    second = take(contract, client, name);
    assert_string_not_equal(dblock_lock_owner(first), dblock_lock_owner(second));
}

const struct contract_case exclusion_cases[] = {
    { "second_client__is_busy_until_the_release", second_client__is_busy_until_the_release, ALL,
        NULL },
    { "same_client__is_busy_with_its_own_grant", same_client__is_busy_with_its_own_grant, ALL,
        NULL },
    { "same_client__waits_in_vain_for_its_own_grant", same_client__waits_in_vain_for_its_own_grant,
        ALL, NULL },
    { "other_names__are_free", other_names__are_free, ALL, NULL },
    { "strategies__do_not_know_of_each_other", strategies__do_not_know_of_each_other, ONCE, NULL },
    { "threads_of_one_client__are_never_inside_together",
        threads_of_one_client__are_never_inside_together, ALL, NULL },
    { "clients__are_never_inside_together", clients__are_never_inside_together, ALL, NULL },
    { "busy__tells_who_holds_it", busy__tells_who_holds_it, ALL, NULL },
    { "busy__is_untouched_on_success", busy__is_untouched_on_success, ALL, NULL },
    { "busy__respects_the_size_of_the_struct", busy__respects_the_size_of_the_struct, ALL, NULL },
    { "grant__tells_about_itself", grant__tells_about_itself, ALL, NULL },
    { "owners__are_never_used_twice", owners__are_never_used_twice, ALL, NULL },
    { NULL, NULL, 0, NULL },
};
