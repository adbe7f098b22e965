/* SPDX-License-Identifier: MIT */
/* many.c - P1 for several names at once: all or none, and nobody waits in a circle. */
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <stdio.h>
#include <string.h>

#include "contract.h"

enum { SLACK_MS = 2000, N_CALLERS = 5, HAMMER_MS = 700 };

struct set {
    const char *names[DBLOCK_MANY_MAX + 1];
    dblock_lock *locks[DBLOCK_MANY_MAX + 1];
    size_t n_names;
};

/* Three names; the locks of a set are freed with the test. */
static struct set own_set(struct contract *contract)
{
    struct set set = { { own_name(contract, "c"), own_name(contract, "a"), own_name(contract, "b") },
        { NULL }, 3 };

    return set;
}

static dblock_status attempt_many(struct contract *contract, dblock_client *client,
    struct set *set, const struct dblock_options *options)
{
    dblock_status status = dblock_acquire_many(
        client, set->names, set->n_names, options, set->locks, &contract->error);
    size_t i;

    for (i = 0; status == DBLOCK_OK && i < set->n_names; ++i)
        (void)note_lock(contract, set->locks[i]);
    return status;
}

static void take_many(struct contract *contract, dblock_client *client, struct set *set)
{
    struct dblock_options options = own_options(contract);

    expect_status(contract, DBLOCK_OK, attempt_many(contract, client, set, &options));
}

static dblock_status release_many(struct contract *contract, struct set *set)
{
    return dblock_release_many(set->locks, set->n_names, &contract->error);
}

static void expect_all_free(struct contract *contract, dblock_client *client, const struct set *set)
{
    size_t i;

    for (i = 0; i < set->n_names; ++i)
        release(contract, take_within(contract, client, set->names[i], SLACK_MS));
}

/* ------------------------------------------------------------------------ cases */

static void many__are_held_like_single_ones(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);
    int64_t tokens[3];
    size_t i;

    take_many(contract, a, &set);
    for (i = 0; i < set.n_names; ++i) {
        assert_string_equal(set.names[i], dblock_lock_name(set.locks[i]));
        assert_int_equal(1, dblock_lock_is_held(set.locks[i]));
        expect_status(contract, DBLOCK_OK, dblock_confirm(set.locks[i], &contract->error));
        tokens[i] = token_of(contract, set.locks[i]);
        assert_true(tokens[i] > 0);
        expect_busy(contract, b, set.names[i]);
    }
    assert_string_not_equal(dblock_lock_owner(set.locks[0]), dblock_lock_owner(set.locks[1]));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
    for (i = 0; i < set.n_names; ++i) {
        dblock_lock *lock = take(contract, b, set.names[i]);

        assert_true(token_of(contract, lock) > tokens[i]);
        release(contract, lock);
    }
}

