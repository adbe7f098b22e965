/* SPDX-License-Identifier: MIT */
/* latency.c - see latency.h. Above LATENCY_EXACT a duration is its seven leading bits,
 * the first of which is 1, and how many bits came after them. */
#include "latency.h"

#include <stddef.h>

static size_t class_of(uint64_t ns)
{
    unsigned shift = 0;
    size_t class;

    while (ns >> shift >= LATENCY_EXACT)
        shift++;
    if (shift == 0)
        return (size_t)ns;
    class = LATENCY_EXACT + (size_t)(shift - 1) * LATENCY_STEPS + (size_t)(ns >> shift) -
            LATENCY_STEPS;
    return class < LATENCY_CLASSES ? class : LATENCY_CLASSES - 1;
}

/* The middle of a class, so that being wrong goes both ways. */
static uint64_t duration_of(size_t class)
{
    unsigned shift;
    uint64_t step;

    if (class < LATENCY_EXACT)
        return class;
    shift = (unsigned)((class - LATENCY_EXACT) / LATENCY_STEPS) + 1;
    step = (class - LATENCY_EXACT) % LATENCY_STEPS + LATENCY_STEPS;
    return (step << shift) + (UINT64_C(1) << (shift - 1));
}

void latency_add(struct latency *latency, uint64_t ns)
{
    latency->counts[class_of(ns)]++;
    latency->n++;
    if (ns > latency->max_ns)
        latency->max_ns = ns;
}

void latency_merge(struct latency *latency, const struct latency *other)
{
    size_t i;

    for (i = 0; i < LATENCY_CLASSES; i++)
        latency->counts[i] += other->counts[i];
    latency->n += other->n;
    if (other->max_ns > latency->max_ns)
        latency->max_ns = other->max_ns;
}

uint64_t latency_at(const struct latency *latency, double share)
{
    double wanted = share * (double)latency->n;
    uint64_t seen = 0;
    uint64_t ns;
    size_t i;

    /* The longest is known better than its class; of none it is 0. */
    if (latency->n <= 1 || wanted > (double)(latency->n - 1))
        return latency->max_ns;
    for (i = 0; i < LATENCY_CLASSES - 1; i++) {
        seen += latency->counts[i];
        if (latency->counts[i] > 0 && (double)seen >= wanted)
            break;
    }
    ns = duration_of(i);
    return ns < latency->max_ns ? ns : latency->max_ns;
}
