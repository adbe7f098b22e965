/* SPDX-License-Identifier: MIT */
/* scale.h - what the parts of the benchmark of very many names know of each other. */
#ifndef DBLOCK_BENCH_SCALE_H
#define DBLOCK_BENCH_SCALE_H

#include <dblock/sys/driver.h>

#include "bench/lib/report.h"

/* What is there for one database: raw access beside the driver. Functions that fail have said
 * why on stderr. */
struct store {
    const char *name;     /* as people write it */
    const char *variable; /* the environment's variable with the URL; NULL a file of our own */
    const dblock_driver *(*driver)(void);
    void *(*open)(const char *url); /* after the tables are there; NULL: failed */
    void (*close)(void *raw);       /* takes away what update() wrote */
    int (*update)(void *raw);       /* one row by its key, committed */
    /* `n` leases that were given back two hours ago; names "bench-left-0" and so on, each with
     * the token *ret_token. */
    int (*leave)(void *raw, long n, int64_t *ret_token);
    long (*count_left)(void *raw); /* of those; below 0: failed */
    int (*forget)(void *raw);      /* takes away those that are still there */
};

#ifdef DBLOCK_TEST_HAS_PGSQL
extern const struct store scale_pgsql;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
extern const struct store scale_mysql;
#endif
#ifdef DBLOCK_TEST_HAS_SQLITE
extern const struct store scale_sqlite;
#endif

/* ------------------------------------------------------------------ steps.c */

/* One connection of the driver, as the keeper of a client has it. */
struct steps {
    const dblock_driver *driver;
    struct dblock_target *target;
    struct dblock_connection *connection;
    unsigned char session[DBLOCK_ID_SIZE];
};

int steps_open(struct steps *steps, const dblock_driver *driver, const char *url);
void steps_close(struct steps *steps);
int steps_begin_session(struct steps *steps);
int steps_take_lease(struct steps *steps, const char *name);
int steps_renew(void *steps); /* a heartbeat */
int steps_end_session(struct steps *steps);
/* Rows that are gone; below 0: failed. */
long steps_purge(struct steps *steps);

/* ---------------------------------------------------- the parts, one file each */

struct settings {
    int n_rounds;
    double seconds; /* a turn */
    long n_leases, n_names;
    const char *folder; /* for files; ours alone */
    struct report report;
};

/* Each prints its lines. 0, or -1: it could not be measured. */
int beat_run(const struct store *store, const char *url, struct settings *settings);
int purge_run(const struct store *store, const char *url, struct settings *settings);

#endif
