/* SPDX-License-Identifier: MIT */
/* threads.c - hand-over between 16 threads of one client, against the raw pair that two
 * waits for the disk make: what each hand-over would cost that went through the database. */
#include <stdio.h>

#include "bench/lib/numbers.h"
#include "waiting.h"

enum { N_THREADS = 16 };
static const double goal = 1.0 / 20;

struct row {
    const struct contender *contender;
    double p50_us[N_ROUNDS_MAX];
    double ratios[N_ROUNDS_MAX];
};

static int run_round(struct settings *settings, const struct place *place, const char *url,
    int round, double *ret_pair_us, struct row *rows)
{
    struct plan plan = turn_plan(settings, place, url, &place->durable_pair);
    const struct contender *contender = NULL;
    struct turn pair, turn;

    plan.is_pairs = 1;
    if (turn_run(settings, &plan, settings->turn_seconds / 2, &pair) != 0)
        return -1;
    *ret_pair_us = pair.p50_us;
    while ((contender = contender_next(place, contender)) != NULL) {
        plan = turn_plan(settings, place, url, &contender->mechanism);
        plan.n = N_THREADS;
        plan.is_threads = 1;
        plan.opening.has_no_canceller = 1; /* most programs have none */
        plan.hold_us = HOLD_US;
        plan.rest_us = REST_US;
        if (turn_run(settings, &plan, settings->turn_seconds, &turn) != 0)
            return -1;
        rows->contender = contender;
        rows->p50_us[round] = turn.p50_us;
        rows->ratios[round] = turn.p50_us / pair.p50_us;
        ++rows;
    }
    return 0;
}

int threads_run(struct settings *settings, const struct place *place, const char *url)
{
    static struct row rows[N_CONTENDERS_MAX];
    int is_durable = place->is_durable(url);
    double pairs_us[N_ROUNDS_MAX];
    size_t n = (size_t)settings->n_rounds;
    double pair_us;
    int round, i;

    for (i = 0; i < N_CONTENDERS_MAX; ++i)
        rows[i].contender = NULL;
    for (round = 0; round < settings->n_rounds; ++round)
        if (run_round(settings, place, url, round, &pairs_us[round], rows) != 0)
            return -1;
    pair_us = bench_median(pairs_us, n);
    for (i = 0; i < N_CONTENDERS_MAX && rows[i].contender != NULL; ++i) {
        const char *name = rows[i].contender->mechanism.name;
        double ratio = bench_median(rows[i].ratios, n);
        double p50_us = bench_median(rows[i].p50_us, n);

        (void)printf("%-11s %-18s %9.1f of %9.1f: ratio %.3f (goal %s)%s\n", place->name, name,
            p50_us, pair_us, ratio, is_durable ? "0.050" : "none: that pair was not durable",
            report_goal(&settings->report, ratio, is_durable ? goal : 0));
        report_json(&settings->report, place->name, name, "threads", (double)N_THREADS, "p50_us",
            p50_us, "pair_us", pair_us, "ratio", ratio, NULL);
    }
    return 0;
}
