/* SPDX-License-Identifier: MIT */
/* bench.h - what the parts of `dblock bench` know of each other: what is to be done, and
 * what came out.
 *
 *     command_bench.c   the order of things
 *     bench_team.c      processes with a client each, that begin and end together
 *     bench_work.c      what each of them does
 *     bench_measure.c   from what they tell to figures
 *     bench_table.c, bench_json.c, bench_svg.c (with bench_plot.c)   the figures */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "database.h"
#include "latency.h"
#include "new_file.h"

#include <stdbool.h>
#include <stdint.h>

enum bench_part { BENCH_ALONE, BENCH_CONTENTION, BENCH_HAND_OVER, BENCH_HEARTBEAT };

enum {
    BENCH_STRATEGIES = 4, /* from DBLOCK_LEASE to DBLOCK_ADVISORY */
    BENCH_HAND_OVERS = 2, /* with few waiters and with many */
    BENCH_FEW_WAITERS = 2,
    BENCH_PREFIX_SIZE = 64
};

/* The ttl of the leases whose heartbeats are counted: short, so that there are many. */
#define BENCH_HEARTBEAT_TTL_MS UINT64_C(1000)

struct bench_plan {
    const struct arguments *arguments;
    const struct database *database;
    char prefix[BENCH_PREFIX_SIZE]; /* of all names; with a slash at its end */
    uint64_t part_ms;
    uint64_t about_ms;    /* how long all of it takes */
    uint64_t limit_ms;    /* and how long at most */
    uint64_t begun_ms;    /* by clock_ms() */
    unsigned n_hand_overs;
    unsigned n_waiters[BENCH_HAND_OVERS];
};

/* The figures of one strategy. What was not measured is zero. */
struct bench_result {
    int strategy;
    bool is_left_out; /* this database does not have it; `error` says why */
    struct dblock_error error;

    struct latency alone; /* pairs */
    uint64_t alone_ns;    /* that all of them took together */

    struct {
        uint64_t n_grants;
        uint64_t n_changes; /* of the owner */
        uint64_t least;     /* grants of the client that got fewest */
        uint64_t most;
        double jain;          /* 1: all got the same; 1/n: one got all */
        struct latency waits; /* of the acquire calls */
    } contention;

    struct {
        uint64_t n_missed; /* nobody had taken the lock when the time was over */
        struct latency latency;
    } hand_over[BENCH_HAND_OVERS];

    struct {
        uint64_t n_leases; /* 0: this strategy has no heartbeats */
        uint64_t n_late;
        uint64_t elapsed_ns;
        struct latency latency;
    } heartbeat;

    uint64_t n_violations; /* two clients had the lock at once, or a token did not rise */
    uint64_t n_lost;       /* grants that ended before they were released */
};

struct bench_report {
    const struct bench_plan *plan;
    struct bench_result results[BENCH_STRATEGIES];
    unsigned n_results;
};

/* Measures one strategy. Returns -1, or the exit status after a message. */
int bench_measure(const struct bench_plan *plan, int strategy, struct bench_result *ret_result);

uint64_t bench_violations(const struct bench_report *report);

/* Each returns EXIT_CODE_DONE, or another exit status after a message. */
int bench_print_table(const struct bench_report *report);
int bench_print_json(const struct bench_report *report);
int bench_draw(const struct bench_report *report, struct new_file *file);

#endif
