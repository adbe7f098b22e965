/* SPDX-License-Identifier: MIT */
/* expiry.c - P2, P5 and P6: how long a grant lasts, and that belief in it ends
 * before the grant does. */
#include "contract.h"

enum { SLACK_MS = 1500 };

static void timed_grant__ends_by_itself(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();
    uint64_t taken_ms, took_ms, last_ms = 0;
    dblock_lock *lock;

    options.ttl_ms = 400; /* it began at some time between begun_ms and taken_ms */
    lock = take_with(contract, a, name, &options);
    taken_ms = test_now_ms();
    assert_int_equal(400, dblock_lock_ttl_ms(lock));
    expect_busy(contract, b, name);
    /* at 7/8 of it; a slow machine may look late, but whenever it looks */
    for (took_ms = 0; took_ms < 2000 && dblock_lock_is_held(lock); took_ms = last_ms) {
        last_ms = test_now_ms() - taken_ms;
        assert_true(!dblock_lock_is_held(lock) || last_ms < 400);
        (void)test_readable(-1, 2);
    }
    assert_false(dblock_lock_is_held(lock));
    assert_true(test_now_ms() - begun_ms >= 345);
    assert_int_equal(0, dblock_lock_remaining_ms(lock));
    (void)take_within(contract, b, name, 400 + SLACK_MS);
    assert_true(test_now_ms() - begun_ms >= 395);
    expect_status(contract, DBLOCK_LOST, dblock_release(lock, &contract->error));
    assert_int_equal(DBLOCK_CAUSE_DEADLINE, dblock_lock_cause(lock));
    expect_busy(contract, a, name);
}

/* PITFALL(S13) */
static void belief__ends_an_eighth_before_the_grant(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    assert_in_range(dblock_lock_remaining_ms(lock), 6000, 8750);
    assert_int_equal(10000, dblock_lock_ttl_ms(lock));
}

/* B10: no observation is needed for one that ended long ago. */
static void expired_grant__is_free_at_the_first_try(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);

    options.ttl_ms = 100;
    (void)take_with(contract, a, name, &options);
    test_pass_ms(130); /* that the time is over is what is tested */
    (void)take(contract, b, name);
}

/* B9: whoever comes later brings a ttl of its own, and waits for the holder's. */
static void expiry__is_judged_by_the_ttl_of_the_holder(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);

    (void)take(contract, a, name);
    options.ttl_ms = 100;
    options.wait_ms = 400;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
}

