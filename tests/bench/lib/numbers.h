/* SPDX-License-Identifier: MIT */
/* numbers.h - the clock, and what a row of values comes to. */
#ifndef DBLOCK_BENCH_NUMBERS_H
#define DBLOCK_BENCH_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

uint64_t bench_now_ns(void);

/* These sort the values. 0 if there are none. */
double bench_median(double *values, size_t n);
double bench_quantile_ns(uint32_t *durations_ns, size_t n, double part);
/* The same, and leaves them as they are. */
double bench_median_of(const double *values, size_t n);

/* Jain's index of fairness: 1 if all are equal, 1/n if one has everything. */
double bench_jain(const double *values, size_t n);

#endif
