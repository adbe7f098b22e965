/* SPDX-License-Identifier: MIT */
/* main.c - what starting the command costs: `dblock run -n x -- true` against a minimal
 * program on the same client library that takes such a lock (tests/bench/minimal), against
 * `flock -n f true`, and `dblock --help` against a program of the C library alone.
 *
 * Prints a table and marks what misses its goal. A benchmark and not a test: the exit
 * status is 0 all the same, and 1 only if something could not be measured. tests/bench/run
 * starts this with servers, all on one processor. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/choice.h"
#include "bench/lib/folder.h"
#include "bench/lib/numbers.h"
#include "bench/lib/report.h"

extern char **environ;

static const char usage[] =
    "usage: start --command DBLOCK [--only WORD]... [--commands N] [--json FILE]\n"
    "WORD is help, or the begin of a database's name.\n"
    "Servers: DBLOCK_TEST_PGSQL and DBLOCK_TEST_MYSQL_SOCKET (ci/services env).\n";

enum { N_WORDS = 10, PATH_SIZE = 512 };

struct settings {
    const char *command;
    const char *json;
    int n_commands;
    char folder[PATH_SIZE];
    char programs[PATH_SIZE]; /* beside this program: minimal-sqlite and so on */
    struct choice choice;
    struct report report;
};

static const struct database {
    const char *name;
    const char *variable; /* with the URL; NULL: a file of our own */
    const char *minimal;
    const char *strategies[3]; /* up to NULL */
    double flock_goal;         /* of the first strategy */
} databases[] = {
#ifdef DBLOCK_TEST_HAS_SQLITE
    { "SQLite", NULL, "sqlite", { "lease", NULL }, 2.0 },
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    { "PostgreSQL", "DBLOCK_TEST_PGSQL", "pgsql", { "lease", "advisory", NULL }, 5.8 },
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    { "MariaDB", "DBLOCK_TEST_MYSQL_SOCKET", "mysql", { "lease", "advisory", NULL }, 2.5 },
#endif
    { NULL, NULL, NULL, { NULL }, 0 },
};

static const double minimal_goal = 1.15, help_goal = 1.2;

/* Microseconds from the start to the end, or below 0. */
static double time_command(const char *const *words)
{
    char *arguments[N_WORDS];
    posix_spawn_file_actions_t actions;
    uint64_t before_ns;
    int status = -1;
    int i;
    pid_t pid;

    for (i = 0; words[i] != NULL; ++i)
        arguments[i] = (char *)(size_t)words[i]; /* posix_spawnp() does not change them */
    arguments[i] = NULL;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(
        &actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    before_ns = bench_now_ns();
    if (posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ) != 0 ||
        waitpid(pid, &status, 0) != pid)
        status = -1;
    (void)posix_spawn_file_actions_destroy(&actions);
    return status == 0 ? (double)(bench_now_ns() - before_ns) / 1e3 : -1;
}

struct times { /* of one command */
    const char *const *words;
    double *us;
    double p50_us;
};

/* By turns. 0, or -1 and said why. */
static int measure(struct times *times, int n_times, int n)
{
    int i, j;

    for (i = -1; i < n; ++i) /* once before that counts: files come into memory */
        for (j = 0; j < n_times; ++j) {
            double us = time_command(times[j].words);

            if (us < 0) {
                (void)fprintf(stderr, "start: %s does not run, or failed\n", times[j].words[0]);
                return -1;
            }
            if (i >= 0)
                times[j].us[i] = us;
        }
    for (j = 0; j < n_times; ++j)
        times[j].p50_us = bench_median_of(times[j].us, (size_t)n);
    return 0;
}

/* The median over turns: what disturbs the machine disturbs both of a turn. */
static double compare(const struct times *ours, const struct times *other, double *room, int n)
{
    int i;

    for (i = 0; i < n; ++i)
        room[i] = ours->us[i] / other->us[i];
    return bench_median(room, (size_t)n);
}

static void tell(struct settings *settings, const char *what, const char *of,
    const struct times *times, int n_times, double goal, double flock_goal, double *room)
{
    double ratio = compare(&times[0], &times[1], room, settings->n_commands);
    double flock_ratio =
        n_times > 2 ? compare(&times[0], &times[2], room, settings->n_commands) : 0;

    (void)printf("%-11s %-9s %8.0f %8.0f %6.2f %5.2f%s", what, of, times[1].p50_us,
        times[0].p50_us, ratio, goal, report_goal(&settings->report, ratio, goal));
    if (n_times > 2)
        (void)printf(" %8.0f %6.2f", times[2].p50_us, flock_ratio);
    if (n_times > 2 && flock_goal > 0)
        (void)printf(" %5.2f%s", flock_goal,
            report_goal(&settings->report, flock_ratio, flock_goal));
    (void)printf("\n");
    (void)fflush(stdout);
    report_json(&settings->report, what, of, "minimal_us", times[1].p50_us, "dblock_us",
        times[0].p50_us, "ratio", ratio, "goal", goal, "flock_ratio", flock_ratio, "flock_goal",
        flock_goal, NULL);
}

