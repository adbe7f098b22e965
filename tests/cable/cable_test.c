/* SPDX-License-Identifier: MIT */
/* cable_test.c - a client in a network of its own, whose cable to the server is cut: it holds,
 * waits and renews, on PostgreSQL and MariaDB. Each call ends in its limit, the holder knows of
 * the loss no later than the server gives the lock to somebody else, and when the cable is whole
 * again all works (P6, P7, P9). The servers listen on all addresses meanwhile: they are
 * restarted, and again at the end. */
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
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "contract_database.h"
#include "network_space.h"
#include "processes.h"
#include "server_process.h"
#include "test_wait.h"

enum {
    TTL_MS = 2000,
    IO_MS = 1000,
    CONNECT_MS = 1000,
    WAIT_MS = 3000,
    NINTH_MS = 1000,  /* of the ttl, and at least a second: dblock(7) */
    /* servers count whole seconds, a probe may come a second late, and what cannot even be sent
     * is tried again in pauses that double, after which its limit is looked at */
    COARSE_MS = 1500,
    SLACK_MS = 1500,
    N_LOCKS = 3,
    CALLS_MAX = 32
};

static const int strategies[N_LOCKS] = { DBLOCK_LEASE, DBLOCK_ROW, DBLOCK_ADVISORY };

enum phase { PHASE_NONE, PHASE_READY, PHASE_CUT, PHASE_CALLED, PHASE_WHOLE };

struct call {
    char name[40];
    dblock_status status;
    uint64_t took_ms;
    uint64_t limit_ms;
};

/* In memory that both processes see. */
struct shared {
    atomic_int phase;
    char url[300];
    char failure[800];
    uint64_t cut_ms;
    _Atomic uint64_t told_ms[N_LOCKS];
    atomic_int is_freed[N_LOCKS]; /* the other process has got it */
    atomic_int n_overlaps;        /* and this one still believed */
    atomic_int n_calls;
    struct call calls[CALLS_MAX];
};

static struct target {
    const struct contract_database *database;
    const char *title;
    const char *scheme;
    const char *name; /* of the database in the URL; NULL: that of the world */
    const char *service;
    const char *option; /* it listens on all addresses */
} targets[] = {
    { &contract_pgsql, "pgsql", "postgresql", "dblock_test", "pgsql", "-clisten_addresses=*" },
    { &contract_mysql, "mariadb", "mysql", NULL, "mariadb", "--bind-address=0.0.0.0" },
};
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

static const struct cut {
    enum network_cut cut;
    const char *title;
} cuts[] = {
    { NETWORK_DOWN, "the cable is out" },
    { NETWORK_LOSES_ANSWERS, "answers are lost" },
    { NETWORK_LOSES_REQUESTS, "requests are lost" },
};
enum { N_CUTS = sizeof cuts / sizeof cuts[0] };

static struct shared *shared;

static int is_phase(void *context)
{
    return atomic_load(&shared->phase) >= *(const int *)context;
}

static int await_phase(int phase)
{
    return test_until(is_phase, &phase, 60000);
}

/* ------------------------------------------------------- the process at the cable */

static dblock_client *client;
static dblock_lock *locks[N_LOCKS];

static void fail_here(const char *what, dblock_status status, const struct dblock_error *error)
{
    if (shared->failure[0] == 0)
        (void)snprintf(shared->failure, sizeof shared->failure, "%s: %s: %s", what,
            dblock_status_name(status), status < 0 ? error->message : "");
}

static dblock_status take(dblock_client *by, size_t i, const char *what, uint64_t wait_ms,
    dblock_lock **ret_lock, struct dblock_error *error)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    char name[40];

    (void)snprintf(name, sizeof name, "cable-%s-%zu", what, i);
    options.strategy = strategies[i];
    options.wait_ms = wait_ms;
    return dblock_acquire(by, name, &options, ret_lock, error);
}

static void note_call(
    const char *name, size_t i, dblock_status status, uint64_t begun_ms, uint64_t limit_ms)
{
    int n = atomic_fetch_add(&shared->n_calls, 1);

    if (n >= CALLS_MAX)
        return;
    (void)snprintf(shared->calls[n].name, sizeof shared->calls[n].name, "%s %s", name,
        i < N_LOCKS ? dblock_strategy_name(strategies[i]) : "");
    shared->calls[n].status = status;
    shared->calls[n].took_ms = test_now_ms() - begun_ms;
    shared->calls[n].limit_ms = limit_ms;
}

