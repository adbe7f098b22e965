/* SPDX-License-Identifier: MIT */
/* token.c - P3: the token of a grant is larger than that of every earlier one of
 * the name, however the earlier ones ended. */
#include "contract.h"

#include <dblock/many.h>
#include <string.h>

static void token__grows_from_grant_to_grant(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *clients[2];
    int64_t last = 0;
    int i;

    clients[0] = open_client(contract, "a");
    clients[1] = open_client(contract, "b");
    for (i = 0; i < 8; ++i) {
        dblock_lock *lock = take(contract, clients[i % 2], name);
        int64_t token = token_of(contract, lock);

        assert_true(token > last);
        last = token;
        release(contract, lock);
        free_lock(contract, lock);
    }
}

static void token__stays_the_same_during_a_grant(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));
    int64_t token = token_of(contract, lock);

    assert_true(token == token_of(contract, lock));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    assert_true(token == token_of(contract, lock));
}

static void token__grows_across_expiry(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    int64_t last;

    options.ttl_ms = 120;
    last = token_of(contract, take_with(contract, a, name, &options));
    assert_true(token_of(contract, take_within(contract, b, name, 3000)) > last);
}

static void token__grows_across_the_death_of_the_holder(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_client *client;
    dblock_lock *lock;
    int64_t last = 0;

    options.ttl_ms = 500;
    options.flags = DBLOCK_FENCED; /* the one that dies has drawn */
    hold_elsewhere(contract, name, &options);
    client = open_client(contract, "heir");
    if (is_kind(contract, RECORDED)) {
        expect_status(contract, DBLOCK_OK,
            dblock_inspect(client, name, contract->kind->strategy, &grant, &contract->error));
        last = grant.token;
        assert_true(last > 0);
    }
    kill_elsewhere(contract);
    lock = take_within(contract, client, name, 10000);
    assert_true(token_of(contract, lock) > last);
}

/* A row lock's transaction rolls back when its connection ends: the token does not. */
static void token__grows_across_the_end_of_the_connection(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    int64_t last = token_of(contract, take(contract, a, name));

    contract->database->cut();
    assert_true(token_of(contract, take_within(contract, b, name, 5000)) > last);
}

static void token__grows_across_break(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    int64_t last = token_of(contract, take(contract, a, name));

    expect_status(
        contract, DBLOCK_OK, dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    assert_true(token_of(contract, take_within(contract, b, name, 5000)) > last);
}

static void token__grows_across_extend_and_detach(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);
    int64_t last = token_of(contract, lock);

    expect_status(contract, DBLOCK_OK, dblock_lock_detach(lock, 5000, &contract->error));
    assert_true(token_of(contract, lock) == last);
    release(contract, lock);
    assert_true(token_of(contract, take(contract, client, name)) > last);
}

static void token__grows_although_the_row_is_deleted(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);
    int64_t last = token_of(contract, lock);

    release(contract, lock);
    contract->database->delete_row(contract->kind->strategy, name);
    assert_true(token_of(contract, take(contract, client, name)) > last);
}

/* PITFALL(S9) */
static void token__grows_although_the_clock_goes_back(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);
    int64_t last = token_of(contract, lock);
    int64_t token;

    release(contract, lock);
    contract->database->step_clock(-INT64_C(3600000000));
    lock = take(contract, client, name);
    token = token_of(contract, lock);
    contract->database->step_clock(INT64_C(3600000000));
    assert_true(token > last);
}

/* The keeper purges now and then; here the step itself is asked for. */
static void purge(struct contract *contract)
{
    expect_status(
        contract, DBLOCK_OK, contract_purge(contract->database, &contract->error));
}

static int count_grant(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

/* E14: what nobody needs goes, and the next token is larger all the same. */
static void token__grows_across_the_purge(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    const char *kept = own_name(contract, "held");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    dblock_lock *held = take(contract, client, kept);
    dblock_lock *lock = take(contract, client, name);
    int64_t last = token_of(contract, lock);
    int n_grants = 0;

    release(contract, lock);
    contract->database->age(name);
    purge(contract);
    filter.name = name;
    filter.is_idle = 1;
    expect_status(contract, DBLOCK_OK,
        dblock_list(client, &filter, count_grant, &n_grants, &contract->error));
    if (!is_kind(contract, LIVE))
        assert_int_equal(0, n_grants);
    assert_true(token_of(contract, take(contract, client, name)) > last);
    expect_status(contract, DBLOCK_OK, dblock_confirm(held, &contract->error));
}

static void token__of_a_grant_that_is_over_is_not_drawn(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    int64_t token = 0;

    release(contract, lock);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_lock_token(lock, &token, &contract->error));
    assert_true(token == 0);

    /* S3: nor by one that has been lost and does not know it yet */
    lock = take(contract, a, name);
    expect_status(
        contract, DBLOCK_OK, dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    (void)take_within(contract, b, name, 5000);
    expect_status(contract, DBLOCK_LOST, dblock_lock_token(lock, &token, &contract->error));
    assert_true(token == 0);
}

static void fenced_grant__has_its_token_at_once(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    int64_t last;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, client, name, &options);
    last = token_of(contract, lock);
    release(contract, lock);
    lock = take_with(contract, client, name, &options);
    assert_true(token_of(contract, lock) > last);
}

