/* SPDX-License-Identifier: MIT */
/* contract.h - one suite for all databases and strategies, through the public
 * interface. A topic is a file with a table of cases; a case runs once for each
 * kind of grant that it is for. What a test opens is noted in its struct contract
 * and freed after it, also after one that failed in the middle. */
#ifndef DBLOCK_TEST_CONTRACT_H
#define DBLOCK_TEST_CONTRACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>

#include "contract_database.h"
#include "processes.h"
#include "test_wait.h"

enum { /* kinds of grants, for the mask of a case */
    LEASE = 1 << 0,
    LEASE_TIMED = 1 << 1,
    INSERT = 1 << 2, /* timed, its default */
    INSERT_HEARTBEAT = 1 << 3,
    ROW = 1 << 4,
    ADVISORY = 1 << 5,

    BEAT = LEASE | INSERT_HEARTBEAT,
    TIMED = LEASE_TIMED | INSERT,
    RECORDED = BEAT | TIMED,
    LIVE = ROW | ADVISORY,
    ALL = RECORDED | LIVE,
    ONCE = 0, /* not about a kind: runs once, with lease */

    ALONE = 1 << 6 /* with a kind: it changes what may be one setting for a whole server */
};

struct contract_kind {
    const char *name;
    unsigned bit;
    int strategy;
    int heartbeat;
};

enum { CONTRACT_MAX = 64 };

/* An acquire on a thread of its own. */
struct contract_job {
    struct contract *contract;
    dblock_client *client;
    const char *name;
    struct dblock_options options;
    pthread_t thread;
    int is_started;
    atomic_int is_done;
    uint64_t begun_ms;
    uint64_t ended_ms;
    dblock_status status;
    dblock_lock *lock;
    struct dblock_error error;
};

struct contract {
    const struct contract_database *database;
    const struct contract_kind *kind;
    struct dblock_error error; /* of the last call that failed */
    dblock_client *clients[CONTRACT_MAX];
    size_t n_clients;
    dblock_lock *locks[4 * CONTRACT_MAX];
    size_t n_locks;
    dblock_canceller *cancellers[CONTRACT_MAX];
    size_t n_cancellers;
    struct contract_job jobs[CONTRACT_MAX];
    size_t n_jobs;
    struct test_process processes[8];
    size_t n_processes;
    char names[CONTRACT_MAX][DBLOCK_NAME_MAX + 1];
    size_t n_names;
    void *guard; /* ended after the test */
};

struct contract_case {
    const char *name; /* subject__behaviour */
    void (*run)(struct contract *contract);
    unsigned kinds;
    /* 0: this database cannot be asked for it, so there is no such test. NULL: it can. */
    int (*is_possible)(const struct contract_database *database);
};

/* The topics. Each table ends with a NULL name. */
extern const struct contract_case exclusion_cases[], waiting_cases[], queue_cases[], expiry_cases[],
    release_cases[], transfer_cases[], token_cases[], name_cases[], observe_cases[], event_cases[],
    callback_cases[], error_cases[], option_cases[], handle_cases[], schema_cases[], guard_cases[],
    sweep_cases[], answer_cases[], many_cases[], some_cases[];

/* What main() of each program returns. The second is for the cases that change the server under
 * everybody's feet (has_one_setting_for_all), which the first leaves out. */
int contract_run(const struct contract_database *database);
int contract_run_alone(const struct contract_database *database);

/* ------------------------------------------------------- what the cases use */

int is_kind(const struct contract *contract, unsigned kinds);

/* A name of this test alone, that lives as long as it. */
const char *own_name(struct contract *contract, const char *what);

/* A client with a short ttl for what lives in connections, or made to a configuration (url and
 * schema are filled in). NULL label: none. */
struct dblock_config own_config(const struct contract *contract);
dblock_client *open_client(struct contract *contract, const char *label);
dblock_client *open_configured(
    struct contract *contract, enum contract_url which, const struct dblock_config *config);
void close_client(struct contract *contract, dblock_client *client);

/* Options of the kind under test: try once, ttl 10 s. */
struct dblock_options own_options(const struct contract *contract);

/* One acquire; the lock is noted. `ret_lock` may be NULL. */
dblock_status attempt(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock);
/* An attempt that must succeed, or one that must be told BUSY. */
dblock_lock *take(struct contract *contract, dblock_client *client, const char *name);
dblock_lock *take_with(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options);
void expect_busy(struct contract *contract, dblock_client *client, const char *name);
/* The lock must be had within the time. */
dblock_lock *take_within(
    struct contract *contract, dblock_client *client, const char *name, uint64_t within_ms);
void release(struct contract *contract, dblock_lock *lock);
/* Notes a lock that came otherwise, and frees one that is noted. */
dblock_lock *note_lock(struct contract *contract, dblock_lock *lock);
void free_lock(struct contract *contract, dblock_lock *lock);

int64_t token_of(struct contract *contract, dblock_lock *lock);

dblock_canceller *new_canceller(struct contract *contract);

/* Starts an acquire elsewhere, and returns once it waits (stats.waiters). */
struct contract_job *start_waiting(struct contract *contract, dblock_client *client,
    const char *name, const struct dblock_options *options);
/* And once the name has so many waiters, if the database can tell: one that waits may still be on
 * its way there. */
struct contract_job *start_in_line(struct contract *contract, dblock_client *client,
    const char *name, const struct dblock_options *options, uint32_t n_waiters);
struct contract_job *start_job(struct contract *contract, dblock_client *client, const char *name,
    const struct dblock_options *options);
/* 1 and joined if it is done in time. */
int job_ends(struct contract_job *job, uint64_t within_ms);

/* A process (or what stands in for one) that holds the name, and its sudden death. */
void hold_elsewhere(
    struct contract *contract, const char *name, const struct dblock_options *options);
void kill_elsewhere(struct contract *contract);

/* Needs of cases with several names. */
int has_many(const struct contract_database *database);
int has_many_and_hurts(const struct contract_database *database);
int has_many_and_guards(const struct contract_database *database);

/* 1 once dblock_lock_is_held() says no. */
int is_lost_within(dblock_lock *lock, uint64_t within_ms);

/* assert_int_equal for statuses, which says what went wrong. */
void expect_status_at(struct contract *contract, dblock_status expected, dblock_status actual,
    const char *file, int line);
#define expect_status(contract, expected, actual)                                                  \
    expect_status_at(contract, expected, actual, __FILE__, __LINE__)

#endif
