/* SPDX-License-Identifier: MIT */
/* handle.c - objects: NULL, fork, dblock_with, names of statuses and strategies. */
#include "contract.h"

#include <dblock/check.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void closers__take_null(struct contract *contract)
{
    (void)contract;
    dblock_close(NULL);
    dblock_lock_free(NULL);
    dblock_canceller_free(NULL);
}

static void null__is_an_argument_error(struct contract *contract)
{
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error *error = &contract->error;
    dblock_lock *lock = NULL;
    dblock_lock *held = take(contract, client, own_name(contract, "x"));

    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_acquire(NULL, "x", NULL, &lock, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_acquire(client, "x", &options, NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_release(NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_confirm(NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_extend(NULL, 0, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_lock_token(held, NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_lock_fd(held, NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_ping(NULL, error));
    expect_status(
        contract, DBLOCK_E_ARGUMENT, dblock_inspect(client, "x", DBLOCK_LEASE, NULL, error));
    expect_status(
        contract, DBLOCK_E_ARGUMENT, dblock_inspect(NULL, "x", DBLOCK_LEASE, &grant, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_schema_install(NULL, error));
    expect_status(contract, DBLOCK_E_ARGUMENT, dblock_check(client, NULL, NULL, error));
    assert_int_equal(1, dblock_lock_is_held(held));
}

/* --------------------------------------------------------------------- fork */

struct inherited {
    dblock_client *client;
    dblock_lock *lock;
};

/* H7. In the child: everything is refused, nothing is sent, and all can be freed. */
static int use_in_child(void *context, int ready_fd)
{
    struct inherited *inherited = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    dblock_lock *lock = NULL;
    int64_t token = 0;
    int fd = -1;
    int n_wrong = 0;

    n_wrong += dblock_acquire(inherited->client, "x", &options, &lock, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_release(inherited->lock, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_confirm(inherited->lock, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_extend(inherited->lock, 0, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_lock_token(inherited->lock, &token, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_lock_fd(inherited->lock, &fd, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_ping(inherited->client, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_schema_install(inherited->client, NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_list(inherited->client, NULL, (dblock_grant_fn)(void (*)(void))pause, NULL,
                   NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_check(inherited->client, (dblock_finding_fn)(void (*)(void))pause, NULL,
                   NULL) != DBLOCK_E_FORKED;
    n_wrong += dblock_client_stats(inherited->client, &stats) != DBLOCK_E_FORKED;
    n_wrong += dblock_lock_is_held(inherited->lock) != 0;
    n_wrong += dblock_lock_remaining_ms(inherited->lock) != 0;
    process_ready(ready_fd, (unsigned char)n_wrong);
    dblock_lock_free(inherited->lock);
    dblock_close(inherited->client);
    return n_wrong;
}

static void fork__leaves_the_lock_with_the_parent(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *other = open_client(contract, "other");
    struct inherited inherited;
    struct test_process process;

    inherited.client = open_client(contract, NULL);
    inherited.lock = take(contract, inherited.client, name);
    assert_int_equal(0, process_start(&process, use_in_child, &inherited));
    assert_int_equal(0, process_await(&process, 5000));
    assert_int_equal(0, process_wait(&process, 5000));
    assert_int_equal(1, dblock_lock_is_held(inherited.lock));
    expect_status(contract, DBLOCK_OK, dblock_confirm(inherited.lock, &contract->error));
    expect_busy(contract, other, name);
    release(contract, inherited.lock);
    release(contract, take(contract, inherited.client, name));
}

/* A child may well open a client of its own. */
static int lock_in_child(void *context, int ready_fd)
{
    struct contract *contract = context;
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    const struct contract_database *database = contract->database;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status;

    status = dblock_open(
        database->driver(), database->url(CONTRACT_URL), &config, &client, &contract->error);
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, contract->names[0], &options, &lock, &contract->error);
    process_ready(ready_fd, (unsigned char)-status);
    if (status == DBLOCK_OK)
        status = dblock_release(lock, &contract->error);
    dblock_lock_free(lock);
    dblock_close(client);
    return 0;
}

static void fork__then_a_client_of_the_childs_own(struct contract *contract)
{
    struct test_process process;
    dblock_status expected;
    dblock_client *client;

    (void)own_name(contract, "x");
    client = open_client(contract, NULL);
    (void)take(contract, client, own_name(contract, "y"));
    assert_int_equal(0, process_start(&process, lock_in_child, contract));
    /* SQLite must not be used on both sides of a fork; a refusal is better than a broken file */
    expected = contract->database->refuses_after_fork && is_kind(contract, RECORDED)
                   ? DBLOCK_E_UNSUPPORTED
                   : DBLOCK_OK;
    assert_int_equal((unsigned char)-expected, process_await(&process, 10000));
    assert_int_equal(0, process_wait(&process, 10000));
}

/* --------------------------------------------------------------------- with */

struct work {
    struct contract *contract;
    dblock_client *other;
    const char *name;
    int n_runs;
    int was_held;
};

static int work(dblock_lock *lock, void *context)
{
    struct work *work = context;

    ++work->n_runs;
    work->was_held = dblock_lock_is_held(lock);
    return 42;
}

static int work_and_lose(dblock_lock *lock, void *context)
{
    struct work *work = context;

    (void)lock;
    ++work->n_runs;
    return dblock_break(
        work->other, work->name, work->contract->kind->strategy, 0, &work->contract->error);
}

static void with__runs_under_the_lock_and_releases(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    dblock_client *other = open_client(contract, "other");
    struct dblock_options options = own_options(contract);
    struct work job = { contract, other, name, 0, 0 };
    dblock_lock *lock;
    int result = 0;

    expect_status(contract, DBLOCK_OK,
        dblock_with(client, name, &options, work, &job, &result, &contract->error));
    assert_int_equal(42, result);
    assert_int_equal(1, job.n_runs);
    assert_int_equal(1, job.was_held);
    lock = take(contract, other, name);
    result = 7;
    expect_status(contract, DBLOCK_BUSY,
        dblock_with(client, name, &options, work, &job, &result, &contract->error));
    assert_int_equal(7, result);
    assert_int_equal(1, job.n_runs);
    release(contract, lock);
    expect_status(contract, DBLOCK_OK,
        dblock_with(client, name, &options, work, &job, NULL, &contract->error));
    assert_int_equal(2, job.n_runs);
    expect_status(contract, DBLOCK_E_ARGUMENT,
        dblock_with(client, name, &options, NULL, NULL, &result, &contract->error));
}

static void with__tells_that_the_lock_was_lost(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    struct work job = { contract, open_client(contract, "other"), name, 0, 0 };
    int result = -1;

    expect_status(contract, DBLOCK_LOST,
        dblock_with(client, name, &options, work_and_lose, &job, &result, &contract->error));
    assert_int_equal(DBLOCK_OK, result);
    assert_int_equal(1, job.n_runs);
}

/* -------------------------------------------------------------------- names */

static void statuses__have_names_and_sentences(struct contract *contract)
{
    static const struct {
        dblock_status status;
        const char *name;
    } all[] = { { DBLOCK_OK, "DBLOCK_OK" }, { DBLOCK_BUSY, "DBLOCK_BUSY" },
        { DBLOCK_LOST, "DBLOCK_LOST" }, { DBLOCK_NOT_HELD, "DBLOCK_NOT_HELD" },
        { DBLOCK_CANCELLED, "DBLOCK_CANCELLED" }, { DBLOCK_PENDING, "DBLOCK_PENDING" },
        { DBLOCK_STALE_SNAPSHOT, "DBLOCK_STALE_SNAPSHOT" },
        { DBLOCK_ROLLED_BACK, "DBLOCK_ROLLED_BACK" }, { DBLOCK_CONFLICT, "DBLOCK_CONFLICT" },
        { DBLOCK_DONE, "DBLOCK_DONE" }, { DBLOCK_EMPTY, "DBLOCK_EMPTY" },
        { DBLOCK_E_ARGUMENT, "DBLOCK_E_ARGUMENT" },
        { DBLOCK_E_UNSUPPORTED, "DBLOCK_E_UNSUPPORTED" },
        { DBLOCK_E_CALLBACK, "DBLOCK_E_CALLBACK" }, { DBLOCK_E_FORKED, "DBLOCK_E_FORKED" },
        { DBLOCK_E_CLOSED, "DBLOCK_E_CLOSED" }, { DBLOCK_E_CONNECTION, "DBLOCK_E_CONNECTION" },
        { DBLOCK_E_UNCERTAIN, "DBLOCK_E_UNCERTAIN" }, { DBLOCK_E_LOGIN, "DBLOCK_E_LOGIN" },
        { DBLOCK_E_SCHEMA, "DBLOCK_E_SCHEMA" }, { DBLOCK_E_PERMISSION, "DBLOCK_E_PERMISSION" },
        { DBLOCK_E_READ_ONLY, "DBLOCK_E_READ_ONLY" }, { DBLOCK_E_DATABASE, "DBLOCK_E_DATABASE" },
        { DBLOCK_E_MEMORY, "DBLOCK_E_MEMORY" }, { DBLOCK_E_SYSTEM, "DBLOCK_E_SYSTEM" },
        { DBLOCK_E_DRIVER, "DBLOCK_E_DRIVER" } };
    size_t i;

    (void)contract;
    for (i = 0; i < sizeof all / sizeof all[0]; ++i) {
        assert_string_equal(all[i].name, dblock_status_name(all[i].status));
        assert_true(strlen(dblock_status_text(all[i].status)) > 3);
    }
    assert_string_equal("DBLOCK_UNKNOWN", dblock_status_name(-999));
    assert_string_equal("DBLOCK_UNKNOWN", dblock_status_name(999));
    assert_non_null(dblock_status_text(-999));
}

static void strategies__have_names(struct contract *contract)
{
    assert_string_equal("lease", dblock_strategy_name(DBLOCK_LEASE));
    assert_string_equal("insert", dblock_strategy_name(DBLOCK_INSERT));
    assert_string_equal("row", dblock_strategy_name(DBLOCK_ROW));
    assert_string_equal("advisory", dblock_strategy_name(DBLOCK_ADVISORY));
    assert_string_equal("unknown", dblock_strategy_name(77));
    assert_int_equal(DBLOCK_LEASE, dblock_strategy_from_name("lease"));
    assert_int_equal(DBLOCK_INSERT, dblock_strategy_from_name("insert"));
    assert_int_equal(DBLOCK_ROW, dblock_strategy_from_name("row"));
    assert_int_equal(DBLOCK_ADVISORY, dblock_strategy_from_name("advisory"));
    assert_int_equal(-1, dblock_strategy_from_name("Lease"));
    assert_int_equal(-1, dblock_strategy_from_name(""));
    assert_int_equal(-1, dblock_strategy_from_name(NULL));
    assert_non_null(dblock_driver_scheme(contract->database->driver()));
    assert_string_equal("0.1.0", dblock_version());
}

static int can_fork(const struct contract_database *database)
{
#if defined(__SANITIZE_THREAD__)
    (void)database;
    return 0; /* that sanitizer cannot follow a child that starts threads; the other builds do */
#else
    return database->strand == NULL; /* a world in memory does not reach into a child */
#endif
}

static int can_break_row(const struct contract_database *database)
{
    return database->breaks_row;
}

static int can_break_advisory(const struct contract_database *database)
{
    return database->breaks_advisory;
}

const struct contract_case handle_cases[] = {
    { "closers__take_null", closers__take_null, ONCE, NULL },
    { "null__is_an_argument_error", null__is_an_argument_error, ONCE, NULL },
    { "fork__leaves_the_lock_with_the_parent", fork__leaves_the_lock_with_the_parent, ALL, NULL },
    { "fork__then_a_client_of_the_childs_own", fork__then_a_client_of_the_childs_own, ALL,
        can_fork },
    { "with__runs_under_the_lock_and_releases", with__runs_under_the_lock_and_releases, ALL, NULL },
    { "with__tells_that_the_lock_was_lost", with__tells_that_the_lock_was_lost, RECORDED, NULL },
    { "with__tells_that_the_lock_was_lost", with__tells_that_the_lock_was_lost, ROW,
        can_break_row },
    { "with__tells_that_the_lock_was_lost", with__tells_that_the_lock_was_lost, ADVISORY,
        can_break_advisory },
    { "statuses__have_names_and_sentences", statuses__have_names_and_sentences, ONCE, NULL },
    { "strategies__have_names", strategies__have_names, ONCE, NULL },
    { NULL, NULL, 0, NULL },
};
