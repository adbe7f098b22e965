/* SPDX-License-Identifier: MIT */
/* option.c - what may be asked for: limits, and the rule by which the public
 * structs grow. A case or two each, since unit tests have the tables. */
#include "contract.h"

#include <dblock/sys/driver.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct contract *contract, dblock_client *client,
    const struct dblock_options *options, dblock_status expected, const char *word)
{
    expect_status(
        contract, expected, attempt(contract, client, own_name(contract, "x"), options, NULL));
    if (strstr(contract->error.message, word) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", word, contract->error.message);
}

static void options__of_size_zero_are_refused_with_a_hint(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = { 0 };

    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "options");
    assert_non_null(strstr(contract->error.hint, "DBLOCK_OPTIONS_INIT"));
}

/* A program built with a later header: its new members count only if it uses them. */
static void options__may_be_larger_if_the_rest_is_zero(struct contract *contract)
{
    struct {
        struct dblock_options known;
        unsigned char tail[32];
    } options;
    dblock_client *client = open_client(contract, NULL);

    memset(&options, 0, sizeof options);
    options.known.struct_size = sizeof options;
    (void)take_with(contract, client, own_name(contract, "x"), &options.known);
    options.tail[31] = 1;
    refuse(contract, client, &options.known, DBLOCK_E_ARGUMENT, "options");
}

/* A program built with an earlier one. */
static void options__may_be_smaller(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_client *client = open_client(contract, NULL);

    options.struct_size = offsetof(struct dblock_options, flags);
    options.strategy = DBLOCK_INSERT;
    options.flags = 0xFFFFFFFFu; /* is not read */
    assert_int_equal(
        DBLOCK_INSERT, dblock_lock_strategy(take_with(contract, client, name, &options)));
}

static void options__may_be_null(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take_with(contract, client, name, NULL);

    assert_int_equal(DBLOCK_LEASE, dblock_lock_strategy(lock));
    assert_int_equal(30000, dblock_lock_ttl_ms(lock));
    assert_null(dblock_lock_context(lock));
    expect_status(contract, DBLOCK_BUSY, attempt(contract, client, name, NULL, NULL));
}

/* PITFALL(B8): no sum of times overflows later on. */
static void options__are_refused_out_of_range(struct contract *contract)
{
    const uint64_t eleven_years_ms = UINT64_C(11) * 366 * 24 * 3600 * 1000;
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);

    options.flags = 1u << 30;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "flags");
    options = own_options(contract);
    options.wait_ms = eleven_years_ms;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "wait_ms");
    options.wait_ms = (uint64_t)-5;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "wait_ms");
    options = own_options(contract);
    options.ttl_ms = eleven_years_ms;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "ttl_ms");
    options.ttl_ms = DBLOCK_FOREVER;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "ttl_ms");
    options = own_options(contract);
    options.min_hold_ms = (uint64_t)-1;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "min_hold_ms");
    /* nothing would renew it for so long */
    options = own_options(contract);
    options.strategy = DBLOCK_INSERT;
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    options.ttl_ms = 5000;
    options.min_hold_ms = 5001;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "min_hold_ms");
    options = own_options(contract);
    options.strategy = 5;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "strategy");
    options.strategy = -1;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "strategy");
    options = own_options(contract);
    options.heartbeat = 3;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "heartbeat");
    options = own_options(contract);
    options.mode = 2;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "mode");
    options = own_options(contract);
    options.reserved = 1;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "reserved");
    options = own_options(contract);
    options.reserved2 = 1;
    refuse(contract, client, &options, DBLOCK_E_ARGUMENT, "reserved");
}

static void options__of_a_later_release_are_unsupported(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);

    options.mode = DBLOCK_SHARED;
    refuse(contract, client, &options, DBLOCK_E_UNSUPPORTED, "shared");
    options = own_options(contract);
    options.permits = 3;
    refuse(contract, client, &options, DBLOCK_E_UNSUPPORTED, "permits");
    options = own_options(contract);
    options.flags = DBLOCK_REENTRANT;
    refuse(contract, client, &options, DBLOCK_E_UNSUPPORTED, "REENTRANT");
    options.flags = DBLOCK_QUIET_OK;
    refuse(contract, client, &options, DBLOCK_E_UNSUPPORTED, "QUIET_OK");
}

