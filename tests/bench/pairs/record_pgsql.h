/* SPDX-License-Identifier: MIT */
/* record_pgsql.h - what the driver sends in one pair, word for word.
 *
 * The driver is linked into this program, so its calls of libpq come by here first. A
 * pair of two messages is kept: names, texts, types and values of the statements. */
#ifndef DBLOCK_BENCH_RECORD_PGSQL_H
#define DBLOCK_BENCH_RECORD_PGSQL_H

#include <libpq-fe.h>

enum { N_MESSAGES = 2, N_STATEMENTS_MAX = 4, N_PARAMETERS_MAX = 8, N_BYTES_MAX = 64 };

struct recorded_statement {
    char name[64];
    int n;
    Oid types[N_PARAMETERS_MAX];
    const char *values[N_PARAMETERS_MAX]; /* into bytes, or NULL */
    int sizes[N_PARAMETERS_MAX];
    char bytes[N_PARAMETERS_MAX][N_BYTES_MAX];
};

struct recorded_message {
    struct recorded_statement statements[N_STATEMENTS_MAX];
    int n;
    int is_alone; /* one statement, without a pipeline */
};

/* What this thread sends from now on. */
void record_begin(void);
/* 0 and two messages, each closed by PQpipelineSync() or alone; -1: there were others. They
 * point into themselves: they must stay where they are. */
int record_end(struct recorded_message *messages);
/* What libpq held for the server's process of the connection that was recorded. */
int record_pid(void);
/* The text of a statement that was prepared on any connection; NULL: there was none. */
const char *record_text(const char *name);

#endif
