/* SPDX-License-Identifier: MIT */
/* guard.c - a guarded transaction stands on the row of a grant: nothing hangs,
 * and everything is done in the end (S7). */
#include "contract.h"

enum { SLACK_MS = 2000, N_TRIES = 5 /* of which a busy machine may make some late */ };

static void begin_guard(struct contract *contract, const char *name)
{
    contract->guard = contract->database->guard(contract->kind->strategy, name);
    assert_non_null(contract->guard);
}

static void end_guard(struct contract *contract)
{
    contract->database->unguard(contract->guard);
    contract->guard = NULL;
}

static void guarded_grant__is_busy_for_a_try(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    uint64_t begun_ms, took_ms = SLACK_MS;
    int n;

    begin_guard(contract, name);
    for (n = 0; n < N_TRIES && took_ms >= 900; ++n) {
        begun_ms = test_now_ms();
        expect_busy(contract, b, name);
        took_ms = test_now_ms() - begun_ms;
    }
    assert_in_range(took_ms, 0, 899); /* no lock timeout, which is a second where there is one */
    end_guard(contract);
    release(contract, lock);
}

/* The holder is gone, its transaction is not: busy, and said so. */
static void guarded_row_of_an_ended_grant__is_busy_and_pinned(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct contract_job *job;
    uint64_t begun_ms;

    options.ttl_ms = 200;
    (void)take_with(contract, a, name, &options);
    begin_guard(contract, name);
    test_pass_ms(230);
    options.ttl_ms = 10000;
    options.busy = &busy;
    begun_ms = test_now_ms();
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    /* where rows cannot be skipped, a second of lock timeout is the price */
    assert_true(test_now_ms() - begun_ms < 2500);
    assert_int_equal(1, busy.is_pinned);
    options.busy = NULL;
    options.wait_ms = 20000;
    job = start_waiting(contract, b, name, &options);
    assert_false(job_ends(job, 300));
    end_guard(contract);
    assert_true(job_ends(job, SLACK_MS));
    expect_status(contract, DBLOCK_OK, job->status);
}

static void release__under_a_guard_is_pending_and_done_later(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    uint64_t begun_ms;

    begin_guard(contract, name);
    begun_ms = test_now_ms();
    expect_status(contract, DBLOCK_PENDING, dblock_release(lock, &contract->error));
    assert_true(test_now_ms() - begun_ms < 2500);
    assert_int_equal(0, dblock_lock_is_held(lock));
    expect_busy(contract, b, name);
    end_guard(contract);
    release(contract, take_within(contract, b, name, SLACK_MS));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
}

static void free__under_a_guard_is_done_later(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    uint64_t begun_ms, took_ms = SLACK_MS;
    int n;

    for (n = 0; n < N_TRIES && took_ms >= 500; ++n) {
        dblock_lock *lock = take(contract, a, name);

        begin_guard(contract, name);
        begun_ms = test_now_ms();
        free_lock(contract, lock);
        took_ms = test_now_ms() - begun_ms;
        test_pass_ms(100);
        expect_busy(contract, b, name);
        end_guard(contract);
        release(contract, take_within(contract, b, name, SLACK_MS));
    }
    assert_in_range(took_ms, 0, 499);
}

static void break__under_a_guard_is_pending(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    int strategy = contract->kind->strategy;
    uint64_t begun_ms;

    begin_guard(contract, name);
    begun_ms = test_now_ms();
    expect_status(contract, DBLOCK_PENDING, dblock_break(b, name, strategy, 0, &contract->error));
    assert_true(test_now_ms() - begun_ms < 2500);
    end_guard(contract);
    /* nothing is left to do: it ends by itself */
    release(contract, take_within(contract, b, name, SLACK_MS));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
}

/* PITFALL(S8): heartbeats touch the session's row alone. */
static void heartbeat__goes_on_under_a_guard(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = 600;
    lock = take_with(contract, client, name, &options);
    begin_guard(contract, name);
    test_pass_ms(1000);
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    end_guard(contract);
    release(contract, lock);
}

static void guard__leaves_other_names_alone(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *other;

    (void)take(contract, client, name);
    begin_guard(contract, name);
    other = take(contract, client, own_name(contract, "other"));
    release(contract, other);
    end_guard(contract);
}

/* ------------------------------------------------------------- row and advisory */