static void one_that_is_busy__leaves_the_others_free(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct set set = own_set(contract);
    dblock_lock *held = take(contract, b, set.names[2]);

    options.busy = &busy;
    expect_status(contract, DBLOCK_BUSY, attempt_many(contract, a, &set, &options));
    assert_string_equal(set.names[2], busy.name);
    assert_string_equal(dblock_lock_owner(held), busy.owner);
    assert_null(set.locks[0]);
    release(contract, take(contract, b, set.names[0]));
    release(contract, take(contract, b, set.names[1]));
    release(contract, held);
    options.busy = NULL;
    expect_status(contract, DBLOCK_OK, attempt_many(contract, a, &set, &options));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

/* Also if the one who has it is the same client. */
static void own_client__is_in_the_way_too(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);
    dblock_lock *held = take(contract, client, set.names[0]);

    expect_status(contract, DBLOCK_BUSY, attempt_many(contract, client, &set, &options));
    release(contract, held);
    take_many(contract, client, &set);
    expect_status(contract, DBLOCK_BUSY, attempt_many(contract, client, &set, &options));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

static void ended_grants__are_no_obstacle(struct contract *contract)
{
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);

    options.ttl_ms = 300;
    hold_elsewhere(contract, set.names[0], &options);
    kill_elsewhere(contract);
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    (void)take_with(contract, b, set.names[2], &options);
    options.heartbeat = contract->kind->heartbeat;
    options.ttl_ms = 10000;
    options.wait_ms = 10000;
    expect_status(contract, DBLOCK_OK, attempt_many(contract, b, &set, &options));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

struct many_job {
    struct contract *contract;
    dblock_client *client;
    struct set set;
    struct dblock_options options;
    pthread_t thread;
    atomic_int is_done;
    dblock_status status;
    struct dblock_error error;
};

static void *run_job(void *context)
{
    struct many_job *job = context;

    job->status = dblock_acquire_many(job->client, job->set.names, job->set.n_names, &job->options,
        job->set.locks, &job->error);
    atomic_store(&job->is_done, 1);
    return NULL;
}

static int is_waiting(void *context)
{
    struct many_job *job = context;
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(job->client, &stats) == DBLOCK_OK && stats.waiters > 0;
}

static int is_done(void *context)
{
    return atomic_load(&((struct many_job *)context)->is_done);
}

static void begin_job(struct contract *contract, struct many_job *job, dblock_client *client,
    const struct set *set)
{
    memset(job, 0, sizeof *job);
    job->contract = contract;
    job->client = client;
    job->set = *set;
    job->options = own_options(contract);
    job->options.wait_ms = 20000;
    assert_int_equal(0, pthread_create(&job->thread, NULL, run_job, job));
    assert_true(test_until(is_waiting, job, 5000));
}

static void end_job(struct many_job *job)
{
    size_t i;

    assert_int_equal(0, pthread_join(job->thread, NULL));
    for (i = 0; job->status == DBLOCK_OK && i < job->set.n_names; ++i)
        (void)note_lock(job->contract, job->set.locks[i]);
}

/* Who waits for one holds none of the others. */
static void waiting__holds_nothing_and_is_woken(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);
    dblock_lock *first = take(contract, b, set.names[0]);
    dblock_lock *second = take(contract, b, set.names[2]);
    struct many_job job;
    uint64_t begun_ms;

    begin_job(contract, &job, a, &set);
    release(contract, take(contract, b, set.names[1]));
    release(contract, first);
    test_pass_ms(100); /* time enough to be wrong */
    assert_int_equal(0, is_done(&job));
    release(contract, take_within(contract, b, set.names[1], SLACK_MS));
    release(contract, take_within(contract, b, set.names[0], SLACK_MS));
    begun_ms = test_now_ms();
    release(contract, second);
    assert_true(test_until(is_done, &job, 5000));
    assert_true(test_now_ms() - begun_ms < SLACK_MS);
    end_job(&job);
    contract->error = job.error;
    expect_status(contract, DBLOCK_OK, job.status);
    expect_status(contract, DBLOCK_OK, release_many(contract, &job.set));
}

static void cancelled__leaves_nothing_behind(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);
    dblock_lock *held = take(contract, b, set.names[1]);
    struct dblock_options options = own_options(contract);

    options.canceller = new_canceller(contract);
    dblock_cancel(options.canceller);
    options.wait_ms = 20000;
    expect_status(contract, DBLOCK_CANCELLED, attempt_many(contract, a, &set, &options));
    options.canceller = NULL;
    options.wait_ms = 100;
    expect_status(contract, DBLOCK_BUSY, attempt_many(contract, a, &set, &options));
    release(contract, held);
    expect_all_free(contract, b, &set);
}

/* What the callers below share: who is inside of which name. */
struct arena {
    struct contract *contract;
    struct set set;
    atomic_int inside[3];
    atomic_int n_overlaps;
    uint64_t end_ms;
};

struct caller {
    struct arena *arena;
    dblock_client *client;
    pthread_t thread;
    size_t n_names; /* 1: a single take of the last name */
    size_t first;   /* the first of them, and then the next ones, in a circle */
    unsigned n_grants;
    dblock_status failure;
    struct dblock_error error;
};

static void visit(struct caller *caller)
{
    struct arena *arena = caller->arena;
    size_t i;

    ++caller->n_grants;
    for (i = 0; i < caller->n_names; ++i)
        if (atomic_fetch_add(&arena->inside[(caller->first + i) % 3], 1) != 0)
            (void)atomic_fetch_add(&arena->n_overlaps, 1);
    for (i = 0; i < caller->n_names; ++i)
        (void)atomic_fetch_sub(&arena->inside[(caller->first + i) % 3], 1);
}

static void *hammer(void *context)
{
    struct caller *caller = context;
    struct arena *arena = caller->arena;
    struct dblock_options options = own_options(arena->contract);
    const char *names[3];
    dblock_lock *locks[3];
    dblock_status status;
    size_t i;

    options.wait_ms = 20000;
    for (i = 0; i < caller->n_names; ++i)
        names[i] = arena->set.names[(caller->first + i) % 3];
    while (test_now_ms() < arena->end_ms || caller->n_grants == 0) {
        if (caller->n_names == 1)
            status = dblock_acquire(caller->client, names[0], &options, locks, &caller->error);
        else
            status = dblock_acquire_many(
                caller->client, names, caller->n_names, &options, locks, &caller->error);
        if (status != DBLOCK_OK) {
            caller->failure = status;
            break;
        }
        visit(caller);
        status = dblock_release_many(locks, caller->n_names, &caller->error);
        for (i = 0; i < caller->n_names; ++i)
            dblock_lock_free(locks[i]);
        if (status != DBLOCK_OK) {
            caller->failure = status;
            break;
        }
    }
    return NULL;
}

