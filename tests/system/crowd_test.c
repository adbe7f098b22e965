/* SPDX-License-Identifier: MIT */
/* crowd_test.c - processes that stand in line for a lease or insert: who asks for it is
 * served in order of arrival, also when some of them are killed, one is stopped, or the
 * server is restarted under them. CROWD_WAITERS asks for more than 16. Time limit: 300 s
 *
 * All that opens the database is a process of its own: a file of SQLite that was open
 * before a fork cannot be used after it. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract_database.h"
#include "processes.h"
#include "test_wait.h"

extern char **environ;

enum { N_WAITERS_MAX = 100, IS_NEAR_MS = 5000 };

struct target {
    const struct contract_database *database;
    const char *service; /* its name for ci/services; NULL: it has no server */
    const char *why_not;
};

static struct target targets[] = { { &contract_sqlite, NULL, NULL },
    { &contract_pgsql, "pgsql", NULL }, { &contract_mysql, "mariadb", NULL } };
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };

struct run {
    struct target *target;
    int strategy;
    char title[96];
    char name[64];
    struct test_process holder; /* does what it is asked for over the pipe */
    int asks[2];
    int number; /* in a child: its own */
    uint32_t flags;
    struct test_process processes[N_WAITERS_MAX];
    int n_processes;
    struct dblock_error error;
};

/* Shared with the children: who was served, one after the other. */
static struct served {
    atomic_int n;
    int order[N_WAITERS_MAX];
} *served;

static dblock_status open_at(
    const struct run *run, dblock_client **ret_client, struct dblock_error *error)
{
    const struct contract_database *database = run->target->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.schema = database->schema != NULL ? database->schema() : NULL;
    config.outage_ms = 30000;
    return dblock_open(database->driver(), database->url(CONTRACT_URL), &config, ret_client, error);
}

static int begin(void **state)
{
    struct run *run = *state;
    static unsigned n_runs;

    run->n_processes = 0;
    run->flags = 0;
    atomic_store(&served->n, 0);
    (void)snprintf(run->name, sizeof run->name, "%s-crowd-%u", contract_word(), ++n_runs);
    return 0;
}

static int end(void **state)
{
    struct run *run = *state;
    int i;

    for (i = 0; i < run->n_processes; ++i)
        process_kill(&run->processes[i]);
    process_kill(&run->holder);
    if (run->asks[1] > 0) {
        (void)close(run->asks[0]);
        (void)close(run->asks[1]);
    }
    run->asks[1] = 0;
    return 0;
}

static void skip_without(const struct run *run)
{
    if (run->target->why_not == NULL)
        return;
    print_message("skip: %s: %s\n", run->title, run->target->why_not);
    skip();
}

static int wait_in_child(void *context, int ready_fd)
{
    struct run *run = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status = open_at(run, &client, &run->error);

    (void)ready_fd;
    options.strategy = run->strategy;
    options.wait_ms = DBLOCK_FOREVER;
    options.ttl_ms = 60000;
    options.flags = run->flags;
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, run->name, &options, &lock, &run->error);
    if (status == DBLOCK_OK) {
        served->order[atomic_load(&served->n)] = run->number;
        atomic_fetch_add(&served->n, 1);
        status = dblock_release(lock, &run->error);
    }
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "%s: in child %d: %s: %s\n", run->title, run->number,
            dblock_status_name(status), status < 0 ? run->error.message : "");
    dblock_lock_free(lock);
    dblock_close(client);
    return status == DBLOCK_OK ? 0 : 1;
}

/* -------------------------------------------------------------- the holder */

enum { ASK_WAITERS = 'n', ASK_CONFIRM = 'c', ASK_RELEASE = 'r', UNKNOWN = 255 };

static unsigned char count_waiters(const struct run *run, dblock_client *client)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;

    if (dblock_inspect(client, run->name, run->strategy, &grant, &error) != DBLOCK_OK ||
        grant.n_waiters >= UNKNOWN)
        return UNKNOWN;
    return (unsigned char)grant.n_waiters;
}

