/* SPDX-License-Identifier: MIT */
/* bench_work.h - what the processes of a team do: get ready, and work until the time is
 * over. What went wrong is in the member. */
#ifndef CLI_BENCH_WORK_H
#define CLI_BENCH_WORK_H

#include "bench_team.h"

/* Settings that the part's client needs. */
void bench_work_configure(struct bench_seat *seat, struct dblock_config *config);

/* After the client is open: connections and sessions are made here, and not measured. */
bool bench_work_prepare(struct bench_seat *seat);

void bench_work_perform(struct bench_seat *seat);

/* After the client was closed. */
void bench_work_clear(struct bench_seat *seat);

uint64_t bench_now_ns(void);

#endif
