/* SPDX-License-Identifier: MIT */
/* bench_heartbeat.h - one client that holds many leases: what their heartbeats cost. The
 * same four steps as in bench_work.h. */
#ifndef CLI_BENCH_HEARTBEAT_H
#define CLI_BENCH_HEARTBEAT_H

#include "bench_team.h"

void bench_heartbeat_configure(struct bench_seat *seat, struct dblock_config *config);
bool bench_heartbeat_prepare(struct bench_seat *seat);
void bench_heartbeat_perform(struct bench_seat *seat);
void bench_heartbeat_clear(struct bench_seat *seat);

#endif
