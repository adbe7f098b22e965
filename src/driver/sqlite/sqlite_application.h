/* SPDX-License-Identifier: MIT */
/* sqlite_application.h - a connection that the application owns: whether it can be used, and what
 * an error on it means. */
#ifndef DBLK_SQLITE_APPLICATION_H
#define DBLK_SQLITE_APPLICATION_H

#include <dblock/sys/driver.h>

#include <sqlite3.h>

/* What is done there, for whom. */
struct sqlite_application {
    sqlite3 *handle;
    const char *action; /* "guard" */
    const char *name;   /* of the lock */
    struct dblock_error *reterr;
};

/* Is it of our copy of SQLite, and in a transaction? DBLOCK_OK, E_ARGUMENT, E_DRIVER. */
dblock_status sqlite_application_check(
    const struct sqlite_application *application, const char *source_id);
/* Is its main database the file of the locks? DBLOCK_OK, E_ARGUMENT. */
dblock_status sqlite_application_check_file(
    const struct sqlite_application *application, const char *path);

/* What an extended error code of it means: ROLLED_BACK, STALE_SNAPSHOT, or a failure. */
dblock_status sqlite_application_fail(const struct sqlite_application *application, int code);

/* The number that a PRAGMA says; -1: it says nothing. */
int sqlite_application_setting(sqlite3 *handle, const char *sql);

#endif
