/* SPDX-License-Identifier: MIT */
/* name.c - names and labels: any UTF-8, compared byte by byte, the same on all
 * databases, and never part of a statement. */
#include "contract.h"

#include <stdio.h>
#include <string.h>

/* The text behind a word of our own, so that other tests are not met. */
static const char *with_word(struct contract *contract, const char *text)
{
    return own_name(contract, text);
}

/* A3: what some collation takes for equal. The same word before all of them. */
static void names__that_differ_in_a_byte_are_different_locks(struct contract *contract)
{
    static const char *const texts[] = { "Job", "job", "JOB", "job ", "job  ", " job", "job\t",
        "j\303\266b", "jo\314\210b", "J\303\226B", "j\303\263b", "stra\303\237e", "strasse",
        "STRASSE", "\357\254\201", "fi", "\303\205", "\342\204\253", "A\314\212", "1", "01", "1.0",
        "1e0", "NULL", "null", "job\343\200\200", "job\302\240" };
    enum { N_TEXTS = sizeof texts / sizeof texts[0] };
    const char *word = own_name(contract, "");
    dblock_client *client = open_client(contract, NULL);
    char names[N_TEXTS][128];
    size_t i;

    for (i = 0; i < N_TEXTS; ++i) {
        (void)snprintf(names[i], sizeof names[i], "%s%s", word, texts[i]);
        assert_string_equal(names[i], dblock_lock_name(take(contract, client, names[i])));
    }
    for (i = 0; i < N_TEXTS; ++i)
        expect_busy(contract, client, names[i]);
    for (i = 0; i < N_TEXTS; ++i)
        release(contract, contract->locks[i]);
}

static void names__may_hold_whatever_is_utf8(struct contract *contract)
{
    static const char *const texts[] = { "'", "''; drop table dblock_lease; --", "\"", "\\", "\\'",
        "%s%n%d", "%", "_", "a;b", "a\nb", "\r\n", "\001\037\177", "$1", "?", ":name", "@x", "`x`",
        "/* x", "-- x", "{\"a\":1}", "\xf0\x9f\x94\x92 lock", "\xe2\x80\xae rtl",
        "\xef\xbb\xbf bom", "\xed\x95\x9c\xea\xb8\x80", "\xf4\x8f\xbf\xbf" };
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        const char *name = with_word(contract, texts[i]);
        struct dblock_grant grant = DBLOCK_GRANT_INIT;
        dblock_lock *lock = take(contract, a, name);

        expect_busy(contract, b, name);
        if (is_kind(contract, RECORDED)) {
            expect_status(contract, DBLOCK_OK,
                dblock_inspect(b, name, contract->kind->strategy, &grant, &contract->error));
            assert_string_equal(name, grant.name);
        }
        release(contract, lock);
        release(contract, take(contract, b, name));
    }
}

/* PITFALL(A1): also where the server allows 64 characters for the name of a lock. */
static void name__may_be_255_bytes(struct contract *contract)
{
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    char names[3][DBLOCK_NAME_MAX + 2];
    size_t i;

    /* A5: three that are alike in all but the last bytes */
    for (i = 0; i < 3; ++i) {
        int length = snprintf(names[i], sizeof names[i], "%s", own_name(contract, "long"));

        memset(names[i] + length, 'x', sizeof names[i] - (size_t)length);
        names[i][DBLOCK_NAME_MAX] = 0;
    }
    memcpy(names[1], names[0], sizeof names[0]);
    memcpy(names[2], names[0], sizeof names[0]);
    names[1][DBLOCK_NAME_MAX - 1] = 'y';
    names[2][DBLOCK_NAME_MAX - 1] = 0;
    for (i = 0; i < 3; ++i)
        assert_string_equal(names[i], dblock_lock_name(take(contract, a, names[i])));
    for (i = 0; i < 3; ++i)
        expect_busy(contract, b, names[i]);
}

/* A2: the limit is in bytes, whatever they mean. */
static void name__may_be_85_characters_of_three_bytes(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    char name[DBLOCK_NAME_MAX + 4] = "";
    size_t length = strlen(own_name(contract, ""));

    (void)snprintf(name, sizeof name, "%s", contract->names[contract->n_names - 1]);
    for (; length + 3 <= DBLOCK_NAME_MAX; length += 3)
        memcpy(name + length, "\xe2\x82\xac", 4);
    release(contract, take(contract, client, name));
    memcpy(name + length, "\xe2\x82\xac", 4);
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt(contract, client, name, NULL, NULL));
}

static void name__may_be_one_byte(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);

    /* not a name of ours alone: waits for whoever else tests this */
    options.wait_ms = 10000;
    release(contract, take_with(contract, client, "\001", &options));
}

