/* SPDX-License-Identifier: MIT */
/* schema.c - the tables: installed by whoever asks for it, missed politely. */
#include "contract.h"

#include <dblock/check.h>

#include <stdio.h>
#include <string.h>

static void schema__is_text_with_a_licence(struct contract *contract)
{
    const char *text = dblock_schema(contract->database->driver());

    assert_non_null(text);
    assert_true(strlen(text) > 10);
}

static void ping__proves_the_tables(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);

    expect_status(contract, DBLOCK_OK, dblock_ping(client, &contract->error));
    contract->database->drop_tables();
    expect_status(contract, DBLOCK_E_SCHEMA, dblock_ping(client, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_ping(client, &contract->error));
}

static int needs_tables(const struct contract *contract)
{
    if (is_kind(contract, ROW))
        return contract->database->needs_tables_for_row;
    if (is_kind(contract, ADVISORY))
        return contract->database->needs_tables_for_advisory;
    return 1;
}

/* C7: told at once, also by a wait; and mended without a restart. */
static void missing_tables__are_an_error_that_install_mends(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_error error;
    dblock_status status;

    release(contract, take(contract, client, name));
    contract->database->drop_tables();
    options.wait_ms = 20000;
    options.flags = DBLOCK_FENCED;
    status = attempt(contract, client, name, &options, NULL);
    error = contract->error;
    /* before any assertion, for the tests that come after this one */
    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    contract->error = error;
    expect_status(contract, DBLOCK_E_SCHEMA, status);
    assert_non_null(strstr(error.hint, "dblock init"));
    assert_int_equal(0, error.is_transient);
    release(contract, take_with(contract, client, name, &options));
}

static void missing_tables__do_not_matter_where_none_are_needed(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_status status;

    if (needs_tables(contract))
        return;
    contract->database->drop_tables();
    status = attempt(contract, client, name, &options, NULL);
    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    expect_status(contract, DBLOCK_OK, status);
}

static void install__may_be_repeated(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = take(contract, client, name);

    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
    expect_busy(contract, client, name);
}

struct installer {
    pthread_t thread;
    dblock_client *client;
    dblock_status status;
    struct dblock_error error;
};

static void *install(void *argument)
{
    struct installer *installer = argument;

    installer->status = dblock_schema_install(installer->client, &installer->error);
    return NULL;
}

static void install__may_be_run_by_many_at_once(struct contract *contract)
{
    enum { N_INSTALLERS = 4 };
    struct installer installers[N_INSTALLERS];
    size_t i;

    memset(installers, 0, sizeof installers);
    for (i = 0; i < N_INSTALLERS; ++i)
        installers[i].client = open_client(contract, NULL);
    contract->database->drop_tables();
    for (i = 0; i < N_INSTALLERS; ++i)
        assert_int_equal(0, pthread_create(&installers[i].thread, NULL, install, &installers[i]));
    for (i = 0; i < N_INSTALLERS; ++i)
        (void)pthread_join(installers[i].thread, NULL);
    for (i = 0; i < N_INSTALLERS; ++i) {
        contract->error = installers[i].error;
        expect_status(contract, DBLOCK_OK, installers[i].status);
    }
    expect_status(contract, DBLOCK_OK, dblock_ping(installers[0].client, &contract->error));
}

static int has_rights(const struct contract_database *database)
{
    return database->url(CONTRACT_URL_POOR) != NULL;
}

static void install__without_the_right_says_what_is_missing(struct contract *contract)
{
    struct dblock_config config = own_config(contract);
    struct dblock_error error;
    dblock_client *rich = open_client(contract, NULL);
    dblock_client *poor = open_configured(contract, CONTRACT_URL_POOR, &config);
    dblock_status status;

    contract->database->drop_tables();
    status = dblock_schema_install(poor, &contract->error);
    error = contract->error;
    expect_status(contract, DBLOCK_OK, dblock_schema_install(rich, &contract->error));
    contract->error = error;
    expect_status(contract, DBLOCK_E_PERMISSION, status);
    assert_true(error.hint[0] != 0);
}

struct examination {
    int n_findings;
    int n_unusable;
    char unusable[64]; /* the last of them */
    char remedy[256];
};

static int note_finding(const struct dblock_finding *finding, void *context)
{
    struct examination *examination = context;

    ++examination->n_findings;
    assert_int_equal(sizeof *finding, finding->struct_size);
    assert_true(finding->id[0] != 0 && finding->text[0] != 0 && finding->strategies != 0);
    /* what is bad says what mends it */
    assert_true(finding->severity == DBLOCK_FINDING_GOOD || finding->remedy[0] != 0);
    if (finding->severity != DBLOCK_FINDING_UNUSABLE)
        return 0;
    ++examination->n_unusable;
    (void)snprintf(examination->unusable, sizeof examination->unusable, "%.60s", finding->id);
    (void)snprintf(examination->remedy, sizeof examination->remedy, "%.250s", finding->remedy);
    return 0;
}

static int stop_at_once(const struct dblock_finding *finding, void *context)
{
    (void)finding;
    ++*(int *)context;
    return 1;
}

static void check__finds_what_is_missing(struct contract *contract)
{
    struct examination good = { 0 }, bad = { 0 };
    dblock_client *client = open_client(contract, NULL);
    dblock_status status;
    int n_calls = 0;

    expect_status(contract, DBLOCK_OK,
        dblock_check(client, note_finding, &good, &contract->error));
    assert_true(good.n_findings >= 2); /* the tables and the clock */
    assert_int_equal(0, good.n_unusable);
    expect_status(contract, DBLOCK_OK,
        dblock_check(client, stop_at_once, &n_calls, &contract->error));
    assert_int_equal(1, n_calls);
    contract->database->drop_tables();
    status = dblock_check(client, note_finding, &bad, &contract->error);
    expect_status(contract, DBLOCK_OK, dblock_schema_install(client, &contract->error));
    expect_status(contract, DBLOCK_OK, status);
    assert_int_equal(1, bad.n_unusable);
    assert_string_equal("tables", bad.unusable);
    assert_non_null(strstr(bad.remedy, "dblock init"));
}

const struct contract_case schema_cases[] = {
    { "schema__is_text_with_a_licence", schema__is_text_with_a_licence, ONCE, NULL },
    { "ping__proves_the_tables", ping__proves_the_tables, ONCE, NULL },
    { "missing_tables__are_an_error_that_install_mends",
        missing_tables__are_an_error_that_install_mends, ALL, NULL },
    { "missing_tables__do_not_matter_where_none_are_needed",
        missing_tables__do_not_matter_where_none_are_needed, LIVE, NULL },
    { "install__may_be_repeated", install__may_be_repeated, ALL, NULL },
    { "install__may_be_run_by_many_at_once", install__may_be_run_by_many_at_once, ONCE, NULL },
    { "install__without_the_right_says_what_is_missing",
        install__without_the_right_says_what_is_missing, ONCE, has_rights },
    { "check__finds_what_is_missing", check__finds_what_is_missing, ONCE, NULL },
    { NULL, NULL, 0, NULL },
};
