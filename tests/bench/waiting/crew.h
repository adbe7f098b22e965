/* SPDX-License-Identifier: MIT */
/* crew.h - processes, or threads of one process, that want the same name.
 *
 * They are forked anew for each turn, so that nobody else's connections and keepers are
 * there while it is measured. All are ended by their pid and waited for; a crew whose
 * parent dies is killed. */
#ifndef DBLOCK_BENCH_CREW_H
#define DBLOCK_BENCH_CREW_H

#include <stdint.h>

#include "mechanism.h"
#include "processes.h"
#include "stage.h"

#define HOLD_TO_THE_END UINT64_MAX

struct plan {
    const struct mechanism *mechanism;
    struct opening opening;
    int n;
    int first;        /* its workers have the numbers from here on */
    int is_threads;   /* of one client */
    int is_pairs;     /* one worker, and the samples are of its pairs, not of hand-overs */
    int has_names;    /* each worker a name of its own: nothing is checked */
    uint64_t hold_us;
    uint64_t rest_us; /* after a release, before it asks again */
};

struct crew {
    struct plan plan;
    struct stage *stage;
    struct test_process processes[N_WORKERS_MAX];
    int n_processes;
    int start_fd; /* closed to let them begin */
};

/* Returns when all are connected. 0, or -1: some are not, and none is left; said why. */
int crew_start(struct crew *crew, const struct plan *plan, struct stage *stage);
/* They acquire from now on. */
void crew_go(struct crew *crew);
/* Until so many grants were made on the stage. 0, or -1: not within the time, and said so. */
int crew_await_grants(struct crew *crew, uint64_t n, uint64_t within_ms);
/* SIGTERM: waits through the library end. */
void crew_end_waits(struct crew *crew);
/* All stop and are waited for; who does not end is killed, and that is an error on the stage. */
void crew_end(struct crew *crew);
/* Processor time of all, so far. */
double crew_cpu_ms(const struct crew *crew);

#endif
