/* SPDX-License-Identifier: MIT */
/* contract_run.c - runs the cases of all topics for one database. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTS_MAX = 16, ALONE_PART = -1 };

static const struct contract_kind kinds[] = {
    { "lease", LEASE, DBLOCK_LEASE, DBLOCK_HEARTBEAT_ON },
    { "lease without heartbeat", LEASE_TIMED, DBLOCK_LEASE, DBLOCK_HEARTBEAT_OFF },
    { "insert", INSERT, DBLOCK_INSERT, DBLOCK_HEARTBEAT_DEFAULT },
    { "insert with heartbeat", INSERT_HEARTBEAT, DBLOCK_INSERT, DBLOCK_HEARTBEAT_ON },
    { "row", ROW, DBLOCK_ROW, DBLOCK_HEARTBEAT_DEFAULT },
    { "advisory", ADVISORY, DBLOCK_ADVISORY, DBLOCK_HEARTBEAT_DEFAULT },
};

static const struct contract_case *const topics[] = { exclusion_cases, waiting_cases, queue_cases, expiry_cases,
    release_cases, transfer_cases, token_cases, name_cases, observe_cases, event_cases,
    callback_cases, error_cases, option_cases, handle_cases, schema_cases, guard_cases, sweep_cases,
    answer_cases, many_cases, some_cases };

/* A case and a kind: the state that cmocka hands to the functions below. */
struct run {
    const struct contract_database *database;
    const struct contract_case *test;
    const struct contract_kind *kind;
    char name[160];
    struct contract contract;
};

static int begin(void **state)
{
    struct run *run = *state;

    memset(&run->contract, 0, sizeof run->contract);
    run->contract.database = run->database;
    run->contract.kind = run->kind;
    return 0;
}

static void run_case(void **state)
{
    struct run *run = *state;

    run->test->run(&run->contract);
}

static int end(void **state)
{
    struct contract *contract = &((struct run *)*state)->contract;
    size_t i;

    if (contract->guard != NULL)
        contract->database->unguard(contract->guard);
    for (i = 0; i < contract->n_processes; ++i)
        process_kill(&contract->processes[i]);
    if (contract->database->strand != NULL)
        contract->database->strand("");
    for (i = 0; i < contract->n_cancellers; ++i)
        dblock_cancel(contract->cancellers[i]);
    for (i = 0; i < contract->n_clients; ++i)
        dblock_close(contract->clients[i]);
    for (i = 0; i < contract->n_jobs; ++i)
        if (contract->jobs[i].is_started)
            (void)pthread_join(contract->jobs[i].thread, NULL);
    for (i = 0; i < contract->n_jobs; ++i)
        dblock_lock_free(contract->jobs[i].lock);
    for (i = 0; i < contract->n_locks; ++i)
        dblock_lock_free(contract->locks[i]);
    for (i = 0; i < contract->n_cancellers; ++i)
        dblock_canceller_free(contract->cancellers[i]);
    return 0;
}

static void add_run(struct run *run, const struct contract_database *database,
    const struct contract_case *test, const struct contract_kind *kind)
{
    run->database = database;
    run->test = test;
    run->kind = kind;
    if (test->kinds == ONCE)
        (void)snprintf(run->name, sizeof run->name, "%s", test->name);
    else
        (void)snprintf(run->name, sizeof run->name, "%s: %s", kind->name, test->name);
}

/* CONTRACT_ONLY names a part of the names of the tests to run, for whoever mends one. */
static size_t collect_runs(const struct contract_database *database, struct run *runs, size_t room)
{
    const char *only = getenv("CONTRACT_ONLY");
    const struct contract_case *test;
    size_t n_runs = 0;
    size_t i;
    size_t k;

    for (i = 0; i < sizeof topics / sizeof topics[0]; ++i)
        for (test = topics[i]; test->name != NULL; ++test) {
            if (test->is_possible != NULL && !test->is_possible(database))
                continue;
            for (k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
                if (test->kinds == ONCE ? k > 0 : (test->kinds & kinds[k].bit) == 0)
                    continue;
                if (n_runs == room)
                    abort();
                add_run(&runs[n_runs], database, test, &kinds[k]);
                if (only == NULL || strstr(runs[n_runs].name, only) != NULL)
                    ++n_runs;
            }
        }
    return n_runs;
}

