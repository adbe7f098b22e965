/* SPDX-License-Identifier: MIT */
/* transfer.c - grants that leave their process: export, import, detach. */
#include "contract.h"

#include <stdio.h>
#include <string.h>

enum { SLACK_MS = 1500, TEXT_SIZE = DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX };

static void export_to(struct contract *contract, dblock_lock *lock, char text[TEXT_SIZE])
{
    size_t i;

    expect_status(contract, DBLOCK_OK, dblock_lock_export(lock, text, TEXT_SIZE, &contract->error));
    assert_true(strlen(text) > 32);
    for (i = 0; text[i] != 0; ++i)
        assert_in_range(text[i], ' ', '~');
}

static dblock_status import_from(
    struct contract *contract, dblock_client *client, const char *text, dblock_lock **ret_lock)
{
    dblock_lock *lock = NULL;
    dblock_status status = dblock_lock_import(client, text, &lock, &contract->error);

    if (status == DBLOCK_OK)
        *ret_lock = note_lock(contract, lock);
    else
        assert_null(lock);
    return status;
}

static void exported_grant__is_the_same_grant_elsewhere(struct contract *contract)
{
    const char *name = own_name(contract, "with \"all\" %that; h\303\266rts\n");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_client *c = open_client(contract, "c");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *copy = NULL;
    char text[TEXT_SIZE];

    export_to(contract, lock, text);
    expect_status(contract, DBLOCK_OK, import_from(contract, b, text, &copy));
    assert_string_equal(name, dblock_lock_name(copy));
    assert_string_equal(dblock_lock_owner(lock), dblock_lock_owner(copy));
    assert_int_equal(dblock_lock_strategy(lock), dblock_lock_strategy(copy));
    assert_true(token_of(contract, lock) == token_of(contract, copy));
    assert_int_equal(1, dblock_lock_is_held(copy));
    assert_in_range(dblock_lock_remaining_ms(copy), 1, 10000);
    expect_status(contract, DBLOCK_OK, dblock_confirm(copy, &contract->error));
    expect_busy(contract, c, name);
    /* who has it can release it, and the first one learns of it at the latest when it asks */
    release(contract, copy);
    release(contract, take(contract, c, name));
    expect_status(contract, DBLOCK_LOST, dblock_confirm(lock, &contract->error));
}

static void imported_grant__releases_nothing_when_freed(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *copy = NULL;
    char text[TEXT_SIZE];

    export_to(contract, lock, text);
    expect_status(contract, DBLOCK_OK, import_from(contract, b, text, &copy));
    free_lock(contract, copy);
    close_client(contract, b);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    release(contract, lock);
}

/* P4: a stale text, and a stale object, do nothing to whoever holds the name now. */
static void stale_grant__changes_nothing(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *copy = NULL;
    dblock_lock *none = NULL;
    dblock_lock *next;
    char text[TEXT_SIZE];

    export_to(contract, lock, text);
    expect_status(contract, DBLOCK_OK, import_from(contract, b, text, &copy));
    release(contract, lock);
    expect_status(contract, DBLOCK_LOST, import_from(contract, b, text, &none));
    next = take(contract, a, name);
    expect_status(contract, DBLOCK_LOST, import_from(contract, b, text, &none));
    expect_status(contract, DBLOCK_LOST, dblock_release(copy, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
    expect_busy(contract, b, name);
}

static void stale_timed_grant__cannot_be_extended(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *copy = NULL;
    dblock_lock *next;
    char text[TEXT_SIZE];

    export_to(contract, lock, text);
    expect_status(contract, DBLOCK_OK, import_from(contract, b, text, &copy));
    expect_status(contract, DBLOCK_OK, dblock_extend(copy, 20000, &contract->error));
    assert_in_range(dblock_lock_remaining_ms(copy), 15000, 17500);
    release(contract, lock);
    next = take(contract, a, name);
    expect_status(contract, DBLOCK_LOST, dblock_extend(copy, 20000, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(next, &contract->error));
}

static void detach__keeps_the_lock_without_its_client(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    uint64_t begun_ms = test_now_ms();
    dblock_lock *lock = take(contract, a, name);
    dblock_lock *copy = NULL;
    char text[TEXT_SIZE];

    expect_status(contract, DBLOCK_OK, dblock_lock_detach(lock, 700, &contract->error));
    assert_in_range(dblock_lock_remaining_ms(lock), 1, 612);
    export_to(contract, lock, text);
    free_lock(contract, lock);
    close_client(contract, a);
    expect_busy(contract, b, name);
    expect_status(contract, DBLOCK_OK, import_from(contract, b, text, &copy));
    assert_int_equal(1, dblock_lock_is_held(copy));
    (void)take_within(contract, b, name, 700 + SLACK_MS);
    assert_in_range(test_now_ms() - begun_ms, 690, 700 + SLACK_MS);
    expect_status(contract, DBLOCK_LOST, dblock_release(copy, &contract->error));
}

static void detached_grant__can_be_released(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_lock *lock = take(contract, a, name);

    expect_status(contract, DBLOCK_OK, dblock_lock_detach(lock, 5000, &contract->error));
    release(contract, lock);
    expect_status(contract, DBLOCK_NOT_HELD, dblock_lock_detach(lock, 5000, &contract->error));
    release(contract, take(contract, a, name));
}

static void export__needs_room(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);
    char text[16] = "untouched";

    expect_status(
        contract, DBLOCK_E_ARGUMENT, dblock_lock_export(lock, text, sizeof text, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_lock_export(lock, text, 0, &contract->error));
}

static void export__fits_into_the_size_that_is_promised(struct contract *contract)
{
    char name[DBLOCK_NAME_MAX + 1];
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *copy = NULL;
    char text[TEXT_SIZE];
    int length;

    length = snprintf(name, sizeof name, "%s", own_name(contract, "long"));
    memset(name + length, '\n', sizeof name - 1 - (size_t)length); /* each takes three bytes */
    name[sizeof name - 1] = 0;
    export_to(contract, take(contract, client, name), text);
    expect_status(contract, DBLOCK_OK, import_from(contract, client, text, &copy));
    assert_string_equal(name, dblock_lock_name(copy));
}

/* The text is one: whoever changes its token gets no grant with another. */
static void import__refuses_another_token(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));
    dblock_lock *none = NULL;
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX];
    char *digit;

    expect_status(
        contract, DBLOCK_OK, dblock_lock_export(lock, text, sizeof text, &contract->error));
    digit = strrchr(text, ':') - 1;
    *digit = *digit == '1' ? '2' : '1';
    expect_status(contract, DBLOCK_E_ARGUMENT, import_from(contract, client, text, &none));
}

