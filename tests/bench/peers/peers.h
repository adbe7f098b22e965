/* SPDX-License-Identifier: MIT */
/* peers.h - what the parts of the comparison with others know of each other.
 *
 * A contender makes pairs, one acquire and one release, of a name that nobody else wants.
 * Each is a process of its own (worker.h), whatever it is written in, so that all are
 * started, timed and asked in the same way. */
#ifndef DBLOCK_BENCH_PEERS_H
#define DBLOCK_BENCH_PEERS_H

#include <dblock/dblock.h>

#include "worker.h"

enum { N_WORDS_MAX = 4, N_CONTENDERS_MAX = 40 };

/* One way to make pairs in this process. `open` has said why if it is NULL. */
struct side {
    void *(*open)(const char *argument);
    int (*pair)(void *context); /* 0, or -1 and said why */
    void (*about)(void *context, char *ret_text, size_t size); /* its version */
};

struct contender {
    const char *name;    /* what it is, as in the table */
    const char *store;   /* what keeps the lock */
    const char *durable; /* is a grant on the disk before it is told: "yes", "no" */
    const char *needs;   /* a variable of the environment that says where that is */
    const struct side *side; /* in this program; NULL: `words` */
    const char *argument;    /* for `side` */
    const char *words[N_WORDS_MAX];
    int is_ours;
    int is_command; /* starts a program for each pair */
};

/* Ours may take `goal` times as long as the other, at the most. 0: only told. */
struct rivalry {
    const char *ours, *other; /* names */
    double goal;
};

extern const struct contender peers_contenders[]; /* up to one without a name */
extern const struct rivalry peers_rivalries[];
/* Its place; -1: there is none of that name. */
int peers_find(const char *name);

/* Sides, by file. Those of databases take the environment's variable with the URL. */
#ifdef DBLOCK_TEST_HAS_SQLITE
extern const struct side side_our_sqlite;
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
extern const struct side side_our_pgsql; /* the argument is the strategy's name */
extern const struct side side_three_pgsql, side_advisory_pgsql;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
extern const struct side side_our_mysql;
extern const struct side side_three_mysql, side_advisory_mysql;
#endif
#ifdef DBLOCK_BENCH_HAS_HIREDIS
extern const struct side side_hiredis;
#endif
extern const struct side side_program; /* the argument is a command line without quotes */

#endif
