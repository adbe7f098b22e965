/* SPDX-License-Identifier: MIT */
/* durable_pgsql.c - a lease of PostgreSQL against the plain way to keep one: an upsert and
 * an update, each of which waits for the disk. The library's release does not: one that is
 * lost in a crash only delays the next holder, until the ttl is over.
 *
 * What that comes to depends on the disk: where a commit takes 0.1 ms, the statements are
 * as dear as the wait that is saved. So it is also told what the plain way comes to if its
 * release does not wait either, how often each side waits, as the server counts it, and what
 * the library's own statements would take if both waited. */
#include "pairs.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { N_COUNTED = 500, SETTLE_MS = 500, TELLS_MS = 1100 /* so seldom does a session tell */ };

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
    static const char lazy[] =
        "WITH mine AS (UPDATE bench_durable SET expires_at = '-infinity'"
        " WHERE name = 'x' AND owner = pg_backend_pid() RETURNING 1)"
        " SELECT set_config('synchronous_commit', 'off', true) FROM mine";

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
    return run(pg, PQprepare(pg, "drop", drop, 0, NULL)) != 0
        ? -1
        : run(pg, PQprepare(pg, "lazy", lazy, 0, NULL));
}

static int run_pair(PGconn *pg, const char *drop)
{
    if (run(pg, PQexecPrepared(pg, "take", 0, NULL, NULL, NULL, 1)) != 0)
        return -1;
    return run(pg, PQexecPrepared(pg, drop, 0, NULL, NULL, NULL, 1));
}

static int raw_pair(void *context)
{
    return run_pair(context, "drop");
}

static int raw_lazy_pair(void *context)
{
    return run_pair(context, "lazy");
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

/* Waits for the disk since the server began, by anybody; below 0: it does not tell. */
static double count_syncs(PGconn *pg)
{
    PGresult *result = NULL;
    double n = -1;

    if (PQserverVersion(pg) >= 140000 && PQserverVersion(pg) < 180000)
        result = PQexec(pg, "SELECT wal_sync FROM pg_stat_wal");
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        n = strtod(PQgetvalue(result, 0, 0), NULL);
    PQclear(result);
    return n;
}

/* A pair; on connections of its own, as a server's process tells all when it ends. */
static double count_raw_syncs(const char *url, PGconn *watch)
{
    PGconn *pg = PQconnectdb(url);
    double before = count_syncs(watch);
    int failed = open_raw(pg) != 0;
    int i;

    for (i = 0; i < N_COUNTED && !failed; ++i)
        failed = raw_pair(pg) != 0;
    PQfinish(pg);
    (void)poll(NULL, 0, SETTLE_MS);
    return failed ? -1 : (count_syncs(watch) - before) / N_COUNTED;
}

static double count_our_syncs(const char *url, PGconn *watch)
{
    struct library *library = library_open(&bench_pgsql, url, DBLOCK_LEASE, 0);
    double before = count_syncs(watch);
    int failed = library == NULL;
    int i;

    for (i = 0; i < N_COUNTED && !failed; ++i)
        failed = library_pair(library) != 0;
    library_close(library);
    (void)poll(NULL, 0, SETTLE_MS);
    return failed ? -1 : (count_syncs(watch) - before) / N_COUNTED;
}

static int run_comparison(PGconn *pg, struct library *library, struct settings *settings)
{
    struct side raw = { raw_pair, pg };
    struct side ours = { library_pair, library };
    struct comparison comparison;

    if (sampling_compare(&raw, &ours, settings->n_rounds, settings->seconds, &comparison) != 0)
        return -1;
    (void)printf("%-11s lease %.1f us, two durable commits %.1f us: ratio %.2f"
                 " (%.2f-%.2f, goal %.2f)%s\n",
        bench_pgsql.name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst, goal,
        report_goal(&settings->report, comparison.ratio, goal));
    report_json(&settings->report, bench_pgsql.name, "durable", "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return 0;
}

/* What the goal can come to here: the same, without any library. */
static int run_floor(PGconn *pg, struct settings *settings)
{
    struct side raw = { raw_pair, pg };
    struct side lazy = { raw_lazy_pair, pg };
    struct comparison comparison;

    if (sampling_compare(&raw, &lazy, settings->n_rounds, settings->seconds, &comparison) != 0)
        return -1;
    (void)printf("%-11s the raw pair, its release as lazy %.1f us, two durable commits %.1f us:"
                 " ratio %.2f (%.2f-%.2f)\n",
        bench_pgsql.name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst);
    report_json(&settings->report, bench_pgsql.name, "durable, raw", "raw_us",
        comparison.raw.p50_us, "lazy_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return 0;
}

static int run_explanation(
    const char *url, PGconn *pg, struct library *library, struct settings *settings)
{
    struct side patient = { bench_pgsql.pair, raw_pgsql_open_patient(url, DBLOCK_LEASE) };
    struct side ours = { library_pair, library };
    struct comparison comparison;
    double raw_syncs, our_syncs;
    int failed = patient.context == NULL ||
        sampling_compare(&patient, &ours, settings->n_rounds, settings->seconds, &comparison) != 0;

    if (patient.context != NULL)
        bench_pgsql.close(patient.context);
    if (failed)
        return -1;
    /* what these connections have to tell is not of the next */
    (void)poll(NULL, 0, TELLS_MS);
    (void)count_syncs(pg);
    raw_syncs = count_raw_syncs(url, pg);
    our_syncs = count_our_syncs(url, pg);
    (void)printf("%-11s waits for the disk a pair: lease %.2f, two durable commits %.2f; the"
                 " lease's own statements, both waiting, %.1f us: ratio %.2f\n",
        bench_pgsql.name, our_syncs, raw_syncs, comparison.raw.p50_us, comparison.ratio);
    report_json(&settings->report, bench_pgsql.name, "durable, own statements", "patient_us",
        comparison.raw.p50_us, "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio,
        "syncs", our_syncs, "raw_syncs", raw_syncs, NULL);
    sampling_free(&comparison);
    return 0;
}

int durable_run(const char *url, struct settings *settings)
{
    PGconn *pg = PQconnectdb(url);
    struct library *library = library_open(&bench_pgsql, url, DBLOCK_LEASE, 0);
    int failed = library == NULL || open_raw(pg) != 0;

    if (!failed && !is_durable(pg))
        (void)printf("%-11s left out: its commits wait for no disk\n", bench_pgsql.name);
    else if (!failed)
        failed = run_comparison(pg, library, settings) != 0 || run_floor(pg, settings) != 0 ||
            run_explanation(url, pg, library, settings) != 0;
    PQclear(PQexec(pg, "DROP TABLE IF EXISTS bench_durable"));
    library_close(library);
    PQfinish(pg);
    return failed ? -1 : 0;
}
