/* SPDX-License-Identifier: MIT */
/* sqlite_clock.h - the clock of a database that is a file: the machine's wall
 * clock, since all who open the file are on this machine. */
#ifndef DBLK_SQLITE_CLOCK_H
#define DBLK_SQLITE_CLOCK_H

#include <stdint.h>

/* CLOCK_REALTIME, microseconds since 1970 UTC. Never 0 or below. */
int64_t sqlite_clock_us(void);

/* For tests, which link statically: the clock of this process is off by so much from now on. */
void sqlite_clock_shift(int64_t offset_us);

#endif