struct waiter {
    size_t number;
    pthread_t thread;
};

/* For what the other process holds, from before the cut on. */
static void *wait_in_vain(void *context)
{
    const struct waiter *waiter = context;
    uint64_t begun_ms = test_now_ms();
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status = take(client, waiter->number, "theirs", WAIT_MS, &lock, &error);

    note_call("wait for", waiter->number, status, begun_ms, WAIT_MS + CONNECT_MS + IO_MS);
    dblock_lock_free(lock);
    return NULL;
}

/* When each of them is known to be lost, and whether that is too late. */
static void *watch_locks(void *context)
{
    size_t i, n_lost = 0;

    (void)context;
    while (n_lost < N_LOCKS) {
        for (i = 0, n_lost = 0; i < N_LOCKS; ++i) {
            int is_freed = atomic_load(&shared->is_freed[i]); /* first */

            if (atomic_load(&shared->told_ms[i]) == 0 && !dblock_lock_is_held(locks[i]))
                atomic_store(&shared->told_ms[i], test_now_ms());
            else if (atomic_load(&shared->told_ms[i]) == 0 && is_freed)
                (void)atomic_fetch_add(&shared->n_overlaps, 1);
            n_lost += atomic_load(&shared->told_ms[i]) != 0;
        }
        test_pass_ms(5);
    }
    return NULL;
}

static void call_all(void)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    uint64_t begun_ms = test_now_ms();
    dblock_status status = dblock_ping(client, &error);
    size_t i;

    note_call("ping", N_LOCKS, status, begun_ms, CONNECT_MS + IO_MS);
    for (i = 0; i < N_LOCKS; ++i) {
        begun_ms = test_now_ms();
        status = take(client, i, "new", 0, &lock, &error);
        note_call("try", i, status, begun_ms, CONNECT_MS + IO_MS);
        dblock_lock_free(lock);
        lock = NULL;
        begun_ms = test_now_ms();
        status = dblock_confirm(locks[i], &error);
        note_call("confirm", i, status, begun_ms, CONNECT_MS + IO_MS);
        begun_ms = test_now_ms();
        status = dblock_inspect(client, "cable-theirs-0", strategies[i], &grant, &error);
        note_call("inspect", i, status, begun_ms, CONNECT_MS + IO_MS);
    }
}

static void release_all(void)
{
    struct dblock_error error;
    size_t i;

    for (i = 0; i < N_LOCKS; ++i) {
        uint64_t begun_ms = test_now_ms();
        dblock_status status = dblock_release(locks[i], &error);

        note_call("release", i, status, begun_ms, CONNECT_MS + IO_MS);
        dblock_lock_free(locks[i]);
        locks[i] = NULL;
    }
}

static int is_reachable(void *context)
{
    (void)context;
    return dblock_ping(client, NULL) == DBLOCK_OK;
}

static void use_again(void)
{
    struct dblock_error error;
    size_t i;

    if (!test_until(is_reachable, NULL, 15000))
        fail_here("the server is not reached again", DBLOCK_E_CONNECTION, &error);
    for (i = 0; i < N_LOCKS; ++i) {
        dblock_lock *lock = NULL;
        dblock_status status = take(client, i, "again", 10000, &lock, &error);

        if (status == DBLOCK_OK)
            status = dblock_release(lock, &error);
        if (status != DBLOCK_OK)
            fail_here("nothing is granted again", status, &error);
        dblock_lock_free(lock);
    }
}

static int live_at_the_cable(void *context, int ready_fd)
{
    const struct target *target = context;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct waiter waiters[N_LOCKS];
    struct dblock_error error;
    pthread_t watcher;
    dblock_status status;
    size_t i;

    if (network_space_enter() != 0)
        return 1;
    process_ready(ready_fd, 1);
    if (!await_phase(PHASE_READY))
        return 1;
    config.schema = target->database->schema != NULL ? target->database->schema() : NULL;
    config.ttl_ms = TTL_MS;
    config.io_timeout_ms = IO_MS;
    config.connect_timeout_ms = CONNECT_MS;
    status = dblock_open(target->database->driver(), shared->url, &config, &client, &error);
    for (i = 0; i < N_LOCKS && status == DBLOCK_OK; ++i)
        status = take(client, i, "mine", 0, &locks[i], &error);
    if (status != DBLOCK_OK) {
        fail_here("nothing is granted", status, &error);
        process_ready(ready_fd, 2);
        return 1;
    }
    for (i = 0; i < N_LOCKS; ++i) {
        waiters[i].number = i;
        (void)pthread_create(&waiters[i].thread, NULL, wait_in_vain, &waiters[i]);
    }
    (void)pthread_create(&watcher, NULL, watch_locks, NULL);
    process_ready(ready_fd, 2);
    if (!await_phase(PHASE_CUT))
        return 1;
    call_all();
    for (i = 0; i < N_LOCKS; ++i)
        (void)pthread_join(waiters[i].thread, NULL);
    (void)pthread_join(watcher, NULL);
    release_all();
    atomic_store(&shared->phase, PHASE_CALLED);
    if (!await_phase(PHASE_WHOLE))
        return 1;
    use_again();
    dblock_close(client);
    return 0;
}

