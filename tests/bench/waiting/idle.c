/* SPDX-License-Identifier: MIT */
/* idle.c - what a hundred waiters cost while nothing happens: as threads of one client,
 * and as processes. One more process holds the name all the time. */
#include <stdio.h>
#include <string.h>

#include "bench/lib/numbers.h"
#include "test_wait.h"
#include "waiting.h"

enum { HELD_MS = 15000, LOOK_MS = 250 };

struct result {
    double statements_s, server_ms_s, client_ms_s, snapshot_ms, log_lines;
};

/* For the whole time, looking for old snapshots now and then. */
static int watch(const struct place *place, void *context, struct crew *waiters, double seconds,
    struct result *ret_result)
{
    uint64_t begun_ns = bench_now_ns();
    double client_ms = crew_cpu_ms(waiters);
    struct reading before, now;
    double passed = 0;

    memset(ret_result, 0, sizeof *ret_result);
    if (place->watch_read(context, &before) != 0)
        return -1;
    now = before;
    while (passed < seconds) {
        /* no more looking than is needed: it is a part of what is measured */
        test_pass_ms(before.snapshot_ms < 0 ? (uint64_t)(seconds * 1e3) : LOOK_MS);
        passed = (double)(bench_now_ns() - begun_ns) / 1e9;
        if (place->watch_read(context, &now) != 0)
            return -1;
        if (now.snapshot_ms > ret_result->snapshot_ms)
            ret_result->snapshot_ms = now.snapshot_ms;
    }
    ret_result->statements_s = (now.statements - before.statements) / passed;
    ret_result->server_ms_s = now.cpu_ms >= 0 ? (now.cpu_ms - before.cpu_ms) / passed : -1;
    ret_result->client_ms_s = (crew_cpu_ms(waiters) - client_ms) / passed;
    ret_result->log_lines = now.log_lines >= 0 ? now.log_lines - before.log_lines : 0;
    return 0;
}

static int measure(struct settings *settings, const struct place *place, const char *url,
    const struct mechanism *mechanism, int is_threads, struct result *ret_result)
{
    struct plan plan = turn_plan(settings, place, url, mechanism);
    void *context = place->watch_open(url, settings->stage);
    struct crew holder, waiters;
    int result = -1;

    if (context == NULL)
        return -1;
    stage_clear(settings->stage);
    plan.hold_us = HOLD_TO_THE_END;
    plan.opening.wait_ms = DBLOCK_FOREVER;
    if (crew_start(&holder, &plan, settings->stage) != 0)
        goto done;
    crew_go(&holder);
    plan.n = settings->n_idle;
    plan.first = 1;
    plan.is_threads = is_threads;
    if (crew_await_grants(&holder, 1, HELD_MS) == 0 &&
        crew_start(&waiters, &plan, settings->stage) == 0) {
        crew_go(&waiters);
        test_pass_ms((uint64_t)place->settle_ms);
        result = watch(place, context, &waiters, settings->idle_seconds, ret_result);
        crew_end_waits(&waiters);
        crew_end(&waiters);
    }
    crew_end(&holder);
done:
    place->watch_close(context);
    return turn_account(settings, mechanism) != 0 ? -1 : result;
}

static void print_result(struct settings *settings, const struct place *place,
    const struct mechanism *mechanism, int is_threads, const struct result *result)
{
    int is_by_cpu = !is_threads && place->is_idle_by_cpu;
    const char *marks[4];
    char server[24] = "-";

    marks[0] = report_goal(&settings->report, result->statements_s, is_by_cpu ? 0 : 1);
    marks[1] = report_goal(&settings->report, result->server_ms_s, is_by_cpu ? 30 : 0);
    marks[2] = report_goal(&settings->report, result->snapshot_ms, 1000);
    marks[3] = report_goal(&settings->report, result->log_lines, 0.5);
    if (result->server_ms_s >= 0)
        (void)snprintf(server, sizeof server, "%.1f%s", result->server_ms_s,
            is_by_cpu ? " (goal 30)" : "");
    (void)printf("%-11s %-9s %-9s %8.1f statements/s%s%s, server %s%s, clients %.1f ms/s,"
                 " snapshot %.0f ms (goal 1000)%s, log %.0f (goal 0)%s\n",
        place->name, mechanism->name, is_threads ? "threads" : "processes", result->statements_s,
        is_by_cpu ? "" : " (goal 1)", marks[0], server, marks[1], result->client_ms_s,
        result->snapshot_ms, marks[2], result->log_lines, marks[3]);
    (void)fflush(stdout);
    report_json(&settings->report, place->name, mechanism->name, "is_threads", (double)is_threads,
        "waiters", (double)settings->n_idle, "statements_s", result->statements_s, "server_ms_s",
        result->server_ms_s, "client_ms_s", result->client_ms_s, "snapshot_ms",
        result->snapshot_ms, "log_lines", result->log_lines, NULL);
}

int idle_run(struct settings *settings, const struct place *place, const char *url)
{
    const struct contender *contender = NULL;
    struct result result;
    int failed = 0;
    int is_threads;

    while ((contender = contender_next(place, contender)) != NULL)
        for (is_threads = 1; is_threads >= 0; --is_threads) {
            if (measure(settings, place, url, &contender->mechanism, is_threads, &result) != 0)
                failed = -1;
            else
                print_result(settings, place, &contender->mechanism, is_threads, &result);
        }
    return failed;
}
