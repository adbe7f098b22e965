/* SPDX-License-Identifier: MIT */
/* contract.c - what the cases use. */
#include "contract.h"

#include <dblock/sys/driver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int is_kind(const struct contract *contract, unsigned mask)
{
    return (contract->kind->bit & mask) != 0;
}

void expect_status_at(struct contract *contract, dblock_status expected, dblock_status actual,
    const char *file, int line)
{
    if (actual == expected)
        return;
    print_error("%s:%d: %s instead of %s\n", file, line, dblock_status_name(actual),
        dblock_status_name(expected));
    if (actual < 0)
        print_error("%s:%d: %s (%s)\n", file, line, contract->error.message, contract->error.hint);
    _fail(file, line);
}

const char *own_name(struct contract *contract, const char *what)
{
    static unsigned n_names;
    char *name;

    assert_true(contract->n_names < CONTRACT_MAX);
    name = contract->names[contract->n_names++];
    (void)snprintf(name, sizeof contract->names[0], "%s-%u-%s", contract_word(), ++n_names, what);
    return name;
}

struct dblock_config own_config(const struct contract *contract)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    if (contract->database->schema != NULL)
        config.schema = contract->database->schema();
    config.io_timeout_ms = 4000;
    config.connect_timeout_ms = 4000;
    return config;
}

dblock_client *open_configured(
    struct contract *contract, enum contract_url which, const struct dblock_config *config)
{
    dblock_client *client = NULL;

    assert_true(contract->n_clients < CONTRACT_MAX);
    expect_status(contract, DBLOCK_OK,
        dblock_open(contract->database->driver(), contract->database->url(which), config, &client,
            &contract->error));
    contract->clients[contract->n_clients++] = client;
    return client;
}

dblock_client *open_client(struct contract *contract, const char *label)
{
    struct dblock_config config = own_config(contract);

    config.label = label;
    return open_configured(contract, CONTRACT_URL, &config);
}

void close_client(struct contract *contract, dblock_client *client)
{
    size_t i;

    for (i = 0; i < contract->n_clients; ++i)
        if (contract->clients[i] == client)
            contract->clients[i] = NULL;
    dblock_close(client);
}

struct dblock_options own_options(const struct contract *contract)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = contract->kind->strategy;
    options.heartbeat = contract->kind->heartbeat;
    options.ttl_ms = 10000;
    return options;
}

dblock_lock *note_lock(struct contract *contract, dblock_lock *lock)
{
    assert_true(contract->n_locks < sizeof contract->locks / sizeof contract->locks[0]);
    contract->locks[contract->n_locks++] = lock;
    return lock;
}

void free_lock(struct contract *contract, dblock_lock *lock)
{
    size_t i;

    for (i = 0; i < contract->n_locks; ++i)
        if (contract->locks[i] == lock) {
            contract->locks[i] = contract->locks[--contract->n_locks];
            break;
        }
    dblock_lock_free(lock);
}

dblock_status attempt(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock)
{
    dblock_lock *lock = NULL;
    dblock_status status = dblock_acquire(client, name, options, &lock, &contract->error);

    if (status == DBLOCK_OK) {
        assert_non_null(lock);
        (void)note_lock(contract, lock);
        if (ret_lock != NULL)
            *ret_lock = lock;
    } else {
        assert_null(lock); /* ret_ is written on OK only */
    }
    return status;
}

/* A grant whose answer is slower than its ttl is none. A disk that flushes for somebody else
 * makes it so for a moment. */
static int is_too_short_to_be_sure(const struct dblock_options *options)
{
    return options->ttl_ms > 0 && options->ttl_ms <= 500;
}

dblock_lock *take_with(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options)
{
    dblock_lock *lock = NULL;
    dblock_status status = attempt(contract, client, name, options, &lock);
    int n_left;

    for (n_left = 4; status == DBLOCK_BUSY && is_too_short_to_be_sure(options) && n_left > 0;
         --n_left)
        status = attempt(contract, client, name, options, &lock);
    expect_status(contract, DBLOCK_OK, status);
    assert_int_equal(1, dblock_lock_is_held(lock));
    return lock;
}

dblock_lock *take(struct contract *contract, dblock_client *client, const char *name)
{
    struct dblock_options options = own_options(contract);

    return take_with(contract, client, name, &options);
}

dblock_lock *take_within(
    struct contract *contract, dblock_client *client, const char *name, uint64_t within_ms)
{
    struct dblock_options options = own_options(contract);

    options.wait_ms = within_ms;
    return take_with(contract, client, name, &options);
}

void expect_busy(struct contract *contract, dblock_client *client, const char *name)
{
    struct dblock_options options = own_options(contract);

    expect_status(contract, DBLOCK_BUSY, attempt(contract, client, name, &options, NULL));
}

void release(struct contract *contract, dblock_lock *lock)
{
    expect_status(contract, DBLOCK_OK, dblock_release(lock, &contract->error));
    assert_int_equal(0, dblock_lock_is_held(lock));
}

int64_t token_of(struct contract *contract, dblock_lock *lock)
{
    int64_t token = 0;

    expect_status(contract, DBLOCK_OK, dblock_lock_token(lock, &token, &contract->error));
    assert_true(token > 0);
    assert_true(token < INT64_C(1) << 53);
    return token;
}

dblock_canceller *new_canceller(struct contract *contract)
{
    dblock_canceller *canceller = NULL;

    assert_true(contract->n_cancellers < CONTRACT_MAX);
    expect_status(contract, DBLOCK_OK, dblock_canceller_new(&canceller, &contract->error));
    contract->cancellers[contract->n_cancellers++] = canceller;
    return canceller;
}

