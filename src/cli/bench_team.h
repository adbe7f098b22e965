/* SPDX-License-Identifier: MIT */
/* bench_team.h - one part of the measuring, done by processes that each have a client of
 * their own, as the machines of a fleet have: they get ready, begin together, and tell
 * what they saw in memory that they share. */
#ifndef CLI_BENCH_TEAM_H
#define CLI_BENCH_TEAM_H

#include "bench.h"

#include <stdatomic.h>

/* What one process tells. */
struct bench_member {
    struct dblock_error error; /* status 0: nothing went wrong */
    uint64_t n_grants;
    uint64_t n_lost;
    uint64_t n_missed;
    uint64_t n_late;
    uint64_t elapsed_ns;
    struct latency latency;
};

struct bench_shared {
    atomic_uint n_ready;
    atomic_bool is_begun;
    atomic_bool is_over; /* before its time: something went wrong, or a signal came */
    uint64_t begun_ns;   /* these two are written before is_begun */
    uint64_t end_ns;

    /* The lock as its holders see it. If it is one, each has these to itself. */
    atomic_uint holder; /* 0: nobody; else the member's number + 1 */
    atomic_uint last_holder;
    atomic_ullong last_token;
    atomic_ullong released_ns; /* right before the last release was called */
    atomic_ullong n_grants;
    atomic_ullong n_changes;
    atomic_ullong n_violations;
    atomic_uint n_waiting; /* in an acquire call */

    struct bench_member members[];
};

/* One process of a team, as it sees itself. */
struct bench_seat {
    const struct bench_plan *plan;
    struct bench_shared *shared;
    struct bench_member *member;
    unsigned number; /* from 0 */
    unsigned n_members;
    int strategy;
    enum bench_part part;
    dblock_client *client;
    void *work; /* of the part's own */
};

struct bench_team {
    const struct bench_plan *plan;
    const char *title; /* for the progress line and for messages */
    int strategy;
    enum bench_part part;
    unsigned n_members;
    struct bench_shared *shared;
};

/* The shared memory. Returns -1, or the exit status after a message. */
int bench_team_open(struct bench_team *team);

/* Returns -1 when all have ended well; else the exit status, after a message except for
 * DBLOCK_E_UNSUPPORTED, of which *ret_error tells. All processes have ended when it returns. */
int bench_team_run(struct bench_team *team, struct dblock_error *ret_error);

void bench_team_close(struct bench_team *team);

#endif
