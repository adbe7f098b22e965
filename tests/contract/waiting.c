/* SPDX-License-Identifier: MIT */
/* waiting.c - P7: every wait ends, in time, and leaves nothing behind. */
#include "contract.h"

/* How much later than asked a wait may end: what the promise allows is one I/O limit. */
enum { SLACK_MS = 1500, N_TRIES = 5 };

static void wait__gets_the_lock_on_release(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, a, name);
    struct contract_job *job;
    uint64_t released_ms;

    options.wait_ms = 20000;
    job = start_waiting(contract, b, name, &options);
    released_ms = test_now_ms();
    release(contract, lock);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
    assert_true(job->ended_ms - released_ms < SLACK_MS);
    assert_int_equal(1, dblock_lock_is_held(job->lock));
    expect_busy(contract, a, name);
}

static void wait__for_ever_gets_the_lock_on_release(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, a, name);
    struct contract_job *job;

    options.wait_ms = DBLOCK_FOREVER;
    job = start_waiting(contract, b, name, &options);
    release(contract, lock);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
}

static void waiters_of_one_client__all_get_it_in_turn(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, client, name);
    struct contract_job *jobs[3];
    int is_served[3] = { 0, 0, 0 };
    int n_served;
    size_t i;

    options.wait_ms = 20000;
    for (i = 0; i < 3; ++i)
        jobs[i] = start_waiting(contract, client, name, &options);
    for (n_served = 0; n_served < 3; ++n_served) {
        uint64_t end_ms = test_now_ms() + 5000;
        int n_new = 0;

        release(contract, lock);
        while (n_new == 0 && test_now_ms() < end_ms)
            for (i = 0; i < 3 && n_new == 0; ++i)
                if (!is_served[i] && job_ends(jobs[i], 5)) {
                    expect_status(contract, DBLOCK_OK, jobs[i]->status);
                    lock = jobs[i]->lock;
                    is_served[i] = 1;
                    ++n_new;
                }
        assert_int_equal(1, n_new);
    }
}

static void wait__ends_in_time_with_busy(struct contract *contract)
{
    static const uint64_t waits_ms[] = { 0, 30, 300 };
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, a, name);
    size_t i;

    for (i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; ++i) {
        uint64_t begun_ms = test_now_ms();
        uint64_t took_ms;

        options.wait_ms = waits_ms[i];
        expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
        took_ms = test_now_ms() - begun_ms;
        assert_true(took_ms + 2 >= waits_ms[i]);
        assert_true(took_ms < waits_ms[i] + SLACK_MS);
    }
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

static void wait__gets_a_timed_grant_when_it_expires(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();
    uint64_t took_ms;

    options.ttl_ms = 400;
    (void)take_with(contract, a, name, &options);
    options.wait_ms = 10000;
    (void)take_with(contract, b, name, &options);
    took_ms = test_now_ms() - begun_ms;
    assert_true(took_ms >= 395);
    assert_true(took_ms < 400 + SLACK_MS);
}

/* C13: a cancelled wait must not take the lock later on. On a busy machine one may end late, but not
 * each. */
static void cancel__ends_a_wait_at_once_and_leaves_nothing(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_client *c = open_client(contract, "c");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock = take(contract, a, name);
    uint64_t raised_ms, took_ms = SLACK_MS;
    int n;

    options.wait_ms = DBLOCK_FOREVER;
    options.canceller = new_canceller(contract);
    for (n = 0; n < N_TRIES && took_ms > 100; ++n) {
        struct contract_job *job = start_waiting(contract, b, name, &options);

        raised_ms = test_now_ms();
        dblock_cancel(options.canceller);
        assert_true(job_ends(job, 5000));
        expect_status(contract, DBLOCK_CANCELLED, job->status);
        assert_null(job->lock);
        took_ms = job->ended_ms - raised_ms;
        dblock_canceller_reset(options.canceller);
    }
    assert_in_range(took_ms, 0, 100);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, c, name));
    release(contract, take(contract, c, name));
}

static void canceller__ends_many_waits_and_stays_raised(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct contract_job *jobs[3];
    dblock_lock *lock = take(contract, a, name);
    uint64_t begun_ms;
    size_t i;

    options.wait_ms = DBLOCK_FOREVER;
    options.canceller = new_canceller(contract);
    assert_int_equal(0, dblock_canceller_is_raised(options.canceller));
    assert_false(test_readable(dblock_canceller_fd(options.canceller), 0));
    jobs[0] = start_waiting(contract, a, name, &options);
    jobs[1] = start_waiting(contract, b, name, &options);
    jobs[2] = start_waiting(contract, b, name, &options);
    dblock_cancel(options.canceller);
    for (i = 0; i < 3; ++i) {
        assert_true(job_ends(jobs[i], 5000));
        expect_status(contract, DBLOCK_CANCELLED, jobs[i]->status);
    }
    assert_int_equal(1, dblock_canceller_is_raised(options.canceller));
    assert_true(test_readable(dblock_canceller_fd(options.canceller), 0));

    begun_ms = test_now_ms();
    expect_status(contract, DBLOCK_CANCELLED, attempt(contract, b, name, &options, NULL));
    assert_true(test_now_ms() - begun_ms < 5000);

    dblock_canceller_reset(options.canceller);
    assert_int_equal(0, dblock_canceller_is_raised(options.canceller));
    assert_false(test_readable(dblock_canceller_fd(options.canceller), 0));
    options.wait_ms = 20;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

static void close__ends_waits_of_other_threads(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct contract_job *job;
    dblock_lock *lock = take(contract, a, name);

    options.wait_ms = DBLOCK_FOREVER;
    job = start_waiting(contract, b, name, &options);
    close_client(contract, b);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_E_CLOSED, job->status);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, a, name));
}

static void wait__goes_on_when_the_holder_dies(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    struct contract_job *job;
    dblock_client *client;
    uint64_t killed_ms;

    options.ttl_ms = 700;
    hold_elsewhere(contract, name, &options);
    client = open_client(contract, "heir");
    options.wait_ms = 20000;
    job = start_waiting(contract, client, name, &options);
    killed_ms = test_now_ms();
    kill_elsewhere(contract);
    assert_true(job_ends(job, 10000));
    expect_status(contract, DBLOCK_OK, job->status);
    assert_true(job->ended_ms - killed_ms < 700 + SLACK_MS);
}

const struct contract_case waiting_cases[] = {
    { "wait__gets_the_lock_on_release", wait__gets_the_lock_on_release, ALL, NULL },
    { "wait__for_ever_gets_the_lock_on_release", wait__for_ever_gets_the_lock_on_release, ALL,
        NULL },
    { "waiters_of_one_client__all_get_it_in_turn", waiters_of_one_client__all_get_it_in_turn, ALL,
        NULL },
    { "wait__ends_in_time_with_busy", wait__ends_in_time_with_busy, ALL, NULL },
    { "wait__gets_a_timed_grant_when_it_expires", wait__gets_a_timed_grant_when_it_expires, TIMED,
        NULL },
    { "cancel__ends_a_wait_at_once_and_leaves_nothing",
        cancel__ends_a_wait_at_once_and_leaves_nothing, ALL, NULL },
    { "canceller__ends_many_waits_and_stays_raised", canceller__ends_many_waits_and_stays_raised,
        ALL, NULL },
    { "close__ends_waits_of_other_threads", close__ends_waits_of_other_threads, ALL, NULL },
    { "wait__goes_on_when_the_holder_dies", wait__goes_on_when_the_holder_dies, ALL, NULL },
    { NULL, NULL, 0, NULL },
};
