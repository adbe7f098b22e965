/* SPDX-License-Identifier: MIT */
/* sqlite_bell.c - see sqlite_bell.h: a futex. Its key is the file and the place in it,
 * so it serves processes that share nothing else, containers for example. */
#define _GNU_SOURCE /* syscall */

#include "sqlite_bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_US 1000000u
#define LONGEST_US ((uint64_t)3600 * SECOND_US) /* whoever sleeps looks at a clock then */

void sqlite_bell_ring(struct sqlite_bell bell)
{
    (void)atomic_fetch_add(bell.word, 1);
    (void)syscall(
        SYS_futex, bell.word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, (unsigned long)bell.bits);
}

void sqlite_bell_sleep(struct sqlite_bell bell, uint32_t heard, uint64_t duration_us)
{
    struct timespec now;
    struct { /* as this system call has it, also where time_t is wider than long */
        long seconds, nanoseconds;
    } until;

    if (duration_us > LONGEST_US)
        duration_us = LONGEST_US;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    duration_us += (uint64_t)now.tv_nsec / 1000;
    until.seconds = (long)(now.tv_sec + (time_t)(duration_us / SECOND_US));
    until.nanoseconds = (long)(duration_us % SECOND_US) * 1000;
    (void)syscall(SYS_futex, bell.word, FUTEX_WAIT_BITSET, (unsigned long)heard, &until, NULL,
        (unsigned long)bell.bits);
}
