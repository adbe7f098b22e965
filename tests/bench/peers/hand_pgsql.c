/* SPDX-License-Identifier: MIT */
/* hand_pgsql.c - PostgreSQL's own locks by hand, as a program in C does it: an advisory lock by
 * two prepared statements, the least that anybody can send; and a row locked by three
 * statements, each a round trip: BEGIN; SELECT ... FOR UPDATE; COMMIT. That commit does not
 * wait for the disk: the row lock wrote nothing that anybody needs, and dblock does not wait
 * either. */
#include <libpq-fe.h>
#include <stdlib.h>

#include "peers.h"

static int run(PGconn *pg, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    (void)fprintf(stderr, "peers: libpq: %s", PQerrorMessage(pg));
    return -1;
}

static PGconn *open_with(const char *variable, const char *setting, const char *take,
    const char *drop)
{
    const char *url = getenv(variable);
    PGconn *pg = url != NULL ? PQconnectdb(url) : NULL;

    if (pg == NULL)
        return NULL;
    if (run(pg, PQexec(pg, setting)) == 0 && run(pg, PQprepare(pg, "take", take, 0, NULL)) == 0 &&
        run(pg, PQprepare(pg, "drop", drop, 0, NULL)) == 0)
        return pg;
    PQfinish(pg);
    return NULL;
}

static void *open_three(const char *variable)
{
    return open_with(variable,
        "SET client_min_messages = warning; SET synchronous_commit = off;"
        "CREATE TABLE IF NOT EXISTS bench_three (name text PRIMARY KEY);"
        "INSERT INTO bench_three VALUES ('x') ON CONFLICT DO NOTHING",
        "SELECT 1 FROM bench_three WHERE name = 'x' FOR UPDATE", "SELECT 1");
}

static int three_pair(void *context)
{
    PGconn *pg = context;

    if (run(pg, PQexec(pg, "BEGIN")) != 0 ||
        run(pg, PQexecPrepared(pg, "take", 0, NULL, NULL, NULL, 1)) != 0)
        return -1;
    return run(pg, PQexec(pg, "COMMIT"));
}

static void *open_advisory(const char *variable)
{
    return open_with(variable, "SELECT 1", "SELECT pg_try_advisory_lock(4711)",
        "SELECT pg_advisory_unlock(4711)");
}

static int advisory_pair(void *context)
{
    PGconn *pg = context;

    if (run(pg, PQexecPrepared(pg, "take", 0, NULL, NULL, NULL, 1)) != 0)
        return -1;
    return run(pg, PQexecPrepared(pg, "drop", 0, NULL, NULL, NULL, 1));
}

static void about(void *context, char *ret_text, size_t size)
{
    int version = PQserverVersion(context);

    (void)snprintf(ret_text, size, "PostgreSQL %d.%d", version / 10000, version % 10000);
}

const struct side side_three_pgsql = { open_three, three_pair, about };
const struct side side_advisory_pgsql = { open_advisory, advisory_pair, about };
