/* SPDX-License-Identifier: MIT */
/* raw_pgsql.c - waiting directly on libpq: the server's own locks with prepared
 * statements and one message each way, which is the least that any client would do; and
 * an upsert with its update, the pair of a lease. Names are written into the statements,
 * so there is nothing to encode. */
#include "raw_pgsql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int raw_pgsql_accept(struct raw_pgsql *raw, PGresult *result, int *ret_rows)
{
    ExecStatusType status = PQresultStatus(result);

    if (ret_rows != NULL)
        *ret_rows = PQntuples(result);
    PQclear(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return 0;
    return complain("libpq", PQerrorMessage(raw->pg));
}

int raw_pgsql_prepare(struct raw_pgsql *raw, const char *name, const char *text)
{
    return raw_pgsql_accept(raw, PQprepare(raw->pg, name, text, 0, NULL), NULL);
}

int raw_pgsql_run(struct raw_pgsql *raw, const char *name, int *ret_rows)
{
    return raw_pgsql_accept(
        raw, PQexecPrepared(raw->pg, name, 0, NULL, NULL, NULL, 1), ret_rows);
}

static int open_advisory(struct raw_pgsql *raw)
{
    char text[128];

    (void)snprintf(text, sizeof text, "SELECT pg_advisory_lock(%lld)", raw->key);
    if (raw_pgsql_prepare(raw, "take", text) != 0)
        return -1;
    (void)snprintf(text, sizeof text, "SELECT pg_advisory_unlock(%lld)", raw->key);
    return raw_pgsql_prepare(raw, "drop", text);
}

static int open_row(struct raw_pgsql *raw)
{
    char text[256];

    /* nothing that must last is written: as the driver has it */
    if (raw_pgsql_accept(raw, PQexec(raw->pg, "SET synchronous_commit = off"), NULL) != 0)
        return -1;
    (void)snprintf(text, sizeof text,
        "INSERT INTO bench_waiting (name) VALUES ('%s') ON CONFLICT DO NOTHING", raw->name);
    if (raw_pgsql_accept(raw, PQexec(raw->pg, text), NULL) != 0)
        return -1;
    (void)snprintf(
        text, sizeof text, "SELECT 1 FROM bench_waiting WHERE name = '%s' FOR UPDATE", raw->name);
    if (raw_pgsql_prepare(raw, "begin", "BEGIN") != 0 || raw_pgsql_prepare(raw, "take", text) != 0)
        return -1;
    return raw_pgsql_prepare(raw, "drop", "COMMIT");
}

/* BEGIN and SELECT in one message. */
static int take_row(struct raw_pgsql *raw)
{
    PGresult *result;
    int n_good = 0;

    if (!PQenterPipelineMode(raw->pg) ||
        !PQsendQueryPrepared(raw->pg, "begin", 0, NULL, NULL, NULL, 1) ||
        !PQsendQueryPrepared(raw->pg, "take", 0, NULL, NULL, NULL, 1) || !PQpipelineSync(raw->pg))
        return complain("libpq", PQerrorMessage(raw->pg));
    for (;;) {
        ExecStatusType status;

        result = PQgetResult(raw->pg);
        if (result == NULL && PQstatus(raw->pg) == CONNECTION_OK)
            continue;
        status = PQresultStatus(result);
        PQclear(result);
        n_good += status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
        if (result == NULL || status == PGRES_PIPELINE_SYNC)
            break;
    }
    if (n_good != 2 || !PQexitPipelineMode(raw->pg))
        return complain("libpq", PQerrorMessage(raw->pg));
    return 0;
}

static int open_pair(struct raw_pgsql *raw)
{
    char text[512];

    (void)snprintf(text, sizeof text,
        "INSERT INTO bench_waiting AS l (name, owner, fence, expires_at)"
        " VALUES ('%s', pg_backend_pid(), 1, clock_timestamp() + interval '30 s')"
        " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = l.fence + 1,"
        " expires_at = excluded.expires_at WHERE l.expires_at <= clock_timestamp()"
        " RETURNING fence",
        raw->name);
    if (raw_pgsql_prepare(raw, "take", text) != 0)
        return -1;
    (void)snprintf(text, sizeof text,
        "UPDATE bench_waiting SET expires_at = '-infinity'"
        " WHERE name = '%s' AND owner = pg_backend_pid()",
        raw->name);
    return raw_pgsql_prepare(raw, "drop", text);
}

/* FNV-1a: any number that belongs to the name. */
static long long key_of(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *name != 0; ++name)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (long long)(hash >> 2);
}

static int open_kind(struct raw_pgsql *raw)
{
    /* else the session of a killed process may stand in the server's queue */
    if (PQserverVersion(raw->pg) >= 140000 &&
        raw_pgsql_accept(
            raw, PQexec(raw->pg, "SET client_connection_check_interval = 2000"), NULL) != 0)
        return -1;
    switch (raw->kind) {
    case RAW_ADVISORY:
        return open_advisory(raw);
    case RAW_ROW:
        return open_row(raw);
    case RAW_PAIR:
        return open_pair(raw);
    default:
        return open_pair(raw) != 0 ? -1 : raw_pgsql_gate_open(raw);
    }
}

void *raw_pgsql_open(const struct mechanism *mechanism, const struct opening *opening)
{
    struct raw_pgsql *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->kind = mechanism->kind;
    raw->key = key_of(opening->name);
    (void)snprintf(raw->name, sizeof raw->name, "%s", opening->name);
    raw->pg = PQconnectdb(opening->url);
    if (PQstatus(raw->pg) != CONNECTION_OK)
        (void)complain("libpq", PQerrorMessage(raw->pg));
    else if (open_kind(raw) == 0)
        return raw;
    raw_pgsql_close(raw);
    return NULL;
}

int raw_pgsql_acquire(void *context, int64_t *ret_token)
{
    struct raw_pgsql *raw = context;
    int n_rows;

    (void)ret_token;
    if (raw->kind == RAW_ROW)
        return take_row(raw);
    if (raw_pgsql_run(raw, "take", &n_rows) != 0)
        return -1;
    return n_rows == 1 ? ACQUIRED : complain("libpq", "nothing was taken");
}

int raw_pgsql_release(void *context)
{
    struct raw_pgsql *raw = context;

    return raw_pgsql_run(raw, "drop", NULL);
}

void raw_pgsql_close(void *context)
{
    struct raw_pgsql *raw = context;

    PQfinish(raw->pg);
    free(raw);
}
