/* SPDX-License-Identifier: MIT */
/* sqlite_watch.c - what runs on a connection of the application is interrupted when a lock is
 * lost. sqlite3_interrupt() may be called by any thread as long as the connection lives. */
#include <dblock/sqlite.h>
#include <dblock/sys/driver.h>

#include <sqlite3.h>
#include <string.h>

static void interrupt(void *context, const struct dblock_call *call)
{
    (void)call;
    sqlite3_interrupt(context);
}

static void keep(void *context)
{
    (void)context; /* the application's */
}

dblock_status dblock_sqlite_watch(dblock_lock *lock, struct sqlite3 *database,
    const char *source_id, struct dblock_error *reterr)
{
    const struct dblock_watch way = { interrupt, keep, database };
    struct dblock_target *target;
    dblock_status status = dblock_watch_check(lock, dblock_sqlite_driver(), &target, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (database == NULL || source_id == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            database == NULL ? "database: NULL" : "source_id: NULL");
    if (strcmp(source_id, sqlite3_sourceid()) != 0)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-sqlite with the same SQLite",
            "cannot watch \"%s\": the connection belongs to another copy of SQLite",
            dblock_lock_name(lock));
    return dblock_watch_begin(lock, &way, reterr);
}

void dblock_sqlite_unwatch(dblock_lock *lock)
{
    dblock_watch_end(lock);
}
