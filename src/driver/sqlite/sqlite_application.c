/* SPDX-License-Identifier: MIT */
/* sqlite_application.c - see sqlite_application.h. */
#include "sqlite_application.h"

#include <string.h>
#include <sys/stat.h>

#include "sqlite_error.h"
#include "sqlite_target.h"

dblock_status sqlite_application_check(
    const struct sqlite_application *application, const char *source_id)
{
    if (application->handle == NULL || source_id == NULL)
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT, NULL, "database: NULL");
    if (strcmp(source_id, sqlite3_sourceid()) != 0)
        return dblock_error_set(application->reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-sqlite with the same SQLite",
            "cannot %s \"%s\": the connection belongs to another copy of SQLite",
            application->action, application->name);
    if (sqlite3_get_autocommit(application->handle))
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT, "BEGIN IMMEDIATE before",
            "cannot %s \"%s\": the connection is in no transaction", application->action,
            application->name);
    return DBLOCK_OK;
}

/* Whether the path leads elsewhere than to what the handle has open. That costs as much as a tenth
 * of a guard, so it is asked as often as of connections of our own, not each time. A handle that is
 * opened in between, at the address of one that was closed, has what the path leads to. */
static int has_moved(sqlite3 *handle)
{
    static _Thread_local struct {
        sqlite3 *handle;
        uint64_t until_us;
    } looked;
    uint64_t now_us = dblock_clock_us();
    int result = 0;

    if (looked.handle == handle && now_us < looked.until_us)
        return 0;
    (void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &result);
    looked.handle = result ? NULL : handle;
    looked.until_us = now_us + SQLITE_MOVED_EVERY_US;
    return result;
}

dblock_status sqlite_application_check_file(
    const struct sqlite_application *application, const char *path)
{
    const char *theirs_path = sqlite3_db_filename(application->handle, "main");
    struct stat ours, theirs;

    /* of the same path it is enough that it still leads to what they have open */
    if (theirs_path != NULL && strcmp(theirs_path, path) == 0)
        return has_moved(application->handle)
            ? dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT,
                  "never delete or replace the file while programs use it",
                  "cannot %s \"%s\": the file %s that the connection has open was deleted or"
                  " replaced",
                  application->action, application->name, path)
            : DBLOCK_OK;
    if (theirs_path == NULL || *theirs_path == 0 || stat(theirs_path, &theirs) != 0 ||
        stat(path, &ours) != 0 || ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT,
            "use a connection whose main database is the lock's file",
            "cannot %s \"%s\": the connection is to %s, the lock is in %s", application->action,
            application->name,
            theirs_path != NULL && *theirs_path != 0 ? theirs_path : "no file", path);
    /* another log: its transactions exclude nobody here */
    if (sqlite_is_mounted_alone(theirs_path))
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT,
            "mount its folder instead of the file",
            "cannot %s \"%s\": the connection's file %s is mounted by itself", application->action,
            application->name, theirs_path);
    return DBLOCK_OK;
}

dblock_status sqlite_application_fail(const struct sqlite_application *application, int code)
{
    const char *action = application->action;
    const char *name = application->name;
    dblock_status status;

    if (sqlite3_get_autocommit(application->handle))
        return DBLOCK_ROLLED_BACK; /* full disk, I/O, memory: SQLite ended it */
    if (code == SQLITE_BUSY_SNAPSHOT)
        return DBLOCK_STALE_SNAPSHOT;
    if ((code & 0xFF) == SQLITE_BUSY || (code & 0xFF) == SQLITE_LOCKED) {
        status = dblock_error_set(application->reterr, DBLOCK_E_DATABASE,
            "roll back, and begin again; sqlite3_busy_timeout() lets it wait",
            "cannot %s \"%s\": somebody else writes the file", action, name);
        dblock_error_native(application->reterr, code, NULL, 1);
        return status;
    }
    status = (code & 0xFF) == SQLITE_READONLY ? DBLOCK_E_READ_ONLY
        : (code & 0xFF) == SQLITE_ERROR      ? DBLOCK_E_SCHEMA
        : (code & 0xFF) == SQLITE_NOMEM      ? DBLOCK_E_MEMORY
                                             : DBLOCK_E_DATABASE;
    (void)dblock_error_set(application->reterr, status,
        status == DBLOCK_E_SCHEMA ? SQLITE_HINT_INIT : NULL, "cannot %s \"%s\": %s", action, name,
        sqlite3_errmsg(application->handle));
    dblock_error_native(application->reterr, code, NULL, 0);
    return status;
}

int sqlite_application_setting(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int value = -1;

    if (sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}
