/* SPDX-License-Identifier: MIT */
/* sqlite_error.c - what a result code of SQLite means here, as a table. */
#include "sqlite_error.h"

#include "sqlite_statement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    IS_BROKEN = 1, /* the connection is of no use afterwards */
    IS_TRANSIENT = 2
};

static const char hint_room[] = "make room on the disk that the file is on";
static const char hint_limit[] = "raise the limit of the size of files (ulimit -f)";

static const struct code_entry {
    int code; /* extended; or primary, for all extended codes that are not listed */
    dblock_status status;
    int flags;
    const char *hint;
} codes[] = {
    {SQLITE_BUSY, SQLITE_STEP_AGAIN, 0, NULL},
    {SQLITE_LOCKED, SQLITE_STEP_AGAIN, 0, NULL},
    {SQLITE_PROTOCOL, SQLITE_STEP_AGAIN, 0, NULL}, /* lost a race for the log's own locks */
    {SQLITE_READONLY_DBMOVED, DBLOCK_E_CONNECTION, IS_BROKEN, NULL},
    {SQLITE_READONLY, DBLOCK_E_READ_ONLY, 0, "make the file and its folder writable for this user"},
    {SQLITE_PERM, DBLOCK_E_PERMISSION, 0, "let this user read and write the file and its folder"},
    {SQLITE_AUTH, DBLOCK_E_PERMISSION, 0, NULL},
    {SQLITE_CANTOPEN, DBLOCK_E_PERMISSION, 0,
        "let this user read and write the file, and make files in its folder"},
    /* the path is wrong, as one without tables is */
    {SQLITE_NOTADB, DBLOCK_E_SCHEMA, IS_BROKEN,
        "give dblock a path where there is no file yet, then run: dblock init"},
    {SQLITE_CORRUPT, DBLOCK_E_DATABASE, IS_BROKEN, "see PRAGMA integrity_check"},
    {SQLITE_FULL, DBLOCK_E_DATABASE, IS_TRANSIENT, hint_room},
    {SQLITE_NOMEM, DBLOCK_E_MEMORY, 0, NULL},
    {SQLITE_IOERR_NOMEM, DBLOCK_E_MEMORY, 0, NULL},
    /* a commit that met one of these may be found in the log by the next who reads it */
    {SQLITE_IOERR_WRITE, DBLOCK_E_UNCERTAIN, IS_BROKEN, NULL},
    {SQLITE_IOERR_FSYNC, DBLOCK_E_UNCERTAIN, IS_BROKEN, NULL},
    {SQLITE_IOERR_DIR_FSYNC, DBLOCK_E_UNCERTAIN, IS_BROKEN, NULL},
    {SQLITE_IOERR_TRUNCATE, DBLOCK_E_UNCERTAIN, IS_BROKEN, NULL},
    {SQLITE_IOERR_DELETE, DBLOCK_E_UNCERTAIN, IS_BROKEN, NULL},
    {SQLITE_IOERR, DBLOCK_E_DATABASE, IS_BROKEN, NULL},
};

static const struct code_entry *find_code(int code)
{
    size_t pass, i;

    for (pass = 0; pass < 2; ++pass)
        for (i = 0; i < sizeof codes / sizeof codes[0]; ++i)
            if (codes[i].code == (pass == 0 ? code : code & 0xFF))
                return &codes[i];
    return NULL;
}

/* SQLITE_ERROR has no codes of its own for these; the texts are the same in all versions. */
static int is_about_schema(const char *text)
{
    return strncmp(text, "no such table", 13) == 0 || strncmp(text, "no such column", 14) == 0 ||
           strstr(text, " has no column named ") != NULL;
}

dblock_status sqlite_status_of(int code, const char *text)
{
    const struct code_entry *entry = find_code(code);

    if (entry != NULL)
        return entry->status;
    return code == SQLITE_ERROR && is_about_schema(text) ? DBLOCK_E_SCHEMA : DBLOCK_E_DATABASE;
}

static int is_full(int number)
{
    return number == ENOSPC || number == EDQUOT;
}

/* Why the system refused, where SQLite only says that it did; 0 if that is not known. */
static int cause_of(const struct dblock_connection *connection, int code)
{
    int primary = code & 0xFF;
    int number = connection->handle != NULL ? sqlite3_system_errno(connection->handle) : 0;

    if (primary == SQLITE_FULL) /* or a page limit, but nobody sets one here */
        return is_full(number) ? number : ENOSPC;
    if (primary == SQLITE_CANTOPEN ||
        (primary == SQLITE_IOERR && (is_full(number) || number == EFBIG)))
        return number;
    return 0;
}