static void import__refuses_what_is_not_a_grant(struct contract *contract)
{
    static const char *const texts[] = { "", " ", "x", "dblock", "dblock1", "dblock 1 lease",
        "dblock 1 lease 00 1 name", "\377", "v1:lease:0123456789abcdef0123456789abcdef:1:" };
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));
    dblock_lock *none = NULL;
    char text[TEXT_SIZE];
    size_t length;
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        expect_status(contract, DBLOCK_E_ARGUMENT, import_from(contract, client, texts[i], &none));
    expect_status(contract, DBLOCK_E_ARGUMENT, import_from(contract, client, NULL, &none));
    /* what was cut off on the way is either refused or another name, never taken for this one */
    export_to(contract, lock, text);
    for (length = strlen(text); length > 0; --length) {
        text[length - 1] = 0;
        assert_true(import_from(contract, client, text, &none) != DBLOCK_OK);
    }
}

static void live_grant__cannot_leave_its_connection(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, own_name(contract, "x"));
    char text[TEXT_SIZE];

    expect_status(contract, DBLOCK_E_UNSUPPORTED,
        dblock_lock_export(lock, text, sizeof text, &contract->error));
    expect_status(contract, DBLOCK_E_UNSUPPORTED, dblock_lock_detach(lock, 5000, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
}

const struct contract_case transfer_cases[] = {
    { "exported_grant__is_the_same_grant_elsewhere", exported_grant__is_the_same_grant_elsewhere,
        RECORDED, NULL },
    { "imported_grant__releases_nothing_when_freed", imported_grant__releases_nothing_when_freed,
        RECORDED, NULL },
    { "stale_grant__changes_nothing", stale_grant__changes_nothing, RECORDED, NULL },
    { "stale_timed_grant__cannot_be_extended", stale_timed_grant__cannot_be_extended, TIMED, NULL },
    { "detach__keeps_the_lock_without_its_client", detach__keeps_the_lock_without_its_client,
        RECORDED, NULL },
    { "detached_grant__can_be_released", detached_grant__can_be_released, RECORDED, NULL },
    { "export__needs_room", export__needs_room, RECORDED, NULL },
    { "export__fits_into_the_size_that_is_promised", export__fits_into_the_size_that_is_promised,
        RECORDED, NULL },
    { "import__refuses_another_token", import__refuses_another_token, RECORDED, NULL },
    { "import__refuses_what_is_not_a_grant", import__refuses_what_is_not_a_grant, ONCE, NULL },
    { "live_grant__cannot_leave_its_connection", live_grant__cannot_leave_its_connection, LIVE,
        NULL },
    { NULL, NULL, 0, NULL },
};
