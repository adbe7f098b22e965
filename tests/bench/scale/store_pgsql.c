/* SPDX-License-Identifier: MIT */
/* store_pgsql.c - PostgreSQL, beside the driver. */
#include <dblock/pgsql.h>

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "scale.h"

static int run(PGconn *pg, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    (void)fprintf(stderr, "scale: libpq: %s", PQerrorMessage(pg));
    return -1;
}

static void *open_raw(const char *url)
{
    PGconn *pg = PQconnectdb(url);

    if (run(pg, PQexec(pg, "SET client_min_messages = warning;"
                           "DROP TABLE IF EXISTS bench_scale;"
                           "CREATE TABLE bench_scale (id text PRIMARY KEY, n bigint)"
                           " WITH (fillfactor = 50);"
                           "INSERT INTO bench_scale VALUES ('x', 0)")) == 0 &&
        run(pg, PQprepare(pg, "update", "UPDATE bench_scale SET n = n + 1 WHERE id = 'x'", 0,
                    NULL)) == 0)
        return pg;
    PQfinish(pg);
    return NULL;
}

static void close_raw(void *raw)
{
    (void)run(raw, PQexec(raw, "DROP TABLE bench_scale"));
    PQfinish(raw);
}

static int update(void *raw)
{
    return run(raw, PQexecPrepared(raw, "update", 0, NULL, NULL, NULL, 1));
}

static int64_t ask(void *raw, const char *text)
{
    PGresult *result = PQexec(raw, text);
    int64_t value = -1;

    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    else
        (void)fprintf(stderr, "scale: libpq: %s", PQerrorMessage(raw));
    PQclear(result);
    return value;
}

static int leave(void *raw, long n, int64_t *ret_token)
{
    char text[512];

    /* tokens do not come from rows here: no row has one that is ahead of the clock */
    *ret_token = ask(raw, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    (void)snprintf(text, sizeof text,
        "INSERT INTO dblock_lease (name, token, since, expires_at, label, host, pid)"
        " SELECT convert_to('bench-left-' || i, 'UTF8'), %" PRId64 ","
        " clock_timestamp() - interval '2 h', '-infinity', '', 'bench', 1"
        " FROM generate_series(0, %ld) AS i",
        *ret_token, n - 1);
    if (*ret_token < 0 || run(raw, PQexec(raw, text)) != 0)
        return -1;
    return run(raw, PQexec(raw, "ANALYZE dblock_lease"));
}

static const char left[] = "name >= 'bench-left-'::bytea AND name < 'bench-left.'::bytea";

static long count_left(void *raw)
{
    char text[256];

    (void)snprintf(text, sizeof text, "SELECT count(*) FROM dblock_lease WHERE %s", left);
    return (long)ask(raw, text);
}

static int forget(void *raw)
{
    char text[256];

    (void)snprintf(text, sizeof text, "DELETE FROM dblock_lease WHERE %s", left);
    if (run(raw, PQexec(raw, text)) != 0)
        return -1;
    return run(raw, PQexec(raw, "VACUUM dblock_lease"));
}

const struct store scale_pgsql = {
    .name = "PostgreSQL",
    .variable = "DBLOCK_TEST_PGSQL",
    .driver = dblock_pgsql_driver,
    .open = open_raw,
    .close = close_raw,
    .update = update,
    .leave = leave,
    .count_left = count_left,
    .forget = forget,
};
