/* SPDX-License-Identifier: MIT */
/* pairs.h - what the parts of the benchmark know of each other.
 *
 * A pair is one acquire and one release. A side (sampling.h) is one way to make pairs: through
 * the library, or directly on the client library of the database with the very statements
 * of the driver (its object file is linked, so the texts are the same bytes). */
#ifndef DBLOCK_BENCH_PAIRS_H
#define DBLOCK_BENCH_PAIRS_H

#include <dblock/dblock.h>

#include "bench/lib/numbers.h"
#include "bench/lib/report.h"
#include "bench/lib/sampling.h"
#include "bench/lib/url.h"

enum { N_STRATEGIES = 4, ID_SIZE = 16 };

/* What is there for one database. */
struct database {
    const char *name;     /* as people write it */
    const char *variable; /* the environment's variable with the URL; NULL a file of our own */
    const dblock_driver *(*driver)(void);
    void *(*open)(const char *url, int strategy); /* the direct side; NULL: failed */
    int (*pair)(void *raw);
    void (*close)(void *raw);
    /* Rows of dblock's tables that were updated so far, as the database tells. */
    double (*count_updates)(const char *url);
    double goals[N_STRATEGIES + 1]; /* by strategy; 0: there is no direct side to compare with */
};

extern const struct database bench_pgsql;
extern const struct database bench_mysql;
extern const struct database bench_sqlite;

/* Statements of every handle of SQLite that this process opens from the first call on. */
void sqlite_count_statements(void);
uint64_t sqlite_statement_count(void);

/* ---------------------------------------------------------------- library.c */

struct library;

/* A client with its tables; ttl_ms 0: the library's own. */
struct library *library_open(const struct database *database, const char *url, int strategy,
    uint64_t ttl_ms);
int library_pair(void *library);
dblock_client *library_client(struct library *library);
/* 1: someone else has the lock; 0: nobody has; -1: failed. */
int library_is_busy(struct library *library);
void library_close(struct library *library);

/* ------------------------------------------------------------------ proxy.c */

struct proxy;

/* Passes on between its own Unix socket and the one that `url` names (host=FOLDER&port=N of
 * PostgreSQL, socket=PATH of MySQL), and counts. Writes the URL that leads through it. */
struct proxy *proxy_open(const char *url, char *ret_url, size_t size);
/* Messages so far: what clients sent between two answers counts once. */
uint64_t proxy_count(const struct proxy *proxy);
/* Connections that are open through it. */
int proxy_links(const struct proxy *proxy);
void proxy_close(struct proxy *proxy);

/* ----------------------------------------------------- the other benchmarks */

struct settings {
    int n_rounds;
    double seconds;
    long n_memory_pairs;
    long n_leases;
    int n_commands;
    const char *command; /* path of dblock; NULL: not measured */
    const char *folder;  /* for files; ours alone */
    struct report report;
};

/* Each prints its lines. 0, or -1: it could not be measured. */
int pairs_run(const struct database *database, const char *url, struct settings *settings);
int heartbeat_run(const struct database *database, const char *url, struct settings *settings);
int many_run(const struct database *database, const char *url, struct settings *settings);
int memory_run(const struct database *database, const char *url, struct settings *settings);
int command_run(struct settings *settings);
#ifdef DBLOCK_TEST_HAS_PGSQL
/* As bench_pgsql.open, but the release waits for the disk as the acquire does. */
void *raw_pgsql_open_patient(const char *url, int strategy);
int durable_run(const char *url, struct settings *settings);
int joined_pgsql_run(const char *url, struct settings *settings);
int guard_pgsql_run(const char *url, struct settings *settings);
#endif
#ifdef DBLOCK_TEST_HAS_SQLITE
int guard_sqlite_run(const char *url, struct settings *settings);
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
/* A MYSQL, or NULL. */
void *raw_mysql_connect(const char *url);
int joined_mysql_run(const char *url, struct settings *settings);
int guard_mysql_run(const char *url, struct settings *settings);
#endif

#endif
