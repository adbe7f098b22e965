/* SPDX-License-Identifier: MIT */
/* clock.h - the clock for durations on this machine. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stdint.h>

/* Milliseconds of a clock that nobody sets and that runs on while the machine is
 * suspended, as the library's deadlines do. */
uint64_t clock_ms(void);

#endif
