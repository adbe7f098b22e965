/* SPDX-License-Identifier: MIT */
/* cut_lanes.c - see cut_lanes.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "cut_lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "processes.h"

enum { N_LANES = 4, LANE_MS = 110000 };

static const unsigned int kinds[N_LANES] = { CUT_LEASE, CUT_INSERT, CUT_ROW, CUT_ADVISORY };

struct lane {
    const struct cut_database *database;
    unsigned int kind;
    struct test_process process;
    struct cut_tally *tally; /* shared with the process */
};

static struct lane lanes[N_LANES];

static int run_lane(void *context, int ready_fd)
{
    static const struct cut_case *const tables[] = { cut_acquire_cases, cut_held_cases,
        cut_look_cases, cut_many_cases, NULL };
    struct lane *lane = context;

    (void)ready_fd;
    cut_lane(lane->database, lane->kind, tables, lane->tally);
    return lane->tally->n_failures == 0 ? 0 : 1;
}

static int start_lanes(void **state)
{
    struct cut_tally *tallies = mmap(NULL, N_LANES * sizeof *tallies, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t i;

    (void)state;
    if (tallies == MAP_FAILED)
        return -1;
    for (i = 0; i < N_LANES; ++i) {
        lanes[i].tally = &tallies[i];
        if (process_start(&lanes[i].process, run_lane, &lanes[i]) != 0)
            return -1;
    }
    return 0;
}

static int tell(void **state)
{
    struct cut_tally sum = { 0, 0, INT32_MIN };
    size_t i;

    (void)state;
    for (i = 0; i < N_LANES; ++i) {
        sum.n_points += lanes[i].tally->n_points;
        sum.n_failures += lanes[i].tally->n_failures;
        if (lanes[i].tally->worst_ms > sum.worst_ms)
            sum.worst_ms = lanes[i].tally->worst_ms;
    }
    (void)fprintf(stderr, "# %s: %u cut points visited, %u failures, the longest call %ld ms %s its limit\n",
        lanes[0].database->contract->name, sum.n_points, sum.n_failures,
        labs((long)sum.worst_ms), sum.worst_ms > 0 ? "beyond" : "before");
    return 0;
}

/* Cuts that are not visited prove nothing. */
static void cuts__leave_nothing_wrong(void **state)
{
    struct lane *lane = *state;

    assert_int_equal(process_wait(&lane->process, LANE_MS), 0);
    assert_true(lane->tally->n_points > 12 || getenv("CUT_ONLY") != NULL);
}

int cut_run_lanes(const struct cut_database *database)
{
    static const char *const names[N_LANES] = { "lease: cuts__leave_nothing_wrong",
        "insert: cuts__leave_nothing_wrong", "row: cuts__leave_nothing_wrong",
        "advisory: cuts__leave_nothing_wrong" };
    struct CMUnitTest tests[N_LANES];
    size_t i;

    if (getenv(database->pidfile) == NULL) {
        (void)fprintf(stderr, "skipped: %s is not set (ci/services)\n", database->pidfile);
        return 77;
    }
    for (i = 0; i < N_LANES; ++i) {
        lanes[i] = (struct lane){ database, kinds[i], { 0, -1 }, NULL };
        tests[i] = (struct CMUnitTest){ names[i], cuts__leave_nothing_wrong, NULL, NULL, &lanes[i] };
    }
    return cmocka_run_group_tests_name("cut", tests, start_lanes, tell);
}