/* `words[0]` is dblock's, `words[1]` the minimal's, and `words[2]` flock's, if there are three. */
static int run_line(struct settings *settings, const char *what, const char *of,
    const char *const *const *words, int n_words, double goal, double flock_goal)
{
    size_t n = (size_t)settings->n_commands;
    double *room = calloc(4 * n, sizeof *room);
    struct times times[3];
    int result = -1;
    int i;

    if (room == NULL)
        return -1;
    for (i = 0; i < n_words; ++i)
        times[i] = (struct times) { words[i], room + (size_t)(i + 1) * n, 0 };
    if (measure(times, n_words, settings->n_commands) == 0) {
        tell(settings, what, of, times, n_words, goal, flock_goal, room);
        result = 0;
    }
    free(room);
    return result;
}

static int run_help(struct settings *settings)
{
    char minimal[PATH_SIZE + 16];
    const char *ours[] = { settings->command, "--help", NULL };
    const char *theirs[] = { minimal, NULL };
    const char *const *words[] = { ours, theirs };

    (void)snprintf(minimal, sizeof minimal, "%s-text", settings->programs);
    return run_line(settings, "--help", "", words, 2, help_goal, 0);
}

static int run_database(struct settings *settings, const struct database *database)
{
    char minimal[PATH_SIZE + 16], file[PATH_SIZE + 16];
    const char *init[] = { settings->command, "init", "-q", NULL };
    const char *minimal_init[] = { minimal, "init", NULL };
    const char *flock_words[] = { "flock", "-n", file, "true", NULL };
    int failed = 0;
    int i;

    (void)snprintf(minimal, sizeof minimal, "%s-%s", settings->programs, database->minimal);
    (void)snprintf(file, sizeof file, "%s/flock", settings->folder);
    if (time_command(init) < 0 || time_command(minimal_init) < 0)
        return -1;
    for (i = 0; database->strategies[i] != NULL; ++i) {
        const char *strategy = database->strategies[i];
        const char *ours[] = { settings->command, "run", "-S", strategy, "-n", "bench-start", "--",
            "true", NULL };
        const char *theirs[] = { minimal, strategy, NULL };
        const char *const *words[] = { ours, theirs, flock_words };

        failed |= run_line(settings, database->name, strategy, words, 3, minimal_goal,
                      i == 0 ? database->flock_goal : 0) != 0;
    }
    return failed ? -1 : 0;
}

static int run_all(struct settings *settings)
{
    static const char *const kinds[] = { "help", "SQLite", "PostgreSQL", "MariaDB", NULL };
    int failed = 0;
    int i;

    (void)printf("from the start of a program to its end, medians of %d by turns; us\n"
                 "%-11s %-9s %8s %8s %6s %5s %8s %6s %5s\n",
        settings->n_commands, "what", "strategy", "minimal", "dblock", "ratio", "goal", "flock",
        "ratio", "goal");
    if (choice_has(&settings->choice, "help", kinds))
        failed |= run_help(settings) != 0;
    for (i = 0; databases[i].name != NULL; ++i) {
        const struct database *database = &databases[i];
        const char *url = database->variable != NULL ? getenv(database->variable) : NULL;
        char file[PATH_SIZE + 32];

        if (!choice_has(&settings->choice, database->name, kinds))
            continue;
        if (database->variable == NULL) {
            (void)snprintf(file, sizeof file, "sqlite:%s/start.db", settings->folder);
            url = file;
        }
        if (url == NULL) {
            (void)printf("%-11s left out: %s is not set\n", database->name, database->variable);
            continue;
        }
        if (setenv("DBLOCK_URL", url, 1) != 0 || run_database(settings, database) != 0) {
            (void)printf("%-11s could not be measured\n", database->name);
            failed = 1;
        }
    }
    (void)printf("\n%d goals missed%s\n", settings->report.n_missed,
        failed ? "; some things could not be measured" : "");
    return failed;
}

static int read_arguments(int argc, char **argv, struct settings *settings)
{
    const char *slash = strrchr(argv[0], '/');
    int i;

    (void)snprintf(settings->programs, sizeof settings->programs, "%.*sminimal",
        slash != NULL ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    for (i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--only") == 0 && settings->choice.n_words < N_CHOICES)
            settings->choice.words[settings->choice.n_words++] = value;
        else if (strcmp(argv[i], "--commands") == 0)
            settings->n_commands = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--command") == 0)
            settings->command = value;
        else if (strcmp(argv[i], "--json") == 0)
            settings->json = value;
        else
            return -1;
    }
    return i == argc && settings->n_commands > 0 && settings->command != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct settings settings;
    int failed;

    memset(&settings, 0, sizeof settings);
    settings.n_commands = 150;
    if (read_arguments(argc, argv, &settings) != 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    if (report_begin(&settings.report, settings.json) != 0 ||
        folder_make(settings.folder, sizeof settings.folder) != 0)
        return 73;
    failed = run_all(&settings);
    report_end(&settings.report);
    folder_remove(settings.folder);
    return failed;
}