/* ---------------------------------------------------------- the one at the server */

struct run {
    struct target *target;
    const struct cut *cut;
    char title[80];
};

static dblock_client *other;
static dblock_lock *theirs[N_LOCKS];
static uint64_t freed_ms[N_LOCKS];
static struct test_process process;

static int look_for_free(void *context)
{
    struct dblock_error error;
    size_t i, n_freed = 0;

    (void)context;
    for (i = 0; i < N_LOCKS; ++i) {
        dblock_lock *lock = NULL;

        if (freed_ms[i] == 0 && take(other, i, "mine", 0, &lock, &error) == DBLOCK_OK) {
            atomic_store(&shared->is_freed[i], 1);
            freed_ms[i] = test_now_ms();
        }
        dblock_lock_free(lock);
        n_freed += freed_ms[i] != 0;
    }
    return n_freed == N_LOCKS && atomic_load(&shared->phase) >= PHASE_CALLED;
}

static void expect_in_time(const struct run *run)
{
    int i, n = atomic_load(&shared->n_calls);

    assert_in_range(n, 10, CALLS_MAX);
    for (i = 0; i < n; ++i) {
        const struct call *call = &shared->calls[i];

        if (call->took_ms > call->limit_ms + SLACK_MS)
            fail_msg("%s: %s took %u ms, its limit is %u: %s", run->title, call->name,
                (unsigned)call->took_ms, (unsigned)call->limit_ms,
                dblock_status_name(call->status));
        if (call->status == DBLOCK_OK && strncmp(call->name, "release", 7) != 0)
            fail_msg("%s: %s answered OK over a cut cable", run->title, call->name);
    }
}

static void expect_told(const struct run *run)
{
    const uint64_t cut_ms = shared->cut_ms;
    size_t i;

    for (i = 0; i < N_LOCKS; ++i) {
        uint64_t told_ms = atomic_load(&shared->told_ms[i]);

        print_message("# %s: %s: lost after %u ms, free after %u ms, ttl %u\n", run->title,
            dblock_strategy_name(strategies[i]), (unsigned)(told_ms - cut_ms),
            (unsigned)(freed_ms[i] - cut_ms), (unsigned)TTL_MS);
        assert_true(told_ms >= cut_ms);
        assert_in_range(told_ms - cut_ms, 0, TTL_MS - TTL_MS / 8 + SLACK_MS);
        assert_true(freed_ms[i] != 0);
        assert_in_range(freed_ms[i] - cut_ms, 0, TTL_MS + NINTH_MS + COARSE_MS + SLACK_MS);
    }
    assert_int_equal(0, atomic_load(&shared->n_overlaps));
}

static void cut__is_noticed_on_both_sides(void **state)
{
    struct run *run = *state;
    const struct target *target = run->target;
    struct dblock_error error;
    size_t i;

    for (i = 0; i < N_LOCKS; ++i)
        assert_int_equal(DBLOCK_OK, take(other, i, "theirs", 0, &theirs[i], &error));
    assert_int_equal(0, process_start(&process, live_at_the_cable, run->target));
    assert_int_equal(1, process_await(&process, 10000));
    assert_int_equal(0, network_space_join(process.pid));
    (void)snprintf(shared->url, sizeof shared->url, "%s://%s:%s@%s:%u/%s", target->scheme,
        contract_word(), target->database->secret, network_space_address(),
        target->database->port(), target->name != NULL ? target->name : contract_word());
    atomic_store(&shared->phase, PHASE_READY);
    assert_int_equal(2, process_await(&process, 20000));
    if (shared->failure[0] != 0)
        fail_msg("%s: %s", run->title, shared->failure);
    test_pass_ms(TTL_MS / 2); /* heartbeats have come, and the waits have begun */
    shared->cut_ms = test_now_ms();
    network_space_cut(run->cut->cut);
    atomic_store(&shared->phase, PHASE_CUT);
    (void)test_until(look_for_free, NULL, 4 * TTL_MS + WAIT_MS + 20 * IO_MS);
    network_space_mend(run->cut->cut);
    assert_int_equal(PHASE_CALLED, atomic_load(&shared->phase));
    expect_told(run);
    expect_in_time(run);
    atomic_store(&shared->phase, PHASE_WHOLE);
    assert_int_equal(0, process_wait(&process, 40000));
    if (shared->failure[0] != 0)
        fail_msg("%s: %s", run->title, shared->failure);
}

