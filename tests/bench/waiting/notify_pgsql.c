/* SPDX-License-Identifier: MIT */
/* notify_pgsql.c - what waiters cost those who use NOTIFY for something else: PostgreSQL
 * wakes every listening session of the database at each. The same clients are connected
 * while it is measured without: they do not wait yet. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/lib/numbers.h"
#include "test_wait.h"
#include "waiting.h"

enum { N_NOTES = 500, N_CLIENTS = 100, HELD_MS = 30000, SETTLE_MS = 2000, N_NOTE_ROUNDS = 3 };
static const double goal = 1.3;

/* The median of one NOTIFY, in us; below 0: failed, and said why. */
static double time_notify(PGconn *pg)
{
    const struct timespec pause = { 0, 300000 };
    uint32_t durations_ns[N_NOTES];
    int i;

    for (i = 0; i < N_NOTES; ++i) {
        uint64_t before_ns = bench_now_ns();
        PGresult *result = PQexec(pg, "NOTIFY bench_unrelated");
        int failed = PQresultStatus(result) != PGRES_COMMAND_OK;

        durations_ns[i] = (uint32_t)(bench_now_ns() - before_ns);
        PQclear(result);
        if (failed) {
            (void)fprintf(stderr, "waiting: NOTIFY: %s", PQerrorMessage(pg));
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    return bench_quantile_ns(durations_ns, N_NOTES, 0.5) / 1e3;
}

/* With and without, as long as somebody holds what is waited for. */
static int measure(struct settings *settings, const struct plan *held, PGconn *pg,
    double *ret_without_us, double *ret_with_us)
{
    struct plan plan = *held;
    struct crew holder, waiters;
    int result = -1;

    stage_clear(settings->stage);
    plan.hold_us = HOLD_TO_THE_END;
    plan.opening.wait_ms = DBLOCK_FOREVER;
    plan.is_threads = plan.has_names; /* one client for all that is held */
    plan.n = plan.has_names ? N_CLIENTS : 1;
    if (crew_start(&holder, &plan, settings->stage) != 0)
        return -1;
    crew_go(&holder);
    plan.is_threads = 0;
    plan.n = N_CLIENTS;
    plan.first = plan.has_names ? 0 : 1;
    if (crew_await_grants(&holder, plan.has_names ? N_CLIENTS : 1, HELD_MS) == 0 &&
        crew_start(&waiters, &plan, settings->stage) == 0) {
        test_pass_ms(SETTLE_MS);
        *ret_without_us = time_notify(pg);
        crew_go(&waiters);
        test_pass_ms(SETTLE_MS);
        *ret_with_us = time_notify(pg);
        result = *ret_without_us < 0 || *ret_with_us < 0 ? -1 : 0;
        crew_end_waits(&waiters);
        crew_end(&waiters);
    }
    crew_end(&holder);
    return turn_account(settings, held->mechanism) != 0 ? -1 : result;
}

static int run_one(struct settings *settings, const struct place *place, const char *url,
    const struct mechanism *mechanism, int has_names, PGconn *pg)
{
    double without_us[N_NOTE_ROUNDS], with_us[N_NOTE_ROUNDS], ratios[N_NOTE_ROUNDS];
    size_t n = settings->n_rounds < N_NOTE_ROUNDS ? (size_t)settings->n_rounds : N_NOTE_ROUNDS;
    double ratio;
    size_t i;

    for (i = 0; i < n; ++i) {
        struct plan plan = turn_plan(settings, place, url, mechanism);

        plan.has_names = has_names;
        if (measure(settings, &plan, pg, &without_us[i], &with_us[i]) != 0)
            return -1;
        ratios[i] = with_us[i] / without_us[i];
    }
    ratio = bench_median(ratios, n);
    (void)printf("%-11s %-18s %3d names: %.1f us without, %.1f us with them: %.2f (goal %.2f)%s\n",
        place->name, mechanism->name, has_names ? N_CLIENTS : 1, bench_median(without_us, n),
        bench_median(with_us, n), ratio, goal, report_goal(&settings->report, ratio, goal));
    (void)fflush(stdout);
    report_json(&settings->report, place->name, mechanism->name, "names",
        has_names ? (double)N_CLIENTS : 1.0, "notify_without_us", bench_median(without_us, n),
        "notify_with_us", bench_median(with_us, n), "ratio", ratio, NULL);
    return 0;
}

/* What plain sessions cost that LISTEN to something else: waiters of one name compare with one of
 * them, those of many names with eight, as no more of dblock's listen in a database, and a hundred
 * is what it would be without that limit. */
static int tell_plain(
    struct settings *settings, const struct place *place, const char *url, PGconn *pg)
{
    static const int counts[] = { 0, 1, 8, 100 };
    PGconn *listeners[100];
    double us[sizeof counts / sizeof counts[0]];
    int failed = 0;
    int n = 0;
    size_t i;

    for (i = 0; i < sizeof counts / sizeof counts[0] && !failed; ++i) {
        for (; n < counts[i] && !failed; ++n) {
            listeners[n] = PQconnectdb(url);
            PQclear(PQexec(listeners[n], "LISTEN bench_other"));
            failed = PQstatus(listeners[n]) != CONNECTION_OK;
        }
        us[i] = failed ? -1 : time_notify(pg);
        failed |= us[i] < 0;
    }
    while (n > 0)
        PQfinish(listeners[--n]);
    if (failed)
        return -1;
    (void)printf("%-11s %-18s %.1f us; beside 1, 8, 100 that LISTEN: %.1f, %.1f, %.1f us\n",
        place->name, "plain sessions", us[0], us[1], us[2], us[3]);
    (void)fflush(stdout);
    report_json(&settings->report, place->name, "plain sessions", "notify_0_us", us[0],
        "notify_1_us", us[1], "notify_8_us", us[2], "notify_100_us", us[3], NULL);
    return 0;
}

int notify_run(struct settings *settings, const struct place *place, const char *url)
{
    const struct contender *contender = NULL;
    PGconn *pg = PQconnectdb(url);
    int failed = 0;
    int has_names;

    if (PQstatus(pg) != CONNECTION_OK) {
        (void)fprintf(stderr, "waiting: libpq: %s", PQerrorMessage(pg));
        failed = -1;
    }
    if (!failed)
        failed = tell_plain(settings, place, url, pg);
    while (!failed && (contender = contender_next(place, contender)) != NULL)
        for (has_names = 0; has_names < 2 && contender->is_lasting; ++has_names)
            failed |= run_one(settings, place, url, &contender->mechanism, has_names, pg);
    PQfinish(pg);
    return failed;
}
