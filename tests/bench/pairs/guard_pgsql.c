/* SPDX-License-Identifier: MIT */
/* guard_pgsql.c - a guard, beside the very SELECT that it runs, with the same values on a bare
 * connection. In a transaction that stays open, so that what is compared is the guard alone: the
 * row is pinned again each time. Each side pins a row of its own: of two transactions on one row, the
 * one that came second pays more for each look at it. A lease, and an advisory lock, whose token is
 * pinned. */
#include "pairs.h"

#include <dblock/pgsql.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "pgsql_sql.h"

enum { BYTEA = 17, INT4 = 23, INT8 = 20, N_VALUES = 3 };

static const double goal = 1.10;

struct guarding {
    PGconn *pg;
    dblock_lock *lock;
    char *text;
    Oid types[N_VALUES];
    const char *values[N_VALUES]; /* binary */
    int sizes[N_VALUES];
    unsigned char owner[ID_SIZE];
    unsigned char strategy[4];
    unsigned char token[8];
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

static int guard_raw(void *context)
{
    static const int formats[N_VALUES] = { 1, 1, 1 };
    const struct guarding *guarding = context;
    PGresult *result = PQexecParams(guarding->pg, guarding->text, N_VALUES, guarding->types,
        guarding->values, guarding->sizes, formats, 1);
    int is_pinned = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 1;

    if (!is_pinned)
        (void)fprintf(stderr, "pairs: libpq: not pinned: %s\n", PQerrorMessage(guarding->pg));
    PQclear(result);
    return is_pinned ? 0 : -1;
}

static int guard_ours(void *context)
{
    const struct guarding *guarding = context;
    struct dblock_error error;
    dblock_status status = dblock_pgsql_guard(guarding->lock, guarding->pg, &error);

    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "pairs: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    return status == DBLOCK_OK ? 0 : -1;
}

/* The text as the driver sends it, where the tables are in the schema public. */
static char *fill_text(const char *text)
{
    static const char from[] = "dblock_schema.";
    static const char to[] = "public.";
    char *copy = calloc(1, strlen(text) + 1);
    char *end = copy;
    const char *found;

    if (copy == NULL)
        return NULL;
    while ((found = strstr(text, from)) != NULL) {
        memcpy(end, text, (size_t)(found - text));
        end += found - text;
        memcpy(end, to, sizeof to - 1);
        end += sizeof to - 1;
        text = found + sizeof from - 1;
    }
    memcpy(end, text, strlen(text));
    return copy;
}

static void put(struct guarding *guarding, int i, Oid type, const void *value, size_t size)
{
    guarding->types[i] = type;
    guarding->values[i] = value;
    guarding->sizes[i] = (int)size;
}

static void put_big_endian(unsigned char *target, size_t size, uint64_t number)
{
    for (; size > 0; number >>= 8)
        target[--size] = (unsigned char)number;
}

static int fill(struct guarding *raw, int strategy)
{
    const char *name = dblock_lock_name(raw->lock);
    const char *owner = dblock_lock_owner(raw->lock);
    struct dblock_error error;
    int64_t token;
    size_t i;

    if (dblock_lock_token(raw->lock, &token, &error) != DBLOCK_OK)
        return -1;
    for (i = 0; i < ID_SIZE; ++i) {
        const char digits[3] = { owner[2 * i], owner[2 * i + 1], 0 };

        raw->owner[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    put_big_endian(raw->strategy, sizeof raw->strategy, (uint64_t)strategy);
    put_big_endian(raw->token, sizeof raw->token, (uint64_t)token);
    put(raw, 0, BYTEA, name, strlen(name));
    if (strategy == DBLOCK_LEASE)
        put(raw, 1, BYTEA, raw->owner, sizeof raw->owner);
    else
        put(raw, 1, INT4, raw->strategy, sizeof raw->strategy);
    put(raw, 2, INT8, raw->token, sizeof raw->token);
    raw->text = fill_text(
        strategy == DBLOCK_LEASE ? pgsql_sql_lease_guard : pgsql_sql_token_guard);
    return raw->text != NULL ? 0 : -1;
}

static int compare(struct guarding *raw, struct guarding *ours, int strategy,
    struct settings *settings)
{
    const struct side sides[2] = { { guard_raw, raw }, { guard_ours, ours } };
    const char *name = dblock_strategy_name(strategy);
    struct comparison comparison;

    if (fill(raw, strategy) != 0 || run(raw->pg, "BEGIN") != 0 || run(ours->pg, "BEGIN") != 0 ||
        sampling_compare(&sides[0], &sides[1], settings->n_rounds, settings->seconds,
            &comparison) != 0)
        return -1;
    (void)printf("%-11s %s: guard %.1f us, its SELECT %.1f us: ratio %.2f (%.2f-%.2f)%s\n",
        bench_pgsql.name, name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst,
        report_goal(&settings->report, comparison.ratio, goal));
    report_json(&settings->report, bench_pgsql.name, name, "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return run(raw->pg, "COMMIT") != 0 || run(ours->pg, "COMMIT") != 0 ? -1 : 0;
}

static int run_strategy(const char *url, int strategy, struct settings *settings)
{
    struct library *library = library_open(&bench_pgsql, url, strategy, 0);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct guarding raw = { .pg = PQconnectdb(url) };
    struct guarding ours = { .pg = PQconnectdb(url) };
    struct dblock_error error;
    int result = -1;

    options.strategy = strategy;
    options.flags = DBLOCK_FENCED;
    if (library != NULL && PQstatus(raw.pg) == CONNECTION_OK &&
        PQstatus(ours.pg) == CONNECTION_OK &&
        dblock_acquire(library_client(library), "bench-guard-raw", &options, &raw.lock, &error) ==
            DBLOCK_OK &&
        dblock_acquire(library_client(library), "bench-guard", &options, &ours.lock, &error) ==
            DBLOCK_OK)
        result = compare(&raw, &ours, strategy, settings);
    PQfinish(ours.pg);
    PQfinish(raw.pg);
    dblock_lock_free(ours.lock);
    dblock_lock_free(raw.lock);
    free(raw.text);
    library_close(library);
    return result;
}

int guard_pgsql_run(const char *url, struct settings *settings)
{
    return run_strategy(url, DBLOCK_LEASE, settings) != 0 ||
            run_strategy(url, DBLOCK_ADVISORY, settings) != 0
        ? -1
        : 0;
}
