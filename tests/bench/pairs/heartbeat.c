/* SPDX-License-Identifier: MIT */
/* heartbeat.c - what it costs to hold 10,000 leases: how many messages a heartbeat are
 * on the wire (statements, where the database is a file), and how many rows change.
 * One of each is the goal, however many leases there are. */
#include "pairs.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MS = 9000, N_HEARTBEATS = 4 };

struct holding {
    const struct database *database;
    struct library *ours;
    struct proxy *proxy;
    dblock_lock **locks;
    long n_locks;
};

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
        (void)poll(NULL, 0, 20);
    }
    (void)poll(NULL, 0, 200); /* its answer, and what the keeper does after it */
    return 0;
}

static int acquire_all(struct holding *holding, long n)
{
    struct dblock_error error;
    char name[64];

    for (; holding->n_locks < n; ++holding->n_locks) {
        (void)snprintf(
            name, sizeof name, "bench-many-%ld-%ld", (long)getpid(), holding->n_locks);
        if (dblock_acquire(library_client(holding->ours), name, NULL,
                &holding->locks[holding->n_locks], &error) != DBLOCK_OK) {
            (void)fprintf(stderr, "pairs: lease %ld of %ld is not to be had\n",
                holding->n_locks, n);
            return -1;
        }
    }
    return 0;
}

static int measure(struct holding *holding, const char *url, struct settings *settings)
{
    const char *unit = holding->proxy != NULL ? "messages" : "statements";
    double beats, messages, rows;
    uint64_t from;

    /* two first, so that the keeper has its connection and its statements */
    from = count_heartbeats(holding);
    if (await_heartbeats(holding, from + 2) != 0)
        return -1;
    rows = holding->database->count_updates(url);
    from = count_heartbeats(holding);
    messages = (double)count_messages(holding);
    if (await_heartbeats(holding, from + N_HEARTBEATS) != 0)
        return -1;
    messages = (double)count_messages(holding) - messages;
    beats = (double)(count_heartbeats(holding) - from);
    /* a server may be late with its statistics, but not by a heartbeat */
    rows = holding->database->count_updates(url) - rows;
    (void)printf("%-11s %6ld leases: %.0f heartbeats, %.0f %s, %.0f rows updated%s\n",
        holding->database->name, holding->n_locks, beats, messages, unit, rows,
        report_goal(&settings->report, messages / beats > rows / beats ? messages / beats : rows / beats,
            1.25));
    report_json(&settings->report, holding->database->name, "heartbeat", "leases",
        (double)holding->n_locks, "heartbeats", beats, "messages", messages, "rows", rows, NULL);
    return 0;
}

int heartbeat_run(const struct database *database, const char *url, struct settings *settings)
{
    struct holding holding = { database, NULL, NULL, NULL, 0 };
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
        holding.ours = library_open(database, through, DBLOCK_LEASE, TTL_MS);
    if (holding.ours != NULL && acquire_all(&holding, settings->n_leases) == 0)
        result = measure(&holding, url, settings);
    library_close(holding.ours); /* all that is held ends with the session, at once */
    for (i = 0; i < holding.n_locks; ++i)
        dblock_lock_free(holding.locks[i]);
    free(holding.locks);
    proxy_close(holding.proxy);
    return result;
}
