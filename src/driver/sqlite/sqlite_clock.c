/* SPDX-License-Identifier: MIT */
/* sqlite_clock.c - reads the wall clock; see sqlite_clock.h. */
#include "sqlite_clock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic int64_t clock_offset_us;

int64_t sqlite_clock_us(void)
{
    struct timespec time;
    int64_t now_us;

    (void)clock_gettime(CLOCK_REALTIME, &time);
    now_us = (int64_t)time.tv_sec * 1000000 + (int64_t)time.tv_nsec / 1000;
    now_us += atomic_load_explicit(&clock_offset_us, memory_order_relaxed);
    return now_us > 0 ? now_us : 1;
}

void sqlite_clock_shift(int64_t offset_us)
{
    atomic_store(&clock_offset_us, offset_us);
}
