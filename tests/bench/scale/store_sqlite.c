/* SPDX-License-Identifier: MIT */
/* store_sqlite.c - SQLite, beside the driver. */
#include <dblock/sqlite.h>

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scale.h"

enum { BUSY_MS = 20000 };

struct raw {
    sqlite3 *handle;
    sqlite3_stmt *update;
};

static int complain(struct raw *raw)
{
    (void)fprintf(stderr, "scale: sqlite3: %s\n",
        raw->handle != NULL ? sqlite3_errmsg(raw->handle) : "no handle");
    return -1;
}

static int run(struct raw *raw, const char *text)
{
    return sqlite3_exec(raw->handle, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : complain(raw);
}

static void close_raw(void *context)
{
    struct raw *raw = context;

    (void)sqlite3_finalize(raw->update);
    if (raw->handle != NULL)
        (void)run(raw, "DROP TABLE IF EXISTS bench_scale");
    (void)sqlite3_close(raw->handle);
    free(raw);
}

static int set_up(struct raw *raw, const char *path)
{
    if (sqlite3_open_v2(path, &raw->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return complain(raw);
    (void)sqlite3_busy_timeout(raw->handle, BUSY_MS);
    if (run(raw, "PRAGMA synchronous = NORMAL;"
                 "CREATE TABLE IF NOT EXISTS bench_scale (id BLOB PRIMARY KEY, n INTEGER)"
                 " WITHOUT ROWID;"
                 "INSERT INTO bench_scale VALUES (x'78', 0) ON CONFLICT DO NOTHING") != 0)
        return -1;
    return sqlite3_prepare_v3(raw->handle, "UPDATE bench_scale SET n = n + 1 WHERE id = x'78'", -1,
               SQLITE_PREPARE_PERSISTENT, &raw->update, NULL) == SQLITE_OK
        ? 0
        : complain(raw);
}

static void *open_raw(const char *url)
{
    struct raw *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    if (set_up(raw, strchr(url, ':') + 1) == 0)
        return raw;
    close_raw(raw);
    return NULL;
}

static int update(void *context)
{
    struct raw *raw = context;
    int code = sqlite3_step(raw->update);

    (void)sqlite3_reset(raw->update);
    return code == SQLITE_DONE ? 0 : complain(raw);
}

static int leave(void *raw, long n, int64_t *ret_token)
{
    char text[640];

    /* a minute ahead of the clock: only the floor keeps later tokens above it */
    *ret_token = ((int64_t)time(NULL) + 60) * 1000000;
    (void)snprintf(text, sizeof text,
        "WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i + 1 < %ld)"
        " INSERT INTO dblock_lease (name, token, since, expires_at, label, host, pid)"
        " SELECT CAST('bench-left-' || i AS BLOB), %" PRId64 ", %" PRId64
        " - 7260000000, 0, '', 'bench', 1 FROM s",
        n, *ret_token, *ret_token);
    return run(raw, text);
}

#define LEFT                                                                                       \
    "name >= CAST('bench-left-' AS BLOB) AND name < CAST('bench-left.' AS BLOB)"

static long count_left(void *context)
{
    struct raw *raw = context;
    sqlite3_stmt *statement = NULL;
    long n = -1;

    if (sqlite3_prepare_v2(raw->handle, "SELECT count(*) FROM dblock_lease WHERE " LEFT, -1,
            &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        n = (long)sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return n >= 0 ? n : complain(raw);
}

static int forget(void *raw)
{
    return run(raw, "DELETE FROM dblock_lease WHERE " LEFT);
}

const struct store scale_sqlite = {
    .name = "SQLite",
    .driver = dblock_sqlite_driver,
    .open = open_raw,
    .close = close_raw,
    .update = update,
    .leave = leave,
    .count_left = count_left,
    .forget = forget,
};
