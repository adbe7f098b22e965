/* SPDX-License-Identifier: MIT */
/* bench_progress.h - one line of standard error that tells how far it is, if that is a
 * terminal and somebody would have to wait. */
#ifndef CLI_BENCH_PROGRESS_H
#define CLI_BENCH_PROGRESS_H

#include "bench.h"

void bench_progress(const struct bench_plan *plan, int strategy, const char *title);

/* Before anything else is said. */
void bench_progress_clear(void);

#endif
