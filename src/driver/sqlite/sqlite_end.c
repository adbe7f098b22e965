/* SPDX-License-Identifier: MIT */
/* sqlite_end.c - seeing the end of a transaction of the application without taking its hooks
 * (sqlite3_commit_hook() and its like have one place, which is the application's).
 *
 * A virtual table is told of the COMMIT or ROLLBACK of each transaction that has written to it.
 * There is one on each connection that joins locks, without rows and without a place in any
 * schema; a DELETE of all its rows is the whole of what is done to it. As for every change SQLite
 * makes the transaction the file's writer for that, and refuses it if what the transaction has
 * read is not the newest any more: a guard does the same.
 *
 * The connection keeps the module until it is closed, and closing rolls back before. */
#include "sqlite_end.h"

#include <pthread.h>
#include <stdlib.h>

struct joined {
    dblock_lock *lock;
    int strategy;
    int64_t number;
    struct joined *next;
};

struct sqlite_end {
    sqlite3 *handle;
    int is_awaited; /* a transaction is open that has written to the table */
    struct joined *first;
    struct sqlite_end *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct sqlite_end *ends;

static void release_all(struct sqlite_end *end)
{
    struct joined *joined;

    end->is_awaited = 0;
    while ((joined = end->first) != NULL) {
        end->first = joined->next;
        (void)dblock_release(joined->lock, NULL);
        dblock_lock_free(joined->lock); /* also if it could not be released here */
        free(joined);
    }
}

/* ------------------------------------------------------------ the virtual table */

struct table {
    sqlite3_vtab base;
    struct sqlite_end *end;
};

static int connect_table(sqlite3 *handle, void *end, int n_words, const char *const *words,
    sqlite3_vtab **ret_table, char **ret_error)
{
    struct table *table = calloc(1, sizeof *table);

    (void)n_words;
    (void)words;
    (void)ret_error;
    if (table == NULL)
        return SQLITE_NOMEM;
    table->end = end;
    *ret_table = &table->base;
    return sqlite3_declare_vtab(handle, "CREATE TABLE dblock_joined (name)");
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    (void)table;
    *ret_cursor = calloc(1, sizeof **ret_cursor);
    return *ret_cursor != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int find_rows(sqlite3_vtab_cursor *cursor, int number, const char *text, int n_values,
    sqlite3_value **values)
{
    (void)cursor;
    (void)number;
    (void)text;
    (void)n_values;
    (void)values;
    return SQLITE_OK;
}

static int go_on(sqlite3_vtab_cursor *cursor)
{
    (void)cursor;
    return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *cursor)
{
    (void)cursor;
    return 1;
}

static int read_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    (void)cursor;
    (void)context;
    (void)column;
    return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_rowid)
{
    (void)cursor;
    *ret_rowid = 0;
    return SQLITE_OK;
}

static int refuse_rows(
    sqlite3_vtab *table, int n_values, sqlite3_value **values, sqlite3_int64 *ret_rowid)
{
    (void)table;
    (void)n_values;
    (void)values;
    (void)ret_rowid;
    return SQLITE_READONLY;
}

static int begin(sqlite3_vtab *table)
{
    ((struct table *)table)->end->is_awaited = 1;
    return SQLITE_OK;
}

/* Of both, after the fact: what was committed is there for others. */
static int end_transaction(sqlite3_vtab *table)
{
    release_all(((struct table *)table)->end);
    return SQLITE_OK;
}

/* It has no xCreate: it is there by the name of its module, and in no schema. */
static const sqlite3_module module = { .iVersion = 1,
    .xConnect = connect_table,
    .xBestIndex = plan,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = find_rows,
    .xNext = go_on,
    .xEof = is_over,
    .xColumn = read_column,
    .xRowid = read_rowid,
    .xUpdate = refuse_rows,
    .xBegin = begin,
    .xCommit = end_transaction,
    .xRollback = end_transaction };

/* ------------------------------------------------------------------ connections */

/* The connection is being closed. */
static void forget(void *context)
{
    struct sqlite_end *end = context;
    struct sqlite_end **place;

    (void)pthread_mutex_lock(&mutex);
    for (place = &ends; *place != NULL && *place != end;)
        place = &(*place)->next;
    if (*place == end)
        *place = end->next;
    (void)pthread_mutex_unlock(&mutex);
    release_all(end);
    free(end);
}

struct sqlite_end *sqlite_end_of(sqlite3 *handle, int *ret_code)
{
    struct sqlite_end *end;

    *ret_code = SQLITE_OK;
    (void)pthread_mutex_lock(&mutex);
    for (end = ends; end != NULL && end->handle != handle;)
        end = end->next;
    (void)pthread_mutex_unlock(&mutex);
    if (end != NULL)
        return end;
    end = calloc(1, sizeof *end);
    if (end == NULL) {
        *ret_code = SQLITE_NOMEM;
        return NULL;
    }
    end->handle = handle;
    (void)pthread_mutex_lock(&mutex);
    end->next = ends;
    ends = end;
    (void)pthread_mutex_unlock(&mutex);
    /* if that fails it calls forget() */
    *ret_code = sqlite3_create_module_v2(handle, "dblock_joined", &module, end, forget);
    return *ret_code == SQLITE_OK ? end : NULL;
}

int sqlite_end_has(const struct sqlite_end *end, int strategy, int64_t number)
{
    const struct joined *joined = end->is_awaited ? end->first : NULL;

    while (joined != NULL && (joined->strategy != strategy || joined->number != number))
        joined = joined->next;
    return joined != NULL;
}

int sqlite_end_await(struct sqlite_end *end)
{
    int code;

    if (end->is_awaited)
        return SQLITE_OK;
    code = sqlite3_exec(end->handle, "DELETE FROM main.dblock_joined", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return end->is_awaited ? SQLITE_OK : SQLITE_INTERNAL;
    return sqlite3_extended_errcode(end->handle);
}

int sqlite_end_add(struct sqlite_end *end, int strategy, int64_t number, dblock_lock *lock)
{
    struct joined *joined = calloc(1, sizeof *joined);

    if (joined == NULL)
        return -1;
    joined->lock = lock;
    joined->strategy = strategy;
    joined->number = number;
    joined->next = end->first;
    end->first = joined;
    return 0;
}
