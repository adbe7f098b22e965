/* SPDX-License-Identifier: MIT */
/* raw_sqlite.c - waiting on one machine without the library: flock; an upsert with its
 * update, the pair of a lease; and that pair inside flock. */
#include "raw_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct raw_sqlite {
    sqlite3 *handle;
    sqlite3_stmt *take;
    sqlite3_stmt *drop;
    int fd;
    int kind;
};

static sqlite3 *open_handle(const char *folder)
{
    sqlite3 *handle = NULL;
    char path[600];

    (void)snprintf(path, sizeof path, "%s/raw.db", folder);
    if (sqlite3_open(path, &handle) == SQLITE_OK &&
        sqlite3_busy_timeout(handle, 20000) == SQLITE_OK)
        return handle;
    (void)complain("sqlite3", handle != NULL ? sqlite3_errmsg(handle) : "out of memory");
    (void)sqlite3_close(handle);
    return NULL;
}

int raw_sqlite_begin(const char *folder)
{
    sqlite3 *handle = open_handle(folder);
    int failed = handle == NULL ||
        sqlite3_exec(handle,
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE IF NOT EXISTS bench_waiting (name TEXT PRIMARY KEY, owner INTEGER,"
            " fence INTEGER, expires_at INTEGER) WITHOUT ROWID",
            NULL, NULL, NULL) != SQLITE_OK;

    if (failed)
        (void)fprintf(
            stderr, "waiting: %s\n", handle != NULL ? sqlite3_errmsg(handle) : complaint());
    (void)sqlite3_close(handle);
    return failed ? -1 : 0;
}

static int prepare(struct raw_sqlite *raw, const char *text, sqlite3_stmt **ret_statement)
{
    if (sqlite3_prepare_v3(
            raw->handle, text, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL) == SQLITE_OK)
        return 0;
    return complain("sqlite3", sqlite3_errmsg(raw->handle));
}

static int open_rows(struct raw_sqlite *raw, const struct opening *opening)
{
    const char *safety =
        raw->kind == RAW_PAIR ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    char text[512];

    raw->handle = open_handle(opening->folder);
    if (raw->handle == NULL)
        return -1;
    if (sqlite3_exec(raw->handle, safety, NULL, NULL, NULL) != SQLITE_OK)
        return complain("sqlite3", sqlite3_errmsg(raw->handle));
    (void)snprintf(text, sizeof text,
        "INSERT INTO bench_waiting VALUES ('%s', %ld, 1, unixepoch() + 30)"
        " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = fence + 1,"
        " expires_at = excluded.expires_at WHERE expires_at <= unixepoch() RETURNING fence",
        opening->name, (long)getpid());
    if (prepare(raw, text, &raw->take) != 0)
        return -1;
    (void)snprintf(text, sizeof text,
        "UPDATE bench_waiting SET expires_at = 0 WHERE name = '%s' AND owner = %ld",
        opening->name, (long)getpid());
    return prepare(raw, text, &raw->drop);
}

static int open_file(struct raw_sqlite *raw, const struct opening *opening)
{
    char path[600];

    (void)snprintf(path, sizeof path, "%s/%s.lock", opening->folder, opening->name);
    raw->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return raw->fd >= 0 ? 0 : complain("flock", strerror(errno));
}

void *raw_sqlite_open(const struct mechanism *mechanism, const struct opening *opening)
{
    struct raw_sqlite *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->fd = -1;
    raw->kind = mechanism->kind;
    if ((raw->kind == RAW_PAIR || open_file(raw, opening) == 0) &&
        (raw->kind == RAW_FLOCK || open_rows(raw, opening) == 0))
        return raw;
    raw_sqlite_close(raw);
    return NULL;
}

/* Runs it; one row must change. */
static int run(struct raw_sqlite *raw, sqlite3_stmt *statement)
{
    int result;

    do
        result = sqlite3_step(statement);
    while (result == SQLITE_ROW);
    (void)sqlite3_reset(statement);
    if (result == SQLITE_DONE && sqlite3_changes(raw->handle) == 1)
        return 0;
    return complain(
        "sqlite3", result == SQLITE_DONE ? "nothing changed" : sqlite3_errmsg(raw->handle));
}

static int lock_file(int fd, int operation)
{
    while (flock(fd, operation) != 0)
        if (errno != EINTR)
            return complain("flock", strerror(errno));
    return 0;
}

int raw_sqlite_acquire(void *context, int64_t *ret_token)
{
    struct raw_sqlite *raw = context;

    (void)ret_token;
    if (raw->fd >= 0 && lock_file(raw->fd, LOCK_EX) != 0)
        return -1;
    return raw->take != NULL ? run(raw, raw->take) : 0;
}

int raw_sqlite_release(void *context)
{
    struct raw_sqlite *raw = context;

    if (raw->drop != NULL && run(raw, raw->drop) != 0)
        return -1;
    return raw->fd >= 0 ? lock_file(raw->fd, LOCK_UN) : 0;
}

void raw_sqlite_close(void *context)
{
    struct raw_sqlite *raw = context;

    (void)sqlite3_finalize(raw->take);
    (void)sqlite3_finalize(raw->drop);
    (void)sqlite3_close(raw->handle);
    if (raw->fd >= 0)
        (void)close(raw->fd);
    free(raw);
}
