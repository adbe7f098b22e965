/* SPDX-License-Identifier: MIT */
/* bench_heartbeat.c - see bench_heartbeat.h. The library tells of each heartbeat, with its
 * duration, through the trace callback, on the keeper's thread; how many were late is in
 * its counters. */
#include "bench_heartbeat.h"

#include "bench_work.h"
#include "signals.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct holding {
    dblock_lock **locks;
    uint64_t n_locks;
};

static void on_trace(const struct dblock_trace *trace, void *context)
{
    struct bench_seat *seat = context;

    /* Those during the acquires meet a client that does other things as well. */
    if (trace->kind == DBLOCK_TRACE_RENEW && trace->status == DBLOCK_OK &&
        atomic_load(&seat->shared->is_begun) && bench_now_ns() < seat->shared->end_ns)
        latency_add(&seat->member->latency, trace->duration_us * 1000);
}

void bench_heartbeat_configure(struct bench_seat *seat, struct dblock_config *config)
{
    config->on_trace = on_trace;
    config->trace_context = seat;
}

static void read_stats(const struct bench_seat *seat, struct dblock_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->struct_size = sizeof *stats;
    (void)dblock_client_stats(seat->client, stats);
}

static dblock_status take_one(struct bench_seat *seat, struct holding *holding)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    char name[BENCH_PREFIX_SIZE + 32];

    options.strategy = seat->strategy;
    options.ttl_ms = BENCH_HEARTBEAT_TTL_MS;
    options.canceller = signals_canceller();
    (void)snprintf(name, sizeof name, "%s%llu", seat->plan->prefix,
        (unsigned long long)holding->n_locks + 1);
    return dblock_acquire(seat->client, name, &options, &holding->locks[holding->n_locks],
        &seat->member->error);
}

/* As many of the leases as there is time for. */
bool bench_heartbeat_prepare(struct bench_seat *seat)
{
    uint64_t until_ns = bench_now_ns() + seat->plan->part_ms * 1000000;
    uint64_t n_wanted = seat->plan->arguments->n_leases;
    struct holding *holding = calloc(1, sizeof *holding);

    seat->work = holding;
    if (holding != NULL)
        holding->locks = calloc(n_wanted, sizeof(dblock_lock *));
    if (holding == NULL || holding->locks == NULL) {
        seat->member->error.status = DBLOCK_E_MEMORY;
        return false;
    }
    while (holding->n_locks < n_wanted &&
           (holding->n_locks == 0 || bench_now_ns() < until_ns)) {
        dblock_status status = take_one(seat, holding);

        if (status != DBLOCK_OK)
            return false; /* a failure, which is kept, or a signal: nobody else has these names */
        holding->n_locks++;
    }
    seat->member->n_grants = holding->n_locks;
    return true;
}

void bench_heartbeat_perform(struct bench_seat *seat)
{
    struct pollfd event = {.fd = dblock_canceller_fd(signals_canceller()), .events = POLLIN};
    struct dblock_stats before;
    struct dblock_stats after;
    uint64_t now_ns = bench_now_ns();

    read_stats(seat, &before);
    while (now_ns < seat->shared->end_ns && !atomic_load(&seat->shared->is_over)) {
        uint64_t left_ms = (seat->shared->end_ns - now_ns) / 1000000 + 1;

        if (poll(&event, 1, left_ms < 100 ? (int)left_ms : 100) > 0)
            break;
        now_ns = bench_now_ns();
    }
    read_stats(seat, &after);
    seat->member->elapsed_ns = now_ns - seat->shared->begun_ns;
    seat->member->n_late = after.heartbeats_late - before.heartbeats_late;
    seat->member->n_lost = after.lost - before.lost;
}

void bench_heartbeat_clear(struct bench_seat *seat)
{
    struct holding *holding = seat->work;
    uint64_t i;

    if (holding == NULL)
        return;
    for (i = 0; i < holding->n_locks; i++)
        dblock_lock_free(holding->locks[i]);
    free(holding->locks);
    free(holding);
}
