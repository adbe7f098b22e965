/* SPDX-License-Identifier: MIT */
/* heartbeat.c - what it costs to hold 10,000 leases, or inserts with a heartbeat: how many
 * messages a heartbeat are on the wire (statements, where the database is a file), how many
 * rows change, and how much of a processor the client uses, our own looking included.
 * One message and one row is the goal, however many are held. */
#include "pairs.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TTL_MS = 9000, N_HEARTBEATS = 4 };

struct holding {
    const struct database *database;
    struct library *ours;
    struct proxy *proxy;
    dblock_lock **locks;
    long n_locks;
    int strategy;
};

static double cpu_s(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static uint64_t count_heartbeats(struct holding *holding)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    if (dblock_client_stats(library_client(holding->ours), &stats) != DBLOCK_OK)
        return 0;
    return stats.heartbeats;
}

static uint64_t count_messages(struct holding *holding)
{
    return holding->proxy != NULL ? proxy_count(holding->proxy) : sqlite_statement_count();
}

/* Until there were `n` heartbeats. 0, or -1 if they do not come. */
static int await_heartbeats(struct holding *holding, uint64_t n)
{
    uint64_t until_ns = bench_now_ns() + UINT64_C(60) * 1000000000u;

    while (count_heartbeats(holding) < n) {
        if (bench_now_ns() > until_ns)
            return -1;
        (void)poll(NULL, 0, 100);
    }
    (void)poll(NULL, 0, 200); /* its answer, and what the keeper does after it */
    return 0;
}

static int acquire_all(struct holding *holding, long n)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char name[64];

    options.strategy = holding->strategy;
    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    for (; holding->n_locks < n; ++holding->n_locks) {
        (void)snprintf(
            name, sizeof name, "bench-many-%ld-%ld", (long)getpid(), holding->n_locks);
        if (dblock_acquire(library_client(holding->ours), name, &options,
                &holding->locks[holding->n_locks], &error) != DBLOCK_OK) {
            (void)fprintf(stderr, "pairs: %s %ld of %ld is not to be had\n",
                dblock_strategy_name(holding->strategy), holding->n_locks, n);
            return -1;
        }
    }
    return 0;
}

static int measure(struct holding *holding, const char *url, struct settings *settings)
{
    const char *unit = holding->proxy != NULL ? "messages" : "statements";
    const char *name = dblock_strategy_name(holding->strategy);
    double beats, messages, rows, share;
    const char *marks[2];
    uint64_t from, begun_ns;

    /* two first, so that the keeper has its connection and its statements */
    from = count_heartbeats(holding);
    if (await_heartbeats(holding, from + 2) != 0)
        return -1;
    rows = holding->database->count_updates(url);
    from = count_heartbeats(holding);
    messages = (double)count_messages(holding);
    share = cpu_s();
    begun_ns = bench_now_ns();
    if (await_heartbeats(holding, from + N_HEARTBEATS) != 0)
        return -1;
    messages = (double)count_messages(holding) - messages;
    share = (cpu_s() - share) / ((double)(bench_now_ns() - begun_ns) / 1e9);
    beats = (double)(count_heartbeats(holding) - from);
    /* a server may be late with its statistics, but not by a heartbeat */
    rows = holding->database->count_updates(url) - rows;
    marks[0] = report_goal(
        &settings->report, messages / beats > rows / beats ? messages / beats : rows / beats, 1.25);
    marks[1] = report_goal(&settings->report, share * 100, 1);
    (void)printf("%-11s %6ld %ss: %.0f heartbeats, %.0f %s, %.0f rows updated (goal 1.25 each)%s,"
                 " %.2f %% of a processor (goal 1)%s\n",
        holding->database->name, holding->n_locks, name, beats, messages, unit, rows, marks[0],
        share * 100, marks[1]);
    report_json(&settings->report, holding->database->name, name, "held",
        (double)holding->n_locks, "heartbeats", beats, "messages", messages, "rows", rows,
        "cpu_share", share, NULL);
    return 0;
}

static int run_strategy(
    const struct database *database, const char *url, int strategy, struct settings *settings)
{
    struct holding holding = { .database = database, .strategy = strategy };
    char through[512];
    int result = -1;
    long i;

    (void)snprintf(through, sizeof through, "%s", url);
    holding.locks = calloc((size_t)settings->n_leases, sizeof *holding.locks);
    if (database->variable != NULL)
        holding.proxy = proxy_open(url, through, sizeof through);
    else
        sqlite_count_statements();
    if (holding.locks != NULL && (database->variable == NULL || holding.proxy != NULL))
        holding.ours = library_open(database, through, strategy, TTL_MS);
    if (holding.ours != NULL && acquire_all(&holding, settings->n_leases) == 0)
        result = measure(&holding, url, settings);
    library_close(holding.ours); /* all that is held ends with the session, at once */
    for (i = 0; i < holding.n_locks; ++i)
        dblock_lock_free(holding.locks[i]);
    free(holding.locks);
    proxy_close(holding.proxy);
    return result;
}

int heartbeat_run(const struct database *database, const char *url, struct settings *settings)
{
    int failed = run_strategy(database, url, DBLOCK_LEASE, settings);

    return failed | run_strategy(database, url, DBLOCK_INSERT, settings);
}
