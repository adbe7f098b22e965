/* SPDX-License-Identifier: MIT */
/* raw_pgsql.h - the raw loops of PostgreSQL, in two files. */
#ifndef DBLOCK_BENCH_RAW_PGSQL_H
#define DBLOCK_BENCH_RAW_PGSQL_H

#include <libpq-fe.h>

#include "mechanism.h"

enum { RAW_ADVISORY = 1, RAW_ROW, RAW_PAIR, RAW_GATE };

struct raw_pgsql {
    PGconn *pg;
    int kind;
    int is_unlocking; /* an answer is under way that nobody has waited for */
    char name[96];
    long long key; /* of the name */
};

/* 0 if it went well; the number of rows that came may be asked for. */
int raw_pgsql_accept(struct raw_pgsql *raw, PGresult *result, int *ret_rows);
int raw_pgsql_prepare(struct raw_pgsql *raw, const char *name, const char *text);
int raw_pgsql_run(struct raw_pgsql *raw, const char *name, int *ret_rows);

int raw_pgsql_gate_open(struct raw_pgsql *raw);
int raw_pgsql_gate_acquire(void *context, int64_t *ret_token);
int raw_pgsql_gate_release(void *context);

void *raw_pgsql_open(const struct mechanism *mechanism, const struct opening *opening);
int raw_pgsql_acquire(void *context, int64_t *ret_token);
int raw_pgsql_release(void *context);
void raw_pgsql_close(void *context);

#endif
