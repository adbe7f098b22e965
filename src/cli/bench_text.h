/* SPDX-License-Identifier: MIT */
/* bench_text.h - figures for people: three digits that count, and a unit. */
#ifndef CLI_BENCH_TEXT_H
#define CLI_BENCH_TEXT_H

#include <stdint.h>

#define BENCH_TEXT_SIZE 32

/* "850 ns", "42.1 us", "1.21 ms", "2.05 s"; "-" for 0. Both return `buffer`. */
const char *bench_text_duration(uint64_t ns, char buffer[BENCH_TEXT_SIZE]);

/* How many in a second: "3410", "41.5", "0.25"; "-" if no time has passed. */
const char *bench_text_rate(uint64_t n, uint64_t elapsed_ns, char buffer[BENCH_TEXT_SIZE]);

/* 0 if no time has passed. */
double bench_rate(uint64_t n, uint64_t elapsed_ns);

#endif
