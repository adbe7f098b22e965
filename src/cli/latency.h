/* SPDX-License-Identifier: MIT */
/* latency.h - many durations in little memory: how often each was seen, to a hundredth
 * of its size. It can lie in memory that processes share, and be added up. */
#ifndef CLI_LATENCY_H
#define CLI_LATENCY_H

#include <stdint.h>

/* Exact below 128 ns; from there on 64 classes for each doubling, up to half an hour. */
enum { LATENCY_EXACT = 128, LATENCY_STEPS = 64, LATENCY_DOUBLINGS = 34 };
enum { LATENCY_CLASSES = LATENCY_EXACT + LATENCY_STEPS * LATENCY_DOUBLINGS };

/* All zero is an empty one. One writer at a time. */
struct latency {
    uint64_t n;
    uint64_t max_ns; /* exact */
    uint64_t counts[LATENCY_CLASSES];
};

void latency_add(struct latency *latency, uint64_t ns);
void latency_merge(struct latency *latency, const struct latency *other);

/* The smallest duration that `share` (0 to 1) of all do not exceed; 0 if there are none. */
uint64_t latency_at(const struct latency *latency, double share);

#endif