static int can_cut(const struct contract_database *database)
{
    return database->cut != NULL;
}

static int can_break_row(const struct contract_database *database)
{
    return database->breaks_row;
}

static int can_break_advisory(const struct contract_database *database)
{
    return database->breaks_advisory;
}

static int can_step_clock(const struct contract_database *database)
{
    return database->step_clock != NULL;
}

static int can_age(const struct contract_database *database)
{
    return database->age != NULL;
}

static int can_damage_token(const struct contract_database *database)
{
    return database->damage_token != NULL;
}

/* No number that programs cannot compare is handed out, and the name is not left taken. */
static void token__that_was_damaged_is_an_error(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    const char *names[2] = { name, own_name(contract, "y") };
    struct dblock_options options = own_options(contract);
    dblock_client *client = open_client(contract, NULL);
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    dblock_lock *locks[2];
    int i;

    release(contract, take(contract, client, name));
    contract->database->damage_token(name);
    for (i = 0; i < 2; ++i)
        expect_status(contract, DBLOCK_E_DATABASE,
            dblock_acquire(client, name, &options, &locks[0], &contract->error));
    expect_status(contract, DBLOCK_E_DATABASE,
        dblock_acquire_many(client, names, 2, &options, locks, &contract->error));
    options.busy = &holder;
    expect_status(contract, DBLOCK_E_DATABASE,
        dblock_acquire(client, name, &options, &locks[0], &contract->error));
    assert_non_null(strstr(contract->error.message, name));

    /* other names do not get it by way of the purge, nor by what the error says is to be done */
    if (can_age(contract->database)) {
        contract->database->age(name);
        expect_status(contract, DBLOCK_OK, contract_purge(contract->database, &contract->error));
    }
    release(contract, take(contract, client, names[1]));
    contract->database->delete_row(contract->kind->strategy, name);
    release(contract, take(contract, client, own_name(contract, "z")));
    release(contract, take(contract, client, name));
}

const struct contract_case token_cases[] = {
    { "token__grows_from_grant_to_grant", token__grows_from_grant_to_grant, ALL, NULL },
    { "token__stays_the_same_during_a_grant", token__stays_the_same_during_a_grant, ALL, NULL },
    { "token__grows_across_expiry", token__grows_across_expiry, TIMED, NULL },
    { "token__grows_across_the_death_of_the_holder", token__grows_across_the_death_of_the_holder,
        ALL, NULL },
    { "token__grows_across_the_end_of_the_connection",
        token__grows_across_the_end_of_the_connection, LIVE, can_cut },
    { "token__grows_across_break", token__grows_across_break, RECORDED, NULL },
    { "token__grows_across_break_of_a_connection", token__grows_across_break, ROW, can_break_row },
    { "token__grows_across_break_of_a_connection", token__grows_across_break, ADVISORY,
        can_break_advisory },
    { "token__grows_across_extend_and_detach", token__grows_across_extend_and_detach, RECORDED,
        NULL },
    { "token__grows_although_the_row_is_deleted", token__grows_although_the_row_is_deleted,
        RECORDED, NULL },
    { "token__grows_although_the_clock_goes_back", token__grows_although_the_clock_goes_back, ALL,
        can_step_clock },
    { "token__that_was_damaged_is_an_error", token__that_was_damaged_is_an_error, LEASE | LEASE_TIMED,
        can_damage_token },
    { "token__grows_across_the_purge", token__grows_across_the_purge, ALL, can_age },
    { "token__of_a_grant_that_is_over_is_not_drawn", token__of_a_grant_that_is_over_is_not_drawn,
        ROW, can_break_row },
    { "token__of_a_grant_that_is_over_is_not_drawn", token__of_a_grant_that_is_over_is_not_drawn,
        ADVISORY, can_break_advisory },
    { "fenced_grant__has_its_token_at_once", fenced_grant__has_its_token_at_once, ALL, NULL },
    { NULL, NULL, 0, NULL },
};
