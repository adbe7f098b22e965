/* SPDX-License-Identifier: MIT */
/* waiting.h - what the parts of the benchmark know of each other.
 *
 * A turn is one crew (crew.h) that wants one name for a while. Turns of the library and of
 * the raw loops follow each other within a round, and a ratio is of two turns of one
 * round: whatever else the machine does meets both. */
#ifndef DBLOCK_BENCH_WAITING_H
#define DBLOCK_BENCH_WAITING_H

#include "bench/lib/report.h"
#include "crew.h"
#include "place.h"

enum { N_ROUNDS_MAX = 100, HOLD_US = 4000, REST_US = 1000 };

struct settings {
    int n_rounds;
    double seconds;      /* of the free-for-all, for each side in all rounds */
    double turn_seconds; /* of the hand-over */
    double idle_seconds;
    int n_idle;
    int n_kills;
    int processor; /* for all but the free-for-all; -1: wherever they run */
    const char *folder;
    struct report report;
    struct stage *stage;
    int n_names; /* that were given out */
    /* of the library, over everything */
    double n_grants, n_violations, n_regressions, n_errors;
};

/* ------------------------------------------------------------------- turn.c */

struct turn {
    double seconds;
    double p50_us; /* of a hand-over; if there was none, as long as the turn */
    double cpu_us; /* of the server, for each hand-over; below 0: not known */
    double n_changes, n_grants;
    double jain, least_to_best;
    size_t n_samples; /* they are on the stage until the next turn */
};

/* A plan for one name that no other turn has. */
struct plan turn_plan(struct settings *settings, const struct place *place, const char *url,
    const struct mechanism *mechanism);
/* 0, or -1: could not be measured, and said why. */
int turn_run(struct settings *settings, const struct plan *plan, double seconds,
    struct turn *ret_turn);
/* At the end of all crews of a stage: what they met. -1: a raw loop failed, and said why. */
int turn_account(struct settings *settings, const struct mechanism *mechanism);

int contender_count(const struct place *place);
/* Who comes at that place of the round: every second round goes backwards, so that what
 * becomes slower or faster all the time meets all alike. */
int turn_order(int round, int place_in_round, int n);
/* The library's ways of `place`; NULL behind the last. */
const struct contender *contender_next(const struct place *place, const struct contender *before);

/* ---------------------------------------------------- the parts, one file each */

/* Each prints its lines. 0, or -1: it could not be measured. */
int handover_run(struct settings *settings, const struct place *place, const char *url);
int threads_run(struct settings *settings, const struct place *place, const char *url);
int melee_run(struct settings *settings, const struct place *place, const char *url);
int idle_run(struct settings *settings, const struct place *place, const char *url);
int kill_run(struct settings *settings, const struct place *place, const char *url);
#ifdef DBLOCK_TEST_HAS_PGSQL
int notify_run(struct settings *settings, const struct place *place, const char *url);
#endif

#endif
