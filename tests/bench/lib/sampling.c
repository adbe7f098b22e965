/* SPDX-License-Identifier: MIT */
/* sampling.c - see sampling.h. Two sides by turns, in short turns, so that whatever
 * else the machine does meets both. The median of single pairs leaves out what interrupts
 * a few of them. The ratio is the median of those of two turns side by side: on a virtual
 * processor that has two speeds, the medians of all pairs may be of one speed each. */
#include "bench/lib/sampling.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/lib/numbers.h"

enum { WARM_UP_PAIRS = 200, TURNS_PER_ROUND = 15 };

static double cpu_us(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static double median_us(const uint32_t *durations_ns, size_t n)
{
    uint32_t *sorted = malloc((n + 1) * sizeof *sorted);
    double result;

    if (sorted == NULL || n == 0) {
        free(sorted);
        return 0;
    }
    memcpy(sorted, durations_ns, n * sizeof *sorted);
    result = bench_quantile_ns(sorted, n, 0.5) / 1e3;
    free(sorted);
    return result;
}

static int keep(struct samples *samples, uint64_t duration_ns)
{
    uint32_t *larger;

    if (samples->n == samples->room) {
        samples->room = samples->room > 0 ? 2 * samples->room : 1 << 16;
        larger = realloc(samples->durations_ns, samples->room * sizeof *larger);
        if (larger == NULL)
            return -1;
        samples->durations_ns = larger;
    }
    samples->durations_ns[samples->n++] =
        duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX;
    return 0;
}

static int run_turn(const struct side *side, double seconds, struct samples *samples)
{
    uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    double cpu_before_us = cpu_us();
    uint64_t before_ns = bench_now_ns();

    do {
        uint64_t after_ns;

        if (side->pair(side->context) != 0)
            return -1;
        after_ns = bench_now_ns();
        if (keep(samples, after_ns - before_ns) != 0)
            return -1;
        before_ns = bench_now_ns();
    } while (before_ns < end_ns);
    samples->cpu_us += cpu_us() - cpu_before_us;
    return 0;
}

static int warm_up(const struct side *side)
{
    int i;

    for (i = 0; i < WARM_UP_PAIRS; ++i)
        if (side->pair(side->context) != 0)
            return -1;
    return 0;
}

static void conclude(struct samples *samples)
{
    samples->p50_us = median_us(samples->durations_ns, samples->n);
    if (samples->n > 0)
        samples->cpu_us /= (double)samples->n;
}

static int run_round(const struct side *raw, const struct side *ours, int is_first,
    double seconds, double *turn_ratios, struct comparison *comparison)
{
    size_t raw_from = comparison->raw.n;
    size_t ours_from = comparison->ours.n;
    double turn = seconds / TURNS_PER_ROUND;
    double ratio;
    int i;

    for (i = 0; i < TURNS_PER_ROUND; ++i) {
        size_t raw_turn = comparison->raw.n;
        size_t ours_turn = comparison->ours.n;

        if (run_turn(raw, turn, &comparison->raw) != 0 ||
            run_turn(ours, turn, &comparison->ours) != 0)
            return -1;
        *turn_ratios++ =
            median_us(comparison->ours.durations_ns + ours_turn, comparison->ours.n - ours_turn) /
            median_us(comparison->raw.durations_ns + raw_turn, comparison->raw.n - raw_turn);
    }
    ratio = median_us(comparison->ours.durations_ns + ours_from, comparison->ours.n - ours_from) /
        median_us(comparison->raw.durations_ns + raw_from, comparison->raw.n - raw_from);
    if (is_first || ratio < comparison->best)
        comparison->best = ratio;
    if (is_first || ratio > comparison->worst)
        comparison->worst = ratio;
    return 0;
}

int sampling_compare(const struct side *raw, const struct side *ours, int n_rounds,
    double seconds, struct comparison *ret_comparison)
{
    size_t n_turns = (size_t)n_rounds * TURNS_PER_ROUND;
    double *ratios = calloc(n_turns, sizeof *ratios);
    int failed = ratios == NULL || warm_up(raw) != 0 || warm_up(ours) != 0;
    int i;

    memset(ret_comparison, 0, sizeof *ret_comparison);
    for (i = 0; i < n_rounds && !failed; ++i)
        failed = run_round(raw, ours, i == 0, seconds, ratios + (size_t)i * TURNS_PER_ROUND,
            ret_comparison);
    if (!failed)
        ret_comparison->ratio = bench_median(ratios, n_turns);
    free(ratios);
    if (failed) {
        sampling_free(ret_comparison);
        return -1;
    }
    conclude(&ret_comparison->raw);
    conclude(&ret_comparison->ours);
    ret_comparison->cpu_ratio = ret_comparison->ours.cpu_us / ret_comparison->raw.cpu_us;
    return 0;
}

void sampling_free(struct comparison *comparison)
{
    free(comparison->raw.durations_ns);
    free(comparison->ours.durations_ns);
}