/* Answers 1 for yes. */
static int hold_in_child(void *context, int ready_fd)
{
    struct run *run = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    char ask = 0;
    dblock_status status = open_at(run, &client, &run->error);

    options.strategy = run->strategy;
    options.ttl_ms = 60000;
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, run->name, &options, &lock, &run->error);
    process_ready(ready_fd, status == DBLOCK_OK);
    while (status == DBLOCK_OK && ask != ASK_RELEASE && read(run->asks[0], &ask, 1) == 1)
        switch (ask) {
        case ASK_WAITERS:
            process_ready(ready_fd, count_waiters(run, client));
            break;
        case ASK_CONFIRM:
            process_ready(ready_fd, dblock_confirm(lock, &run->error) == DBLOCK_OK);
            break;
        default:
            process_ready(ready_fd, dblock_release(lock, &run->error) == DBLOCK_OK);
        }
    dblock_lock_free(lock);
    dblock_close(client);
    return 0;
}

static int ask_holder(struct run *run, char ask)
{
    assert_int_equal(1, write(run->asks[1], &ask, 1));
    return process_await(&run->holder, 20000);
}

static void take(struct run *run)
{
    assert_int_equal(0, pipe(run->asks));
    assert_int_equal(0, process_start(&run->holder, hold_in_child, run));
    assert_int_equal(1, process_await(&run->holder, 20000));
}

static void release(struct run *run)
{
    assert_int_equal(1, ask_holder(run, ASK_RELEASE));
}

/* ------------------------------------------------------------- the waiters */

static int is_line_long(void *context)
{
    struct run *run = context;
    int n_waiters = ask_holder(run, ASK_WAITERS);

    if (n_waiters == UNKNOWN) {
        test_pass_ms(300); /* it cannot tell: this is long enough to arrive */
        return 1;
    }
    return n_waiters >= run->n_processes;
}

static void start_waiters(struct run *run, int n)
{
    while (run->n_processes < n) {
        run->number = run->n_processes;
        assert_int_equal(
            0, process_start(&run->processes[run->n_processes], wait_in_child, run));
        ++run->n_processes;
        assert_true(test_until(is_line_long, run, 10000));
    }
}

static int are_served(void *context)
{
    return atomic_load(&served->n) >= *(int *)context;
}

/* All that were not killed, in the order in which they came. */
static void expect_order(struct run *run, int n, uint64_t within_ms)
{
    int last = -1;
    int i;

    assert_true(test_until(are_served, &n, within_ms));
    for (i = 0; i < n; ++i) {
        assert_true(served->order[i] > last);
        last = served->order[i];
    }
    for (i = 0; i < run->n_processes; ++i)
        if (run->processes[i].pid != 0)
            assert_int_equal(0, process_wait(&run->processes[i], 10000));
}

static int find_n_waiters(void)
{
    const char *text = getenv("CROWD_WAITERS");
    int n = text != NULL ? (int)strtol(text, NULL, 10) : 16;

    return n > 3 && n <= N_WAITERS_MAX ? n : 16;
}

static void fair__is_in_order_of_arrival(void **state)
{
    struct run *run = *state;
    int n = find_n_waiters();
    uint64_t begun_ms;

    skip_without(run);
    run->flags = DBLOCK_FAIR;
    take(run);
    start_waiters(run, n);
    begun_ms = test_now_ms();
    release(run);
    assert_true(test_until(are_served, &n, 20000));
    print_message("# %s: %d served in %d ms\n", run->title, n, (int)(test_now_ms() - begun_ms));
    expect_order(run, n, 0);
}

/* The first, two in the midst, and the last. */
static void fair__survives_those_who_are_killed(void **state)
{
    struct run *run = *state;
    int n = find_n_waiters();

    skip_without(run);
    run->flags = DBLOCK_FAIR;
    take(run);
    start_waiters(run, n);
    process_kill(&run->processes[0]);
    process_kill(&run->processes[n / 2]);
    process_kill(&run->processes[n / 2 + 1]);
    process_kill(&run->processes[n - 1]);
    release(run);
    expect_order(run, n - 4, IS_NEAR_MS);
}

/* Nobody may keep a free name from the others for longer than two seconds or so by standing there;
 * and who goes on again is served. */
