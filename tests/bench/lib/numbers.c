/* SPDX-License-Identifier: MIT */
/* numbers.c - see numbers.h. */
#include "bench/lib/numbers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_durations(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

double bench_median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, compare_values);
    return values[n / 2];
}

double bench_median_of(const double *values, size_t n)
{
    double *copy = malloc((n + 1) * sizeof *copy);
    double result = 0;

    if (copy != NULL) {
        memcpy(copy, values, n * sizeof *copy);
        result = bench_median(copy, n);
    }
    free(copy);
    return result;
}

double bench_quantile_ns(uint32_t *durations_ns, size_t n, double part)
{
    size_t place = (size_t)((double)n * part);

    if (n == 0)
        return 0;
    qsort(durations_ns, n, sizeof *durations_ns, compare_durations);
    return durations_ns[place < n ? place : n - 1];
}

double bench_jain(const double *values, size_t n)
{
    double sum = 0;
    double squares = 0;
    size_t i;

    for (i = 0; i < n; ++i) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 0;
}
