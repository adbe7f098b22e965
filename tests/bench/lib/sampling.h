/* SPDX-License-Identifier: MIT */
/* sampling.h - how long something takes in two ways, by turns. */
#ifndef DBLOCK_BENCH_SAMPLING_H
#define DBLOCK_BENCH_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

/* One way. Every function that fails has said why on stderr. */
struct side {
    int (*pair)(void *context); /* 0 or -1 */
    void *context;
};

struct samples {
    uint32_t *durations_ns;
    size_t n;
    size_t room;
    double p50_us;
    double cpu_us; /* of this process, a pair */
};

struct comparison {
    struct samples raw;
    struct samples ours;
    double ratio;     /* of the medians of two turns side by side; the median of all such */
    double cpu_ratio; /* of the client's processor time */
    double worst;     /* of the medians of single rounds: how far the noise goes */
    double best;
};

/* A B A B: `n_rounds` rounds of `seconds` for each side, in short turns. 0 or -1. */
int sampling_compare(const struct side *raw, const struct side *ours, int n_rounds,
    double seconds, struct comparison *ret_comparison);
void sampling_free(struct comparison *comparison);

#endif
