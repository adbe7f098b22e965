/* SPDX-License-Identifier: MIT */
/* main.c - what waiting costs beside raw loops of the same mechanism.
 *
 * Prints tables and marks what misses its goal. A benchmark and not a test: the exit
 * status is 0 all the same, and 1 only if something could not be measured. tests/bench/run
 * starts this with servers, all on one processor. This process opens no client of its own:
 * it forks, and a client has threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/choice.h"
#include "bench/lib/folder.h"
#include "processors.h"
#include "waiting.h"

static const struct place *const places[] = {
#ifdef DBLOCK_TEST_HAS_SQLITE
    &waiting_sqlite,
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    &waiting_pgsql,
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    &waiting_mysql,
#endif
    NULL
};

static const char usage[] =
    "usage: waiting [--only WORD]... [--rounds N] [--seconds S] [--turn S] [--idle S]\n"
    "               [--waiters N] [--kills N] [--cpu N] [--json FILE]\n"
    "--cpu binds this and the servers to one processor, but for the melee.\n"
    "WORD is handover, threads, melee, idle, notify or kill, or the begin of a database's name.\n"
    "Servers: DBLOCK_TEST_PGSQL and DBLOCK_TEST_MYSQL_SOCKET (ci/services env).\n";

typedef int (*part_fn)(struct settings *, const struct place *, const char *);

static const struct part {
    const char *name;
    const char *title;
    part_fn run;
    int needs_all; /* processors */
} parts[] = {
    { "handover",
        "hand-over to another process, hold 4 ms; us, server's time for each\n"
        "database    mechanism          waiters  times       p50       p99      CPU"
        "  ratio (rounds)"
        "       goal",
        handover_run, 0 },
    { "threads", "hand-over between 16 threads of one client, against a durable pair; us",
        threads_run, 0 },
    { "melee",
        "free for all: 16 processes, no hold time\n"
        "database    mechanism            grants/s  changes/s  ratio  goal",
        melee_run, 1 },
    { "idle", "waiters of a name that stays held", idle_run, 0 },
#ifdef DBLOCK_TEST_HAS_PGSQL
    { "notify", "an unrelated NOTIFY while 100 clients wait", notify_run, 0 },
#endif
    { "kill",
        "kill -9 of the holder to the next grant; ms, ttl 1000\n"
        "database    mechanism             median     worst   goal",
        kill_run, 0 },
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static int install(void *context, int ready_fd)
{
    const struct opening *opening = context;
    dblock_client *client = NULL;
    struct dblock_error error;
    dblock_status status;

    (void)ready_fd;
    status = dblock_open(opening->place->driver(), opening->url, NULL, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "waiting: %s: %s\n", dblock_status_name(status),
            status < 0 ? error.message : dblock_status_text(status));
    dblock_close(client);
    return status == DBLOCK_OK ? 0 : 1;
}

static int prepare(const struct place *place, const char *url, const char *folder)
{
    struct opening opening = { .place = place, .url = url };
    struct test_process process;

    if (process_start(&process, install, &opening) != 0 || process_wait(&process, 60000) != 0)
        return -1;
    return place->begin(url, folder);
}

/* NULL: there is no such server. */
static const char *find_url(
    const struct place *place, const char *folder, char *buffer, size_t size)
{
    if (place->variable != NULL)
        return getenv(place->variable);
    (void)snprintf(buffer, size, "sqlite:%s/waiting.db", folder);
    return buffer;
}

static void bind_all(const struct settings *settings, int processor)
{
    long pids[sizeof places / sizeof places[0]];
    int n = 0;

    if (settings->processor < 0)
        return;
    for (; places[n] != NULL; ++n)
        pids[n] = place_pid(places[n]->pid_variable);
    processors_bind(processor, pids, n);
}

static int run_part(struct settings *settings, const struct part *part, const struct choice *choice)
{
    static const char *const names[] = { "SQLite", "PostgreSQL", "MariaDB", NULL };
    char buffer[600];
    int failed = 0;
    int i;

    (void)printf("%s\n", part->title);
    bind_all(settings, part->needs_all ? -1 : settings->processor);
    for (i = 0; places[i] != NULL; ++i) {
        const struct place *place = places[i];
        const char *url = find_url(place, settings->folder, buffer, sizeof buffer);

        if (!choice_has(choice, place->name, names) ||
            (strcmp(part->name, "notify") == 0 && strcmp(place->name, "PostgreSQL") != 0))
            continue;
        if (url == NULL) {
            (void)printf("%-11s left out: %s is not set\n", place->name, place->variable);
            continue;
        }
        if (part->run(settings, place, url) != 0) {
            (void)printf("%-11s could not be measured, or not all of it\n", place->name);
            failed = 1;
        }
        (void)fflush(stdout);
    }
    (void)printf("\n");
    return failed;
}

static int prepare_all(const struct settings *settings)
{
    char buffer[600];
    int i;

    for (i = 0; places[i] != NULL; ++i) {
        const char *url = find_url(places[i], settings->folder, buffer, sizeof buffer);

        if (url != NULL && prepare(places[i], url, settings->folder) != 0) {
            (void)fprintf(stderr, "waiting: %s cannot be prepared\n", places[i]->name);
            return -1;
        }
    }
    return 0;
}

static void clean_all(const struct settings *settings)
{
    char buffer[600];
    int i;

    for (i = 0; places[i] != NULL; ++i) {
        const char *url = find_url(places[i], settings->folder, buffer, sizeof buffer);

        if (url != NULL)
            places[i]->end(url, settings->folder);
    }
}

static void print_totals(struct settings *settings)
{
    const char *marks[3];

    marks[0] = report_goal(&settings->report, settings->n_violations, 0.5);
    marks[1] = report_goal(&settings->report, settings->n_regressions, 0.5);
    marks[2] = report_goal(&settings->report, settings->n_errors, 0.5);
    (void)printf("over %.0f grants: %.0f violations of exclusion%s, %.0f tokens that did not"
                 " rise%s, %.0f errors%s\n",
        settings->n_grants, settings->n_violations, marks[0], settings->n_regressions, marks[1],
        settings->n_errors, marks[2]);
    report_json(&settings->report, "all", "totals", "grants", settings->n_grants, "violations",
        settings->n_violations, "regressions", settings->n_regressions, "errors",
        settings->n_errors, NULL);
}

static int run_parts(struct settings *settings, const struct choice *choice)
{
    const char *names[N_PARTS + 1] = { NULL };
    int failed = 0;
    size_t i;

    for (i = 0; i < N_PARTS; ++i)
        names[i] = parts[i].name;
    for (i = 0; i < N_PARTS; ++i)
        if (choice_has(choice, parts[i].name, names))
            failed |= run_part(settings, &parts[i], choice);
    bind_all(settings, settings->processor); /* as the servers were */
    print_totals(settings);
    (void)printf("%d goals missed%s\n", settings->report.n_missed,
        failed ? "; some things could not be measured" : "");
    return failed;
}

static int read_arguments(
    int argc, char **argv, struct choice *choice, struct settings *settings, const char **json)
{
    int i;

    for (i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--only") == 0 && choice->n_words < N_CHOICES)
            choice->words[choice->n_words++] = value;
        else if (strcmp(argv[i], "--rounds") == 0)
            settings->n_rounds = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            settings->seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--turn") == 0)
            settings->turn_seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--idle") == 0)
            settings->idle_seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--waiters") == 0)
            settings->n_idle = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--kills") == 0)
            settings->n_kills = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--cpu") == 0)
            settings->processor = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            *json = value;
        else
            return -1;
    }
    return i == argc && settings->n_rounds > 0 && settings->n_rounds <= N_ROUNDS_MAX &&
            settings->seconds > 0 && settings->turn_seconds > 0 && settings->idle_seconds > 0 &&
            settings->n_idle > 0 && settings->n_idle < N_WORKERS_MAX && settings->n_kills > 0 &&
            settings->n_kills <= N_ROUNDS_MAX
        ? 0
        : -1;
}

int main(int argc, char **argv)
{
    struct settings settings = { .n_rounds = 9,
        .seconds = 10,
        .turn_seconds = 0.6,
        .idle_seconds = 5,
        .n_idle = 100,
        .n_kills = 5,
        .processor = -1 };
    struct choice choice = { { NULL }, 0 };
    char folder[512];
    const char *json = NULL;
    int failed = 1;

    if (read_arguments(argc, argv, &choice, &settings, &json) != 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    settings.stage = stage_make();
    if (settings.stage == NULL || report_begin(&settings.report, json) != 0 ||
        folder_make(folder, sizeof folder) != 0)
        return 73;
    settings.folder = folder;
    if (prepare_all(&settings) == 0) {
        failed = run_parts(&settings, &choice);
        clean_all(&settings);
    }
    report_end(&settings.report);
    stage_free(settings.stage);
    folder_remove(folder);
    return failed;
}
