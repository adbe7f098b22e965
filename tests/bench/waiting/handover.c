/* SPDX-License-Identifier: MIT */
/* handover.c - from before a release is called to the return of the next process's
 * acquire, with a hold of 4 ms, so that all others wait. One more process than wait: who
 * has released asks again 1 ms later, so that his asking neither overtakes those who wait
 * nor takes the processor from them. Who does that is the subject of melee.c.
 *
 * "again" is the same raw loop once more: its ratio tells the noise of this run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/numbers.h"
#include "waiting.h"

enum { N_SIZES = 2 };
static const int sizes[N_SIZES] = { 2, 16 };

struct cell { /* one contender with so many waiters, over all rounds */
    double p50_us[N_ROUNDS_MAX];
    double cpu_us[N_ROUNDS_MAX];
    uint32_t *samples_ns;
    size_t n_samples;
};

struct table {
    struct cell cells[N_CONTENDERS_MAX][N_SIZES];
    int is_broken[N_CONTENDERS_MAX];
    int n_rounds;
};

static int is_compared(const struct contender *contender)
{
    return contender->mechanism.name != NULL && !contender->is_melee_only;
}

static int keep(struct cell *cell, int round, const struct turn *turn, const struct stage *stage)
{
    size_t n = cell->n_samples + turn->n_samples;
    uint32_t *larger = realloc(cell->samples_ns, (n + 1) * sizeof *larger);

    if (larger == NULL)
        return -1;
    memcpy(larger + cell->n_samples, stage->samples_ns, turn->n_samples * sizeof *larger);
    cell->samples_ns = larger;
    cell->n_samples = n;
    cell->p50_us[round] = turn->p50_us;
    cell->cpu_us[round] = turn->cpu_us;
    return 0;
}

/* All of one size after each other, so that a contender comes near to what it is compared
 * with. */
static void run_round(struct settings *settings, const struct place *place, const char *url,
    struct table *table)
{
    int n = contender_count(place);
    struct turn turn;
    int k;

    for (k = 0; k < N_SIZES * n; ++k) {
        int i = turn_order(table->n_rounds, k % n, n);
        int size = turn_order(table->n_rounds, k / n, N_SIZES);
        struct plan plan = turn_plan(settings, place, url, &place->contenders[i].mechanism);

        if (!is_compared(&place->contenders[i]) || table->is_broken[i])
            continue;
        plan.n = sizes[size] + 1;
        plan.hold_us = HOLD_US;
        plan.rest_us = REST_US;
        if (turn_run(settings, &plan, settings->turn_seconds, &turn) != 0 ||
            keep(&table->cells[i][size], table->n_rounds, &turn, settings->stage) != 0)
            table->is_broken[i] = 1;
    }
    ++table->n_rounds;
}

/* The median, and if wanted the ends, of the quotients of single rounds. */
static double ratio_of(
    const double *values, const double *others, int n, double *ret_least, double *ret_most)
{
    double ratios[N_ROUNDS_MAX];
    double median;
    int i;

    for (i = 0; i < n; ++i)
        ratios[i] = others[i] > 0 ? values[i] / others[i] : 0;
    median = bench_median(ratios, (size_t)n);
    if (ret_least != NULL) {
        *ret_least = ratios[0]; /* sorted by now */
        *ret_most = ratios[n - 1];
    }
    return median;
}

