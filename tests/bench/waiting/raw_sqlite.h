/* SPDX-License-Identifier: MIT */
/* raw_sqlite.h - the raw loops of one machine: flock, and SQLite's rows. */
#ifndef DBLOCK_BENCH_RAW_SQLITE_H
#define DBLOCK_BENCH_RAW_SQLITE_H

#include "mechanism.h"

enum { RAW_FLOCK = 1, RAW_PAIR, RAW_GATE };

/* Makes the database. 0, or -1 and said why. */
int raw_sqlite_begin(const char *folder);

void *raw_sqlite_open(const struct mechanism *mechanism, const struct opening *opening);
int raw_sqlite_acquire(void *context, int64_t *ret_token);
int raw_sqlite_release(void *context);
void raw_sqlite_close(void *context);

#endif
