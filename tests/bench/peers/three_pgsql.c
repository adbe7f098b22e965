/* SPDX-License-Identifier: MIT */
/* three_pgsql.c - a row locked by three statements, each a round trip, as programs do it:
 * BEGIN; SELECT ... FOR UPDATE; COMMIT. Without the wait for the disk that the commit would
 * cost: the row lock wrote nothing that anybody needs, and dblock does not wait either. */
#include <libpq-fe.h>
#include <stdlib.h>
#include <unistd.h>

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

static void *open_raw(const char *variable)
{
    const char *url = getenv(variable);
    PGconn *pg = url != NULL ? PQconnectdb(url) : NULL;

    if (pg == NULL)
        return NULL;
    if (run(pg, PQexec(pg, "SET client_min_messages = warning; SET synchronous_commit = off;"
                           "CREATE TABLE IF NOT EXISTS bench_three (name text PRIMARY KEY);"
                           "INSERT INTO bench_three VALUES ('x') ON CONFLICT DO NOTHING")) != 0 ||
        run(pg, PQprepare(pg, "take", "SELECT 1 FROM bench_three WHERE name = 'x' FOR UPDATE", 0,
                    NULL)) != 0) {
        PQfinish(pg);
        return NULL;
    }
    return pg;
}

static int pair(void *context)
{
    PGconn *pg = context;

    if (run(pg, PQexec(pg, "BEGIN")) != 0 ||
        run(pg, PQexecPrepared(pg, "take", 0, NULL, NULL, NULL, 1)) != 0)
        return -1;
    return run(pg, PQexec(pg, "COMMIT"));
}

static void about(void *context, char *ret_text, size_t size)
{
    int version = PQserverVersion(context);

    (void)snprintf(ret_text, size, "PostgreSQL %d.%d", version / 10000, version % 10000);
}

const struct side side_three_pgsql = { open_raw, pair, about };
