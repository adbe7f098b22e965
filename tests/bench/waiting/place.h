/* SPDX-License-Identifier: MIT */
/* place.h - one database: how it is reached, which ways to wait there are compared, with
 * which goals, and what its server tells of itself. */
#ifndef DBLOCK_BENCH_PLACE_H
#define DBLOCK_BENCH_PLACE_H

#include <dblock/dblock.h>

#include "mechanism.h"
#include "stage.h"

enum { N_CONTENDERS_MAX = 12 };

struct contender {
    struct mechanism mechanism;
    int against;         /* hand-over: the one that the ratio is of; -1: itself is one of those */
    int melee_against;   /* the same without hold time */
    int is_melee_only;
    double goal;         /* of that ratio; 0: none */
    double goal_durable; /* instead of `goal` where each commit waits for the disk; 0: as that */
    double goal_us;      /* of the hand-over itself */
    double goal_growth;  /* of 16 waiters to 2; 0: none */
    double goal_cpu_growth; /* the same of the server's time */
    int is_lasting;      /* lease, insert: with a killed holder it lasts for its ttl */
};

/* What a server tells of itself, since it began; below 0: not known. */
struct reading {
    double cpu_ms;      /* without our own looking */
    double statements;
    double log_lines;
    double snapshot_ms; /* how old the oldest one is that holds vacuum back */
};

struct place {
    const char *name;         /* as people write it */
    const char *variable;     /* the environment's variable with the URL; NULL a file of our own */
    const char *pid_variable; /* and with the server's pid file; NULL there is no server */
    const dblock_driver *(*driver)(void);
    struct contender contenders[N_CONTENDERS_MAX]; /* until one without a name */
    struct mechanism durable_pair;                 /* one acquire and release, both on the disk */
    /* Its waiting processes end their transactions now and then, so that vacuum is not held
     * back; the goal is what that costs, not how often it is. */
    int is_idle_by_cpu;
    int settle_ms; /* until its statistics have heard of all that was before */
    /* What raw loops need, and that again without it. 0, or -1 and said why. */
    int (*begin)(const char *url, const char *folder);
    void (*end)(const char *url, const char *folder);
    void (*begin_child)(struct stage *stage); /* in each child, first of all; may be NULL */
    int (*is_durable)(const char *url);       /* does a commit wait for the disk? */
    void *(*watch_open)(const char *url, const struct stage *stage); /* NULL: failed, said why */
    int (*watch_read)(void *watch, struct reading *ret_reading);
    void (*watch_close)(void *watch);
};

#ifdef DBLOCK_TEST_HAS_PGSQL
extern const struct place waiting_pgsql;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
extern const struct place waiting_mysql;
#endif
#ifdef DBLOCK_TEST_HAS_SQLITE
extern const struct place waiting_sqlite;
#endif

/* The pid in the file that this variable names; 0: not known. */
long place_pid(const char *pid_variable);
/* Lines of the log beside that file (ci/services), but for those of checkpoints, which the server makes
 * by itself; -1: not known. */
double place_log_lines(const char *pid_variable);

#endif
