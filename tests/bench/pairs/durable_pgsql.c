/* SPDX-License-Identifier: MIT */
/* durable_pgsql.c - a lease of PostgreSQL against the plain way to keep one: an upsert and
 * an update, each of which waits for the disk. The library's release does not: one that is
 * lost in a crash only delays the next holder, until the ttl is over. */
#include "pairs.h"

#include <libpq-fe.h>
#include <string.h>

static const double goal = 0.65;

static int run(PGconn *pg, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    int n_rows = PQntuples(result);

    PQclear(result);
    if (status == PGRES_COMMAND_OK || (status == PGRES_TUPLES_OK && n_rows == 1))
        return 0;
    (void)fprintf(stderr, "pairs: libpq: %s\n",
        status == PGRES_TUPLES_OK ? "the row is not ours" : PQerrorMessage(pg));
    return -1;
}

static int open_raw(PGconn *pg)
{
    static const char take[] =
        "INSERT INTO bench_durable AS l VALUES ('x', pg_backend_pid(), 1,"
        " clock_timestamp() + interval '30 s') ON CONFLICT (name) DO UPDATE"
        " SET owner = excluded.owner, fence = l.fence + 1, expires_at = excluded.expires_at"
        " WHERE l.expires_at <= clock_timestamp() RETURNING fence";
    static const char drop[] =
        "UPDATE bench_durable SET expires_at = '-infinity'"
        " WHERE name = 'x' AND owner = pg_backend_pid() RETURNING fence";

    if (PQstatus(pg) != CONNECTION_OK) {
        (void)fprintf(stderr, "pairs: libpq: connect: %s", PQerrorMessage(pg));
        return -1;
    }
    if (run(pg, PQexec(pg,
                    "SET client_min_messages = warning;"
                    "DROP TABLE IF EXISTS bench_durable;"
                    "CREATE TABLE bench_durable (name text PRIMARY KEY, owner int, fence bigint,"
                    " expires_at timestamptz) WITH (fillfactor = 50)")) != 0 ||
        run(pg, PQprepare(pg, "take", take, 0, NULL)) != 0)
        return -1;
    return run(pg, PQprepare(pg, "drop", drop, 0, NULL));
}

static int raw_pair(void *context)
{
    PGconn *pg = context;

    if (run(pg, PQexecPrepared(pg, "take", 0, NULL, NULL, NULL, 1)) != 0)
        return -1;
    return run(pg, PQexecPrepared(pg, "drop", 0, NULL, NULL, NULL, 1));
}

static int is_durable(PGconn *pg)
{
    PGresult *result = PQexec(pg,
        "SELECT current_setting('fsync') = 'on'"
        " AND current_setting('synchronous_commit') <> 'off'");
    int answer = PQresultStatus(result) == PGRES_TUPLES_OK && PQgetvalue(result, 0, 0)[0] == 't';

    PQclear(result);
    return answer;
}

int durable_run(const char *url, struct settings *settings)
{
    PGconn *pg = PQconnectdb(url);
    struct library *library = library_open(&bench_pgsql, url, DBLOCK_LEASE, 0);
    struct side raw = { raw_pair, pg };
    struct side ours = { library_pair, library };
    struct comparison comparison;
    int result = -1;

    if (library != NULL && open_raw(pg) == 0) {
        if (!is_durable(pg)) {
            (void)printf("%-11s left out: its commits wait for no disk\n", bench_pgsql.name);
            result = 0;
        } else if (sampling_compare(
                       &raw, &ours, settings->n_rounds, settings->seconds, &comparison) == 0) {
            (void)printf("%-11s lease %.1f us, two durable commits %.1f us: ratio %.2f"
                         " (%.2f-%.2f, goal %.2f)%s\n",
                bench_pgsql.name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
                comparison.best, comparison.worst, goal,
                report_goal(&settings->report, comparison.ratio, goal));
            report_json(&settings->report, bench_pgsql.name, "durable", "raw_us",
                comparison.raw.p50_us, "dblock_us", comparison.ours.p50_us, "ratio",
                comparison.ratio, NULL);
            sampling_free(&comparison);
            result = 0;
        }
        PQclear(PQexec(pg, "DROP TABLE bench_durable"));
    }
    library_close(library);
    PQfinish(pg);
    return result;
}
