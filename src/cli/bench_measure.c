/* SPDX-License-Identifier: MIT */
/* bench_measure.c - the parts of one strategy in their order, and from what the members
 * tell to figures. */
#include "bench.h"

#include "bench_team.h"
#include "message.h"

#include <stdio.h>
#include <string.h>

static void sum_up_contention(const struct bench_team *team, struct bench_result *result)
{
    double sum = 0;
    double squares = 0;
    unsigned i;

    result->contention.least = UINT64_MAX;
    for (i = 0; i < team->n_members; i++) {
        const struct bench_member *member = &team->shared->members[i];
        double n = (double)member->n_grants;

        sum += n;
        squares += n * n;
        if (member->n_grants < result->contention.least)
            result->contention.least = member->n_grants;
        if (member->n_grants > result->contention.most)
            result->contention.most = member->n_grants;
        latency_merge(&result->contention.waits, &member->latency);
    }
    result->contention.n_grants = (uint64_t)sum;
    result->contention.n_changes = atomic_load(&team->shared->n_changes);
    result->contention.jain = squares > 0 ? sum * sum / (team->n_members * squares) : 0;
}

static void sum_up_hand_over(
    const struct bench_team *team, unsigned which, struct bench_result *result)
{
    unsigned i;

    for (i = 0; i < team->n_members; i++) {
        result->hand_over[which].n_missed += team->shared->members[i].n_missed;
        latency_merge(&result->hand_over[which].latency, &team->shared->members[i].latency);
    }
}

static void sum_up(const struct bench_team *team, unsigned which, struct bench_result *result)
{
    const struct bench_member *first = &team->shared->members[0];
    unsigned i;

    switch (team->part) {
    case BENCH_ALONE:
        result->alone = first->latency;
        result->alone_ns = first->elapsed_ns;
        break;
    case BENCH_CONTENTION:
        sum_up_contention(team, result);
        break;
    case BENCH_HAND_OVER:
        sum_up_hand_over(team, which, result);
        break;
    case BENCH_HEARTBEAT:
        result->heartbeat.n_leases = first->n_grants;
        result->heartbeat.n_late = first->n_late;
        result->heartbeat.elapsed_ns = first->elapsed_ns;
        result->heartbeat.latency = first->latency;
        break;
    }
    result->n_violations += atomic_load(&team->shared->n_violations);
    for (i = 0; i < team->n_members; i++)
        result->n_lost += team->shared->members[i].n_lost;
}

/* `which` of the hand-overs. */
static int measure(const struct bench_plan *plan, enum bench_part part, unsigned which,
    unsigned n_members, struct bench_result *result)
{
    static const char *const titles[] = {
        [BENCH_ALONE] = "acquire and release",
        [BENCH_CONTENTION] = "contention",
        [BENCH_HAND_OVER] = "hand-over",
        [BENCH_HEARTBEAT] = "heartbeats",
    };
    struct bench_team team = {.plan = plan,
        .title = titles[part],
        .strategy = result->strategy,
        .part = part,
        .n_members = n_members};
    int answer = bench_team_open(&team);

    message_detail("%s: %s, clients: %u", dblock_strategy_name(result->strategy), team.title,
        n_members);
    if (answer == -1)
        answer = bench_team_run(&team, &result->error);
    if (answer == -1)
        sum_up(&team, which, result);
    bench_team_close(&team);
    return answer;
}

int bench_measure(const struct bench_plan *plan, int strategy, struct bench_result *ret_result)
{
    unsigned i;
    int answer;

    memset(ret_result, 0, sizeof *ret_result);
    ret_result->strategy = strategy;
    answer = measure(plan, BENCH_ALONE, 0, 1, ret_result);
    if (answer != -1 && ret_result->error.status == DBLOCK_E_UNSUPPORTED) {
        /* Of all that there are some may be missing; what was asked for may not. */
        if (plan->arguments->strategies != 0) {
            message_error(&ret_result->error, NULL);
            return answer;
        }
        message_detail("%s is left out: %s", dblock_strategy_name(strategy),
            ret_result->error.message);
        ret_result->is_left_out = true;
        return -1;
    }
    if (answer == -1)
        answer = measure(
            plan, BENCH_CONTENTION, 0, (unsigned)plan->arguments->n_clients, ret_result);
    for (i = 0; i < plan->n_hand_overs && answer == -1; i++)
        answer = measure(plan, BENCH_HAND_OVER, i, plan->n_waiters[i] + 1, ret_result);
    if (answer == -1 && strategy == DBLOCK_LEASE)
        answer = measure(plan, BENCH_HEARTBEAT, 0, 1, ret_result);
    /* Told here if it came in a later part. */
    if (answer != -1 && ret_result->error.status == DBLOCK_E_UNSUPPORTED)
        message_error(&ret_result->error, "nothing is measured any more");
    return answer;
}

uint64_t bench_violations(const struct bench_report *report)
{
    uint64_t n_violations = 0;
    unsigned i;

    for (i = 0; i < report->n_results; i++)
        n_violations += report->results[i].n_violations;
    return n_violations;
}
