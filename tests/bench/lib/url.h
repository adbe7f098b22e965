/* SPDX-License-Identifier: MIT */
/* url.h - what the tests' own URLs say. */
#ifndef DBLOCK_BENCH_URL_H
#define DBLOCK_BENCH_URL_H

#include <stddef.h>

/* The value of "key=" in the query of a URL; 0 if it is not there. */
int url_value(const char *url, const char *key, char *ret_value, size_t size);

#endif
