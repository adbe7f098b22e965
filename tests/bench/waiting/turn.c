/* SPDX-License-Identifier: MIT */
/* turn.c - one crew at work on one name, and what was counted. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/numbers.h"
#include "process_cpu.h"
#include "test_wait.h"
#include "waiting.h"

enum { WAIT_MS = 30000, WARM_MS = 1500 };

struct plan turn_plan(struct settings *settings, const struct place *place, const char *url,
    const struct mechanism *mechanism)
{
    struct plan plan = { .mechanism = mechanism,
        .opening = { .place = place, .url = url, .folder = settings->folder, .wait_ms = WAIT_MS },
        .n = 1 };

    (void)snprintf(plan.opening.name, sizeof plan.opening.name, "bench-wait-%ld-%d", (long)getpid(),
        settings->n_names++);
    return plan;
}

static int is_warm(void *context)
{
    const struct crew *crew = context;

    return atomic_load(&crew->stage->n_grants) >= 2 * (uint64_t)crew->plan.n ||
        atomic_load(&crew->stage->n_errors) > 0;
}

static void conclude(const struct crew *crew, double cpu_ms, struct turn *turn)
{
    struct stage *stage = crew->stage;
    double served[N_WORKERS_MAX];
    double least, best;
    int i;

    turn->n_changes = (double)atomic_load(&stage->n_changes);
    turn->n_samples = atomic_load(&stage->n_samples);
    if (turn->n_samples > N_SAMPLES_MAX)
        turn->n_samples = N_SAMPLES_MAX;
    turn->p50_us = turn->n_samples > 0
        ? bench_quantile_ns(stage->samples_ns, turn->n_samples, 0.5) / 1e3
        : turn->seconds * 1e6;
    turn->cpu_us = turn->n_changes > 0 ? cpu_ms * 1e3 / turn->n_changes : -1;
    least = best = (double)atomic_load(&stage->n_served[crew->plan.first]);
    for (i = 0; i < crew->plan.n; ++i) {
        served[i] = (double)atomic_load(&stage->n_served[crew->plan.first + i]);
        turn->n_grants += served[i];
        least = served[i] < least ? served[i] : least;
        best = served[i] > best ? served[i] : best;
    }
    turn->jain = bench_jain(served, (size_t)crew->plan.n);
    turn->least_to_best = best > 0 ? least / best : 0;
}

int turn_run(struct settings *settings, const struct plan *plan, double seconds,
    struct turn *ret_turn)
{
    pid_t server = (pid_t)place_pid(plan->opening.place->pid_variable);
    struct crew crew;
    double cpu_ms;
    uint64_t begun_ns;

    memset(ret_turn, 0, sizeof *ret_turn);
    stage_clear(settings->stage);
    if (crew_start(&crew, plan, settings->stage) != 0)
        return turn_account(settings, plan->mechanism), -1;
    crew_go(&crew);
    (void)test_until(is_warm, &crew, WARM_MS);
    cpu_ms = server != 0 ? process_tree_cpu_ms(server, 0) : 0;
    begun_ns = bench_now_ns();
    atomic_store(&settings->stage->phase, PHASE_MEASURE);
    test_pass_ms((uint64_t)(seconds * 1e3));
    atomic_store(&settings->stage->phase, PHASE_STOP);
    ret_turn->seconds = (double)(bench_now_ns() - begun_ns) / 1e9;
    cpu_ms = (server != 0 ? process_tree_cpu_ms(server, 0) : 0) - cpu_ms;
    crew_end(&crew);
    conclude(&crew, cpu_ms, ret_turn);
    if (server == 0)
        ret_turn->cpu_us = -1;
    return turn_account(settings, plan->mechanism);
}

int turn_account(struct settings *settings, const struct mechanism *mechanism)
{
    struct stage *stage = settings->stage;
    uint64_t n_bad = atomic_load(&stage->n_errors) + atomic_load(&stage->n_violations) +
        atomic_load(&stage->n_regressions);

    if (n_bad > 0)
        (void)fprintf(stderr,
            "waiting: %s: %llu errors, %llu violations, %llu tokens that do not rise: %s\n",
            mechanism->name, (unsigned long long)atomic_load(&stage->n_errors),
            (unsigned long long)atomic_load(&stage->n_violations),
            (unsigned long long)atomic_load(&stage->n_regressions), stage->error);
    if (mechanism->strategy == 0)
        return n_bad > 0 ? -1 : 0;
    settings->n_grants += (double)atomic_load(&stage->n_grants);
    settings->n_errors += (double)atomic_load(&stage->n_errors);
    settings->n_violations += (double)atomic_load(&stage->n_violations);
    settings->n_regressions += (double)atomic_load(&stage->n_regressions);
    return 0;
}

int contender_count(const struct place *place)
{
    int n = 0;

    while (place->contenders[n].mechanism.name != NULL)
        ++n;
    return n;
}

int turn_order(int round, int place_in_round, int n)
{
    return round % 2 == 0 ? place_in_round : n - 1 - place_in_round;
}

const struct contender *contender_next(const struct place *place, const struct contender *before)
{
    const struct contender *next = before == NULL ? place->contenders : before + 1;

    while (next->mechanism.name != NULL && next->mechanism.strategy == 0)
        ++next;
    return next->mechanism.name != NULL ? next : NULL;
}
