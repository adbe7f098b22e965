/* SPDX-License-Identifier: MIT */
/* judge.c - see soak.h: whether two believe to hold one name, and whether tokens rise. */
#include "soak.h"

#include <stdarg.h>
#include <stdio.h>

enum { BELIEF_AT_MOST_MS = 2000 }; /* of row and advisory, which have no ttl */

void soak_violation(enum violation violation, const char *format, ...)
{
    va_list arguments;
    unsigned number = atomic_fetch_add(&soak_shared->n_words, 1);

    (void)atomic_fetch_add(&soak_shared->violations[violation], 1);
    if (number >= N_WORDS)
        return;
    va_start(arguments, format);
    (void)vsnprintf(
        soak_shared->words[number], sizeof soak_shared->words[number], format, arguments);
    va_end(arguments);
}

/* Before others look at it: until_us and the count go first, and held makes them count. */
static void believe(struct soak_worker *worker, int number, unsigned n_harms, uint64_t remaining_ms)
{
    if (remaining_ms > BELIEF_AT_MOST_MS)
        remaining_ms = BELIEF_AT_MOST_MS;
    atomic_store(&worker->n_harms_at_grant, n_harms);
    atomic_store(&worker->until_us, soak_now_us() + remaining_ms * 1000);
    atomic_store(&worker->held, number);
}

/* A number that never comes again, if a harm goes on at this moment. */
unsigned soak_harms_before(const struct soak_worker *worker)
{
    unsigned n_harms = atomic_load(&worker->n_harms);

    return atomic_load(&worker->n_ongoing) == 0 ? n_harms : n_harms - 1;
}

static int has_been_harmed(const struct soak_worker *worker)
{
    return atomic_load(&worker->n_harms) != atomic_load(&worker->n_harms_at_grant);
}

int64_t soak_largest_token(const struct soak_worker *worker, int number)
{
    return atomic_load(&soak_shared->tokens[worker->database][worker->strategy][number]);
}

static void draw_token(const struct soak_worker *worker, int number, int64_t token, int64_t before)
{
    _Atomic int64_t *largest =
        &soak_shared->tokens[worker->database][worker->strategy][number];
    int64_t seen = atomic_load(largest);

    if (token <= before)
        soak_violation(VIOLATION_TOKEN_BACK, "%s %s %d: token %lld after %lld",
            soak_databases[worker->database].contract->name,
            dblock_strategy_name(soak_strategies[worker->strategy]), number, (long long)token,
            (long long)before);
    while (seen < token && !atomic_compare_exchange_weak(largest, &seen, token))
        ;
}

void soak_enter(struct soak_worker *worker, int number, int64_t token, int64_t token_before,
    unsigned n_harms, uint64_t remaining_ms)
{
    const struct soak_worker *other;

    draw_token(worker, number, token, token_before);
    believe(worker, number, n_harms, remaining_ms);
    /* Each says so before it looks, so of two at least one sees the other. */
    for (other = soak_shared->workers; other < soak_shared->workers + N_WORKERS; ++other) {
        if (other == worker || other->database != worker->database ||
            other->strategy != worker->strategy || atomic_load(&other->held) != number ||
            atomic_load(&other->until_us) <= soak_now_us() || has_been_harmed(other) ||
            has_been_harmed(worker) || atomic_load(&other->held) != number)
            continue;
        soak_violation(VIOLATION_TWO_HOLDERS, "%s %s %d: held by two, one with token %lld",
            soak_databases[worker->database].contract->name,
            dblock_strategy_name(soak_strategies[worker->strategy]), number, (long long)token);
    }
}

void soak_stay(struct soak_worker *worker, uint64_t remaining_ms)
{
    believe(worker, atomic_load(&worker->held), atomic_load(&worker->n_harms_at_grant),
        remaining_ms);
}

void soak_leave(struct soak_worker *worker)
{
    atomic_store(&worker->held, -1);
}
