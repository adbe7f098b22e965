/* SPDX-License-Identifier: MIT */
/* queue.c - who comes next: threads of one client among themselves, and clients in
 * the line of a name. */
#include "contract.h"

#include <dblock/sys/driver.h>

#include <string.h>

static int has_line(const struct contract_database *database)
{
    return database->driver()->line.stand != NULL;
}

static int has_no_line(const struct contract_database *database)
{
    return !has_line(database);
}

static int counts_steps(const struct contract_database *database)
{
    return database->n_takes != NULL;
}

/* Whether the grant went from thread to thread or by way of the database: it is the one that the
 * database knows, and its token is larger. */
static void thread__gets_a_grant_of_its_own_from_another(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "a");
    dblock_client *other = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_lock *lock = take(contract, client, name);
    struct contract_job *job;
    int64_t first = token_of(contract, lock);

    options.wait_ms = DBLOCK_FOREVER;
    job = start_waiting(contract, client, name, &options);
    release(contract, lock);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
    assert_true(dblock_lock_is_held(job->lock));
    assert_false(dblock_lock_is_held(lock));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    free_lock(contract, lock);
    expect_status(contract, DBLOCK_OK, dblock_confirm(job->lock, &contract->error));
    assert_true(token_of(contract, job->lock) > first);
    expect_busy(contract, other, name);
    if (is_kind(contract, RECORDED)) {
        expect_status(contract, DBLOCK_OK, dblock_inspect(other, name, contract->kind->strategy,
            &grant, &contract->error));
        assert_string_equal(grant.owner, dblock_lock_owner(job->lock));
        assert_int_equal(grant.token, token_of(contract, job->lock));
    }
    release(contract, job->lock);
    assert_true(token_of(contract, take(contract, other, name)) > first);
}

/* A label is what others read: a grant under another one is not the same grant. */
static void thread__with_another_label_is_shown_by_it(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "a");
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_lock *lock = take(contract, client, name);
    struct contract_job *job;

    options.wait_ms = DBLOCK_FOREVER;
    options.label = "another";
    job = start_waiting(contract, client, name, &options);
    release(contract, lock);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
    expect_status(contract, DBLOCK_OK,
        dblock_inspect(client, name, contract->kind->strategy, &grant, &contract->error));
    assert_string_equal(grant.label, "another");
}

struct looper {
    struct contract *contract;
    dblock_client *client;
    const char *name;
    atomic_int is_stopping;
    atomic_int n_grants;
    atomic_int n_failed;
};

static void *loop(void *context)
{
    struct looper *looper = context;
    struct dblock_options options = own_options(looper->contract);
    struct dblock_error error;

    options.wait_ms = 20000;
    while (!atomic_load(&looper->is_stopping)) {
        dblock_lock *lock = NULL;

        if (dblock_acquire(looper->client, looper->name, &options, &lock, &error) != DBLOCK_OK ||
            dblock_release(lock, &error) != DBLOCK_OK)
            atomic_fetch_add(&looper->n_failed, 1);
        dblock_lock_free(lock);
        atomic_fetch_add(&looper->n_grants, 1);
    }
    return NULL;
}

/* Threads that hand over to each other without an end would shut out everybody else. */
static void threads__that_hand_over_let_others_in(struct contract *contract)
{
    enum { N_THREADS = 4 };
    const char *name = own_name(contract, "x");
    dblock_client *other = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct looper looper = { contract, open_client(contract, "a"), name, 0, 0, 0 };
    pthread_t threads[N_THREADS];
    uint64_t end_ms = test_now_ms() + 10000;
    dblock_status status;
    dblock_lock *lock = NULL;
    int i;

    for (i = 0; i < N_THREADS; ++i)
        assert_int_equal(0, pthread_create(&threads[i], NULL, loop, &looper));
    while (atomic_load(&looper.n_grants) < 2 * N_THREADS && test_now_ms() < end_ms)
        (void)test_readable(-1, 1);
    options.wait_ms = 10000;
    status = dblock_acquire(other, name, &options, &lock, &contract->error);
    atomic_store(&looper.is_stopping, 1);
    if (status == DBLOCK_OK)
        (void)dblock_release(lock, NULL);
    dblock_lock_free(lock);
    for (i = 0; i < N_THREADS; ++i)
        (void)pthread_join(threads[i], NULL);
    expect_status(contract, DBLOCK_OK, status);
    assert_int_equal(0, atomic_load(&looper.n_failed));
}

/* The thread that asked the database for all of them goes away: another one does. */
static void thread_that_asks__is_replaced_when_it_gives_up(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, a, name);
    struct contract_job *jobs[3];
    size_t i;

    options.wait_ms = DBLOCK_FOREVER;
    options.canceller = new_canceller(contract);
    jobs[0] = start_waiting(contract, b, name, &options);
    options.canceller = NULL;
    jobs[1] = start_waiting(contract, b, name, &options);
    jobs[2] = start_waiting(contract, b, name, &options);
    dblock_cancel(jobs[0]->options.canceller);
    assert_true(job_ends(jobs[0], 5000));
    expect_status(contract, DBLOCK_CANCELLED, jobs[0]->status);
    release(contract, lock);
    for (i = 1; i < 3; ++i) {
        assert_true(job_ends(jobs[i], 5000));
        expect_status(contract, DBLOCK_OK, jobs[i]->status);
        release(contract, jobs[i]->lock);
    }
}

