/* SPDX-License-Identifier: MIT */
/* application_sqlite.c - the application's own connection to a SQLite file. */
#include "application.h"

#ifdef DBLOCK_TEST_HAS_SQLITE

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/sqlite.h>

#include "test_wait.h"

extern const struct application application_sqlite;

static int run(void *connection, const char *sql)
{
    return sqlite3_exec(connection, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

/* pause(milliseconds): 0 after that */
static void let_pass(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    (void)n_values;
    test_pass_ms((uint64_t)sqlite3_value_int64(values[0]));
    sqlite3_result_int(context, 0);
}

static void *open_connection(void)
{
    sqlite3 *connection = NULL;

    if (sqlite3_open(contract_sqlite.url(CONTRACT_URL) + strlen("sqlite:"), &connection) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(connection, 10000) != SQLITE_OK ||
        sqlite3_create_function(connection, "pause", 1, SQLITE_UTF8, NULL, let_pass, NULL,
            NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "application_sqlite: %s\n", sqlite3_errmsg(connection));
        abort();
    }
    return connection;
}

static void close_connection(void *connection)
{
    (void)sqlite3_close(connection);
}

static int64_t number(void *connection, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;

    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}

static dblock_status guard(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_sqlite_guard(lock, connection, sqlite3_sourceid(), error);
}

static dblock_status release_in(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_sqlite_release_in(lock, connection, sqlite3_sourceid(), error);
}

static dblock_status acquire_in(dblock_client *client, void *connection, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *error)
{
    return dblock_sqlite_acquire_in(
        client, connection, sqlite3_sourceid(), name, options, ret_lock, error);
}

static dblock_status open_on(void *connection, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *error)
{
    return dblock_sqlite_open_on(connection, sqlite3_sourceid(), config, ret_client, error);
}

static dblock_status watch(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_sqlite_watch(lock, connection, sqlite3_sourceid(), error);
}

const struct application application_sqlite = { .database = &contract_sqlite,
    .begin = "BEGIN IMMEDIATE",
    .begin_snapshot = "BEGIN",
    .plain_guard = "SELECT 1 FROM dblock_lease AS l WHERE l.name = CAST('%' AS BLOB)"
                   " AND l.token = # AND l.owner IS NOT NULL AND CASE WHEN l.session IS NULL"
                   " THEN l.expires_at ELSE (SELECT s.expires_at FROM dblock_session AS s"
                   " WHERE s.id = l.session) END"
                   " > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    .plain_row_guard = "SELECT 1 FROM dblock_token WHERE strategy = 3"
                       " AND name = CAST('%' AS BLOB) AND token = #",
    .has_one_writer = 1,
    .joins = 1u << DBLOCK_ROW | 1u << DBLOCK_ADVISORY,
    .open = open_connection,
    .close = close_connection,
    .run = run,
    .number = number,
    .guard = guard,
    .release_in = release_in,
    .acquire_in = acquire_in,
    .open_on = open_on,
    .watch = watch,
    .unwatch = dblock_sqlite_unwatch,
    .pause = "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c"
             " WHERE i < # / 10) SELECT SUM(pause(10)) FROM c" };

#endif