/* PITFALL(E9): a short ttl is enough for long work. */
static void heartbeat__outlives_the_ttl(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t end_ms;
    dblock_lock *lock;

    options.ttl_ms = 900;
    lock = take_with(contract, a, name, &options);
    assert_int_equal(900, dblock_lock_ttl_ms(lock));
    end_ms = test_now_ms() + 2 * 900;
    while (test_now_ms() < end_ms) {
        assert_int_equal(1, dblock_lock_is_held(lock));
        expect_busy(contract, b, name);
        test_pass_ms(20);
    }
    assert_true(dblock_lock_remaining_ms(lock) > 0);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

static void heartbeat__rounds_the_ttl_down_to_a_class(struct contract *contract)
{
    static const uint64_t ttls_ms[][2] = { { 100, 100 }, { 700, 700 }, { 1000, 1000 },
        { 1999, 1000 }, { 4999, 2000 }, { 9000, 5000 }, { 14000, 10000 } };
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    size_t i;

    for (i = 0; i < sizeof ttls_ms / sizeof ttls_ms[0]; ++i) {
        dblock_lock *lock;

        options.ttl_ms = ttls_ms[i][0];
        lock = take_with(contract, client, own_name(contract, "x"), &options);
        assert_int_equal(ttls_ms[i][1], dblock_lock_ttl_ms(lock));
        release(contract, lock);
    }
}

static void many_heartbeat_grants__all_outlive_the_ttl(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    size_t i;

    options.ttl_ms = 900;
    for (i = 0; i < 30; ++i)
        (void)take_with(contract, client, own_name(contract, "many"), &options);
    test_pass_ms(1800); /* twice the ttl */
    for (i = 0; i < 30; ++i)
        expect_status(contract, DBLOCK_OK, dblock_confirm(contract->locks[i], &contract->error));
}

/* Row and advisory: kept by their connection however long, and proven again and again. */
static void live_grant__outlives_the_ttl(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    dblock_client *a;
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock;

    config.ttl_ms = 500;
    options.ttl_ms = 500;
    a = open_configured(contract, CONTRACT_URL, &config);
    lock = take_with(contract, a, name, &options);
    test_pass_ms(1500);
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect_busy(contract, b, name);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

/* E8 and P6. */
static void dead_holder__is_taken_over(struct contract *contract)
{
    const uint64_t ttl_ms = 800;
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_client *client;
    uint64_t took_ms;

    options.ttl_ms = ttl_ms;
    hold_elsewhere(contract, name, &options);
    client = open_client(contract, "heir");
    expect_busy(contract, client, name);
    kill_elsewhere(contract);
    took_ms = test_now_ms();
    (void)take_within(contract, client, name, 10000);
    took_ms = test_now_ms() - took_ms;
    /* row and advisory: as soon as the server sees the connection end */
    assert_in_range(took_ms, 0, is_kind(contract, LIVE) ? SLACK_MS : ttl_ms + SLACK_MS);
}

static void extend__moves_the_end(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = 500;
    lock = take_with(contract, a, name, &options);
    expect_status(contract, DBLOCK_OK, dblock_extend(lock, 5000, &contract->error));
    assert_in_range(dblock_lock_remaining_ms(lock), 3000, 4375);
    test_pass_ms(600); /* past the first end */
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect_busy(contract, b, name);
    /* and also to an earlier one */
    expect_status(contract, DBLOCK_OK, dblock_extend(lock, 200, &contract->error));
    assert_in_range(dblock_lock_remaining_ms(lock), 1, 175);
    (void)take_within(contract, b, name, 200 + SLACK_MS);
    assert_int_equal(0, dblock_lock_is_held(lock));
}

static void extend__by_zero_is_the_ttl_it_was_taken_with(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = 6000;
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    expect_status(contract, DBLOCK_OK, dblock_extend(lock, 60000, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_extend(lock, 0, &contract->error));
    assert_in_range(dblock_lock_remaining_ms(lock), 3000, 5250);
}

/* E2: an end is never revived, and the new holder is left alone. */
static void extend__after_the_end_is_lost(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    dblock_lock *next;

    options.ttl_ms = 150;
    lock = take_with(contract, a, name, &options);
    next = take_within(contract, b, name, 3000);
    expect_status(contract, DBLOCK_LOST, dblock_extend(lock, 5000, &contract->error));
    assert_int_equal(0, dblock_lock_is_held(lock));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    expect_busy(contract, a, name);
}

/* The database still has it for an eighth of the ttl: that brings no belief back, whoever asks first. */
static void belief__never_comes_back(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    int is_extend;

    options.ttl_ms = 800;
    for (is_extend = 0; is_extend <= 1; ++is_extend) {
        lock = take_with(contract, client, own_name(contract, is_extend ? "extend" : "confirm"),
            &options);
        while (dblock_lock_is_held(lock))
            continue; /* to be there before the keeper */
        expect_status(contract, DBLOCK_LOST,
            is_extend ? dblock_extend(lock, 0, &contract->error)
                      : dblock_confirm(lock, &contract->error));
        assert_int_equal(0, dblock_lock_is_held(lock));
        assert_int_equal(DBLOCK_CAUSE_DEADLINE, dblock_lock_cause(lock));
    }
}

static void extend__after_the_release_is_not_held(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    release(contract, lock);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_extend(lock, 0, &contract->error));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_confirm(lock, &contract->error));
}

static void extend__without_a_ttl_of_its_own_is_a_question(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    expect_status(contract, DBLOCK_OK, dblock_extend(lock, 0, &contract->error));
    expect_status(contract, DBLOCK_E_UNSUPPORTED, dblock_extend(lock, 5000, &contract->error));
    assert_int_equal(1, dblock_lock_is_held(lock));
}

static void extend__refuses_more_than_ten_years(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_extend(lock, (uint64_t)-5, &contract->error));
    assert_int_equal(1, dblock_lock_is_held(lock));
}

static void confirm__asks_the_database(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));

    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, NULL));
    release(contract, lock);
}

/* E15: two short runs one after the other, on machines with different clocks. */
static void min_hold__keeps_the_name_taken(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();
    dblock_lock *lock;

    options.min_hold_ms = 600;
    lock = take_with(contract, a, name, &options);
    release(contract, lock);
    expect_busy(contract, b, name);
    expect_busy(contract, a, name);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_release(lock, &contract->error));
    (void)take_within(contract, b, name, 600 + SLACK_MS);
    assert_in_range(test_now_ms() - begun_ms, 590, 600 + SLACK_MS);
}

static void min_hold__that_is_over_frees_at_once(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.min_hold_ms = 50;
    lock = take_with(contract, client, name, &options);
    test_pass_ms(60);
    release(contract, lock);
    (void)take(contract, client, name);
}