/* {a,b}, {b,c}, {c,a}, all three, and one by one in between: each gets on, and no deadlock of the
 * database reaches anybody. */
static void opposite_orders__keep_nobody_waiting(struct contract *contract)
{
    static const size_t n_names[N_CALLERS] = { 2, 2, 2, 3, 1 };
    struct arena arena = { contract, own_set(contract), { 0 }, 0, test_now_ms() + HAMMER_MS };
    struct caller callers[N_CALLERS];
    size_t i;

    memset(callers, 0, sizeof callers);
    for (i = 0; i < N_CALLERS; ++i) {
        callers[i].arena = &arena;
        callers[i].client = open_client(contract, NULL);
        callers[i].n_names = n_names[i];
        callers[i].first = i % 3;
    }
    for (i = 0; i < N_CALLERS; ++i)
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, hammer, &callers[i]));
    for (i = 0; i < N_CALLERS; ++i)
        assert_int_equal(0, pthread_join(callers[i].thread, NULL));
    for (i = 0; i < N_CALLERS; ++i) {
        contract->error = callers[i].error;
        expect_status(contract, DBLOCK_OK, callers[i].failure);
        assert_true(callers[i].n_grants > 0);
    }
    assert_int_equal(0, atomic_load(&arena.n_overlaps));
    expect_all_free(contract, callers[0].client, &arena.set);
}

static void one_that_is_broken__leaves_the_others_held(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);

    take_many(contract, a, &set);
    expect_status(contract, DBLOCK_OK,
        dblock_break(b, set.names[1], contract->kind->strategy, 0, &contract->error));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(set.locks[1], &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(set.locks[0], &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(set.locks[2], &contract->error));
    release(contract, take(contract, b, set.names[1]));
    expect_busy(contract, b, set.names[0]);
    expect_status(contract, DBLOCK_LOST, release_many(contract, &set));
    expect_status(contract, DBLOCK_NOT_HELD, release_many(contract, &set));
    expect_all_free(contract, b, &set);
}

static void time_that_is_over__ends_all(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);

    options.ttl_ms = 200;
    expect_status(contract, DBLOCK_OK, attempt_many(contract, a, &set, &options));
    assert_true(is_lost_within(set.locks[0], 3000));
    assert_int_equal(0, dblock_lock_is_held(set.locks[2]));
    options.ttl_ms = 10000;
    options.wait_ms = 3000;
    expect_status(contract, DBLOCK_OK, attempt_many(contract, b, &set, &options));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

static void heartbeats__are_one_for_all(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    struct set set = own_set(contract);

    take_many(contract, client, &set);
    expect_status(contract, DBLOCK_OK, dblock_client_stats(client, &stats));
    assert_int_equal(3, stats.locks_held);
    assert_int_equal(1, stats.sessions);
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

static void release__of_a_guarded_one_is_pending(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);

    take_many(contract, a, &set);
    contract->guard = contract->database->guard(contract->kind->strategy, set.names[1]);
    expect_status(contract, DBLOCK_PENDING, release_many(contract, &set));
    release(contract, take(contract, b, set.names[0]));
    release(contract, take(contract, b, set.names[2]));
    expect_busy(contract, b, set.names[1]);
    contract->database->unguard(contract->guard);
    contract->guard = NULL;
    expect_all_free(contract, b, &set);
}

static void releases__go_together_as_far_as_they_can(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *locks[3] = { take(contract, client, own_name(contract, "x")), NULL,
        take(contract, client, own_name(contract, "y")) };

    expect_status(contract, DBLOCK_OK, dblock_release_many(NULL, 0, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_release_many(NULL, 1, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_release_many(locks, 3, &contract->error));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release_many(locks, 3, &contract->error));
    release(contract, take(contract, client, dblock_lock_name(locks[0])));
    release(contract, take(contract, client, dblock_lock_name(locks[2])));
}

static void one_and_as_many_as_may_be__are_taken(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    const char *word = own_name(contract, "n");
    char names[DBLOCK_MANY_MAX][DBLOCK_NAME_MAX + 1];
    struct set set;
    size_t i;

    for (i = 0; i < DBLOCK_MANY_MAX; ++i) {
        (void)snprintf(names[i], sizeof names[i], "%.200s/%zu", word, i);
        set.names[i] = names[i];
    }
    set.n_names = DBLOCK_MANY_MAX;
    take_many(contract, a, &set);
    expect_busy(contract, b, names[DBLOCK_MANY_MAX - 1]);
    expect_status(contract, DBLOCK_BUSY, attempt_many(contract, b, &set, &options));
    for (i = 0; i < DBLOCK_MANY_MAX; ++i)
        assert_string_equal(names[i], dblock_lock_name(set.locks[i]));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
    take_many(contract, b, &set);
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
    set.n_names = 1;
    take_many(contract, b, &set);
    expect_busy(contract, a, names[0]);
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

static void wrong_names__are_refused(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_error *error = &contract->error;
    struct set set = own_set(contract);
    size_t i;

    set.n_names = 0;
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt_many(contract, client, &set, &options));
    set.n_names = 3;
    set.names[2] = set.names[0];
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt_many(contract, client, &set, &options));
    assert_non_null(strstr(error->message, set.names[0]));
    assert_true(error->hint[0] != 0);
    set.names[2] = NULL;
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt_many(contract, client, &set, &options));
    set.n_names = DBLOCK_MANY_MAX + 1;
    for (i = 0; i < set.n_names; ++i)
        set.names[i] = "x";
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt_many(contract, client, &set, &options));
    assert_true(error->hint[0] != 0);
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_many(client, NULL, 1, &options, set.locks, error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_many(client, set.names, 1, &options, NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_acquire_many(NULL, set.names, 1, &options, set.locks, error));
    options.flags = DBLOCK_FAIR;
    options.wait_ms = 10;
    expect_status(contract, DBLOCK_E_UNSUPPORTED,
        dblock_acquire_many(client, set.names, 1, &options, set.locks, error));
}

