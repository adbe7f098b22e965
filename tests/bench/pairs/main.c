/* SPDX-License-Identifier: MIT */
/* main.c - what the library costs beside the bare client library, as ratios.
 *
 * Prints tables and marks what misses its goal. A benchmark and not a test: the exit
 * status is 0 all the same, and 1 only if something could not be measured. tests/bench/run
 * starts this with servers, all on one processor. */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

#include "bench/lib/choice.h"
#include "bench/lib/folder.h"

static const struct database *const databases[] = {
#ifdef DBLOCK_TEST_HAS_SQLITE
    &bench_sqlite,
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    &bench_pgsql,
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    &bench_mysql,
#endif
    NULL
};

static const char usage[] =
    "usage: pairs [--only WORD]... [--rounds N] [--seconds S] [--pairs N] [--leases N]\n"
    "             [--commands N] [--command DBLOCK] [--json FILE]\n"
    "WORD is pairs, durable, joined, guard, heartbeat, many, memory or command, or the begin of a database's name.\n"
    "Servers: DBLOCK_TEST_PGSQL and DBLOCK_TEST_MYSQL_SOCKET (ci/services env).\n";

static int is_part_chosen(const struct choice *choice, const char *name)
{
    static const char *const parts[] = { "pairs", "durable", "joined", "guard", "heartbeat",
        "many", "memory", "command", NULL };

    return choice_has(choice, name, parts);
}

static int is_database_chosen(const struct choice *choice, const char *name)
{
    static const char *const names[] = { "SQLite", "PostgreSQL", "MariaDB", NULL };

    return choice_has(choice, name, names);
}

typedef int (*benchmark_fn)(const struct database *, const char *, struct settings *);

static int run_all(const struct choice *choice, struct settings *settings, benchmark_fn benchmark)
{
    int failed = 0;
    int i;

    for (i = 0; databases[i] != NULL; ++i) {
        const struct database *database = databases[i];
        const char *url = database->variable != NULL ? getenv(database->variable) : NULL;
        char file[512];

        if (!is_database_chosen(choice, database->name))
            continue;
        if (database->variable == NULL) {
            (void)snprintf(file, sizeof file, "sqlite:%s/pairs.db", settings->folder);
            url = file;
        }
        if (url == NULL) {
            (void)printf("%-11s left out: %s is not set\n", database->name, database->variable);
            continue;
        }
        if (benchmark(database, url, settings) != 0) {
            (void)printf("%-11s could not be measured\n", database->name);
            failed = 1;
        }
        (void)fflush(stdout);
    }
    return failed;
}

static int run_joined(const struct choice *choice, struct settings *settings)
{
    int failed = 0;

    (void)printf("\na row lock in the application's transaction, and a SELECT ... FOR UPDATE\n");
#ifdef DBLOCK_TEST_HAS_PGSQL
    if (is_database_chosen(choice, bench_pgsql.name) && getenv(bench_pgsql.variable) != NULL)
        failed |= joined_pgsql_run(getenv(bench_pgsql.variable), settings) != 0;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    if (is_database_chosen(choice, bench_mysql.name) && getenv(bench_mysql.variable) != NULL)
        failed |= joined_mysql_run(getenv(bench_mysql.variable), settings) != 0;
#endif
    return failed;
}

static int run_guards(const struct choice *choice, struct settings *settings)
{
    int failed = 0;

    (void)printf("\na guard of the application's transaction, and the SELECT that it runs\n");
#ifdef DBLOCK_TEST_HAS_SQLITE
    if (is_database_chosen(choice, bench_sqlite.name)) {
        char file[512];

        (void)snprintf(file, sizeof file, "sqlite:%s/guard.db", settings->folder);
        failed |= guard_sqlite_run(file, settings) != 0;
    }
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    if (is_database_chosen(choice, bench_pgsql.name) && getenv(bench_pgsql.variable) != NULL)
        failed |= guard_pgsql_run(getenv(bench_pgsql.variable), settings) != 0;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    if (is_database_chosen(choice, bench_mysql.name) && getenv(bench_mysql.variable) != NULL)
        failed |= guard_mysql_run(getenv(bench_mysql.variable), settings) != 0;
#endif
    return failed;
}

static int run_parts(const struct choice *choice, struct settings *settings)
{
    int failed = 0;

    if (is_part_chosen(choice, "pairs")) {
        (void)printf("acquire + release, p50 of %d rounds of %g s by turns; us a pair\n"
                     "%-11s %-9s %9s %9s %6s  %-9s %8s %8s %6s %6s %6s\n",
            settings->n_rounds, settings->seconds, "database", "strategy", "raw", "dblock", "ratio",
            "rounds", "raw CPU", "our CPU", "ratio", "trips", "goal");
        failed |= run_all(choice, settings, pairs_run);
    }
#ifdef DBLOCK_TEST_HAS_PGSQL
    if (is_part_chosen(choice, "durable") && is_database_chosen(choice, bench_pgsql.name) &&
        getenv(bench_pgsql.variable) != NULL) {
        (void)printf("\na lease's release waits for no disk, a raw pair's does\n");
        failed |= durable_run(getenv(bench_pgsql.variable), settings) != 0;
    }
#endif
    if (is_part_chosen(choice, "joined"))
        failed |= run_joined(choice, settings);
    if (is_part_chosen(choice, "guard"))
        failed |= run_guards(choice, settings);
    if (is_part_chosen(choice, "heartbeat")) {
        (void)printf("\nmany leases and inserts of one client\n");
        failed |= run_all(choice, settings, heartbeat_run);
    }
    if (is_part_chosen(choice, "many")) {
        (void)printf("\nmany advisory locks of one client, each by one try\n");
        failed |= run_all(choice, settings, many_run);
    }
    if (is_part_chosen(choice, "memory")) {
        (void)printf("\nmemory\n");
        failed |= run_all(choice, settings, memory_run);
    }
    if (settings->command != NULL && is_part_chosen(choice, "command")) {
        (void)printf("\nthe command, medians of %d by turns\n", settings->n_commands);
        failed |= command_run(settings) != 0;
    }
    (void)printf("\n%d goals missed%s\n", settings->report.n_missed,
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
        else if (strcmp(argv[i], "--pairs") == 0)
            settings->n_memory_pairs = strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--leases") == 0)
            settings->n_leases = strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--commands") == 0)
            settings->n_commands = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--command") == 0)
            settings->command = value;
        else if (strcmp(argv[i], "--json") == 0)
            *json = value;
        else
            return -1;
    }
    return i == argc && settings->n_rounds > 0 && settings->seconds > 0 &&
            settings->n_memory_pairs > 0 && settings->n_leases > 0 && settings->n_commands > 0
        ? 0
        : -1;
}

int main(int argc, char **argv)
{
    struct settings settings = { .n_rounds = 7,
        .seconds = 0.3,
        .n_memory_pairs = 1000000,
        .n_leases = 10000,
        .n_commands = 250 };
    struct choice choice = { { NULL }, 0 };
    char folder[512];
    const char *json = NULL;
    int failed;

    if (read_arguments(argc, argv, &choice, &settings, &json) != 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    if (report_begin(&settings.report, json) != 0 || folder_make(folder, sizeof folder) != 0)
        return 73;
    settings.folder = folder;
    failed = run_parts(&choice, &settings);
    report_end(&settings.report);
    folder_remove(folder);
    return failed;
}
