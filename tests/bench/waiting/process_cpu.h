/* SPDX-License-Identifier: MIT */
/* process_cpu.h - processor time of other processes, to the nanosecond: the ticks of
 * /proc/PID/stat are 10 ms, as much as a server of many processes uses in a second. */
#ifndef DBLOCK_BENCH_PROCESS_CPU_H
#define DBLOCK_BENCH_PROCESS_CPU_H

#include <sys/types.h>

/* All its threads, also those that have ended. 0 for a process that is gone. */
double process_cpu_ms(pid_t pid);
/* With its children, and those that it has waited for, without `except` (0: nobody). */
double process_tree_cpu_ms(pid_t pid, pid_t except);

#endif
