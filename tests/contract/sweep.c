/* SPDX-License-Identifier: MIT */
/* sweep.c - S1: no name stays taken by a living client that does not know of it. */
#include "contract.h"

struct search {
    struct contract *contract;
    dblock_client *client;
    const char *name;
};

static int is_free(void *context)
{
    struct search *search = context;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    return dblock_inspect(search->client, search->name, search->contract->kind->strategy, &grant,
               &search->contract->error) == DBLOCK_NOT_HELD;
}

/* The second heartbeat: the keeper has a connection, and the search after the first is over. */
static int has_beaten(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(context, &stats) == DBLOCK_OK && stats.heartbeats > 1;
}

static void expect_swept(struct contract *contract, int is_keeper_connected)
{
    const char *name = own_name(contract, "own");
    const char *orphan = own_name(contract, "orphan");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    struct search search = { contract, b, orphan };
    dblock_lock *lock;

    options.ttl_ms = 1000;
    lock = take_with(contract, a, name, &options);
    if (is_keeper_connected)
        assert_true(test_until(has_beaten, a, 3000));
    contract->database->plant(contract->kind->strategy, orphan, name);
    expect_busy(contract, b, orphan);
    contract->database->cut();
    if (!is_keeper_connected)
        expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    assert_true(test_until(is_free, &search, 5000));
    (void)take(contract, b, orphan);
    /* and what it does know of stays */
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    expect_busy(contract, b, name);
}

static void unknown_grant__is_given_back_after_the_keeper_reconnects(struct contract *contract)
{
    expect_swept(contract, 1);
}

static void unknown_grant__is_given_back_after_a_caller_reconnects(struct contract *contract)
{
    expect_swept(contract, 0);
}

static int can_cut_and_plant(const struct contract_database *database)
{
    return database->cut != NULL && database->plant != NULL;
}

const struct contract_case sweep_cases[] = {
    { "unknown_grant__is_given_back_after_the_keeper_reconnects",
        unknown_grant__is_given_back_after_the_keeper_reconnects, BEAT, can_cut_and_plant },
    { "unknown_grant__is_given_back_after_a_caller_reconnects",
        unknown_grant__is_given_back_after_a_caller_reconnects, BEAT, can_cut_and_plant },
    { NULL, NULL, 0, NULL },
};