/* NULL, or what went wrong. */
static const char *install(const struct contract_database *database)
{
    static struct dblock_error error;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *client = NULL;
    dblock_status status;

    if (database->schema != NULL)
        config.schema = database->schema();
    status = dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    dblock_close(client);
    return status == DBLOCK_OK ? NULL : error.message;
}

/* Part 0 to `n_parts` - 1 of what may run beside others, or ALONE_PART. */
static int is_of_part(const struct run *run, size_t i, int part, size_t n_parts)
{
    const int is_alone = run->database->has_one_setting_for_all && (run->test->kinds & ALONE) != 0;

    if (part == ALONE_PART || is_alone)
        return part == ALONE_PART && is_alone;
    return i % n_parts == (size_t)part;
}

static int run_part(const struct contract_database *database, int part, size_t n_parts)
{
    static struct run runs[1024];
    static struct CMUnitTest tests[1024];
    const char *why_not = database->start();
    size_t n_tests = 0;
    size_t n_runs;
    size_t i;
    int n_failed;

    if (why_not != NULL) {
        (void)printf("skip: contract on %s: %s\n", database->name, why_not);
        return 77;
    }
    why_not = install(database);
    if (why_not != NULL) {
        (void)printf("not ok 1 - contract on %s: %s\n", database->name, why_not);
        database->stop();
        return 1;
    }
    n_runs = collect_runs(database, runs, sizeof runs / sizeof runs[0]);
    for (i = 0; i < n_runs; ++i)
        if (is_of_part(&runs[i], i, part, n_parts))
            tests[n_tests++] =
                (struct CMUnitTest){ runs[i].name, run_case, begin, end, &runs[i] };
    /* what the macro of cmocka calls; the macro itself takes only an array of known size */
    n_failed = _cmocka_run_group_tests(database->name, tests, n_tests, NULL, NULL);
    database->stop();
    return n_failed == 0 ? 0 : 1;
}

static void show(FILE *output)
{
    char bytes[4096];
    size_t n_bytes;

    rewind(output);
    while ((n_bytes = fread(bytes, 1, sizeof bytes, output)) > 0)
        (void)fwrite(bytes, 1, n_bytes, stdout);
    (void)fflush(stdout); /* or the next part would say it again */
    (void)fclose(output);
}

/* A part is a process with a world of its own; what it says is shown at its end. */
struct part {
    pid_t pid;
    FILE *output;
};

static void start_part(
    struct part *part, const struct contract_database *database, int number, size_t n_parts)
{
    part->output = tmpfile();
    part->pid = part->output == NULL ? -1 : fork();
    if (part->pid < 0)
        abort();
    if (part->pid > 0)
        return;
    (void)dup2(fileno(part->output), STDOUT_FILENO);
    (void)dup2(fileno(part->output), STDERR_FILENO);
    exit(run_part(database, number, n_parts));
}

static int end_part(struct part *part)
{
    int status;

    while (waitpid(part->pid, &status, 0) < 0)
        ;
    show(part->output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_parts(const struct contract_database *database, size_t n_parts)
{
    struct part parts[PARTS_MAX];
    int worst = 0;
    int status;
    size_t i;

    for (i = 0; i < n_parts; ++i)
        start_part(&parts[i], database, (int)i, n_parts);
    for (i = 0; i < n_parts; ++i) {
        status = end_part(&parts[i]);
        worst = worst > status ? worst : status;
    }
    return worst;
}

/* CONTRACT_PARTS: in so many processes side by side. The cases mostly wait. */
int contract_run(const struct contract_database *database)
{
    const char *parts = getenv("CONTRACT_PARTS");
    size_t n_parts = parts == NULL ? 1 : strtoul(parts, NULL, 10);

    if (n_parts <= 1)
        return run_part(database, 0, 1);
    return run_parts(database, n_parts < PARTS_MAX ? n_parts : PARTS_MAX);
}

int contract_run_alone(const struct contract_database *database)
{
    return run_part(database, ALONE_PART, 1);
}
