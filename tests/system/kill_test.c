/* SPDX-License-Identifier: MIT */
/* kill_test.c - holders that are killed, and servers: a lock is free again in
 * time, nobody's grant is forgotten that was acknowledged, and tokens rise across
 * all of it (P3, P6, S1). The servers are those of ci/services, which is asked to
 * kill and restart them. Time limit: 300 s */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract_database.h"
#include "processes.h"
#include "server_process.h"
#include "test_wait.h"

enum { N_ROUNDS = 6, N_NAMES = 20, TTL_MS = 800, SLACK_MS = 2500 };

struct target {
    const struct contract_database *database;
    const char *service; /* its name for ci/services; NULL: it has no server */
    const char *why_not;
};

static struct target targets[] = { { &contract_sqlite, NULL, NULL },
    { &contract_pgsql, "pgsql", NULL }, { &contract_mysql, "mariadb", NULL } };
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
enum { N_STRATEGIES = sizeof strategies / sizeof strategies[0] };

/* A test, and what it leaves to be ended after a failure in the middle. */
struct run {
    struct target *target;
    int strategy;
    char title[96];
    char name[64];
    dblock_client *clients[2];
    dblock_lock *locks[N_NAMES + 2];
    size_t n_locks;
    struct test_process process;
    struct dblock_error error;
};

static int begin(void **state)
{
    struct run *run = *state;
    static unsigned n_runs;

    (void)snprintf(run->name, sizeof run->name, "%s-kill-%u", contract_word(), ++n_runs);
    return 0;
}

static int end(void **state)
{
    struct run *run = *state;
    size_t i;

    process_kill(&run->process);
    for (i = 0; i < 2; ++i)
        dblock_close(run->clients[i]);
    for (i = 0; i < run->n_locks; ++i)
        dblock_lock_free(run->locks[i]);
    return 0;
}

static void expect(struct run *run, dblock_status expected, dblock_status actual)
{
    if (actual == expected)
        return;
    print_error("%s: %s instead of %s: %s\n", run->title, dblock_status_name(actual),
        dblock_status_name(expected), actual < 0 ? run->error.message : "");
    fail();
}

static dblock_status open_at(
    const struct run *run, dblock_client **ret_client, struct dblock_error *error)
{
    const struct contract_database *database = run->target->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.schema = database->schema != NULL ? database->schema() : NULL;
    config.connect_timeout_ms = 2000;
    config.io_timeout_ms = 4000;
    config.outage_ms = 20000;
    return dblock_open(database->driver(), database->url(CONTRACT_URL), &config, ret_client, error);
}

static dblock_client *open_client(struct run *run, size_t index)
{
    expect(run, DBLOCK_OK, open_at(run, &run->clients[index], &run->error));
    return run->clients[index];
}

static dblock_lock *take(
    struct run *run, dblock_client *client, const char *name, uint64_t ttl_ms, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    options.strategy = run->strategy;
    options.ttl_ms = ttl_ms;
    options.wait_ms = wait_ms;
    assert_true(run->n_locks < sizeof run->locks / sizeof run->locks[0]);
    expect(run, DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &run->error));
    run->locks[run->n_locks++] = lock;
    return lock;
}

static int64_t token_of(struct run *run, dblock_lock *lock)
{
    int64_t token = 0;

    expect(run, DBLOCK_OK, dblock_lock_token(lock, &token, &run->error));
    assert_true(token > 0);
    assert_true(token < INT64_C(1) << 53);
    return token;
}

static void skip_without(const struct run *run)
{
    if (run->target->why_not == NULL)
        return;
    print_message("skip: %s: %s\n", run->title, run->target->why_not);
    skip();
}

/* ---------------------------------------------------------- killed processes */

/* Shared with the children: what the last holder drew. */
static int64_t *last_token;

static int hold_until_killed(void *context, int ready_fd)
{
    struct run *run = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    int64_t token = 0;
    dblock_status status = open_at(run, &client, &run->error);

    options.strategy = run->strategy;
    options.ttl_ms = TTL_MS;
    options.wait_ms = 20000;
    options.flags = DBLOCK_FENCED;
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, run->name, &options, &lock, &run->error);
    if (status == DBLOCK_OK)
        status = dblock_lock_token(lock, &token, &run->error);
    if (status != DBLOCK_OK) {
        (void)fprintf(stderr, "%s: in the child: %s: %s\n", run->title, dblock_status_name(status),
            status < 0 ? run->error.message : "");
        return 1;
    }
    process_ready(ready_fd, token > *last_token);
    *last_token = token;
    process_ready(ready_fd, 1);
    process_stay();
    return 0;
}

