/* SPDX-License-Identifier: MIT */
/* joined_pgsql.c - a row lock that joins the application's transaction, beside the application's
 * own SELECT ... FOR UPDATE of one row, by a parameter as a program asks for one of many rows, and
 * as a text that is always the same. In a transaction that stays open, so that what is compared is
 * the lock alone: the row is locked again each time. */
#include "pairs.h"

#include <dblock/pgsql.h>
#include <libpq-fe.h>
#include <stdlib.h>

static const double goal = 1.05;

struct joined {
    PGconn *pg;
    dblock_client *client;
};

static int run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    (void)fprintf(stderr, "pairs: libpq: %s", PQerrorMessage(pg));
    return -1;
}

static int lock_text(void *context)
{
    return run(context, "SELECT state FROM bench_order WHERE name = 'order-4711' FOR UPDATE");
}

static int lock_parameter(void *context)
{
    static const char *const values[] = { "order-4711" };
    PGresult *result = PQexecParams(context, "SELECT state FROM bench_order WHERE name = $1 FOR UPDATE",
        1, NULL, values, NULL, NULL, 0);
    int n_rows = PQntuples(result);

    PQclear(result);
    return n_rows == 1 ? 0 : -1;
}

static int lock_joined(void *context)
{
    struct joined *joined = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_status status;

    options.strategy = DBLOCK_ROW;
    status = dblock_pgsql_acquire_in(
        joined->client, joined->pg, "order-4711", &options, NULL, &error);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "pairs: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    return status == DBLOCK_OK ? 0 : -1;
}

static int compare(PGconn *pg, int (*lock)(void *), const char *how, double most,
    struct joined *joined, struct settings *settings)
{
    struct side raw = { lock, pg };
    struct side ours = { lock_joined, joined };
    struct comparison comparison;

    if (sampling_compare(&raw, &ours, settings->n_rounds, settings->seconds, &comparison) != 0)
        return -1;
    (void)printf("%-11s joined row %.1f us, own row by %s %.1f us: ratio %.2f (%.2f-%.2f)%s\n",
        bench_pgsql.name, comparison.ours.p50_us, how, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst,
        report_goal(&settings->report, comparison.ratio, most));
    report_json(&settings->report, bench_pgsql.name, how, "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return 0;
}

static int compare_all(PGconn *pg, struct joined *joined, struct settings *settings)
{
    if (run(pg,
            "SET client_min_messages = warning; DROP TABLE IF EXISTS bench_order;"
            "CREATE TABLE bench_order (name text PRIMARY KEY, state text);"
            "INSERT INTO bench_order VALUES ('order-4711', 'paid')") != 0 ||
        run(pg, "BEGIN") != 0 || run(joined->pg, "BEGIN") != 0 ||
        compare(pg, lock_parameter, "parameter", goal, joined, settings) != 0 ||
        compare(pg, lock_text, "text", 0, joined, settings) != 0)
        return -1;
    return run(pg, "COMMIT; DROP TABLE bench_order");
}

int joined_pgsql_run(const char *url, struct settings *settings)
{
    struct library *library = library_open(&bench_pgsql, url, DBLOCK_ROW, 0);
    PGconn *pg = PQconnectdb(url);
    struct joined joined = { PQconnectdb(url), library != NULL ? library_client(library) : NULL };
    int result = library != NULL && PQstatus(pg) == CONNECTION_OK &&
            PQstatus(joined.pg) == CONNECTION_OK
        ? compare_all(pg, &joined, settings)
        : -1;

    PQfinish(joined.pg);
    PQfinish(pg);
    library_close(library);
    return result;
}
