/* SPDX-License-Identifier: MIT */
/* joined_mysql.c - a row lock that joins the application's transaction, beside the application's own
 * SELECT ... FOR UPDATE of one row: see joined_pgsql.c. Ours is sent as a text, with NOWAIT, which
 * costs the server something; beside another kind it also pays for that difference. */
#include "pairs.h"

#include <mysql.h>

#include <dblock/mysql.h>
#include <stdlib.h>
#include <string.h>

static const double goal = 1.05;

struct application {
    MYSQL *mysql;
    MYSQL_STMT *prepared;
    MYSQL_BIND name, state;
    char state_text[16];
    dblock_client *client;
};

static int run(MYSQL *mysql, const char *sql)
{
    MYSQL_RES *rows;
    int has_row;

    if (mysql_query(mysql, sql) != 0) {
        (void)fprintf(stderr, "pairs: mysql: %s\n", mysql_error(mysql));
        return -1;
    }
    rows = mysql_store_result(mysql);
    has_row = rows == NULL || mysql_fetch_row(rows) != NULL;
    mysql_free_result(rows);
    return has_row ? 0 : -1;
}

#define LOCK_TEXT "SELECT state FROM bench_order WHERE name = 'order-4711' FOR UPDATE"

static int lock_text(void *context)
{
    const struct application *application = context;

    return run(application->mysql, LOCK_TEXT);
}

static int lock_text_nowait(void *context)
{
    const struct application *application = context;

    return run(application->mysql, LOCK_TEXT " NOWAIT");
}

static int lock_prepared(void *context)
{
    const struct application *application = context;
    int has_row = mysql_stmt_execute(application->prepared) == 0 &&
        mysql_stmt_store_result(application->prepared) == 0 &&
        mysql_stmt_fetch(application->prepared) == 0;

    if (!has_row)
        (void)fprintf(stderr, "pairs: mysql: %s\n", mysql_stmt_error(application->prepared));
    (void)mysql_stmt_free_result(application->prepared);
    return has_row ? 0 : -1;
}

static int lock_joined(void *context)
{
    const struct application *application = context;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_status status;

    options.strategy = DBLOCK_ROW;
    status = dblock_mysql_acquire_in(
        application->client, application->mysql, "order-4711", &options, NULL, &error);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "pairs: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    return status == DBLOCK_OK ? 0 : -1;
}

static int compare(struct application *raw, int (*lock)(void *), const char *how, double most,
    struct application *ours, struct settings *settings)
{
    const struct side sides[2] = { { lock, raw }, { lock_joined, ours } };
    struct comparison comparison;

    if (sampling_compare(&sides[0], &sides[1], settings->n_rounds, settings->seconds,
            &comparison) != 0)
        return -1;
    (void)printf("%-11s joined row %.1f us, own row by %s %.1f us: ratio %.2f (%.2f-%.2f)%s\n",
        bench_mysql.name, comparison.ours.p50_us, how, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst,
        report_goal(&settings->report, comparison.ratio, most));
    report_json(&settings->report, bench_mysql.name, how, "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return 0;
}

static int prepare(struct application *raw)
{
    static const char sql[] = "SELECT state FROM bench_order WHERE name = ? FOR UPDATE";
    static char name[] = "order-4711";

    raw->name.buffer_type = MYSQL_TYPE_STRING;
    raw->name.buffer = name;
    raw->name.buffer_length = sizeof name - 1;
    raw->state.buffer_type = MYSQL_TYPE_STRING;
    raw->state.buffer = raw->state_text;
    raw->state.buffer_length = sizeof raw->state_text;
    raw->prepared = mysql_stmt_init(raw->mysql);
    return raw->prepared != NULL &&
            mysql_stmt_prepare(raw->prepared, sql, sizeof sql - 1) == 0 &&
            mysql_stmt_bind_param(raw->prepared, &raw->name) == 0 &&
            mysql_stmt_bind_result(raw->prepared, &raw->state) == 0
        ? 0
        : -1;
}

static int compare_all(
    struct application *raw, struct application *ours, struct settings *settings)
{
    if (run(raw->mysql, "DROP TABLE IF EXISTS bench_order") != 0 ||
        run(raw->mysql, "CREATE TABLE bench_order (name varchar(64) PRIMARY KEY, state text)") != 0 ||
        run(raw->mysql, "INSERT INTO bench_order VALUES ('order-4711', 'paid')") != 0 ||
        prepare(raw) != 0 || run(raw->mysql, "BEGIN") != 0 || run(ours->mysql, "BEGIN") != 0 ||
        compare(raw, lock_prepared, "prepared statement", 0, ours, settings) != 0 ||
        compare(raw, lock_text, "text", 0, ours, settings) != 0 ||
        compare(raw, lock_text_nowait, "text, NOWAIT", goal, ours, settings) != 0)
        return -1;
    return run(raw->mysql, "COMMIT") != 0 ? -1 : run(raw->mysql, "DROP TABLE bench_order");
}

int joined_mysql_run(const char *url, struct settings *settings)
{
    struct library *library = library_open(&bench_mysql, url, DBLOCK_ROW, 0);
    struct application raw = { .mysql = raw_mysql_connect(url) };
    struct application ours = { .mysql = raw_mysql_connect(url),
        .client = library != NULL ? library_client(library) : NULL };
    int result = library != NULL && raw.mysql != NULL && ours.mysql != NULL
        ? compare_all(&raw, &ours, settings)
        : -1;

    if (raw.prepared != NULL)
        (void)mysql_stmt_close(raw.prepared);
    mysql_close(ours.mysql);
    mysql_close(raw.mysql);
    library_close(library);
    return result;
}
