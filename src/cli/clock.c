/* SPDX-License-Identifier: MIT */
/* clock.c - CLOCK_BOOTTIME where there is one. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include "clock.h"

#include <time.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

uint64_t clock_ms(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
