/* SPDX-License-Identifier: MIT */
/* bench_text.c - see bench_text.h. */
#include "bench_text.h"

#include <stdio.h>

static int digits_after_point(double value)
{
    if (value < 9.995)
        return 2;
    return value < 99.95 ? 1 : 0;
}

const char *bench_text_duration(uint64_t ns, char buffer[BENCH_TEXT_SIZE])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)ns;
    int unit = 0;

    /* What would be rounded to 1000 is 1 of the next. */
    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        unit++;
    }
    if (ns == 0)
        (void)snprintf(buffer, BENCH_TEXT_SIZE, "-");
    else
        (void)snprintf(buffer, BENCH_TEXT_SIZE, "%.*f %s", unit > 0 ? digits_after_point(value) : 0,
            value, units[unit]);
    return buffer;
}

double bench_rate(uint64_t n, uint64_t elapsed_ns)
{
    return elapsed_ns > 0 ? (double)n * 1e9 / (double)elapsed_ns : 0;
}

const char *bench_text_rate(uint64_t n, uint64_t elapsed_ns, char buffer[BENCH_TEXT_SIZE])
{
    double rate = bench_rate(n, elapsed_ns);

    if (elapsed_ns == 0)
        (void)snprintf(buffer, BENCH_TEXT_SIZE, "-");
    else
        (void)snprintf(buffer, BENCH_TEXT_SIZE, "%.*f", digits_after_point(rate), rate);
    return buffer;
}
