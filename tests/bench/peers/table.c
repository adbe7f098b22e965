/* SPDX-License-Identifier: MIT */
/* table.c - what was measured: for people, for README.md, and whether goals were reached. */
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "peers.h"

static const char last_column[] = "dblock advisory, PostgreSQL";

static double p50_us(const struct worker *workers, const char *name)
{
    int i = peers_find(name);

    return i >= 0 ? worker_quantile_us(&workers[i], 0.5) : 0;
}

void table_print(const struct worker *workers)
{
    int i;

    (void)printf("%-52s durable   p50 us    p99 us  CPU us   pairs  what\n",
        "acquire and release, uncontended");
    for (i = 0; peers_contenders[i].name != NULL; ++i) {
        const struct contender *contender = &peers_contenders[i];
        const struct worker *worker = &workers[i];

        if (worker->n == 0)
            (void)printf("%-52s left out: %s\n", contender->name, worker->about);
        else
            (void)printf("%-52s %-7s %8.1f %9.1f %7.1f %7zu  %s\n", contender->name,
                contender->durable, worker_quantile_us(worker, 0.5),
                worker_quantile_us(worker, 0.99), worker->cpu_us / (double)worker->n, worker->n,
                worker->about);
    }
}

/* How far the ratio goes, by rounds. */
static void find_range(const struct worker *ours, const struct worker *other, int n_rounds,
    double *ret_least, double *ret_most)
{
    int round;

    for (round = 0; round < n_rounds; ++round) {
        double ratio = worker_round_us(ours, round) / worker_round_us(other, round);

        if (round == 0 || ratio < *ret_least)
            *ret_least = ratio;
        if (round == 0 || ratio > *ret_most)
            *ret_most = ratio;
    }
}

void table_judge(const struct worker *workers, int n_rounds, struct report *report)
{
    const struct rivalry *rivalry;

    (void)printf("\n%-32s %-52s  ratio (rounds)       goal\n", "how long it takes", "against");
    for (rivalry = peers_rivalries; rivalry->ours != NULL; ++rivalry) {
        double ours_us = p50_us(workers, rivalry->ours);
        double other_us = p50_us(workers, rivalry->other);
        double least = 0;
        double most = 0;
        char goal[16] = "-";

        if (ours_us <= 0 || other_us <= 0)
            continue; /* said above */
        find_range(&workers[peers_find(rivalry->ours)], &workers[peers_find(rivalry->other)],
            n_rounds, &least, &most);
        if (rivalry->goal > 0)
            (void)snprintf(goal, sizeof goal, "%.2f", rivalry->goal);
        (void)printf("%-32s %-52s %6.3f  %.3f-%.3f %6s%s\n", rivalry->ours, rivalry->other,
            ours_us / other_us, least, most, goal,
            report_goal(report, ours_us / other_us, rivalry->goal));
        report_json(report, rivalry->ours, rivalry->other, "ours_us", ours_us, "other_us",
            other_us, "ratio", ours_us / other_us, "goal", rivalry->goal, NULL);
    }
}

/* ----------------------------------------------------------------- for README.md */

struct line {
    const struct contender *contender;
    const struct worker *worker;
    double p50_us;
};

static int compare_lines(const void *left, const void *right)
{
    const struct line *a = left;
    const struct line *b = right;

    if ((a->p50_us > 0) != (b->p50_us > 0))
        return a->p50_us > 0 ? -1 : 1;
    return (a->p50_us > b->p50_us) - (a->p50_us < b->p50_us);
}

static void write_line(FILE *file, const struct line *line, double reference_us)
{
    const char *mark = line->contender->is_ours ? "**" : "";

    (void)fprintf(file, "| %s%s%s | ", mark, line->contender->name, mark);
    if (line->p50_us <= 0) {
        (void)fprintf(file, "- | not to be had here | - |\n");
        return;
    }
    (void)fprintf(file, "%s | ", line->contender->durable);
    (void)fprintf(file, line->p50_us < 100 ? "%.1f | " : "%.0f | ", line->p50_us);
    if (line->contender->is_command || reference_us <= 0)
        (void)fprintf(file, "- |\n");
    else
        (void)fprintf(file, line->p50_us / reference_us < 10 ? "%.2f |\n" : "%.0f |\n",
            line->p50_us / reference_us);
}

/* "model name : X" of the first processor. */
static void write_machine(FILE *file)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    char line[256];
    struct utsname name;

    (void)fprintf(file, "%ld processors", sysconf(_SC_NPROCESSORS_ONLN));
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            line[strcspn(line, "\n")] = 0;
            (void)fprintf(file, " (%s)", strchr(line, ':') + 2);
            break;
        }
    if (info != NULL)
        (void)fclose(info);
    if (uname(&name) == 0)
        (void)fprintf(file, ", %s %.*s", name.sysname, (int)strcspn(name.release, "-+"),
            name.release);
}

static void write_versions(FILE *file, const struct line *lines, int n)
{
    int i, j;
    int n_written = 0;

    for (i = 0; i < n; ++i) {
        int is_known = lines[i].p50_us <= 0 || strcmp(lines[i].worker->about, "-") == 0;

        for (j = 0; j < i && !is_known; ++j)
            is_known = strcmp(lines[i].worker->about, lines[j].worker->about) == 0;
        if (!is_known)
            (void)fprintf(file, "%s%s", n_written++ > 0 ? ", " : "", lines[i].worker->about);
    }
}

int table_write_markdown(
    const struct worker *workers, int n_rounds, const char *load, const char *path)
{
    struct line lines[N_CONTENDERS_MAX];
    double reference_us = p50_us(workers, last_column);
    FILE *file = fopen(path, "w");
    int n, i;

    if (file == NULL) {
        perror(path);
        return -1;
    }
    for (n = 0; peers_contenders[n].name != NULL; ++n) {
        lines[n].contender = &peers_contenders[n];
        lines[n].worker = &workers[n];
        lines[n].p50_us = worker_quantile_us(&workers[n], 0.5);
    }
    qsort(lines, (size_t)n, sizeof *lines, compare_lines);
    (void)fprintf(file, "| acquire and release | durable | p50, us | times %s |\n|---|---|---|---|\n",
        last_column);
    for (i = 0; i < n; ++i)
        write_line(file, &lines[i], reference_us);
    (void)fprintf(file, "\nMeasured on ");
    write_machine(file);
    (void)fprintf(file, ", load %s; %d rounds by turns. ", load, n_rounds);
    write_versions(file, lines, n);
    (void)fprintf(file, ".\n");
    return fclose(file) == 0 ? 0 : -1;
}