static void *run_job(void *argument)
{
    struct contract_job *job = argument;

    job->begun_ms = test_now_ms();
    job->status = dblock_acquire(job->client, job->name, &job->options, &job->lock, &job->error);
    job->ended_ms = test_now_ms();
    atomic_store(&job->is_done, 1);
    return NULL;
}

struct contract_job *start_job(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options)
{
    struct contract_job *job;

    assert_true(contract->n_jobs < CONTRACT_MAX);
    job = &contract->jobs[contract->n_jobs++];
    job->contract = contract;
    job->client = client;
    job->name = name;
    job->options = *options;
    assert_int_equal(0, pthread_create(&job->thread, NULL, run_job, job));
    job->is_started = 1;
    return job;
}

struct awaited {
    dblock_client *client;
    uint32_t n_waiters;
};

static uint32_t count_waiters(dblock_client *client)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    return dblock_client_stats(client, &stats) == DBLOCK_OK ? stats.waiters : 0;
}

static int has_waiters(void *context)
{
    struct awaited *awaited = context;

    return count_waiters(awaited->client) >= awaited->n_waiters;
}

struct contract_job *start_waiting(struct contract *contract, dblock_client *client,
    const char *name, const struct dblock_options *options)
{
    struct awaited awaited = { client, count_waiters(client) + 1 };
    struct contract_job *job = start_job(contract, client, name, options);

    if (!test_until(has_waiters, &awaited, 5000))
        fail_msg("the acquire does not wait");
    return job;
}

struct line {
    dblock_client *client;
    const char *name;
    int strategy;
    uint32_t n_waiters;
    int is_told; /* how many they are */
};

static int is_line_long(void *context)
{
    struct line *line = context;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;

    line->is_told =
        dblock_inspect(line->client, line->name, line->strategy, &grant, NULL) == DBLOCK_OK &&
        grant.n_waiters != UINT32_MAX;
    return !line->is_told || grant.n_waiters >= line->n_waiters;
}

struct crowd {
    const struct contract_database *database;
    uint32_t n_waiters;
};

static int is_crowd_there(void *context)
{
    const struct crowd *crowd = context;

    return crowd->database->n_waiting() >= crowd->n_waiters;
}

/* From where it is counted as a waiter to the database's queue. Threads of one client stand there as
 * one, so that there may never be as many. */
static void let_arrive(const struct contract_database *database, uint32_t n_waiters)
{
    struct crowd crowd = { database, n_waiters };

    if (database->n_waiting != NULL)
        (void)test_until(is_crowd_there, &crowd, 1000);
    else
        test_pass_ms(100);
}

struct contract_job *start_in_line(struct contract *contract, dblock_client *client,
    const char *name, const struct dblock_options *options, uint32_t n_waiters)
{
    struct contract_job *job = start_waiting(contract, client, name, options);
    struct line line = { client, name, contract->kind->strategy, n_waiters, 0 };

    if (!test_until(is_line_long, &line, 5000))
        fail_msg("the acquire does not stand in line");
    if (!line.is_told)
        let_arrive(contract->database, n_waiters);
    return job;
}

static int is_job_done(void *context)
{
    struct contract_job *job = context;

    return atomic_load(&job->is_done);
}

int job_ends(struct contract_job *job, uint64_t within_ms)
{
    if (!test_until(is_job_done, job, within_ms))
        return 0;
    if (job->is_started)
        (void)pthread_join(job->thread, NULL);
    job->is_started = 0;
    job->contract->error = job->error;
    return 1;
}

static int is_lost(void *context)
{
    return !dblock_lock_is_held(context);
}

int is_lost_within(dblock_lock *lock, uint64_t within_ms)
{
    return test_until(is_lost, lock, within_ms);
}

/* ----------------------------------------------------- a holder that will die */

struct holding {
    const struct contract *contract;
    const char *name;
    const struct dblock_options *options;
};

static int hold_in_child(void *context, int ready_fd)
{
    const struct holding *holding = context;
    const struct contract_database *database = holding->contract->database;
    struct dblock_config config = own_config(holding->contract);
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status;

    config.label = "victim";
    status = dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, holding->name, holding->options, &lock, &error);
    if (status < 0)
        (void)fprintf(stderr, "in the child: %s\n", error.message);
    process_ready(ready_fd, status == DBLOCK_OK);
    process_stay();
    return 0;
}

void hold_elsewhere(
    struct contract *contract, const char *name, const struct dblock_options *options)
{
    struct holding holding = { contract, name, options };
    struct test_process *process;

    /* A world in memory has no other processes: there a client stands in for one. */
    if (contract->database->strand != NULL) {
        (void)take_with(contract, open_client(contract, "victim"), name, options);
        return;
    }
    process = &contract->processes[contract->n_processes++];
    assert_int_equal(0, process_start(process, hold_in_child, &holding));
    assert_int_equal(1, process_await(process, 10000));
}

void kill_elsewhere(struct contract *contract)
{
    if (contract->database->strand != NULL)
        contract->database->strand("victim");
    else
        process_kill(&contract->processes[contract->n_processes - 1]);
}

int has_many(const struct contract_database *database)
{
    return database->driver()->lease.take_many != NULL;
}

int has_many_and_hurts(const struct contract_database *database)
{
    return has_many(database) && database->hurt != NULL;
}

int has_many_and_guards(const struct contract_database *database)
{
    return has_many(database) && database->guard != NULL;
}
