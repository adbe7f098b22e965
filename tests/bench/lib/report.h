/* SPDX-License-Identifier: MIT */
/* report.h - what is said of a result: whether it reaches its goal, and the same numbers
 * for machines. */
#ifndef DBLOCK_BENCH_REPORT_H
#define DBLOCK_BENCH_REPORT_H

#include <stdio.h>

struct report {
    FILE *json;    /* NULL: not wanted */
    int n_missed;  /* goals */
    int n_written; /* JSON records */
};

/* The end of a line of a table, "  MISSED" or "", and counts. The value may be `goal` at the
 * most, or must be at the least; 0: there is no goal. */
const char *report_goal(struct report *report, double value, double goal);
const char *report_goal_least(struct report *report, double value, double goal);

/* 0, or -1 and said why. `path` NULL: no JSON. */
int report_begin(struct report *report, const char *path);
/* One record: names, and numbers by "key" until NULL: report_json(r, "x", "y", "us", 1.5, NULL). */
void report_json(struct report *report, const char *what, const char *of, ...);
void report_end(struct report *report);

#endif
