/* SPDX-License-Identifier: MIT */
/* answer.c - P8, I1 and I2: answers that are lost on the way are settled, never
 * guessed. Only where a fixture can lose one at will. */
#include "contract.h"

enum { SLACK_MS = 1500 };

static void lost_answer_of_take__is_settled_by_reading(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock;

    release(contract, take(contract, a, name)); /* session and connection are there */
    contract->database->lose_answer(0);
    lock = take(contract, a, name);
    expect_busy(contract, b, name);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
    release(contract, take(contract, b, name));
}

static void lost_answer_of_a_live_take__leaves_nothing(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = own_options(contract);
    dblock_status status;

    release(contract, take(contract, a, name));
    contract->database->lose_answer(0);
    status = attempt(contract, a, name, &options, NULL);
    /* what the connection may have got went with it; asking again is allowed then */
    if (status != DBLOCK_OK)
        expect_status(contract, DBLOCK_E_CONNECTION, status);
    else
        release(contract, contract->locks[contract->n_locks - 1]);
    (void)take_within(contract, b, name, SLACK_MS);
}

static void lost_answer_of_release__leaves_nobody_locked_out(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *next;
    dblock_status status;

    contract->database->lose_answer(1);
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

static int can_lose(const struct contract_database *database)
{
    return database->lose_answer != NULL;
}

const struct contract_case answer_cases[] = {
    { "lost_answer_of_take__is_settled_by_reading", lost_answer_of_take__is_settled_by_reading,
        RECORDED, can_lose },
    { "lost_answer_of_a_live_take__leaves_nothing", lost_answer_of_a_live_take__leaves_nothing,
        LIVE, can_lose },
    { "lost_answer_of_release__leaves_nobody_locked_out",
        lost_answer_of_release__leaves_nobody_locked_out, ALL, can_lose },
    { NULL, NULL, 0, NULL },
};
