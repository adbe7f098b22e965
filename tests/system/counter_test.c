/* SPDX-License-Identifier: MIT */
/* counter_test.c - the oldest proof of a lock: many processes read a number from
 * a file, and write it back one larger, with nothing but the lock between them.
 * Not one increment may be lost, and the token, kept beside it, may never fall.
 * Time limit: 300 s */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "contract_database.h"
#include "processes.h"
#include "test_wait.h"

enum { N_PROCESSES = 16, N_ROUNDS = 20 };
enum { EXIT_PENDING = 2 }; /* all was done, but a release was PENDING without any guard */

static const struct contract_database *const databases[] = { &contract_sqlite, &contract_pgsql,
    &contract_mysql };
enum { N_DATABASES = sizeof databases / sizeof databases[0] };

static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
enum { N_STRATEGIES = sizeof strategies / sizeof strategies[0] };

static const char *why_not[N_DATABASES];

struct run {
    size_t database;
    int strategy;
    char title[64];
    char name[64];
    char path[512];
};

/* What the file holds; written whole, but not atomically, and never locked. */
struct count {
    int64_t n_increments;
    int64_t token;
};

static int read_count(const char *path, struct count *count)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, count, sizeof *count);

    if (fd >= 0)
        (void)close(fd);
    return size == (ssize_t)sizeof *count ? 0 : -1;
}

static int write_count(const char *path, const struct count *count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t size = fd < 0 ? -1 : write(fd, count, sizeof *count);

    if (fd >= 0)
        (void)close(fd);
    return size == (ssize_t)sizeof *count ? 0 : -1;
}

static int say(const struct run *run, const char *what, const struct dblock_error *error)
{
    (void)fprintf(stderr, "%s: %s: %s (%s)\n", run->title, what, error->message, error->hint);
    return 1;
}

/* Under the lock. 0: done. */
static int increment(const struct run *run, dblock_lock *lock)
{
    struct dblock_error error = { 0 };
    struct count count;
    int64_t token = 0;
    volatile int work;

    if (dblock_lock_token(lock, &token, &error) != DBLOCK_OK)
        return say(run, "no token", &error);
    if (read_count(run->path, &count) != 0)
        return say(run, "the file cannot be read", &error);
    for (work = 0; work < 2000; ++work) /* time for somebody else to come in between */
        ;
    if (token <= count.token) {
        (void)fprintf(
            stderr, "%s: token %" PRId64 " after %" PRId64 "\n", run->title, token, count.token);
        return 1;
    }
    ++count.n_increments;
    count.token = token;
    if (write_count(run->path, &count) != 0)
        return say(run, "the file cannot be written", &error);
    return 0;
}

static int count_in_child(void *context, int ready_fd)
{
    const struct run *run = context;
    const struct contract_database *database = databases[run->database];
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = NULL;
    int n_failures = 0;
    int n_pending = 0;
    int i;

    (void)ready_fd;
    config.schema = database->schema != NULL ? database->schema() : NULL;
    if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, &error) !=
        DBLOCK_OK)
        return say(run, "cannot open", &error);
    options.strategy = run->strategy;
    options.wait_ms = 120000;
    for (i = 0; i < N_ROUNDS && n_failures == 0; ++i) {
        dblock_lock *lock = NULL;
        dblock_status status = dblock_acquire(client, run->name, &options, &lock, &error);

        if (status != DBLOCK_OK) {
            (void)fprintf(stderr, "%s: acquire: %s\n", run->title, dblock_status_name(status));
            n_failures += say(run, "not acquired", &error);
            break;
        }
        n_failures += increment(run, lock);
        status = dblock_release(lock, &error);
        n_pending += status == DBLOCK_PENDING;
        if (status != DBLOCK_OK && status != DBLOCK_PENDING) {
            (void)fprintf(stderr, "%s: release: %s\n", run->title, dblock_status_name(status));
            ++n_failures;
        }
        dblock_lock_free(lock);
    }
    dblock_close(client);
    return n_failures > 0 ? 1 : n_pending > 0 ? EXIT_PENDING : 0;
}

static void increments__are_never_lost(void **state)
{
    struct run *run = *state;
    struct test_process processes[N_PROCESSES];
    struct count count = { 0, 0 };
    uint64_t begun_ms = test_now_ms();
    int n_failures = 0;
    int n_pending = 0;
    size_t i;

    if (why_not[run->database] != NULL) {
        print_message("skip: %s: %s\n", run->title, why_not[run->database]);
        skip();
    }
    assert_int_equal(0, write_count(run->path, &count));
    for (i = 0; i < N_PROCESSES; ++i)
        assert_int_equal(0, process_start(&processes[i], count_in_child, run));
    for (i = 0; i < N_PROCESSES; ++i) {
        switch (process_wait(&processes[i], 120000)) {
        case 0:
            break;
        case EXIT_PENDING:
            ++n_pending;
            break;
        default:
            ++n_failures;
        }
    }
    assert_int_equal(0, read_count(run->path, &count));
    (void)unlink(run->path);
    print_message("# %s: %d processes, %d rounds, %" PRId64 " increments in %" PRIu64 " ms\n",
        run->title, N_PROCESSES, N_PROCESSES * N_ROUNDS, count.n_increments,
        test_now_ms() - begun_ms);
    assert_int_equal(0, n_failures);
    assert_int_equal(N_PROCESSES * N_ROUNDS, count.n_increments);
    assert_int_equal(0, n_pending);
}

static const char *prepare(const struct contract_database *database)
{
    static struct dblock_error errors[N_DATABASES];
    static size_t n_errors;
    struct dblock_error *error = &errors[n_errors++];
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    const char *why = database->start();
    dblock_client *client = NULL;
    dblock_status status;

    if (why != NULL)
        return why;
    config.schema = database->schema != NULL ? database->schema() : NULL;
    status = dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, error);
    dblock_close(client);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "%s: %s\n", database->name, error->message);
    return NULL; /* what is missing shows in the test */
}

int main(void)
{
    static struct run runs[N_DATABASES * N_STRATEGIES];
    static struct CMUnitTest tests[N_DATABASES * N_STRATEGIES];
    const char *folder = getenv("TMPDIR");
    size_t n_runs = 0;
    size_t d;
    size_t s;
    int n_failed;

    for (d = 0; d < N_DATABASES; ++d) {
        why_not[d] = prepare(databases[d]);
        for (s = 0; s < N_STRATEGIES; ++s) {
            struct run *run = &runs[n_runs];

            run->database = d;
            run->strategy = strategies[s];
            (void)snprintf(run->title, sizeof run->title, "%s: %s", databases[d]->name,
                dblock_strategy_name(strategies[s]));
            (void)snprintf(run->name, sizeof run->name, "%s-counter", contract_word());
            (void)snprintf(run->path, sizeof run->path, "%s/dblock-counter-%s-%zu",
                folder != NULL ? folder : "/tmp", contract_word(), n_runs);
            tests[n_runs] =
                (struct CMUnitTest){ run->title, increments__are_never_lost, NULL, NULL, run };
            ++n_runs;
        }
    }
    n_failed = _cmocka_run_group_tests("counter", tests, n_runs, NULL, NULL);
    for (d = 0; d < N_DATABASES; ++d)
        if (why_not[d] == NULL)
            databases[d]->stop();
    return n_failed == 0 ? 0 : 1;
}
