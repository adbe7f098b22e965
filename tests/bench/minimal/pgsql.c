/* SPDX-License-Identifier: MIT */
/* pgsql.c - see minimal.h: on libpq. A release waits for no disk, as dblock's does not. */
#include "bench/minimal/minimal.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

static const char create[] =
    "CREATE TABLE IF NOT EXISTS bench_start (name bytea PRIMARY KEY, owner bytea,"
    " expires_at timestamptz NOT NULL)";
static const char lease_take[] =
    "INSERT INTO bench_start AS l VALUES ('x', 'me', clock_timestamp() + interval '30 s')"
    " ON CONFLICT (name) DO UPDATE SET owner = 'me', expires_at = excluded.expires_at"
    " WHERE l.expires_at <= clock_timestamp() RETURNING 1";
static const char lease_drop[] =
    "WITH lazy AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_lazy)"
    " UPDATE bench_start SET expires_at = '-infinity' FROM lazy"
    " WHERE name = 'x' AND owner = 'me' RETURNING 1";
static const char advisory_take[] =
    "SELECT 1 FROM (SELECT pg_try_advisory_lock(4711) AS got) AS t WHERE got";
static const char advisory_drop[] =
    "SELECT 1 FROM (SELECT pg_advisory_unlock(4711) AS got) AS t WHERE got";

/* One row comes back, or the lock is not ours. */
static int ask(PGconn *pg, const char *statement)
{
    PGresult *result = PQexec(pg, statement);
    int is_good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;

    PQclear(result);
    return is_good ? 0 : minimal_fail(statement, PQerrorMessage(pg));
}

static int make_table(PGconn *pg)
{
    PGresult *result = PQexec(pg, create);
    int is_made = PQresultStatus(result) == PGRES_COMMAND_OK;

    PQclear(result);
    return is_made ? 0 : minimal_fail(create, PQerrorMessage(pg));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "lease";
    int is_advisory = strcmp(what, "advisory") == 0;
    PGconn *pg = PQconnectdb(getenv("DBLOCK_URL"));
    int result;

    if (PQstatus(pg) != CONNECTION_OK) {
        result = minimal_fail("connect", PQerrorMessage(pg));
    } else if (strcmp(what, "init") == 0) {
        result = make_table(pg);
    } else {
        result = ask(pg, is_advisory ? advisory_take : lease_take);
        if (result == 0)
            result = minimal_run();
        if (result == 0)
            result = ask(pg, is_advisory ? advisory_drop : lease_drop);
    }
    PQfinish(pg);
    return result;
}