static void min_hold__outlives_its_client(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);

    options.min_hold_ms = 600;
    release(contract, take_with(contract, a, name, &options));
    close_client(contract, a);
    expect_busy(contract, b, name);
    (void)take_within(contract, b, name, 600 + SLACK_MS);
}

/* A name that is kept is shown as what it is: timed, and of whoever had it. */
static void min_hold__shows_who_had_it(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX];
    dblock_lock *lock, *copy = NULL;
    int64_t token;

    options.min_hold_ms = 8000;
    options.label = "label of a";
    lock = take_with(contract, a, name, &options);
    token = token_of(contract, lock);
    expect_status(
        contract, DBLOCK_OK, dblock_lock_export(lock, text, sizeof text, &contract->error));
    release(contract, lock);
    options = own_options(contract);
    options.busy = &busy;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    expect_status(contract, DBLOCK_OK,
        dblock_inspect(b, name, contract->kind->strategy, &grant, &contract->error));
    assert_string_equal(dblock_lock_owner(lock), busy.owner);
    assert_string_equal(dblock_lock_owner(lock), grant.owner);
    assert_string_equal("label of a", busy.label);
    assert_string_equal("label of a", grant.label);
    assert_true(busy.token == token && grant.token == token);
    assert_int_equal(0, busy.is_heartbeat);
    assert_int_equal(0, grant.is_heartbeat);
    assert_in_range(busy.remaining_ms, 4000, 8000);
    assert_in_range(grant.remaining_ms, 4000, 8000);
    /* who knows the owner can still give it back at once */
    expect_status(contract, DBLOCK_OK, dblock_lock_import(b, text, &copy, &contract->error));
    release(contract, note_lock(contract, copy));
    (void)take(contract, b, name);
}

static void min_hold__of_a_connection_is_unsupported(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);

    options.min_hold_ms = 600;
    expect_status(contract, DBLOCK_E_UNSUPPORTED,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
}

const struct contract_case expiry_cases[] = {
    { "timed_grant__ends_by_itself", timed_grant__ends_by_itself, TIMED, NULL },
    { "belief__ends_an_eighth_before_the_grant", belief__ends_an_eighth_before_the_grant, RECORDED,
        NULL },
    { "expired_grant__is_free_at_the_first_try", expired_grant__is_free_at_the_first_try, TIMED,
        NULL },
    { "expiry__is_judged_by_the_ttl_of_the_holder", expiry__is_judged_by_the_ttl_of_the_holder,
        RECORDED, NULL },
    { "heartbeat__outlives_the_ttl", heartbeat__outlives_the_ttl, BEAT, NULL },
    { "heartbeat__rounds_the_ttl_down_to_a_class", heartbeat__rounds_the_ttl_down_to_a_class, BEAT,
        NULL },
    { "many_heartbeat_grants__all_outlive_the_ttl", many_heartbeat_grants__all_outlive_the_ttl,
        BEAT, NULL },
    { "live_grant__outlives_the_ttl", live_grant__outlives_the_ttl, LIVE, NULL },
    { "dead_holder__is_taken_over", dead_holder__is_taken_over, ALL, NULL },
    { "belief__never_comes_back", belief__never_comes_back, TIMED, NULL },
    { "extend__moves_the_end", extend__moves_the_end, TIMED, NULL },
    { "extend__by_zero_is_the_ttl_it_was_taken_with", extend__by_zero_is_the_ttl_it_was_taken_with,
        TIMED, NULL },
    { "extend__after_the_end_is_lost", extend__after_the_end_is_lost, TIMED, NULL },
    { "extend__after_the_release_is_not_held", extend__after_the_release_is_not_held, ALL, NULL },
    { "extend__without_a_ttl_of_its_own_is_a_question",
        extend__without_a_ttl_of_its_own_is_a_question, BEAT | LIVE, NULL },
    { "extend__refuses_more_than_ten_years", extend__refuses_more_than_ten_years, TIMED, NULL },
    { "confirm__asks_the_database", confirm__asks_the_database, ALL, NULL },
    { "min_hold__keeps_the_name_taken", min_hold__keeps_the_name_taken, RECORDED, NULL },
    { "min_hold__that_is_over_frees_at_once", min_hold__that_is_over_frees_at_once, RECORDED,
        NULL },
    { "min_hold__outlives_its_client", min_hold__outlives_its_client, RECORDED, NULL },
    { "min_hold__shows_who_had_it", min_hold__shows_who_had_it, RECORDED, NULL },
    { "min_hold__of_a_connection_is_unsupported", min_hold__of_a_connection_is_unsupported, LIVE,
        NULL },
    { NULL, NULL, 0, NULL },
};