/* The lock itself is given back, and the guard keeps out who wants it with its token. */
static void fenced_take__meets_the_guard_of_the_last_holder(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct contract_job *job;
    dblock_lock *lock;
    uint64_t begun_ms;
    int64_t last;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    last = token_of(contract, lock);
    begin_guard(contract, name);
    release(contract, lock); /* not PENDING */
    options.busy = &busy;
    begun_ms = test_now_ms();
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    assert_true(test_now_ms() - begun_ms < 2500);
    assert_int_equal(1, busy.is_pinned);
    assert_string_equal(name, busy.name);
    begun_ms = test_now_ms();
    options.wait_ms = 200;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    assert_true(test_now_ms() - begun_ms >= 200);
    options.busy = NULL;
    options.wait_ms = 20000;
    job = start_waiting(contract, b, name, &options);
    assert_false(job_ends(job, 300));
    end_guard(contract);
    assert_true(job_ends(job, SLACK_MS));
    expect_status(contract, DBLOCK_OK, job->status);
    assert_true(token_of(contract, job->lock) > last);
}

static void unfenced_take__passes_the_guard_and_draws_later(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    int64_t token = 0;
    int64_t last;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    last = token_of(contract, lock);
    begin_guard(contract, name);
    release(contract, lock);
    lock = take(contract, b, name);
    expect_status(contract, DBLOCK_E_DATABASE, dblock_lock_token(lock, &token, &contract->error));
    assert_int_equal(1, contract->error.is_transient);
    assert_int_equal(1, dblock_lock_is_held(lock));
    end_guard(contract);
    assert_true(token_of(contract, lock) > last);
    release(contract, lock);
}

/* From thread to thread of one client nobody asks the database; for the token it is asked. */
static void handed_over_grant__waits_for_the_guard(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "a");
    struct dblock_options options = own_options(contract);
    struct contract_job *job;
    dblock_lock *lock;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, client, name, &options);
    begin_guard(contract, name);
    release(contract, lock);
    lock = take(contract, client, name); /* without its token */
    options.wait_ms = 20000;
    job = start_waiting(contract, client, name, &options);
    assert_false(job_ends(job, 100));
    release(contract, lock);
    assert_false(job_ends(job, 300));
    end_guard(contract);
    assert_true(job_ends(job, SLACK_MS));
    expect_status(contract, DBLOCK_OK, job->status);
}

/* A guard of a lock that is held for hours must find its token. */
static void purge__leaves_the_token_of_a_held_lock(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    contract->database->age(own_name(contract, "another")); /* and all tokens */
    expect_status(contract, DBLOCK_OK, contract_purge(contract->database, &contract->error));
    begin_guard(contract, name); /* of nothing, if the row has gone */
    release(contract, lock);
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    end_guard(contract);
}

static void break__of_a_guarded_lock_is_pending(struct contract *contract)
{
    const struct contract_database *database = contract->database;
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    int strategy = contract->kind->strategy;
    dblock_lock *lock;

    if (strategy == DBLOCK_ROW ? !database->breaks_row : !database->breaks_advisory)
        return;
    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    begin_guard(contract, name);
    expect_status(contract, DBLOCK_PENDING, dblock_break(b, name, strategy, 0, &contract->error));
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    end_guard(contract);
    options.wait_ms = SLACK_MS;
    release(contract, take_with(contract, b, name, &options));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
}

static int can_guard(const struct contract_database *database)
{
    return database->guard != NULL;
}

const struct contract_case guard_cases[] = {
    { "guarded_grant__is_busy_for_a_try", guarded_grant__is_busy_for_a_try, RECORDED, can_guard },
    { "guarded_row_of_an_ended_grant__is_busy_and_pinned",
        guarded_row_of_an_ended_grant__is_busy_and_pinned, TIMED, can_guard },
    { "release__under_a_guard_is_pending_and_done_later",
        release__under_a_guard_is_pending_and_done_later, RECORDED, can_guard },
    { "free__under_a_guard_is_done_later", free__under_a_guard_is_done_later, RECORDED, can_guard },
    { "break__under_a_guard_is_pending", break__under_a_guard_is_pending, RECORDED, can_guard },
    { "heartbeat__goes_on_under_a_guard", heartbeat__goes_on_under_a_guard, BEAT, can_guard },
    { "guard__leaves_other_names_alone", guard__leaves_other_names_alone, RECORDED, can_guard },
    { "fenced_take__meets_the_guard_of_the_last_holder",
        fenced_take__meets_the_guard_of_the_last_holder, LIVE, can_guard },
    { "unfenced_take__passes_the_guard_and_draws_later",
        unfenced_take__passes_the_guard_and_draws_later, LIVE, can_guard },
    { "handed_over_grant__waits_for_the_guard", handed_over_grant__waits_for_the_guard, LIVE,
        can_guard },
    { "break__of_a_guarded_lock_is_pending", break__of_a_guarded_lock_is_pending, LIVE,
        can_guard },
    { "purge__leaves_the_token_of_a_held_lock", purge__leaves_the_token_of_a_held_lock, LIVE,
        can_guard },
    { NULL, NULL, 0, NULL },
};
