/* SPDX-License-Identifier: MIT */
/* worker.h - a process that makes pairs when it is told to, and says how long each took.
 *
 * Lines go both ways. The worker begins with "ready TEXT", what it is and its version, or
 * with "cannot TEXT", and ends. Then for each line with a number of seconds that it reads
 * it makes pairs for that long, and answers with one line: its processor time in
 * microseconds, the number of pairs, and the nanoseconds of each. It ends when there is no
 * more to read. */
#ifndef DBLOCK_BENCH_WORKER_H
#define DBLOCK_BENCH_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { N_ROUNDS_MAX = 100 };

struct worker {
    pid_t pid; /* 0: it is not there, and `about` says why */
    FILE *to, *from;
    char about[160];
    uint32_t *durations_ns;
    size_t n, room;
    size_t round_from[N_ROUNDS_MAX + 1]; /* the first of each round; the end */
    double cpu_us;                       /* of it, in all */
};

/* Starts a program and waits for its first line. 0, or -1 and said in `about`. */
int worker_start(struct worker *worker, const char *const *words);
/* 0, or -1: it is gone, and has said why. */
int worker_turn(struct worker *worker, double seconds);
void worker_stop(struct worker *worker);
/* Of all pairs, or of one round; microseconds. 0: there are none. */
double worker_quantile_us(const struct worker *worker, double part);
double worker_round_us(const struct worker *worker, int round);

/* In the worker: does what is said above with its own input and output. The exit status. */
struct side;
int worker_serve(const struct side *side, const char *argument);

#endif
