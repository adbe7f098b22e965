/* SPDX-License-Identifier: MIT */
/* many.c - a thousand advisory locks that were taken without waiting: all of them are
 * held by one connection, and each costs one message. */
#include "pairs.h"

#include <stdlib.h>
#include <unistd.h>

enum { N_LOCKS = 1000 };

struct taking {
    dblock_lock *locks[N_LOCKS];
    double took_us[N_LOCKS];
    int n;
};

static int take_all(struct library *ours, struct taking *taking)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char name[64];

    options.strategy = DBLOCK_ADVISORY;
    for (; taking->n < N_LOCKS; ++taking->n) {
        uint64_t before_ns = bench_now_ns();

        (void)snprintf(name, sizeof name, "bench-try-%ld-%d", (long)getpid(), taking->n);
        if (dblock_acquire(library_client(ours), name, &options, &taking->locks[taking->n],
                &error) != DBLOCK_OK) {
            (void)fprintf(stderr, "pairs: lock %d of %d is not to be had\n", taking->n, N_LOCKS);
            return -1;
        }
        taking->took_us[taking->n] = (double)(bench_now_ns() - before_ns) / 1e3;
    }
    return 0;
}

static int measure(const struct database *database, struct library *ours, struct proxy *proxy,
    struct settings *settings, struct taking *taking)
{
    double messages, connections, p50_us;
    int n_links;

    /* before the first, so that its connection is there and has its statements */
    if (library_pair(ours) != 0)
        return -1;
    n_links = proxy_links(proxy);
    messages = (double)proxy_count(proxy);
    if (take_all(ours, taking) != 0)
        return -1;
    messages = ((double)proxy_count(proxy) - messages) / N_LOCKS;
    connections = proxy_links(proxy) - n_links + 1;
    p50_us = bench_median(taking->took_us, N_LOCKS);
    (void)printf("%-11s %d locks: %.0f connection%s%s, %.2f messages each%s, %.0f us through a"
                 " proxy\n",
        database->name, N_LOCKS, connections, connections > 1 ? "s" : "",
        report_goal(&settings->report, connections, 1), messages,
        report_goal(&settings->report, messages, 1.01), p50_us);
    report_json(&settings->report, database->name, "many", "locks", (double)N_LOCKS, "connections",
        connections, "messages", messages, "p50_us", p50_us, NULL);
    return 0;
}

int many_run(const struct database *database, const char *url, struct settings *settings)
{
    struct taking *taking;
    char through[512];
    struct proxy *proxy;
    struct library *ours = NULL;
    int result = -1;
    int i;

    if (database->variable == NULL)
        return 0; /* a file: there are no connections */
    taking = calloc(1, sizeof *taking);
    proxy = proxy_open(url, through, sizeof through);
    if (taking != NULL && proxy != NULL)
        ours = library_open(database, through, DBLOCK_ADVISORY, 0);
    if (ours != NULL)
        result = measure(database, ours, proxy, settings, taking);
    library_close(ours);
    for (i = 0; taking != NULL && i < taking->n; ++i)
        dblock_lock_free(taking->locks[i]);
    free(taking);
    proxy_close(proxy);
    return result;
}
