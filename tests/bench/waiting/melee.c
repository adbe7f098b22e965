/* SPDX-License-Identifier: MIT */
/* melee.c - sixteen processes fight for one name and give it back at once: how often it
 * is granted, how often to another than before, and whether all get the same. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/numbers.h"
#include "waiting.h"

enum { N_FIGHTERS = 16 };

struct row { /* of one contender, by rounds */
    double grants[N_ROUNDS_MAX];
    double changes[N_ROUNDS_MAX];
    double jain[N_ROUNDS_MAX];
    double least[N_ROUNDS_MAX];
    int is_broken;
};

static void run_round(struct settings *settings, const struct place *place, const char *url,
    int round, struct row *rows)
{
    int n = contender_count(place);
    struct turn turn;
    int turn_of;

    for (turn_of = 0; turn_of < n; ++turn_of) {
        int i = turn_order(round, turn_of, n);
        struct plan plan = turn_plan(settings, place, url, &place->contenders[i].mechanism);

        plan.n = N_FIGHTERS;
        if (rows[i].is_broken ||
            turn_run(settings, &plan, settings->seconds / settings->n_rounds, &turn) != 0) {
            rows[i].is_broken = 1;
            continue;
        }
        rows[i].grants[round] = turn.n_grants / turn.seconds;
        rows[i].changes[round] = turn.n_changes / turn.seconds;
        rows[i].jain[round] = turn.jain;
        rows[i].least[round] = turn.least_to_best;
    }
}

static void print_row(
    struct settings *settings, const struct place *place, int i, struct row *rows, int is_compared)
{
    const struct contender *contender = &place->contenders[i];
    size_t n = (size_t)settings->n_rounds;
    int is_ours = contender->mechanism.strategy != 0;
    double ratio = 0;
    double grants, changes, jain, least;
    char ratio_text[16] = "-";
    const char *marks[3];

    if (is_compared) {
        double ratios[N_ROUNDS_MAX];
        size_t k;

        for (k = 0; k < n; ++k)
            ratios[k] = rows[i].changes[k] / rows[contender->melee_against].changes[k];
        ratio = bench_median(ratios, n);
        (void)snprintf(ratio_text, sizeof ratio_text, "%.2f", ratio);
    }
    /* copies: whoever is compared with this one needs it by rounds */
    grants = bench_median_of(rows[i].grants, n);
    changes = bench_median_of(rows[i].changes, n);
    jain = bench_median_of(rows[i].jain, n);
    least = bench_median_of(rows[i].least, n);
    marks[0] = report_goal_least(&settings->report, ratio, is_ours && is_compared ? 0.9 : 0);
    marks[1] = report_goal_least(&settings->report, jain, is_ours ? 0.99 : 0);
    marks[2] = report_goal_least(&settings->report, least, is_ours ? 0.9 : 0);
    (void)printf("%-11s %-18s %10.0f %10.0f %6s %5s%s  Jain %.3f%s%s  least/best %.2f%s%s\n",
        place->name, contender->mechanism.name, grants, changes, ratio_text,
        is_ours && is_compared ? "0.90" : "-", marks[0], jain, is_ours ? " (goal 0.99)" : "",
        marks[1], least, is_ours ? " (goal 0.90)" : "", marks[2]);
    report_json(&settings->report, place->name, contender->mechanism.name, "grants_s", grants,
        "changes_s", changes, "ratio", ratio, "jain", jain, "least_to_best", least, NULL);
}

int melee_run(struct settings *settings, const struct place *place, const char *url)
{
    struct row *rows = calloc(N_CONTENDERS_MAX, sizeof *rows);
    int n_broken = 0;
    int round, i;

    if (rows == NULL)
        return -1;
    for (round = 0; round < settings->n_rounds; ++round)
        run_round(settings, place, url, round, rows);
    for (i = 0; place->contenders[i].mechanism.name != NULL; ++i) {
        int against = place->contenders[i].melee_against;

        n_broken += rows[i].is_broken;
        if (!rows[i].is_broken)
            print_row(settings, place, i, rows, against >= 0 && !rows[against].is_broken);
    }
    free(rows);
    return n_broken > 0 ? -1 : 0;
}