static void killed_holders__are_followed_with_larger_tokens(void **state)
{
    struct run *run = *state;
    int i;

    skip_without(run);
    *last_token = 0;
    for (i = 0; i < N_ROUNDS; ++i) {
        uint64_t begun_ms = test_now_ms();

        assert_int_equal(0, process_start(&run->process, hold_until_killed, run));
        assert_int_equal(1, process_await(&run->process, 20000)); /* larger than the last one */
        assert_int_equal(1, process_await(&run->process, 20000));
        assert_true(test_now_ms() - begun_ms < TTL_MS + SLACK_MS);
        process_kill(&run->process);
    }
    assert_true(
        token_of(run, take(run, open_client(run, 0), run->name, TTL_MS, 10000)) > *last_token);
}

/* ------------------------------------------------------------ killed servers */

static void ask_services(struct run *run, const char *command)
{
    const char *const words[] = { command, run->target->service, NULL };

    assert_int_equal(0, server_services(words));
}

static void skip_without_server(const struct run *run)
{
    skip_without(run);
    if (getenv("DBLOCK_TEST_SERVICES") != NULL)
        return;
    print_message("skip: %s: DBLOCK_TEST_SERVICES names no ci/services\n", run->title);
    skip();
}

/* What was acknowledged is durable: a heartbeat grant is still there, others end with their
 * connection, and the tokens go on above what they were. */
static void killed_server__forgets_no_grant_and_no_token(void **state)
{
    struct run *run = *state;
    dblock_client *client;
    dblock_lock *lock;
    int64_t token = 0;
    char other[80];
    int i;

    skip_without_server(run);
    client = open_client(run, 0);
    (void)snprintf(other, sizeof other, "%s-other", run->name);
    for (i = 0; i < 5; ++i) {
        lock = take(run, client, other, 30000, 0);
        assert_true(token_of(run, lock) > token);
        token = token_of(run, lock);
        expect(run, DBLOCK_OK, dblock_release(lock, &run->error));
    }
    lock = take(run, client, run->name, 30000, 0);
    (void)token_of(run, lock);
    ask_services(run, "kill9");
    ask_services(run, "restart");
    if (run->strategy == DBLOCK_LEASE || run->strategy == DBLOCK_INSERT) {
        expect(run, DBLOCK_OK, dblock_confirm(lock, &run->error));
        assert_int_equal(1, dblock_lock_is_held(lock));
    } else {
        expect(run, DBLOCK_LOST, dblock_confirm(lock, &run->error));
        assert_int_equal(DBLOCK_CAUSE_CONNECTION, dblock_lock_cause(lock));
        assert_true(token_of(run, take(run, client, run->name, 30000, 10000)) > 0);
    }
    assert_true(token_of(run, take(run, open_client(run, 1), other, 30000, 10000)) > token);
}

/* S1: releases need not be durable. A crash that undoes some gives the names back to a session
 * that lives on and does not know of them: the keeper has to find them. */
static void killed_server__leaves_no_name_taken_by_nobody(void **state)
{
    struct run *run = *state;
    dblock_client *client;
    char names[N_NAMES][96];
    uint64_t begun_ms;
    size_t i;

    skip_without_server(run);
    client = open_client(run, 0);
    (void)take(run, client, run->name, 30000, 0); /* keeps the session alive */
    for (i = 0; i < N_NAMES; ++i) {
        (void)snprintf(names[i], sizeof names[i], "%s-%zu", run->name, i);
        (void)take(run, client, names[i], 30000, 0);
    }
    for (i = 0; i < N_NAMES; ++i)
        expect(run, DBLOCK_OK, dblock_release(run->locks[i + 1], &run->error));
    ask_services(run, "kill9");
    ask_services(run, "restart");
    expect(run, DBLOCK_OK, dblock_confirm(run->locks[0], &run->error));
    (void)open_client(run, 1);
    begun_ms = test_now_ms();
    for (i = 0; i < N_NAMES; ++i) {
        /* into the place of the one that was released */
        dblock_lock *lock = run->locks[i + 1];
        size_t n_locks = run->n_locks;

        dblock_lock_free(lock);
        run->n_locks = i + 1;
        (void)take(run, run->clients[1], names[i], 30000, 15000);
        run->n_locks = n_locks;
    }
    /* long before the ttl, which a living session would have made for ever anyway */
    assert_true(test_now_ms() - begun_ms < 15000);
}