static void connection_locks__cannot_be_had_together(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct set set = own_set(contract);

    expect_status(contract, DBLOCK_E_UNSUPPORTED, attempt_many(contract, client, &set, &options));
    assert_true(contract->error.hint[0] != 0);
}

static void lost_answer__is_settled(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct set set = own_set(contract);

    contract->database->hurt(CONTRACT_LOSE_TAKE);
    take_many(contract, a, &set);
    expect_busy(contract, b, set.names[2]);
    expect_status(contract, DBLOCK_OK, dblock_confirm(set.locks[2], &contract->error));
    contract->database->hurt(CONTRACT_LOSE_RELEASE);
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
    expect_all_free(contract, b, &set);
}

static void answer_that_cannot_be_settled__is_given_back(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    dblock_client *a, *b;
    struct set set = own_set(contract);

    config.io_timeout_ms = 300;
    a = open_configured(contract, CONTRACT_URL, &config);
    b = open_client(contract, "b");
    contract->database->hurt(CONTRACT_LOSE_TAKE_AND_LOOKS);
    expect_status(contract, DBLOCK_E_UNCERTAIN, attempt_many(contract, a, &set, &options));
    assert_null(set.locks[0]);
    options.wait_ms = 10000;
    expect_status(contract, DBLOCK_OK, attempt_many(contract, b, &set, &options));
    expect_status(contract, DBLOCK_OK, release_many(contract, &set));
}

const struct contract_case many_cases[] = {
    { "many__are_held_like_single_ones", many__are_held_like_single_ones, RECORDED, has_many },
    { "one_that_is_busy__leaves_the_others_free", one_that_is_busy__leaves_the_others_free,
        RECORDED, has_many },
    { "own_client__is_in_the_way_too", own_client__is_in_the_way_too, BEAT, has_many },
    { "ended_grants__are_no_obstacle", ended_grants__are_no_obstacle, LEASE | INSERT, has_many },
    { "waiting__holds_nothing_and_is_woken", waiting__holds_nothing_and_is_woken, BEAT, has_many },
    { "cancelled__leaves_nothing_behind", cancelled__leaves_nothing_behind, BEAT, has_many },
    { "opposite_orders__keep_nobody_waiting", opposite_orders__keep_nobody_waiting, LEASE | INSERT,
        has_many },
    { "one_that_is_broken__leaves_the_others_held", one_that_is_broken__leaves_the_others_held,
        RECORDED, has_many },
    { "time_that_is_over__ends_all", time_that_is_over__ends_all, TIMED, has_many },
    { "heartbeats__are_one_for_all", heartbeats__are_one_for_all, BEAT, has_many },
    { "release__of_a_guarded_one_is_pending", release__of_a_guarded_one_is_pending, BEAT,
        has_many_and_guards },
    { "releases__go_together_as_far_as_they_can", releases__go_together_as_far_as_they_can, ALL,
        NULL },
    { "one_and_as_many_as_may_be__are_taken", one_and_as_many_as_may_be__are_taken, RECORDED,
        has_many },
    { "wrong_names__are_refused", wrong_names__are_refused, ONCE, NULL },
    { "connection_locks__cannot_be_had_together", connection_locks__cannot_be_had_together, LIVE,
        NULL },
    { "lost_answer__is_settled", lost_answer__is_settled, RECORDED, has_many_and_hurts },
    { "answer_that_cannot_be_settled__is_given_back", answer_that_cannot_be_settled__is_given_back,
        RECORDED, has_many_and_hurts },
    { NULL, NULL, 0, NULL },
};