static void ttl__of_ten_years_is_taken(struct contract *contract)
{
    const uint64_t nine_years_ms = UINT64_C(9) * 366 * 24 * 3600 * 1000;
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = nine_years_ms;
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    assert_true(dblock_lock_ttl_ms(lock) == nine_years_ms);
    assert_true(dblock_lock_remaining_ms(lock) > nine_years_ms / 4 * 3);
    release(contract, lock);
}

static void config__sets_the_defaults(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client;
    dblock_lock *lock;

    config.strategy = DBLOCK_INSERT;
    config.ttl_ms = 7000;
    client = open_configured(contract, CONTRACT_URL, &config);
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    assert_int_equal(DBLOCK_INSERT, dblock_lock_strategy(lock));
    assert_int_equal(7000, dblock_lock_ttl_ms(lock));
}

/* A pooler for short statements, and a way round it for the keeper. */
static void keeper_url__is_where_heartbeats_go(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    dblock_client *client = NULL;
    dblock_lock *lock;

    config.keeper_url = contract->database->url(CONTRACT_URL);
    options.ttl_ms = 900;
    lock = take_with(contract, open_configured(contract, CONTRACT_URL, &config),
        own_name(contract, "x"), &options);
    test_pass_ms(1500);
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    config.keeper_url = contract->database->url(CONTRACT_URL_MALFORMED);
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_open(contract->database->driver(), contract->database->url(CONTRACT_URL), &config,
            &client, &contract->error));
}

/* D2: a small pool makes callers wait for each other, and loses nobody. */
static void connections__may_be_few(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    struct contract_job *jobs[8];
    dblock_client *client;
    size_t i;

    config.connections_max = 1;
    client = open_configured(contract, CONTRACT_URL, &config);
    for (i = 0; i < 8; ++i)
        jobs[i] = start_job(contract, client, own_name(contract, "x"), &options);
    for (i = 0; i < 8; ++i) {
        assert_true(job_ends(jobs[i], 10000));
        expect_status(contract, DBLOCK_OK, jobs[i]->status);
    }
}

static void refuse_config(
    struct contract *contract, const struct dblock_config *config, const char *word)
{
    const struct contract_database *database = contract->database;
    dblock_client *client = NULL;

    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_open(
            database->driver(), database->url(CONTRACT_URL), config, &client, &contract->error));
    assert_null(client);
    assert_non_null(strstr(contract->error.message, word));
}

static void config__is_refused_out_of_range(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    dblock_client *client = NULL;

    config.struct_size = 0;
    refuse_config(contract, &config, "config");
    config = own_config(contract);
    config.strategy = 17;
    refuse_config(contract, &config, "strategy");
    config = own_config(contract);
    config.ttl_ms = (uint64_t)-5;
    refuse_config(contract, &config, "ttl_ms");
    config = own_config(contract);
    config.io_timeout_ms = (uint64_t)-5;
    refuse_config(contract, &config, "io_timeout_ms");
    config = own_config(contract);
    config.connect_timeout_ms = (uint64_t)-5;
    refuse_config(contract, &config, "connect_timeout_ms");
    config = own_config(contract);
    config.label = "\377";
    refuse_config(contract, &config, "label");
    config = own_config(contract);
    config.schema = "";
    refuse_config(contract, &config, "schema");
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_open(contract->database->driver(), "", NULL, &client, &contract->error));
    assert_null(client);
}

static void outputs__of_size_zero_are_refused(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_filter filter = { 0 };
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_event event = { 0 };

    (void)take(contract, client, name);
    grant.struct_size = 0;
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_inspect(client, name, DBLOCK_LEASE, &grant, &contract->error));
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_list(
            client, &filter, (dblock_grant_fn)(void (*)(void))abort, NULL, &contract->error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_next_event(client, &event));
}

/* Each struct, with a size that was never set, is less than itself, or is garbage: refused, without
 * a look at what lies behind it. */
