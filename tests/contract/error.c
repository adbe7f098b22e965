/* SPDX-License-Identifier: MIT */
/* error.c - C7 and D13: each failure has its own status, says what to do, and
 * gives no password away. */
#include "contract.h"

#include <string.h>

/* Every failure that a test provokes is looked at like this. */
static void expect_failure(struct contract *contract, dblock_status expected, dblock_status actual)
{
    const struct dblock_error *error = &contract->error;
    const char *secret = contract->database->secret;

    expect_status(contract, expected, actual);
    assert_int_equal(expected, error->status);
    assert_true(error->message[0] != 0);
    assert_true(error->message[strlen(error->message) - 1] != '.');
    assert_null(strchr(error->message, '\n'));
    if (secret != NULL) {
        assert_null(strstr(error->message, secret));
        assert_null(strstr(error->hint, secret));
    }
}

static void failure__leaves_outputs_alone_and_error_may_be_null(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    dblock_lock *lock = (dblock_lock *)(void *)client; /* any pointer */
    struct dblock_error error;

    memset(&error, 'x', sizeof error);
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_acquire(client, "", NULL, &lock, NULL));
    assert_ptr_equal(client, lock);
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_acquire(client, "", NULL, &lock, &error));
    assert_ptr_equal(client, lock);
    assert_int_equal(DBLOCK_E_ARGUMENT, error.status);
    assert_int_equal(0, error.is_transient);
    assert_int_equal(0, error.sqlstate[0]);
    assert_non_null(memchr(error.message, 0, sizeof error.message));
    assert_non_null(memchr(error.hint, 0, sizeof error.hint));
}

static void success_and_no__leave_the_error_alone(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_error error;
    struct dblock_error before;
    dblock_lock *lock = NULL;
    dblock_lock *none = NULL;

    memset(&error, 'x', sizeof error);
    before = error;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    (void)note_lock(contract, lock);
    assert_int_equal(DBLOCK_BUSY, dblock_acquire(client, name, &options, &none, &error));
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_release(lock, &error));
    assert_memory_equal(&before, &error, sizeof error);
}

static dblock_client *open_at(struct contract *contract, enum contract_url which)
{
    struct dblock_config config = own_config(contract);

    config.connect_timeout_ms = 1000;
    config.io_timeout_ms = 1500;
    return open_configured(contract, which, &config);
}

