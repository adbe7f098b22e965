/* SPDX-License-Identifier: MIT */
/* test_clock.h - a clock of this process that can be put forward, as if the machine had slept: who
 * waits goes on waiting as long as he had meant to. */
#ifndef DBLOCK_TEST_CLOCK_H
#define DBLOCK_TEST_CLOCK_H

#include <stdint.h>

/* Before the first client is opened, and after the last one is closed. */
void test_clock_begin(void);
void test_clock_end(void);
void test_clock_forward(uint64_t by_us);

#endif
