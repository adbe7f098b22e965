/* SPDX-License-Identifier: MIT */
/* duration.h - durations as people write and read them. */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ten years, which is the library's own limit. */
#define DURATION_MAX_MS (UINT64_C(3650) * 24 * 3600 * 1000)

#define DURATION_TEXT_SIZE 32

/* "10", "1.5", "500ms", "90s", "5m", "2h", "1d"; a bare number is seconds. False
 * for anything else, above all signs, exponents, "nan", more than ten years, and
 * what is no whole number of milliseconds: nothing is rounded. */
bool duration_parse(const char *text, uint64_t *ret_ms);

/* For messages: "850 ms", "7.5 s", "21 s", "4 min", "3 h", "12 days". Returns `buffer`. */
const char *duration_text(uint64_t ms, char buffer[DURATION_TEXT_SIZE]);

#endif
