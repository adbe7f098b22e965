/* SPDX-License-Identifier: MIT */
/* observe.c - looking at grants of others, ending them, and counting. */
#include "contract.h"

#include <stdio.h>
#include <string.h>

static void inspect__tells_the_holder(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    int strategy = contract->kind->strategy;
    dblock_lock *lock;

    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_inspect(b, name, strategy, &grant, &contract->error));
    assert_int_equal(0, grant.strategy);
    options.label = "shown";
    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    expect_status(contract, DBLOCK_OK, dblock_inspect(b, name, strategy, &grant, &contract->error));
    assert_int_equal(strategy, grant.strategy);
    assert_string_equal(name, grant.name);
    assert_int_equal(is_kind(contract, BEAT), grant.is_heartbeat);
    if (is_kind(contract, RECORDED)) {
        assert_string_equal(dblock_lock_owner(lock), grant.owner);
        assert_string_equal("shown", grant.label);
        assert_true(grant.token == token_of(contract, lock));
        assert_in_range(grant.remaining_ms, 7000, 10000);
    } else {
        assert_true(grant.remaining_ms == DBLOCK_FOREVER);
    }
    release(contract, lock);
    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_inspect(b, name, strategy, &grant, &contract->error));
}

static void inspect__of_an_expired_grant_is_not_held(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    options.ttl_ms = 100;
    (void)take_with(contract, client, name, &options);
    test_pass_ms(130);
    expect_status(contract, DBLOCK_NOT_HELD,
        dblock_inspect(client, name, contract->kind->strategy, &grant, &contract->error));
}

static void inspect__without_a_strategy_finds_the_first(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_inspect(client, name, 0, &grant, &contract->error));
    (void)take(contract, client, name);
    expect_status(contract, DBLOCK_OK, dblock_inspect(client, name, 0, &grant, &contract->error));
    assert_int_equal(contract->kind->strategy, grant.strategy);
    expect_status(
        contract, DBLOCK_E_ARGUMENT, dblock_inspect(client, name, 9, &grant, &contract->error));
}

/* -------------------------------------------------------------------- lists */

struct listing {
    int n_grants;
    int n_wanted; /* stop after so many; 0 all */
    int n_held;
    int n_disorder;
    char last[256];
    dblock_client *client; /* called from within */
    dblock_status inner;
};

static int note_grant(const struct dblock_grant *grant, void *context)
{
    struct listing *listing = context;

    ++listing->n_grants;
    listing->n_held += grant->remaining_ms > 0;
    if (strcmp(listing->last, grant->name) >= 0)
        ++listing->n_disorder;
    (void)snprintf(listing->last, sizeof listing->last, "%s", grant->name);
    if (listing->client != NULL)
        listing->inner = dblock_ping(listing->client, NULL);
    return listing->n_wanted != 0 && listing->n_grants >= listing->n_wanted;
}