static void structs__of_no_size_are_refused(struct contract *contract)
{
    static const size_t sizes[] = { 0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX / 2, SIZE_MAX };
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    const struct contract_database *database = contract->database;
    size_t i;

    (void)take(contract, client, name);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        struct dblock_options options = own_options(contract);
        struct dblock_config config = own_config(contract);
        struct dblock_filter filter = DBLOCK_FILTER_INIT;
        struct dblock_grant grant = DBLOCK_GRANT_INIT;
        struct dblock_event event = DBLOCK_EVENT_INIT;
        struct dblock_stats stats = DBLOCK_STATS_INIT;
        dblock_client *none = NULL;
        dblock_lock *lock = NULL;

        options.struct_size = config.struct_size = filter.struct_size = sizes[i];
        grant.struct_size = event.struct_size = stats.struct_size = sizes[i];
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_acquire(client, name, &options, &lock, &contract->error));
        assert_non_null(strstr(contract->error.hint, "_INIT"));
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &none,
                &contract->error));
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_list(
                client, &filter, (dblock_grant_fn)(void (*)(void))abort, NULL, &contract->error));
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_inspect(client, name, DBLOCK_LEASE, &grant, &contract->error));
        assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_stats(client, &stats));
        assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_next_event(client, &event));
        options = own_options(contract);
        options.busy = &grant; /* somebody else's answer is no reason to write it anywhere */
        expect_status(contract, DBLOCK_E_ARGUMENT,
            dblock_acquire(client, name, &options, &lock, &contract->error));
        assert_null(lock);
        assert_null(none);
    }
}

/* The tail of a struct of a later release: outputs leave it as it was. */
static void outputs__may_be_larger(struct contract *contract)
{
    struct {
        struct dblock_grant known;
        unsigned char tail[32];
    } grant;
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);

    (void)take(contract, client, name);
    memset(&grant, 0x5A, sizeof grant);
    grant.known.struct_size = sizeof grant;
    expect_status(contract, DBLOCK_OK,
        dblock_inspect(client, name, DBLOCK_LEASE, &grant.known, &contract->error));
    assert_string_equal(name, grant.known.name);
    assert_int_equal(sizeof grant, grant.known.struct_size);
    assert_int_equal(0x5A, grant.tail[0]);
    assert_int_equal(0x5A, grant.tail[31]);
}

static void driver__of_another_release_is_refused(struct contract *contract)
{
    const struct contract_database *database = contract->database;
    dblock_driver other = *database->driver();
    dblock_client *client = NULL;

    other.abi = DBLOCK_DRIVER_ABI + 1;
    expect_status(contract, DBLOCK_E_DRIVER,
        dblock_open(&other, database->url(CONTRACT_URL), NULL, &client, &contract->error));
    other.abi = DBLOCK_DRIVER_ABI;
    other.struct_size -= sizeof(void *);
    expect_status(contract, DBLOCK_E_DRIVER,
        dblock_open(&other, database->url(CONTRACT_URL), NULL, &client, &contract->error));
    assert_null(client);
}

const struct contract_case option_cases[] = {
    { "options__of_size_zero_are_refused_with_a_hint",
        options__of_size_zero_are_refused_with_a_hint, ONCE, NULL },
    { "options__may_be_larger_if_the_rest_is_zero", options__may_be_larger_if_the_rest_is_zero,
        ONCE, NULL },
    { "options__may_be_smaller", options__may_be_smaller, ONCE, NULL },
    { "options__may_be_null", options__may_be_null, ONCE, NULL },
    { "options__are_refused_out_of_range", options__are_refused_out_of_range, ALL, NULL },
    { "options__of_a_later_release_are_unsupported", options__of_a_later_release_are_unsupported,
        ALL, NULL },
    { "ttl__of_ten_years_is_taken", ttl__of_ten_years_is_taken, TIMED, NULL },
    { "config__sets_the_defaults", config__sets_the_defaults, ONCE, NULL },
    { "keeper_url__is_where_heartbeats_go", keeper_url__is_where_heartbeats_go, BEAT, NULL },
    { "connections__may_be_few", connections__may_be_few, ALL, NULL },
    { "config__is_refused_out_of_range", config__is_refused_out_of_range, ONCE, NULL },
    { "outputs__of_size_zero_are_refused", outputs__of_size_zero_are_refused, ONCE, NULL },
    { "structs__of_no_size_are_refused", structs__of_no_size_are_refused, ONCE, NULL },
    { "outputs__may_be_larger", outputs__may_be_larger, ONCE, NULL },
    { "driver__of_another_release_is_refused", driver__of_another_release_is_refused, ONCE, NULL },
    { NULL, NULL, 0, NULL },
};
