/* SPDX-License-Identifier: MIT */
/* guard_mysql.c - a guard, beside the very SELECT that it runs, as a text with the same values; see
 * guard_pgsql.c. MariaDB's form: LOCK IN SHARE MODE NOWAIT. */
#include "pairs.h"

#include <mysql.h>

#include <dblock/mysql.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_sql.h"

enum { N_VALUES = 5, VALUE_SIZE = 80, TEXT_SIZE = 4000 };

static const double goal = 1.10;

struct guarding {
    MYSQL *mysql;
    dblock_lock *lock;
    char text[TEXT_SIZE];
};

static int run(MYSQL *mysql, const char *sql)
{
    MYSQL_RES *rows;

    if (mysql_query(mysql, sql) != 0) {
        (void)fprintf(stderr, "pairs: mysql: %s\n", mysql_error(mysql));
        return -1;
    }
    rows = mysql_store_result(mysql);
    mysql_free_result(rows);
    return 0;
}

static int guard_raw(void *context)
{
    const struct guarding *guarding = context;
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row = NULL;
    int is_pinned;

    if (mysql_query(guarding->mysql, guarding->text) == 0)
        rows = mysql_store_result(guarding->mysql);
    if (rows != NULL)
        row = mysql_fetch_row(rows);
    is_pinned = row != NULL && row[0] != NULL && row[0][0] == '1';
    if (!is_pinned)
        (void)fprintf(stderr, "pairs: mysql: not pinned: %s\n", mysql_error(guarding->mysql));
    mysql_free_result(rows);
    return is_pinned ? 0 : -1;
}

static int guard_ours(void *context)
{
    const struct guarding *guarding = context;
    struct dblock_error error;
    dblock_status status = dblock_mysql_guard(guarding->lock, guarding->mysql, &error);

    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "pairs: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    return status == DBLOCK_OK ? 0 : -1;
}

static void fill_text(char *text, const char *sql, char values[N_VALUES][VALUE_SIZE])
{
    size_t size = 0;
    int i = 0;

    for (; *sql != 0 && size + VALUE_SIZE < TEXT_SIZE; ++sql)
        size += (size_t)snprintf(
            text + size, TEXT_SIZE - size, "%.*s", *sql == '?' ? VALUE_SIZE : 1,
            *sql == '?' ? values[i++] : sql);
    (void)snprintf(text + size, TEXT_SIZE - size, " LOCK IN SHARE MODE NOWAIT");
}

static int fill(struct guarding *raw, const struct guarding *ours, int strategy)
{
    struct dblock_error error;
    char owner[VALUE_SIZE], token[VALUE_SIZE], name[VALUE_SIZE];
    char values[N_VALUES][VALUE_SIZE];
    const char *order[N_VALUES] = { owner, token, name, owner, token };
    int64_t number;
    int i;

    if (dblock_lock_token(ours->lock, &number, &error) != DBLOCK_OK)
        return -1;
    (void)snprintf(owner, sizeof owner, "x'%s'", dblock_lock_owner(ours->lock));
    (void)snprintf(token, sizeof token, "%lld", (long long)number);
    (void)snprintf(name, sizeof name, "'%s'", dblock_lock_name(ours->lock));
    if (strategy != DBLOCK_LEASE) {
        order[0] = order[3] = token;
        order[1] = "4"; /* advisory */
    }
    for (i = 0; i < N_VALUES; ++i)
        (void)snprintf(values[i], VALUE_SIZE, "%s", order[i]);
    fill_text(raw->text,
        strategy == DBLOCK_LEASE ? mysql_sql_lease_guard : mysql_sql_token_guard, values);
    return 0;
}

static int compare(struct guarding *raw, struct guarding *ours, int strategy,
    struct settings *settings)
{
    const struct side sides[2] = { { guard_raw, raw }, { guard_ours, ours } };
    const char *name = dblock_strategy_name(strategy);
    struct comparison comparison;

    if (fill(raw, ours, strategy) != 0 || run(raw->mysql, "BEGIN") != 0 ||
        run(ours->mysql, "BEGIN") != 0 ||
        sampling_compare(&sides[0], &sides[1], settings->n_rounds, settings->seconds,
            &comparison) != 0)
        return -1;
    (void)printf("%-11s %s: guard %.1f us, its SELECT %.1f us: ratio %.2f (%.2f-%.2f)%s\n",
        bench_mysql.name, name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst,
        report_goal(&settings->report, comparison.ratio, goal));
    report_json(&settings->report, bench_mysql.name, name, "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return run(raw->mysql, "COMMIT") != 0 || run(ours->mysql, "COMMIT") != 0 ? -1 : 0;
}

static int run_strategy(const char *url, int strategy, struct settings *settings)
{
    struct library *library = library_open(&bench_mysql, url, strategy, 0);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct guarding raw = { .mysql = raw_mysql_connect(url) };
    struct guarding ours = { .mysql = raw_mysql_connect(url) };
    struct dblock_error error;
    int result = -1;

    options.strategy = strategy;
    options.flags = DBLOCK_FENCED;
    if (library != NULL && raw.mysql != NULL && ours.mysql != NULL &&
        dblock_acquire(library_client(library), "bench-guard", &options, &ours.lock, &error) ==
            DBLOCK_OK)
        result = compare(&raw, &ours, strategy, settings);
    mysql_close(ours.mysql);
    mysql_close(raw.mysql);
    dblock_lock_free(ours.lock);
    library_close(library);
    return result;
}

int guard_mysql_run(const char *url, struct settings *settings)
{
    return run_strategy(url, DBLOCK_LEASE, settings) != 0 ||
            run_strategy(url, DBLOCK_ADVISORY, settings) != 0
        ? -1
        : 0;
}
