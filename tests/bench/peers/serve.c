/* SPDX-License-Identifier: MIT */
/* serve.c - see worker.h: the end that makes pairs, for what is written in C. */
#include <stdlib.h>
#include <time.h>

#include "bench/lib/numbers.h"
#include "peers.h"

enum { WARM_UP_PAIRS = 2000, WARM_UP_NS = 300000000 };

static double cpu_us(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* How many pairs; below 0: failed. */
static long run_turn(const struct side *side, void *context, double seconds,
    uint32_t **durations_ns, size_t *room)
{
    uint64_t before_ns = bench_now_ns();
    uint64_t end_ns = before_ns + (uint64_t)(seconds * 1e9);
    size_t n = 0;

    do {
        if (n == *room) {
            size_t wanted = *room > 0 ? 2 * *room : 1 << 12;
            uint32_t *larger = realloc(*durations_ns, wanted * sizeof *larger);

            if (larger == NULL)
                return -1;
            *durations_ns = larger;
            *room = wanted;
        }
        before_ns = bench_now_ns();
        if (side->pair(context) != 0)
            return -1;
        (*durations_ns)[n++] = (uint32_t)(bench_now_ns() - before_ns);
    } while (bench_now_ns() < end_ns);
    return (long)n;
}

static int warm_up(const struct side *side, void *context)
{
    uint64_t end_ns = bench_now_ns() + WARM_UP_NS;
    int i;

    for (i = 0; i < WARM_UP_PAIRS && bench_now_ns() < end_ns; ++i)
        if (side->pair(context) != 0)
            return -1;
    return 0;
}

static void answer(double used_us, const uint32_t *durations_ns, long n)
{
    long i;

    (void)printf("%.0f %ld", used_us, n);
    for (i = 0; i < n; ++i)
        (void)printf(" %lu", (unsigned long)durations_ns[i]);
    (void)printf("\n");
    (void)fflush(stdout);
}

int worker_serve(const struct side *side, const char *argument)
{
    void *context = side->open(argument);
    uint32_t *durations_ns = NULL;
    size_t room = 0;
    char about[120] = "";
    char line[64];

    if (context == NULL || warm_up(side, context) != 0) {
        (void)printf("cannot make a pair\n");
        return 1;
    }
    side->about(context, about, sizeof about);
    (void)printf("ready %s\n", about);
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        double used_us = cpu_us();
        long n = run_turn(side, context, strtod(line, NULL), &durations_ns, &room);

        if (n < 0)
            return 1;
        answer(cpu_us() - used_us, durations_ns, n);
    }
    free(durations_ns);
    return 0; /* what is open ends with the process, as with any other */
}