/* PITFALL(A11): empty, or no text at all. */
static void name__is_refused_if_it_is_not_one(struct contract *contract)
{
    static const char *const texts[] = { "", "\377", "a\200", "\303", "\303(", "\355\240\200",
        "\300\257", "\360\200\200\200", "\364\220\200\200", "\370\210\200\200\200" };
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char name[DBLOCK_NAME_MAX + 2];
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        expect_status(
            contract, DBLOCK_E_ARGUMENT, attempt(contract, client, texts[i], &options, NULL));
        assert_non_null(strstr(contract->error.message, "name"));
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_inspect(client, texts[i], contract->kind->strategy, &grant, &contract->error));
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_break(client, texts[i], contract->kind->strategy, 0, &contract->error));
    }
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt(contract, client, NULL, &options, NULL));
    memset(name, 'x', sizeof name);
    name[DBLOCK_NAME_MAX + 1] = 0;
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt(contract, client, name, &options, NULL));
}

static void label__may_hold_whatever_is_utf8(struct contract *contract)
{
    static const char *const texts[] = { "", "'; drop table dblock_lease; --", "\"\\%s%n", "a\nb\t",
        "\033[31m", "\xf0\x9f\x94\x92", "trailing " };
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char label[DBLOCK_LABEL_MAX + 2];
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        const char *name = own_name(contract, "x");
        dblock_lock *lock;

        options.label = texts[i];
        lock = take_with(contract, client, name, &options);
        if (is_kind(contract, RECORDED)) {
            expect_status(contract, DBLOCK_OK,
                dblock_inspect(client, name, contract->kind->strategy, &grant, &contract->error));
            assert_string_equal(texts[i], grant.label);
        }
        release(contract, lock);
    }
    memset(label, 'x', sizeof label);
    label[DBLOCK_LABEL_MAX + 1] = 0;
    options.label = label;
    expect_status(contract, DBLOCK_E_ARGUMENT,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    label[DBLOCK_LABEL_MAX] = 0;
    (void)take_with(contract, client, own_name(contract, "x"), &options);
    options.label = "\377";
    expect_status(contract, DBLOCK_E_ARGUMENT,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
}

static void label__of_the_client_is_the_default(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, "of the client");
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    (void)take(contract, client, name);
    expect_status(contract, DBLOCK_OK,
        dblock_inspect(client, name, contract->kind->strategy, &grant, &contract->error));
    assert_string_equal("of the client", grant.label);
}

static int count_one(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

/* How many advisory locks a list shows whose name begins so. */
static int count_listed(dblock_client *client, const char *prefix)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct dblock_error error;
    int n = 0;

    filter.strategy = DBLOCK_ADVISORY;
    filter.prefix = prefix;
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, count_one, &n, &error));
    return n;
}

/* The number itself: what other software locks with it, we lock with it too. */
static void advisory_id__is_a_lock_of_its_own(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *a = open_client(contract, "a");
    dblock_client *b = open_client(contract, "b");
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char number[32];
    dblock_lock *lock;

    options.strategy = DBLOCK_ADVISORY;
    (void)take_with(contract, a, name, &options);
    options.has_advisory_id = 1;
    options.advisory_id = -INT64_C(7000000000) - (int64_t)test_now_ms();
    lock = take_with(contract, a, name, &options);
    /* the name says nothing then */
    expect_status(
        contract, DBLOCK_BUSY, attempt(contract, b, own_name(contract, "other"), &options, NULL));
    (void)token_of(contract, lock);
    /* it is shown by its number, and found by that; a name that nobody holds is no hindrance */
    (void)snprintf(number, sizeof number, "#%lld", (long long)options.advisory_id);
    expect_status(contract, DBLOCK_OK,
        dblock_inspect(b, number, DBLOCK_ADVISORY, &grant, &contract->error));
    assert_string_equal(number, grant.name);
    assert_true(grant.token == 0 || grant.token == token_of(contract, lock));
    assert_int_equal(1, count_listed(b, number));
    options.advisory_id -= 1;
    (void)take_with(contract, b, name, &options);
    options.advisory_id += 1;
    release(contract, lock);
    (void)take_with(contract, b, name, &options);
    options.strategy = DBLOCK_LEASE;
    expect_status(contract, DBLOCK_E_ARGUMENT, attempt(contract, b, name, &options, NULL));
}

const struct contract_case name_cases[] = {
    { "names__that_differ_in_a_byte_are_different_locks",
        names__that_differ_in_a_byte_are_different_locks, ALL, NULL },
    { "names__may_hold_whatever_is_utf8", names__may_hold_whatever_is_utf8, ALL, NULL },
    { "name__may_be_255_bytes", name__may_be_255_bytes, ALL, NULL },
    { "name__may_be_85_characters_of_three_bytes", name__may_be_85_characters_of_three_bytes, ALL,
        NULL },
    { "name__may_be_one_byte", name__may_be_one_byte, ALL, NULL },
    { "name__is_refused_if_it_is_not_one", name__is_refused_if_it_is_not_one, ALL, NULL },
    { "label__may_hold_whatever_is_utf8", label__may_hold_whatever_is_utf8, ALL, NULL },
    { "label__of_the_client_is_the_default", label__of_the_client_is_the_default, RECORDED, NULL },
    { "advisory_id__is_a_lock_of_its_own", advisory_id__is_a_lock_of_its_own, ONCE, NULL },
    { NULL, NULL, 0, NULL },
};
