/* SPDX-License-Identifier: MIT */
/* command.c - `dblock run -n x -- true` on a SQLite file against `flock -n f true`, by
 * turns. Both start the same program; the difference is what a lock costs a crontab. */
#include "pairs.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Microseconds, or below 0. */
static double time_command(char *const *arguments)
{
    uint64_t before_ns = bench_now_ns();
    int status = -1;
    pid_t pid;

    if (posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ) != 0)
        return -1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return -1;
    return (double)(bench_now_ns() - before_ns) / 1e3;
}

static int measure(char *const *flock_words, char *const *dblock_words, int n,
    double *flock_us, double *dblock_us)
{
    int i;

    for (i = 0; i < n; ++i) {
        flock_us[i] = time_command(flock_words);
        dblock_us[i] = time_command(dblock_words);
        if (flock_us[i] < 0 || dblock_us[i] < 0) {
            (void)fprintf(stderr, "pairs: %s does not run, or its command failed\n",
                flock_us[i] < 0 ? "flock" : dblock_words[0]);
            return -1;
        }
    }
    return 0;
}

static int is_made(char *const *init_words)
{
    return time_command(init_words) >= 0;
}

static void tell(struct settings *settings, double *flock_us, double *dblock_us)
{
    size_t n = (size_t)settings->n_commands;
    double flock_p50 = bench_median(flock_us, n);
    double dblock_p50 = bench_median(dblock_us, n);
    double ratio = dblock_p50 / flock_p50;

    (void)printf("flock -n f true %.0f us, dblock run -n x -- true %.0f us: ratio %.2f"
                 " (goal 3.00)%s\n",
        flock_p50, dblock_p50, ratio, report_goal(&settings->report, ratio, 3));
    report_json(&settings->report, "SQLite", "command", "flock_us", flock_p50, "dblock_us", dblock_p50,
        "ratio", ratio, "goal", 3.0, NULL);
}

int command_run(struct settings *settings)
{
    char program[512], url[512], file[512];
    char flock_name[] = "flock", n[] = "-n", true_name[] = "true", run[] = "run", init[] = "init",
         name[] = "x", dashes[] = "--", d[] = "-d", q[] = "-q";
    char *flock_words[] = { flock_name, n, file, true_name, NULL };
    char *dblock_words[] = { program, run, d, url, n, name, dashes, true_name, NULL };
    char *init_words[] = { program, init, q, d, url, NULL };
    double *flock_us = calloc((size_t)settings->n_commands, sizeof *flock_us);
    double *dblock_us = calloc((size_t)settings->n_commands, sizeof *dblock_us);
    int result = -1;

    (void)snprintf(program, sizeof program, "%s", settings->command);
    (void)snprintf(url, sizeof url, "sqlite:%s/command.db", settings->folder);
    (void)snprintf(file, sizeof file, "%s/flock", settings->folder);
    if (flock_us != NULL && dblock_us != NULL && is_made(init_words) &&
        measure(flock_words, dblock_words, settings->n_commands, flock_us, dblock_us) == 0) {
        tell(settings, flock_us, dblock_us);
        result = 0;
    }
    free(flock_us);
    free(dblock_us);
    return result;
}