static int begin(void **state)
{
    struct run *run = *state;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;

    memset(shared, 0, sizeof *shared);
    memset(freed_ms, 0, sizeof freed_ms);
    if (run->target->database->schema != NULL)
        config.schema = run->target->database->schema();
    return dblock_open(run->target->database->driver(),
               run->target->database->url(CONTRACT_URL), &config, &other, &error) == DBLOCK_OK
        ? 0
        : -1;
}

static int end(void **state)
{
    size_t i;

    (void)state;
    process_kill(&process);
    for (i = 0; i < N_LOCKS; ++i) {
        dblock_lock_free(theirs[i]);
        theirs[i] = NULL;
    }
    dblock_close(other);
    other = NULL;
    return 0;
}

/* ------------------------------------------------------------------------ all of it */

/* PostgreSQL asks this file who may come from where. */
static void allow_in(const char *data)
{
    char path[300];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/pg_hba.conf", data);
    file = fopen(path, "a");
    if (file == NULL)
        return;
    (void)fputs("host all all " NETWORK_SPACE_ALL " scram-sha-256\n", file);
    (void)fclose(file);
}

static int open_up(const struct target *target)
{
    const char *const words[] = { "restart", target->service, target->option, NULL };
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *installer = NULL;
    dblock_status status;

    if (strcmp(target->service, "pgsql") == 0)
        allow_in(getenv("DBLOCK_TEST_PGSQL_DATA"));
    if (server_services(words) != 0 || target->database->start() != NULL)
        return -1;
    if (target->database->schema != NULL)
        config.schema = target->database->schema();
    status = dblock_open(target->database->driver(), target->database->url(CONTRACT_URL), &config,
        &installer, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(installer, &error);
    dblock_close(installer);
    if (status != DBLOCK_OK)
        print_error("%s: %s\n", target->title, error.message);
    return status == DBLOCK_OK ? 0 : -1;
}

static int close_down(const struct target *target)
{
    const char *const words[] = { "restart", target->service, NULL };

    target->database->stop();
    return server_services(words);
}

int main(void)
{
    static struct run runs[N_TARGETS * N_CUTS];
    struct CMUnitTest cases[N_CUTS];
    const char *why_not = "";
    int can = network_space_probe(&why_not);
    int n_failed = 0;
    size_t t, c;

    if (can == 0 &&
        (getenv("DBLOCK_TEST_SERVICES") == NULL || getenv("DBLOCK_TEST_PGSQL") == NULL ||
            getenv("DBLOCK_TEST_MYSQL") == NULL)) {
        why_not = "servers of ci/services are needed, PostgreSQL and MariaDB";
        can = -2;
    }
    if (can != 0) {
        (void)printf("%s: a network of its own: %s\n", can == -1 ? "left out" : "skip", why_not);
        return can == -1 ? 0 : 77;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (t = 0; t < N_TARGETS; ++t) {
        for (c = 0; c < N_CUTS; ++c) {
            struct run *run = &runs[t * N_CUTS + c];

            run->target = &targets[t];
            run->cut = &cuts[c];
            (void)snprintf(
                run->title, sizeof run->title, "%s: %s", targets[t].title, cuts[c].title);
            cases[c] = (struct CMUnitTest){ run->title, cut__is_noticed_on_both_sides, begin, end,
                run };
        }
        if (open_up(&targets[t]) == 0)
            n_failed += _cmocka_run_group_tests(targets[t].title, cases, N_CUTS, NULL, NULL);
        else
            ++n_failed;
        n_failed += close_down(&targets[t]) != 0;
    }
    return n_failed == 0 ? 0 : 1;
}
