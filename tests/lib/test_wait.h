/* SPDX-License-Identifier: MIT */
/* test_wait.h - waiting for a condition with a deadline, in place of sleeping. */
#ifndef DBLOCK_TEST_WAIT_H
#define DBLOCK_TEST_WAIT_H

#include <stdint.h>

/* Milliseconds of a clock that only goes forward. */
uint64_t test_now_ms(void);

/* Asks `condition` again and again, with short pauses, until it answers other than 0 or the time
 * is over. Its last answer. */
int test_until(int (*condition)(void *context), void *context, uint64_t within_ms);

/* Conditions for test_until(): of an atomic_int. */
int test_is_set(void *number);
int test_is_zero(void *number);

/* 1 once the descriptor is readable, 0 if that does not come within the time. */
int test_readable(int fd, uint64_t within_ms);

/* Lets so much time pass. Only where time passing is what is tested. */
void test_pass_ms(uint64_t duration_ms);

#endif