static void print_cell(struct settings *settings, const struct place *place, struct table *table,
    int i, int size, int is_durable)
{
    const struct contender *contender = &place->contenders[i];
    struct cell *cell = &table->cells[i][size];
    double goal =
        is_durable && contender->goal_durable > 0 ? contender->goal_durable : contender->goal;
    /* none at all counts as long as a turn */
    double p50_us = cell->n_samples > 0
        ? bench_quantile_ns(cell->samples_ns, cell->n_samples, 0.5) / 1e3
        : settings->turn_seconds * 1e6;
    double p99_us = cell->n_samples > 0
        ? bench_quantile_ns(cell->samples_ns, cell->n_samples, 0.99) / 1e3
        : p50_us;
    double cpu_us = bench_median_of(cell->cpu_us, (size_t)table->n_rounds);
    double ratio = 0, least = 0, most = 0;
    char cpu[16] = "-", ratios[48] = "-", goals[32] = "-";
    const char *mark;

    if (contender->against >= 0 && !table->is_broken[contender->against]) {
        ratio = ratio_of(cell->p50_us, table->cells[contender->against][size].p50_us,
            table->n_rounds, &least, &most);
        (void)snprintf(ratios, sizeof ratios, "%.2f (%.2f-%.2f)", ratio, least, most);
    }
    if (cpu_us >= 0)
        (void)snprintf(cpu, sizeof cpu, "%.1f", cpu_us);
    if (contender->goal_us > 0)
        (void)snprintf(goals, sizeof goals, "%.0f us", contender->goal_us);
    else if (goal > 0)
        (void)snprintf(goals, sizeof goals, "%.2f", goal);
    mark = contender->goal_us > 0 ? report_goal(&settings->report, p50_us, contender->goal_us)
                                  : report_goal(&settings->report, ratio, goal);
    (void)printf("%-11s %-18s %7d %6zu %9.1f %9.1f %8s  %-18s %6s%s\n", place->name,
        contender->mechanism.name, sizes[size], cell->n_samples, p50_us, p99_us, cpu, ratios,
        goals, mark);
    report_json(&settings->report, place->name, contender->mechanism.name, "waiters",
        (double)sizes[size], "p50_us", p50_us, "p99_us", p99_us, "cpu_us", cpu_us, "ratio", ratio,
        "is_durable", (double)is_durable, "hand_overs", (double)cell->n_samples, NULL);
}

static void print_growth(
    struct settings *settings, const struct place *place, const struct table *table, int i)
{
    const struct contender *contender = &place->contenders[i];
    const struct cell *few = &table->cells[i][0];
    const struct cell *many = &table->cells[i][N_SIZES - 1];
    double time = ratio_of(many->p50_us, few->p50_us, table->n_rounds, NULL, NULL);
    double cpu = ratio_of(many->cpu_us, few->cpu_us, table->n_rounds, NULL, NULL);
    const char *time_mark = report_goal(&settings->report, time, contender->goal_growth);
    const char *cpu_mark = report_goal(&settings->report, cpu, contender->goal_cpu_growth);
    char cpu_text[16] = "-"; /* nobody serves */

    if (place->pid_variable != NULL)
        (void)snprintf(cpu_text, sizeof cpu_text, "%.2f", cpu);
    (void)printf("%-11s %-18s %d waiters against %d: p50 %.2f%s, CPU %s%s\n", place->name,
        contender->mechanism.name, sizes[N_SIZES - 1], sizes[0], time, time_mark, cpu_text,
        cpu_mark);
    report_json(&settings->report, place->name, contender->mechanism.name, "p50_growth", time,
        "cpu_growth", cpu, NULL);
}

static int print_all(struct settings *settings, const struct place *place, struct table *table,
    const char *url)
{
    int is_durable = place->is_durable(url);
    int n_broken = 0;
    int i, size;

    for (size = 0; size < N_SIZES; ++size)
        for (i = 0; place->contenders[i].mechanism.name != NULL; ++i)
            if (is_compared(&place->contenders[i]) && !table->is_broken[i])
                print_cell(settings, place, table, i, size, is_durable);
    for (i = 0; place->contenders[i].mechanism.name != NULL; ++i) {
        if (is_compared(&place->contenders[i]) && !table->is_broken[i] &&
            place->contenders[i].mechanism.strategy != 0)
            print_growth(settings, place, table, i);
        n_broken += table->is_broken[i];
    }
    return n_broken > 0 ? -1 : 0;
}

int handover_run(struct settings *settings, const struct place *place, const char *url)
{
    struct table *table = calloc(1, sizeof *table);
    int result;
    int i;

    if (table == NULL)
        return -1;
    while (table->n_rounds < settings->n_rounds)
        run_round(settings, place, url, table);
    result = print_all(settings, place, table, url);
    for (i = 0; i < N_CONTENDERS_MAX; ++i) {
        free(table->cells[i][0].samples_ns);
        free(table->cells[i][1].samples_ns);
    }
    free(table);
    return result;
}