/* A holder dies while the server is away. */
static void killed_server_and_holder__leave_the_name_free(void **state)
{
    struct run *run = *state;

    skip_without_server(run);
    *last_token = 0;
    assert_int_equal(0, process_start(&run->process, hold_until_killed, run));
    assert_int_equal(1, process_await(&run->process, 20000));
    assert_int_equal(1, process_await(&run->process, 20000));
    ask_services(run, "kill9");
    process_kill(&run->process);
    ask_services(run, "restart");
    assert_true(token_of(run, take(run, open_client(run, 0), run->name, TTL_MS, TTL_MS + 10000)) >
                *last_token);
}

static void prepare(struct target *target)
{
    struct run run = { .target = target };
    dblock_client *client = NULL;
    dblock_status status;

    target->why_not = target->database->start();
    if (target->why_not != NULL)
        return;
    status = open_at(&run, &client, &run.error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &run.error);
    dblock_close(client);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "%s: %s\n", target->database->name, run.error.message);
}

static struct run runs[64];
static struct CMUnitTest tests[64];
static size_t n_tests;

static void add(const char *what, CMUnitTestFunction fn, struct target *target, int strategy)
{
    struct run *run = &runs[n_tests];

    run->target = target;
    run->strategy = strategy;
    (void)snprintf(run->title, sizeof run->title, "%s: %s: %s", target->database->name,
        dblock_strategy_name(strategy), what);
    tests[n_tests++] = (struct CMUnitTest){ run->title, fn, begin, end, run };
}

/* How many failed. */
static int run_tests_of(struct target *target)
{
    size_t s;
    int n_failed;

    last_token =
        mmap(NULL, sizeof *last_token, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (last_token == MAP_FAILED)
        return 1;
    prepare(target);
    for (s = 0; s < N_STRATEGIES; ++s) {
        add("killed_holders__are_followed_with_larger_tokens",
            killed_holders__are_followed_with_larger_tokens, target, strategies[s]);
        if (target->service == NULL)
            continue;
        add("killed_server__forgets_no_grant_and_no_token",
            killed_server__forgets_no_grant_and_no_token, target, strategies[s]);
        add("killed_server_and_holder__leave_the_name_free",
            killed_server_and_holder__leave_the_name_free, target, strategies[s]);
        if (strategies[s] == DBLOCK_LEASE)
            add("killed_server__leaves_no_name_taken_by_nobody",
                killed_server__leaves_no_name_taken_by_nobody, target, strategies[s]);
    }
    n_failed = _cmocka_run_group_tests("kill", tests, n_tests, NULL, NULL);
    if (target->why_not == NULL)
        target->database->stop();
    return n_failed;
}

struct part { /* a process for each database, as most of the time is a server's start */
    FILE *output;
    pid_t pid;
};

static void begin_part(struct part *part, struct target *target)
{
    part->output = tmpfile();
    part->pid = part->output != NULL ? fork() : -1;
    if (part->pid != 0)
        return;
    if (dup2(fileno(part->output), STDOUT_FILENO) < 0 ||
        dup2(fileno(part->output), STDERR_FILENO) < 0)
        _exit(71);
    exit(run_tests_of(target) == 0 ? 0 : 1);
}

/* 1: all of it passed. */
static int end_part(struct part *part)
{
    char text[4096];
    int status = -1;
    size_t size;

    if (part->pid < 0 || waitpid(part->pid, &status, 0) != part->pid)
        return 0;
    rewind(part->output);
    while ((size = fread(text, 1, sizeof text, part->output)) > 0)
        (void)fwrite(text, 1, size, stdout);
    (void)fclose(part->output);
    (void)fflush(stdout);
    return status == 0;
}

int main(void)
{
    struct part parts[N_TARGETS];
    int has_failed = 0;
    size_t t;

    for (t = 0; t < N_TARGETS; ++t)
        begin_part(&parts[t], &targets[t]);
    for (t = 0; t < N_TARGETS; ++t)
        if (!end_part(&parts[t]))
            has_failed = 1;
    return has_failed;
}
