/* SPDX-License-Identifier: MIT */
/* kill.c - from kill -9 of the holder to the next grant. What lasts by itself, a lease or
 * an inserted row, lasts for its ttl; what a connection holds ends with that. */
#include <stdio.h>
#include <string.h>

#include "bench/lib/numbers.h"
#include "test_wait.h"
#include "waiting.h"

enum { TTL_MS = 1000, SETTLE_MS = 300, AT_MOST_MS = 15000 };

/* Milliseconds, or below 0. */
static double measure(struct settings *settings, const struct place *place, const char *url,
    const struct mechanism *mechanism)
{
    struct plan plan = turn_plan(settings, place, url, mechanism);
    struct stage *stage = settings->stage;
    struct crew holder, waiter;
    double result = -1;
    uint64_t killed_ns;

    plan.hold_us = HOLD_TO_THE_END;
    plan.opening.ttl_ms = TTL_MS;
    stage_clear(stage);
    if (crew_start(&holder, &plan, stage) != 0)
        return -1;
    plan.first = 1;
    crew_go(&holder);
    if (crew_await_grants(&holder, 1, AT_MOST_MS) == 0 && crew_start(&waiter, &plan, stage) == 0) {
        crew_go(&waiter);
        test_pass_ms(SETTLE_MS);
        stage_forgets_holder(stage);
        killed_ns = bench_now_ns();
        process_kill(&holder.processes[0]);
        if (crew_await_grants(&waiter, 2, AT_MOST_MS) == 0)
            result = (double)(atomic_load(&stage->granted_ns) - killed_ns) / 1e6;
        crew_end(&waiter);
    }
    crew_end(&holder);
    return turn_account(settings, mechanism) != 0 ? -1 : result;
}

static int run_one(struct settings *settings, const struct place *place, const char *url,
    const struct contender *contender)
{
    double goal_ms = contender->is_lasting ? TTL_MS + 50 : 5;
    double values[N_ROUNDS_MAX];
    char goal[16] = "-";
    double median, worst;
    int i;

    if (contender->mechanism.strategy == 0)
        goal_ms = 0;
    for (i = 0; i < settings->n_kills; ++i)
        if ((values[i] = measure(settings, place, url, &contender->mechanism)) < 0)
            return -1;
    median = bench_median(values, (size_t)settings->n_kills);
    worst = values[settings->n_kills - 1];
    if (goal_ms > 0)
        (void)snprintf(goal, sizeof goal, "%.0f", goal_ms);
    (void)printf("%-11s %-18s %9.2f %9.2f %6s%s\n", place->name, contender->mechanism.name, median,
        worst, goal, report_goal(&settings->report, worst, goal_ms));
    (void)fflush(stdout);
    report_json(&settings->report, place->name, contender->mechanism.name, "kill_p50_ms", median,
        "kill_worst_ms", worst, "ttl_ms", contender->is_lasting ? (double)TTL_MS : 0.0, NULL);
    return 0;
}

int kill_run(struct settings *settings, const struct place *place, const char *url)
{
    int failed = 0;
    int i;

    for (i = 0; place->contenders[i].mechanism.name != NULL; ++i) {
        const struct contender *contender = &place->contenders[i];

        /* nobody gives a raw lease a heartbeat or an end */
        if (contender->mechanism.strategy == 0 &&
            (contender->is_lasting || contender->against >= 0))
            continue;
        failed |= run_one(settings, place, url, contender);
    }
    return failed;
}