/* What is known to be exported may be given back by somebody else: it stays where it is. */
static void exported_grant__is_not_handed_over(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "a");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, client, name);
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX];
    char owner[40];
    struct contract_job *job;

    expect_status(contract, DBLOCK_OK,
        dblock_lock_export(lock, text, sizeof text, &contract->error));
    dblock_text_copy(owner, sizeof owner, dblock_lock_owner(lock));
    options.wait_ms = DBLOCK_FOREVER;
    job = start_waiting(contract, client, name, &options);
    release(contract, lock);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
    assert_string_not_equal(owner, dblock_lock_owner(job->lock));
}

/* P5 of those who wait on request in order: over clients, as over machines. */
static void fair__is_in_order_of_arrival(struct contract *contract)
{
    enum { N_WAITERS = 5 };
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, open_client(contract, "a"), name);
    struct contract_job *jobs[N_WAITERS];
    size_t i, k;

    options.wait_ms = DBLOCK_FOREVER;
    options.flags = DBLOCK_FAIR;
    for (i = 0; i < N_WAITERS; ++i)
        jobs[i] = start_in_line(
            contract, open_client(contract, NULL), name, &options, (uint32_t)i + 1);
    for (i = 0; i < N_WAITERS; ++i) {
        release(contract, lock);
        assert_true(job_ends(jobs[i], 5000));
        expect_status(contract, DBLOCK_OK, jobs[i]->status);
        for (k = i + 1; k < N_WAITERS; ++k)
            assert_false(job_ends(jobs[k], 0));
        lock = jobs[i]->lock;
    }
}

/* A wait on a server may be cut into pieces, in which nobody may lose his place: those who came
 * at different times of a piece, after more than two of them. */
static void fair__keeps_the_order_for_long(struct contract *contract)
{
    enum { N_WAITERS = 4, GAP_MS = 330, HELD_MS = 1200 };
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, open_client(contract, "a"), name);
    struct contract_job *jobs[N_WAITERS];
    size_t i, k;

    options.wait_ms = DBLOCK_FOREVER;
    options.flags = DBLOCK_FAIR;
    for (i = 0; i < N_WAITERS; ++i) {
        jobs[i] = start_in_line(
            contract, open_client(contract, NULL), name, &options, (uint32_t)i + 1);
        (void)test_readable(-1, GAP_MS);
    }
    (void)test_readable(-1, HELD_MS);
    for (i = 0; i < N_WAITERS; ++i) {
        release(contract, lock);
        assert_true(job_ends(jobs[i], 5000));
        expect_status(contract, DBLOCK_OK, jobs[i]->status);
        for (k = i + 1; k < N_WAITERS; ++k)
            assert_false(job_ends(jobs[k], 0));
        lock = jobs[i]->lock;
    }
}

/* The one at the head of the line dies: the others keep their order, and no time is lost. */
static void fair__survives_a_waiter_that_leaves(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, open_client(contract, "a"), name);
    struct contract_job *jobs[3];
    size_t i;

    options.wait_ms = DBLOCK_FOREVER;
    options.flags = DBLOCK_FAIR;
    for (i = 0; i < 3; ++i) {
        options.canceller = new_canceller(contract);
        jobs[i] = start_in_line(
            contract, open_client(contract, NULL), name, &options, (uint32_t)i + 1);
    }
    dblock_cancel(jobs[0]->options.canceller);
    assert_true(job_ends(jobs[0], 5000));
    expect_status(contract, DBLOCK_CANCELLED, jobs[0]->status);
    release(contract, lock);
    assert_true(job_ends(jobs[1], 5000));
    expect_status(contract, DBLOCK_OK, jobs[1]->status);
    assert_false(job_ends(jobs[2], 0));
    release(contract, jobs[1]->lock);
    assert_true(job_ends(jobs[2], 5000));
    expect_status(contract, DBLOCK_OK, jobs[2]->status);
}

struct passer { /* on the way of a grant to whoever comes after the job */
    struct contract_job *job;
    atomic_int is_granted;
    dblock_status released;
};

static void *pass_on(void *context)
{
    struct passer *passer = context;

    if (job_ends(passer->job, 10000) && passer->job->status == DBLOCK_OK) {
        atomic_store(&passer->is_granted, 1);
        passer->released = dblock_release(passer->job->lock, NULL);
    }
    return NULL;
}

/* Who gives it back and wants it again comes after the one that waited, also in the moment in
 * which the name is free and that one on its way. */