static void unreachable_server__is_a_connection_error(struct contract *contract)
{
    dblock_client *client = open_at(contract, CONTRACT_URL_UNREACHABLE);
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();

    expect_failure(contract, DBLOCK_E_CONNECTION, dblock_ping(client, &contract->error));
    assert_int_equal(1, contract->error.is_transient);
    expect_failure(contract, DBLOCK_E_CONNECTION,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    /* a wait too, unless outage_ms says that it shall outlive this */
    options.wait_ms = 30000;
    expect_failure(contract, DBLOCK_E_CONNECTION,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    assert_true(test_now_ms() - begun_ms < 4000);
}

/* P7: also where nothing answers at all. */
static void silent_server__is_a_connection_error_in_time(struct contract *contract)
{
    dblock_client *client = open_at(contract, CONTRACT_URL_SILENT);
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();

    expect_failure(contract, DBLOCK_E_CONNECTION,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    assert_in_range(test_now_ms() - begun_ms, 500, 3500);
}

static void outage__is_waited_out_as_long_as_was_said(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    struct contract_job *job;
    dblock_client *client;
    uint64_t begun_ms;

    config.outage_ms = 300;
    client = open_configured(contract, CONTRACT_URL, &config);
    contract->database->set_down(1);
    options.wait_ms = 20000;
    begun_ms = test_now_ms();
    job = start_job(contract, client, name, &options);
    assert_true(job_ends(job, 5000));
    contract->database->set_down(0);
    expect_failure(contract, DBLOCK_E_CONNECTION, job->status);
    assert_in_range(test_now_ms() - begun_ms, 250, 2000);

    contract->database->set_down(1);
    job = start_job(contract, client, name, &options);
    assert_false(job_ends(job, 100));
    contract->database->set_down(0);
    assert_true(job_ends(job, 5000));
    expect_status(contract, DBLOCK_OK, job->status);
}

static void wrong_password__is_a_login_error(struct contract *contract)
{
    dblock_client *client = open_at(contract, CONTRACT_URL_PASSWORD);
    struct dblock_options options = own_options(contract);
    uint64_t begun_ms = test_now_ms();

    expect_failure(contract, DBLOCK_E_LOGIN, dblock_ping(client, &contract->error));
    options.wait_ms = 30000; /* asking again would not help */
    expect_failure(contract, DBLOCK_E_LOGIN,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    assert_true(test_now_ms() - begun_ms < 3000);
    assert_null(strstr(contract->error.message, "wrong-word"));
    assert_null(strstr(contract->error.hint, "wrong-word"));
}

static void malformed_url__is_refused_by_open(struct contract *contract)
{
    const struct contract_database *database = contract->database;
    dblock_client *client = NULL;

    expect_failure(contract, DBLOCK_E_ARGUMENT,
        dblock_open(database->driver(), database->url(CONTRACT_URL_MALFORMED), NULL, &client,
            &contract->error));
    expect_failure(contract, DBLOCK_E_ARGUMENT,
        dblock_open(database->driver(), "redis://localhost/0", NULL, &client, &contract->error));
    expect_failure(contract, DBLOCK_E_ARGUMENT,
        dblock_open(database->driver(), NULL, NULL, &client, &contract->error));
    expect_failure(contract, DBLOCK_E_ARGUMENT,
        dblock_open(NULL, database->url(CONTRACT_URL), NULL, &client, &contract->error));
    expect_failure(contract, DBLOCK_E_ARGUMENT,
        dblock_open(database->driver(), database->url(CONTRACT_URL), NULL, NULL, &contract->error));
    assert_null(client);
}

static void missing_right__is_a_permission_error(struct contract *contract)
{
    dblock_client *client = open_at(contract, CONTRACT_URL_POOR);
    struct dblock_options options = own_options(contract);

    options.wait_ms = 30000;
    expect_failure(contract, DBLOCK_E_PERMISSION,
        attempt(contract, client, own_name(contract, "x"), &options, NULL));
    assert_true(contract->error.hint[0] != 0);
    expect_failure(contract, DBLOCK_E_PERMISSION, dblock_ping(client, &contract->error));
}

static void read_only_database__is_an_error_of_its_own(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct dblock_options options = own_options(contract);
    dblock_client *before = open_client(contract, "before");
    dblock_client *client;
    dblock_status status;

    release(contract, take(contract, before, name));
    contract->database->set_read_only(1);
    client = open_client(contract, NULL);
    status = attempt(contract, client, name, &options, NULL);
    contract->database->set_read_only(0);
    expect_failure(contract, DBLOCK_E_READ_ONLY, status);
    /* F4: it was the wrong server, and is given up */
    release(contract, take_within(contract, client, name, 3000));
}

struct watch {
    const char *secret;
    atomic_int n_grants;
    atomic_int n_releases;
    atomic_int n_connects;
    atomic_int n_secrets;
    atomic_int n_wrong;
};

static void watch_trace(const struct dblock_trace *trace, void *context)
{
    struct watch *watch = context;

    if (trace->kind == DBLOCK_TRACE_GRANT)
        (void)atomic_fetch_add(&watch->n_grants, 1);
    if (trace->kind == DBLOCK_TRACE_RELEASE)
        (void)atomic_fetch_add(&watch->n_releases, 1);
    if (trace->kind == DBLOCK_TRACE_CONNECT)
        (void)atomic_fetch_add(&watch->n_connects, 1);
    if (trace->struct_size < sizeof *trace)
        (void)atomic_fetch_add(&watch->n_wrong, 1);
    if (watch->secret == NULL)
        return;
    if ((trace->detail != NULL && strstr(trace->detail, watch->secret) != NULL) ||
        (trace->name != NULL && strstr(trace->name, watch->secret) != NULL))
        (void)atomic_fetch_add(&watch->n_secrets, 1);
}

static void trace__tells_what_happens_and_no_secret(struct contract *contract)
{
    struct watch watch = { .secret = contract->database->secret };
    struct dblock_config config = own_config(contract);
    dblock_client *client;

    config.on_trace = watch_trace;
    config.trace_context = &watch;
    client = open_configured(contract, CONTRACT_URL, &config);
    release(contract, take(contract, client, own_name(contract, "x")));
    close_client(contract, client);
    assert_int_equal(1, atomic_load(&watch.n_grants));
    assert_int_equal(1, atomic_load(&watch.n_releases));
    assert_true(atomic_load(&watch.n_connects) >= 1);

    if (contract->database->url(CONTRACT_URL_PASSWORD) != NULL) {
        client = open_configured(contract, CONTRACT_URL_PASSWORD, &config);
        expect_failure(contract, DBLOCK_E_LOGIN, dblock_ping(client, &contract->error));
        watch.secret = "wrong-word";
        expect_failure(contract, DBLOCK_E_LOGIN, dblock_ping(client, &contract->error));
    }
    assert_int_equal(0, atomic_load(&watch.n_secrets));
    assert_int_equal(0, atomic_load(&watch.n_wrong));
}

static int can_be_unreachable(const struct contract_database *database)
{
    return database->url(CONTRACT_URL_UNREACHABLE) != NULL;
}

static int can_be_silent(const struct contract_database *database)
{
    return database->url(CONTRACT_URL_SILENT) != NULL;
}

static int has_passwords(const struct contract_database *database)
{
    return database->url(CONTRACT_URL_PASSWORD) != NULL;
}

static int has_rights(const struct contract_database *database)
{
    return database->url(CONTRACT_URL_POOR) != NULL;
}

static int can_be_read_only(const struct contract_database *database)
{
    return database->set_read_only != NULL;
}

static int can_go_down(const struct contract_database *database)
{
    return database->set_down != NULL;
}

const struct contract_case error_cases[] = {
    { "failure__leaves_outputs_alone_and_error_may_be_null",
        failure__leaves_outputs_alone_and_error_may_be_null, ONCE, NULL },
    { "success_and_no__leave_the_error_alone", success_and_no__leave_the_error_alone, ALL, NULL },
    { "unreachable_server__is_a_connection_error", unreachable_server__is_a_connection_error, ALL,
        can_be_unreachable },
    { "silent_server__is_a_connection_error_in_time", silent_server__is_a_connection_error_in_time,
        LEASE | ADVISORY, can_be_silent },
    { "outage__is_waited_out_as_long_as_was_said", outage__is_waited_out_as_long_as_was_said, ALL,
        can_go_down },
    { "wrong_password__is_a_login_error", wrong_password__is_a_login_error, LEASE | ADVISORY,
        has_passwords },
    { "malformed_url__is_refused_by_open", malformed_url__is_refused_by_open, ONCE, NULL },
    { "missing_right__is_a_permission_error", missing_right__is_a_permission_error, RECORDED,
        has_rights },
    { "read_only_database__is_an_error_of_its_own", read_only_database__is_an_error_of_its_own,
        RECORDED | ALONE, can_be_read_only },
    { "trace__tells_what_happens_and_no_secret", trace__tells_what_happens_and_no_secret, ALL,
        NULL },
    { NULL, NULL, 0, NULL },
};
