/* SPDX-License-Identifier: MIT */
/* processors.h - where this process, its children to come and the servers run.
 *
 * On one processor a hand-over is a few switches, the same each time. On several it is
 * also the wake-up of a halted one, which takes four times as long and varies; but a fight
 * without hold time needs them, since on one nobody gives way before his time slice ends. */
#ifndef DBLOCK_BENCH_PROCESSORS_H
#define DBLOCK_BENCH_PROCESSORS_H

/* On this one, or on all for -1: this process and the servers with these pids (0: none). */
void processors_bind(int processor, const long *pids, int n_pids);

#endif
