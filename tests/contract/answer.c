/* SPDX-License-Identifier: MIT */
/* answer.c - P7, P8, I1 and I2: answers that are lost, late, or never come are
 * settled and never guessed, and no call waits for them longer than was said.
 * Only where a fixture can do that to an answer at will. */
#include "hearing.h"

enum { SLACK_MS = 1500, IO_MS = 600 };

static dblock_client *open_hasty(struct contract *contract, const char *label)
{
    struct dblock_config config = own_config(contract);

    config.io_timeout_ms = IO_MS;
    config.connect_timeout_ms = IO_MS;
    config.label = label;
    return open_configured(contract, CONTRACT_URL, &config);
}

static void lost_answer_of_take__is_settled_by_reading(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock;

    release(contract, take(contract, a, name)); /* session and connection are there */
    contract->database->hurt(CONTRACT_LOSE_TAKE);
    lock = take(contract, a, name);
    expect_busy(contract, b, name);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

/* The session lives on: without the keeper the name would be taken for ever (S1). */
static void take_that_cannot_be_settled__is_uncertain_and_given_back(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_hasty(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    dblock_lock *kept = take(contract, a, own_name(contract, "kept"));
    uint64_t begun_ms = test_now_ms();

    options.ttl_ms = 30000;
    contract->database->hurt(CONTRACT_LOSE_TAKE_AND_LOOKS);
    expect_status(contract, DBLOCK_E_UNCERTAIN, attempt(contract, a, name, &options, NULL));
    assert_int_equal(1, contract->error.is_transient);
    assert_in_range(test_now_ms() - begun_ms, IO_MS / 2, IO_MS + SLACK_MS);
    (void)take_within(contract, b, name, 5000);
    assert_int_equal(DBLOCK_OK, dblock_client_stats(a, &stats));
    assert_int_equal(1, stats.uncertain);
    assert_int_equal(1, dblock_lock_is_held(kept));
}

static void lost_answer_of_a_live_take__leaves_nothing(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_status status;

    release(contract, take(contract, a, name));
    contract->database->hurt(CONTRACT_LOSE_TAKE);
    status = attempt(contract, a, name, &options, NULL);
    /* what the connection may have got went with it; asking again is allowed then */
    if (status != DBLOCK_OK)
        expect_status(contract, DBLOCK_E_CONNECTION, status);
    else
        release(contract, contract->locks[contract->n_locks - 1]);
    (void)take_within(contract, b, name, SLACK_MS);
}

/* PITFALL(D16): what failed is done again. */
static void lost_answer_of_release__leaves_nobody_locked_out(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *next;
    dblock_status status;

    contract->database->hurt(CONTRACT_LOSE_RELEASE);
    status = dblock_release(lock, &contract->error);
    assert_true(status <= 0);
    assert_int_equal(0, dblock_lock_is_held(lock));
    next = take_within(contract, b, name, SLACK_MS);
    /* a repeated release must not hit whoever has it now */
    test_pass_ms(300);
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
}

/* B5: what is granted when belief in it is over already is not handed out. */
static void late_grant__is_not_believed(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();
    dblock_lock *lock;

    options.ttl_ms = 400; /* the answer comes at 500 */
    options.wait_ms = 5000;
    contract->database->hurt(CONTRACT_DELAY_TAKE);
    lock = take_with(contract, a, name, &options);
    assert_true(test_now_ms() - begun_ms >= 500);
    assert_in_range(dblock_lock_remaining_ms(lock), 100, 350);
    expect_busy(contract, b, name);
}

/* P2: the deadline is counted from before the request left. */
static void slow_answer__does_not_prolong_belief(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = 2000;
    contract->database->hurt(CONTRACT_DELAY_TAKE);
    lock = take_with(contract, client, name, &options);
    assert_in_range(dblock_lock_remaining_ms(lock), 900, 1750 - 480);
}

/* E3: one heartbeat that fails is repeated, and the job does not notice. */
static void refused_heartbeat__is_repeated(struct contract *contract)
{
    struct hearing hearing = { .ttl_ms = STEADY_TTL_MS };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_hearing(contract, client, own_name(contract, "x"), &hearing);

    contract->database->hurt(CONTRACT_REFUSE_HEARTBEAT);
    test_pass_ms(STEADY_TTL_MS + 300);
    assert_int_equal(1, dblock_lock_is_held(lock));
    assert_int_equal(0, atomic_load(&hearing.n_lost));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
}

/* E6: the deadline does not wait for a heartbeat that hangs. */
static void silence__is_told_at_the_deadline(struct contract *contract)
{
    struct hearing hearing = { 0 };
    struct dblock_config config = own_config(contract); /* the I/O limit is 4 s */
    uint64_t begun_ms = test_now_ms();
    dblock_client *client;
    dblock_lock *lock;

    config.ttl_ms = HEARING_TTL_MS; /* row and advisory are pinged every third of it */
    client = open_configured(contract, CONTRACT_URL, &config);
    lock = take_hearing(contract, client, own_name(contract, "x"), &hearing);
    contract->database->set_silent(1);
    assert_true(test_until(has_heard_lost, &hearing, 3000));
    /* a connection that does not answer a ping may be given up earlier */
    assert_in_range(
        test_now_ms() - begun_ms, is_kind(contract, LIVE) ? 0 : 500, HEARING_TTL_MS + 300);
    assert_int_equal(0, dblock_lock_is_held(lock));
    contract->database->set_silent(0);
}

static void silence__keeps_no_call_longer_than_its_limit(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_hasty(contract, NULL);
    dblock_client *other = open_client(contract, "other");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    uint64_t begun_ms;

    options.ttl_ms = 2000;
    lock = take_with(contract, client, name, &options);
    contract->database->set_silent(1);
    begun_ms = test_now_ms();
    assert_true(dblock_confirm(lock, &contract->error) != DBLOCK_OK);
    assert_in_range(test_now_ms() - begun_ms, 0, IO_MS + 400);
    begun_ms = test_now_ms();
    assert_true(attempt(contract, client, own_name(contract, "y"), &options, NULL) < 0);
    assert_in_range(test_now_ms() - begun_ms, 0, IO_MS + 400);
    begun_ms = test_now_ms();
    assert_true(dblock_release(lock, &contract->error) != DBLOCK_OK);
    assert_in_range(test_now_ms() - begun_ms, 0, IO_MS + 400);
    assert_int_equal(0, dblock_lock_is_held(lock));
    begun_ms = test_now_ms();
    close_client(contract, client);
    assert_in_range(test_now_ms() - begun_ms, 0, IO_MS + 400);
    contract->database->set_silent(0);
    (void)take_within(contract, other, name, 2000 + SLACK_MS);
}

static int can_be_hurt(const struct contract_database *database)
{
    return database->hurt != NULL;
}

static int can_fall_silent(const struct contract_database *database)
{
    return database->set_silent != NULL;
}

const struct contract_case answer_cases[] = {
    { "lost_answer_of_take__is_settled_by_reading", lost_answer_of_take__is_settled_by_reading,
        RECORDED, can_be_hurt },
    { "take_that_cannot_be_settled__is_uncertain_and_given_back",
        take_that_cannot_be_settled__is_uncertain_and_given_back, RECORDED, can_be_hurt },
    { "lost_answer_of_a_live_take__leaves_nothing", lost_answer_of_a_live_take__leaves_nothing,
        LIVE, can_be_hurt },
    { "lost_answer_of_release__leaves_nobody_locked_out",
        lost_answer_of_release__leaves_nobody_locked_out, ALL, can_be_hurt },
    { "late_grant__is_not_believed", late_grant__is_not_believed, RECORDED, can_be_hurt },
    { "slow_answer__does_not_prolong_belief", slow_answer__does_not_prolong_belief, TIMED,
        can_be_hurt },
    { "refused_heartbeat__is_repeated", refused_heartbeat__is_repeated, BEAT, can_be_hurt },
    { "silence__is_told_at_the_deadline", silence__is_told_at_the_deadline, BEAT | LIVE,
        can_fall_silent },
    { "silence__keeps_no_call_longer_than_its_limit", silence__keeps_no_call_longer_than_its_limit,
        ALL, can_fall_silent },
    { NULL, NULL, 0, NULL },
};