static void list__goes_through_all_of_a_prefix(struct contract *contract)
{
    const char *prefix = own_name(contract, "%_");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct listing listing = { 0 };
    char name[300];
    int i;

    options.flags = DBLOCK_FENCED; /* the name of an advisory lock is known from its token */
    for (i = 0; i < 12; ++i) {
        (void)snprintf(name, sizeof name, "%s%c%d", prefix, i % 2 == 0 ? 'B' : 'a', i);
        (void)take_with(contract, a, name, &options);
    }
    /* what a LIKE would take for the same */
    (void)take(contract, a, own_name(contract, "xxx"));
    filter.strategy = contract->kind->strategy;
    filter.prefix = prefix;
    listing.client = b;
    expect_status(
        contract, DBLOCK_OK, dblock_list(b, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(12, listing.n_grants);
    assert_int_equal(12, listing.n_held);
    assert_int_equal(0, listing.n_disorder);
    expect_status(contract, DBLOCK_OK, listing.inner);

    memset(&listing, 0, sizeof listing);
    filter.limit = 5;
    expect_status(
        contract, DBLOCK_OK, dblock_list(b, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(5, listing.n_grants);

    memset(&listing, 0, sizeof listing);
    filter.limit = 0;
    listing.n_wanted = 3;
    expect_status(
        contract, DBLOCK_OK, dblock_list(b, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(3, listing.n_grants);

    memset(&listing, 0, sizeof listing);
    filter.strategy = 0;
    expect_status(
        contract, DBLOCK_OK, dblock_list(b, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(12, listing.n_grants);
}

static void list__reads_many_pages(struct contract *contract)
{
    enum { N_NAMES = 120 };
    const char *prefix = own_name(contract, "page");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct listing listing = { 0 };
    char name[300];
    int i;

    for (i = 0; i < N_NAMES; ++i) {
        (void)snprintf(name, sizeof name, "%s%d", prefix, i);
        (void)take(contract, client, name);
    }
    filter.prefix = prefix;
    expect_status(
        contract, DBLOCK_OK, dblock_list(client, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(N_NAMES, listing.n_grants);
    assert_int_equal(0, listing.n_disorder);
    close_client(contract, client); /* all at once, which is quicker */
}

static void list__shows_only_what_is_asked_for(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct dblock_options options = own_options(contract);
    struct listing listing = { 0 };
    dblock_lock *lock;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, client, name, &options);
    filter.name = name;
    filter.strategy = contract->kind->strategy;
    expect_status(
        contract, DBLOCK_OK, dblock_list(client, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(1, listing.n_grants);
    assert_string_equal(name, listing.last);
    memset(&listing, 0, sizeof listing);
    filter.strategy = contract->kind->strategy == DBLOCK_LEASE ? DBLOCK_INSERT : DBLOCK_LEASE;
    expect_status(
        contract, DBLOCK_OK, dblock_list(client, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(0, listing.n_grants);

    filter.strategy = contract->kind->strategy;
    release(contract, lock);
    expect_status(
        contract, DBLOCK_OK, dblock_list(client, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(0, listing.n_grants);
    if (is_kind(contract, LEASE | LEASE_TIMED)) { /* whose row stays */
        filter.is_idle = 1;
        expect_status(contract, DBLOCK_OK,
            dblock_list(client, &filter, note_grant, &listing, &contract->error));
        assert_int_equal(1, listing.n_grants);
        assert_int_equal(0, listing.n_held);
    }
}

struct onlooker {
    struct contract *contract;
    dblock_client *client;
    const char *name;
};

static int is_not_listed(void *context)
{
    const struct onlooker *onlooker = context;
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct listing listing = { 0 };

    filter.name = onlooker->name;
    filter.strategy = onlooker->contract->kind->strategy;
    expect_status(onlooker->contract, DBLOCK_OK, dblock_list(onlooker->client, &filter, note_grant,
        &listing, &onlooker->contract->error));
    return listing.n_grants == 0;
}

/* Also before anybody has wanted the name. */
static void grant_of_a_dead_holder__is_not_listed(struct contract *contract)
{
    struct onlooker onlooker = { contract, NULL, own_name(contract, "x") };
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    options.ttl_ms = 500;
    hold_elsewhere(contract, onlooker.name, &options);
    onlooker.client = open_client(contract, "onlooker");
    assert_false(is_not_listed(&onlooker));
    kill_elsewhere(contract);
    assert_true(test_until(is_not_listed, &onlooker, 10000));
    expect_status(contract, DBLOCK_NOT_HELD, dblock_inspect(onlooker.client, onlooker.name,
        contract->kind->strategy, &grant, &contract->error));
}

/* More names than a page has, and nobody holds any but the last. */
static void list__finds_what_lies_behind_idle_names(struct contract *contract)
{
    const char *prefix = own_name(contract, "idle");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct listing listing = { 0 };
    char name[300];
    int i;

    options.flags = DBLOCK_FENCED; /* the name of an advisory lock is known from its token */
    for (i = 0; i < 140; ++i) {
        dblock_lock *lock;

        (void)snprintf(name, sizeof name, "%s%03d", prefix, i);
        lock = take_with(contract, client, name, &options);
        if (i < 139) {
            release(contract, lock);
            free_lock(contract, lock);
        }
    }
    filter.strategy = contract->kind->strategy;
    filter.prefix = prefix;
    expect_status(contract, DBLOCK_OK,
        dblock_list(client, &filter, note_grant, &listing, &contract->error));
    assert_int_equal(1, listing.n_grants);
    assert_string_equal(name, listing.last);
}

static void list__takes_no_filter(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct listing listing = { 0 };

    (void)take(contract, client, own_name(contract, "x"));
    expect_status(
        contract, DBLOCK_OK, dblock_list(client, NULL, note_grant, &listing, &contract->error));
    assert_true(listing.n_grants >= 1);
    expect_status(
        contract, DBLOCK_E_ARGUMENT, dblock_list(client, NULL, NULL, NULL, &contract->error));
}

/* -------------------------------------------------------------------- break */

/* PITFALL(E20) */
static void break__ends_the_grant_and_fences_it(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    int strategy = contract->kind->strategy;
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *next;
    int64_t token = token_of(contract, lock);

    expect_status(contract, DBLOCK_OK, dblock_break(b, name, strategy, 0, &contract->error));
    next = take_within(contract, b, name, is_kind(contract, LIVE) ? 3000 : 0);
    assert_true(token_of(contract, next) > token);
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
    assert_int_equal(0, dblock_lock_is_held(lock));
    /* PITFALL(D12): what the unlock finds is told */
    expect_status(contract, DBLOCK_LOST, dblock_release(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    release(contract, next);
}

/* PITFALL(E20): it is said that there was nothing to break. */
static void break__of_nobody_is_not_held(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    int strategy = contract->kind->strategy;

    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_break(client, name, strategy, 0, &contract->error));
    release(contract, take(contract, client, name));
    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_break(client, name, strategy, 0, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_break(client, name, 0, 0, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_break(client, name, 5, 0, &contract->error));
}

/* It ends the one that was looked at, not a newcomer. */
static void break__with_a_token_ends_only_that_grant(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    int strategy = contract->kind->strategy;
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;
    int64_t token;

    options.flags = DBLOCK_FENCED;
    lock = take_with(contract, a, name, &options);
    token = token_of(contract, lock);
    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_break(b, name, strategy, token - 1, &contract->error));
    expect_status(
        contract, DBLOCK_NOT_HELD, dblock_break(b, name, strategy, token + 1, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_break(b, name, strategy, token, &contract->error));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
}

static void break__leaves_other_names_alone(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *kept = take(contract, a, own_name(contract, "kept"));

    (void)take(contract, a, name);
    expect_status(
        contract, DBLOCK_OK, dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(kept, &contract->error));
    release(contract, kept);
}

static void break__that_cannot_be_is_unsupported(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);

    expect_status(contract, DBLOCK_E_UNSUPPORTED,
        dblock_break(b, name, contract->kind->strategy, 0, &contract->error));
    assert_true(contract->error.hint[0] != 0);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
}

/* -------------------------------------------------------------------- stats */

static void stats__count_what_happens(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    dblock_lock *lock = take(contract, a, name);

    expect_busy(contract, b, name);
    options.wait_ms = 50;
    expect_status(contract, DBLOCK_BUSY, attempt(contract, b, name, &options, NULL));
    expect_status(contract, DBLOCK_OK, dblock_client_stats(a, &stats));
    assert_int_equal(1, stats.grants);
    assert_int_equal(0, stats.busy);
    assert_int_equal(1, stats.locks_held);
    assert_int_equal(is_kind(contract, BEAT), stats.sessions);
    assert_true(stats.connections >= 1);
    release(contract, lock);
    expect_status(contract, DBLOCK_OK, dblock_client_stats(a, &stats));
    assert_int_equal(1, stats.releases);
    assert_int_equal(0, stats.locks_held);
    assert_int_equal(0, stats.lost);
    assert_int_equal(0, stats.uncertain);
    assert_true(stats.hold_us > 0);
    expect_status(contract, DBLOCK_OK, dblock_client_stats(b, &stats));
    assert_int_equal(2, stats.busy);
    assert_int_equal(0, stats.grants);
    assert_int_equal(0, stats.waiters);
    assert_true(stats.wait_us >= 48000);
    stats.struct_size = 0;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_stats(b, &stats));
}

/* Each is a session of the server's: what is done before such a lock on a new name can be taken goes
 * over the same one. */
static void lock_in_a_connection__needs_no_second(struct contract *contract)
{
    dblock_client *client = open_client(contract, "a");
    static const char *const names[] = { "first", "second" };
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    size_t i;

    for (i = 0; i < 2; ++i) {
        dblock_lock *lock = take(contract, client, own_name(contract, names[i]));

        expect_status(contract, DBLOCK_OK, dblock_client_stats(client, &stats));
        assert_int_equal(1, stats.connections);
        release(contract, lock);
    }
}

static int can_break_row(const struct contract_database *database)
{
    return database->breaks_row;
}

static int can_break_advisory(const struct contract_database *database)
{
    return database->breaks_advisory;
}

static int cannot_break_row(const struct contract_database *database)
{
    return !database->breaks_row;
}

static int cannot_break_advisory(const struct contract_database *database)
{
    return !database->breaks_advisory;
}

static int shows_rows(const struct contract_database *database)
{
    return database->row_view >= CONTRACT_VIEW_NAME;
}

static int shows_advisory(const struct contract_database *database)
{
    return database->advisory_view >= CONTRACT_VIEW_NAME;
}

const struct contract_case observe_cases[] = {
    { "inspect__tells_the_holder", inspect__tells_the_holder, RECORDED, NULL },
    { "inspect__tells_the_holder", inspect__tells_the_holder, ROW, shows_rows },
    { "inspect__tells_the_holder", inspect__tells_the_holder, ADVISORY, shows_advisory },
    { "grant_of_a_dead_holder__is_not_listed", grant_of_a_dead_holder__is_not_listed, RECORDED, NULL },
    { "inspect__of_an_expired_grant_is_not_held", inspect__of_an_expired_grant_is_not_held, TIMED,
        NULL },
    { "inspect__without_a_strategy_finds_the_first", inspect__without_a_strategy_finds_the_first,
        RECORDED, NULL },
    { "list__goes_through_all_of_a_prefix", list__goes_through_all_of_a_prefix, RECORDED, NULL },
    { "list__goes_through_all_of_a_prefix", list__goes_through_all_of_a_prefix, ROW, shows_rows },
    { "list__goes_through_all_of_a_prefix", list__goes_through_all_of_a_prefix, ADVISORY,
        shows_advisory },
    { "list__reads_many_pages", list__reads_many_pages, RECORDED, NULL },
    { "list__shows_only_what_is_asked_for", list__shows_only_what_is_asked_for, RECORDED, NULL },
    { "list__shows_only_what_is_asked_for", list__shows_only_what_is_asked_for, ROW, shows_rows },
    { "list__shows_only_what_is_asked_for", list__shows_only_what_is_asked_for, ADVISORY,
        shows_advisory },
    { "list__finds_what_lies_behind_idle_names", list__finds_what_lies_behind_idle_names, ROW,
        shows_rows },
    { "list__finds_what_lies_behind_idle_names", list__finds_what_lies_behind_idle_names, ADVISORY,
        shows_advisory },
    { "list__takes_no_filter", list__takes_no_filter, ONCE, NULL },
    { "break__ends_the_grant_and_fences_it", break__ends_the_grant_and_fences_it, RECORDED, NULL },
    { "break__ends_the_grant_and_fences_it", break__ends_the_grant_and_fences_it, ROW,
        can_break_row },
    { "break__ends_the_grant_and_fences_it", break__ends_the_grant_and_fences_it, ADVISORY,
        can_break_advisory },
    { "break__of_nobody_is_not_held", break__of_nobody_is_not_held, RECORDED, NULL },
    { "break__of_nobody_is_not_held", break__of_nobody_is_not_held, ROW, can_break_row },
    { "break__of_nobody_is_not_held", break__of_nobody_is_not_held, ADVISORY, can_break_advisory },
    { "break__with_a_token_ends_only_that_grant", break__with_a_token_ends_only_that_grant,
        RECORDED, NULL },
    { "break__leaves_other_names_alone", break__leaves_other_names_alone, RECORDED, NULL },
    { "break__that_cannot_be_is_unsupported", break__that_cannot_be_is_unsupported, ROW,
        cannot_break_row },
    { "break__that_cannot_be_is_unsupported", break__that_cannot_be_is_unsupported, ADVISORY,
        cannot_break_advisory },
    { "stats__count_what_happens", stats__count_what_happens, ALL, NULL },
    { "lock_in_a_connection__needs_no_second", lock_in_a_connection__needs_no_second, LIVE,
        NULL },
    { NULL, NULL, 0, NULL },
};