/* "Unable to open" and "I/O error" have causes that the file is not to blame for. */
static dblock_status refine(int code, int cause, dblock_status status)
{
    if (cause == EFBIG && status == DBLOCK_E_DATABASE)
        return DBLOCK_E_SYSTEM;
    if ((code & 0xFF) != SQLITE_CANTOPEN)
        return status;
    if (cause == EMFILE || cause == ENFILE)
        return DBLOCK_E_SYSTEM;
    return cause == ENOENT ? DBLOCK_E_SCHEMA : status;
}

/* Its own limit is over, and nobody may have wanted the lock: it is the file that was busy. */
static void tell_locked(
    const struct dblock_connection *connection, int code, struct dblock_error *reterr)
{
    int has_name = connection->name != NULL;

    (void)dblock_error_set(reterr, DBLOCK_E_DATABASE,
        "find out who keeps a transaction open on it, and try again",
        "cannot %s %s%s%s%s: another program keeps the file locked",
        connection->action != NULL ? connection->action : "open", has_name ? "\"" : "",
        has_name ? connection->name : "", has_name ? "\" in " : "", connection->path);
    dblock_error_native(reterr, code, NULL, 1);
}

dblock_status sqlite_error(
    struct dblock_connection *connection, int code, struct dblock_error *reterr)
{
    const char *text =
        connection->handle != NULL ? sqlite3_errmsg(connection->handle) : sqlite3_errstr(code);
    const char *action = connection->action != NULL ? connection->action : "open";
    const struct code_entry *entry;
    dblock_status status;
    const char *hint;
    int cause;
    char reason[200];

    /* a connection of the application may say the primary codes alone */
    if (connection->is_lent && connection->handle != NULL &&
        (sqlite3_extended_errcode(connection->handle) & 0xFF) == code)
        code = sqlite3_extended_errcode(connection->handle);
    entry = find_code(code);
    status = sqlite_status_of(code, text);
    hint = entry != NULL ? entry->hint : NULL;
    cause = cause_of(connection, code);
    if (status == SQLITE_STEP_AGAIN && connection->is_cancelled)
        return DBLOCK_CANCELLED;
    if (status == SQLITE_STEP_AGAIN) {
        if (connection->is_patient)
            tell_locked(connection, code, reterr);
        return SQLITE_STEP_AGAIN;
    }
    status = refine(code, cause, status);
    if (status == DBLOCK_E_SCHEMA && (entry == NULL || entry->status != status))
        hint = SQLITE_HINT_INIT;
    if (status == DBLOCK_E_SYSTEM)
        hint = "raise the limit of open files (ulimit -n), or close some";
    if (cause == EFBIG)
        hint = hint_limit;
    if (is_full(cause))
        hint = hint_room;
    if (cause != 0) {
        (void)snprintf(reason, sizeof reason, "%s (%s)", strerror(cause), text);
        text = reason;
    }
    if (connection->name != NULL)
        (void)dblock_error_set(reterr, status, hint, "cannot %s \"%s\" in %s: %s", action,
            connection->name, connection->path, text);
    else
        (void)dblock_error_set(
            reterr, status, hint, "cannot %s %s: %s", action, connection->path, text);
    dblock_error_native(reterr, code, NULL,
        status == DBLOCK_E_CONNECTION || status == DBLOCK_E_UNCERTAIN ||
            status == DBLOCK_E_SYSTEM || is_full(cause) ||
            (entry != NULL && (entry->flags & IS_TRANSIENT) != 0));
    /* row and advisory are held in the side file, whatever the main one is like */
    if (entry != NULL && (entry->flags & IS_BROKEN) != 0 &&
        (connection->n_held == 0 || code == SQLITE_READONLY_DBMOVED))
        connection->is_broken = 1;
    return status;
}

dblock_status sqlite_system_error(
    int number, const char *attempt, const char *path, struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_E_SYSTEM;
    const char *hint = NULL;

    switch (number) {
    case ENOENT:
        status = DBLOCK_E_SCHEMA;
        hint = SQLITE_HINT_INIT;
        break;
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        status = DBLOCK_E_SCHEMA;
        hint = "name another path";
        break;
    case EACCES:
    case EPERM:
        status = DBLOCK_E_PERMISSION;
        hint = "let this user read and write the file, and make files in its folder";
        break;
    case EROFS:
        status = DBLOCK_E_READ_ONLY;
        hint = "use a file on a file system that can be written";
        break;
    case ENOSPC:
    case EDQUOT:
        status = DBLOCK_E_DATABASE;
        hint = hint_room;
        break;
    case ENOMEM:
        status = DBLOCK_E_MEMORY;
        break;
    case EFBIG:
        hint = hint_limit;
        break;
    default:
        break;
    }
    (void)dblock_error_set(
        reterr, status, hint, "cannot %s %s: %s", attempt, path, strerror(number));
    dblock_error_native(
        reterr, number, NULL, number == EMFILE || number == ENFILE || is_full(number));
    return status;
}