static void stopped_first__is_passed(void **state)
{
    struct run *run = *state;
    int n = 3;
    int i;

    skip_without(run);
    for (i = 0; i < 2; ++i) {
        run->flags = i == 0 ? 0 : DBLOCK_FAIR;
        take(run);
        start_waiters(run, n);
        assert_int_equal(0, kill(run->processes[0].pid, SIGSTOP));
        release(run);
        n = 1;
        assert_true(test_until(are_served, &n, 3000));
        n = 2;
        assert_true(test_until(are_served, &n, 3000));
        assert_int_equal(0, kill(run->processes[0].pid, SIGCONT));
        n = 3;
        assert_true(test_until(are_served, &n, IS_NEAR_MS));
        assert_int_equal(0, served->order[2]);
        (void)end(state);
        (void)begin(state);
    }
}

static void ask_services(const struct run *run, const char *command)
{
    const char *services = getenv("DBLOCK_TEST_SERVICES");
    char words[3][400];
    char *arguments[4] = { words[0], words[1], words[2], NULL };
    pid_t pid;
    int status = -1;

    (void)snprintf(words[0], sizeof words[0], "%s", services);
    (void)snprintf(words[1], sizeof words[1], "%s", command);
    (void)snprintf(words[2], sizeof words[2], "%s", run->target->service);
    assert_int_equal(0, posix_spawn(&pid, services, NULL, NULL, arguments, environ));
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_int_equal(0, status);
}

/* All places are gone with it; the grant is not. */
static void restarted_server__is_waited_through(void **state)
{
    struct run *run = *state;
    int n = 4;

    skip_without(run);
    if (getenv("DBLOCK_TEST_SERVICES") == NULL) {
        print_message("skip: %s: DBLOCK_TEST_SERVICES names no ci/services\n", run->title);
        skip();
    }
    take(run);
    start_waiters(run, n);
    ask_services(run, "restart");
    assert_int_equal(1, ask_holder(run, ASK_CONFIRM));
    assert_int_equal(0, atomic_load(&served->n));
    release(run);
    assert_true(test_until(are_served, &n, 15000));
}

static int install_in_child(void *context, int ready_fd)
{
    const struct run *run = context;
    struct dblock_error error = { 0 };
    dblock_client *client = NULL;
    dblock_status status = open_at(run, &client, &error);

    (void)ready_fd;
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    dblock_close(client);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "%s: %s\n", run->target->database->name, error.message);
    return status == DBLOCK_OK ? 0 : 1;
}

static void prepare(struct target *target)
{
    struct run run = { .target = target };

    target->why_not = target->database->start();
    if (target->why_not == NULL && process_start(&run.processes[0], install_in_child, &run) == 0)
        (void)process_wait(&run.processes[0], 60000);
}

static struct run runs[32];
static struct CMUnitTest tests[32];
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

static void add_all(struct target *target, int strategy)
{
    add("fair__is_in_order_of_arrival", fair__is_in_order_of_arrival, target, strategy);
    add("fair__survives_those_who_are_killed", fair__survives_those_who_are_killed, target,
        strategy);
    add("stopped_first__is_passed", stopped_first__is_passed, target, strategy);
    if (target->service != NULL && strategy == DBLOCK_LEASE)
        add("restarted_server__is_waited_through", restarted_server__is_waited_through, target,
            strategy);
}

int main(void)
{
    size_t t;
    int n_failed = 0;

    served = mmap(
        NULL, sizeof *served, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (served == MAP_FAILED)
        return 71;
    for (t = 0; t < N_TARGETS; ++t) {
        prepare(&targets[t]);
        if (targets[t].why_not != NULL || targets[t].database->driver()->line.stand != NULL) {
            add_all(&targets[t], strategies[0]);
            add_all(&targets[t], strategies[1]);
        }
    }
    if (n_tests > 0)
        n_failed = _cmocka_run_group_tests("crowd", tests, n_tests, NULL, NULL);
    for (t = 0; t < N_TARGETS; ++t)
        if (targets[t].why_not == NULL)
            targets[t].database->stop();
    return n_failed == 0 ? 0 : 1;
}
