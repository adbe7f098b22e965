/* SPDX-License-Identifier: MIT */
/* bench_sweep.h - what a member of a team could not give back any more. */
#ifndef CLI_BENCH_SWEEP_H
#define CLI_BENCH_SWEEP_H

#include "bench.h"

/* Ends what is still held under the prefix of this very run, which nobody else uses, and says so;
 * after a while it gives up, and says that too. */
void bench_sweep(const struct bench_plan *plan);

#endif