static void fair__who_comes_back_is_behind(struct contract *contract)
{
    enum { N_ROUNDS = 6, ARRIVING_MS = 150 };
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    int n_passed = 0;
    int i;

    options.wait_ms = 20000;
    options.flags = DBLOCK_FAIR;
    for (i = 0; i < N_ROUNDS; ++i) {
        dblock_lock *lock = take(contract, a, name);
        struct passer passer = {
            start_in_line(contract, b, name, &options, 1), 0, DBLOCK_BUSY };
        struct dblock_error error;
        pthread_t thread;
        dblock_lock *again = NULL;
        dblock_status status;

        assert_int_equal(0, pthread_create(&thread, NULL, pass_on, &passer));
        (void)test_readable(-1, ARRIVING_MS); /* one shows a moment before one has the place */
        (void)dblock_release(lock, NULL);
        status = dblock_acquire(a, name, &options, &again, &error);
        n_passed += !atomic_load(&passer.is_granted);
        if (status == DBLOCK_OK)
            (void)dblock_release(again, NULL);
        dblock_lock_free(again);
        (void)pthread_join(thread, NULL);
        expect_status(contract, DBLOCK_OK, status);
        expect_status(contract, DBLOCK_OK, passer.released);
    }
    assert_int_equal(0, n_passed);
}

/* Well before the look that makes good for a wake-up that was lost. */
static void close__wakes_those_who_wait(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_client *a = open_client(contract, "a");
    struct contract_job *job;

    (void)take(contract, a, name);
    options.wait_ms = DBLOCK_FOREVER;
    job = start_waiting(contract, open_client(contract, "b"), name, &options);
    (void)test_readable(-1, 100); /* by then it is the first in line, and rests */
    close_client(contract, a);
    assert_true(job_ends(job, 2000));
    expect_status(contract, DBLOCK_OK, job->status);
}

static void fair__is_refused_where_nobody_can_be_woken(struct contract *contract)
{
    struct dblock_options options = own_options(contract);

    options.flags = DBLOCK_FAIR;
    options.wait_ms = 100;
    expect_status(contract, DBLOCK_E_UNSUPPORTED,
        attempt(contract, open_client(contract, NULL), own_name(contract, "x"), &options, NULL));
    assert_non_null(strstr(contract->error.message, "in order of arrival"));
}

/* Nobody polls: while nothing happens nothing is asked, however many wait. */
static void waiters__ask_nothing_while_nothing_happens(struct contract *contract)
{
    enum { N_WAITERS = 12 };
    const char *name = own_name(contract, "x");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct contract_job *jobs[N_WAITERS];
    dblock_lock *lock = take(contract, open_client(contract, "a"), name);
    uint64_t before, after_ms;
    size_t i;

    options.wait_ms = DBLOCK_FOREVER;
    for (i = 0; i < N_WAITERS; ++i)
        jobs[i] = start_waiting(contract, i % 2 != 0 ? b : open_client(contract, NULL), name,
            &options);
    (void)test_readable(-1, 200); /* the first of them has looked once more */
    before = contract->database->n_takes();
    (void)test_readable(-1, 1000);
    assert_in_range(contract->database->n_takes() - before, 0, 1);
    for (i = 0; i < N_WAITERS; ++i) {
        size_t k;
        int is_served = 0;

        release(contract, lock);
        after_ms = test_now_ms() + 5000;
        while (!is_served && test_now_ms() < after_ms)
            for (k = 0; k < N_WAITERS && !is_served; ++k)
                if (jobs[k] != NULL && job_ends(jobs[k], 2)) {
                    expect_status(contract, DBLOCK_OK, jobs[k]->status);
                    lock = jobs[k]->lock;
                    jobs[k] = NULL;
                    is_served = 1;
                }
        assert_true(is_served);
    }
}

const struct contract_case queue_cases[] = {
    { "thread__gets_a_grant_of_its_own_from_another", thread__gets_a_grant_of_its_own_from_another,
        ALL, NULL },
    { "thread__with_another_label_is_shown_by_it", thread__with_another_label_is_shown_by_it,
        RECORDED, NULL },
    { "threads__that_hand_over_let_others_in", threads__that_hand_over_let_others_in, ALL, NULL },
    { "thread_that_asks__is_replaced_when_it_gives_up",
        thread_that_asks__is_replaced_when_it_gives_up, ALL, NULL },
    { "exported_grant__is_not_handed_over", exported_grant__is_not_handed_over, RECORDED, NULL },
    { "fair__is_in_order_of_arrival", fair__is_in_order_of_arrival, ALL, has_line },
    { "fair__keeps_the_order_for_long", fair__keeps_the_order_for_long, LIVE, has_line },
    { "fair__who_comes_back_is_behind", fair__who_comes_back_is_behind, ALL, has_line },
    { "fair__survives_a_waiter_that_leaves", fair__survives_a_waiter_that_leaves, ALL, has_line },
    { "close__wakes_those_who_wait", close__wakes_those_who_wait, ALL, has_line },
    { "fair__is_refused_where_nobody_can_be_woken", fair__is_refused_where_nobody_can_be_woken,
        RECORDED, has_no_line },
    { "waiters__ask_nothing_while_nothing_happens", waiters__ask_nothing_while_nothing_happens,
        RECORDED, counts_steps },
    { NULL, NULL, 0, NULL },
};
