/* SPDX-License-Identifier: MIT */
/* sqlite_connection.c - opening a file with care, waiting for its write lock, and
 * closing. What is run on a connection: sqlite_statement.c. */
#define _GNU_SOURCE /* ppoll, faccessat's AT_EACCESS */

#include "sqlite_connection.h"

#include "sqlite_byte.h"
#include "sqlite_clock.h"
#include "sqlite_error.h"
#include "sqlite_fork.h"
#include "sqlite_log.h"
#include "sqlite_side.h"
#include "sqlite_statement.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAUSE_SHORTEST_US 500
#define PAUSE_SPREAD_US 1000

/* ------------------------------------------------------------- the write lock */

static uint64_t draw_random(struct dblock_connection *connection)
{
    connection->random ^= connection->random << 13;
    connection->random ^= connection->random >> 7;
    connection->random ^= connection->random << 17;
    return connection->random;
}

int sqlite_pause(struct dblock_connection *connection, const struct dblock_call *call)
{
    uint64_t pause_us = PAUSE_SHORTEST_US + draw_random(connection) % PAUSE_SPREAD_US;
    uint64_t now_us = dblock_clock_us();
    struct pollfd cancel = {call->cancel_fd, POLLIN, 0};
    struct timespec time = {0, 0};

    if (now_us >= call->deadline_us)
        return 0;
    if (pause_us > call->deadline_us - now_us)
        pause_us = call->deadline_us - now_us;
    time.tv_nsec = (long)pause_us * 1000;
    if (ppoll(&cancel, 1, &time, NULL) > 0) {
        connection->is_cancelled = 1;
        return 0;
    }
    return 1;
}

/* SQLite's own handler sleeps longer with every try, up to 100 ms: beside a busy competitor it
 * gets the lock about never. Short pauses of random length serve all alike. */
int sqlite_wait_for_write_lock(void *context, int n_waits)
{
    struct dblock_connection *connection = context;

    (void)n_waits;
    if (connection->call == NULL || !connection->is_patient)
        return 0;
    return sqlite_pause(connection, connection->call);
}

/* -------------------------------------------------------------------- opening */

/* With symbolic links resolved, as SQLite does it: by whatever name two programs come to the file,
 * they must come to the same side file. */
static dblock_status resolve_path(
    struct dblock_connection *connection, int may_create, struct dblock_error *reterr)
{
    const char *path = connection->target->path;
    const char *slash = strrchr(path, '/');
    size_t folder_size = (size_t)(slash - path);
    char *folder;

    connection->path = realpath(path, NULL);
    if (connection->path != NULL)
        return DBLOCK_OK;
    if (errno != ENOENT)
        return sqlite_system_error(errno, "open", path, reterr);
    folder = malloc(folder_size + 2);
    if (folder == NULL)
        return sqlite_system_error(ENOMEM, "open", path, reterr);
    memcpy(folder, path, folder_size + 1);
    folder[folder_size > 0 ? folder_size : 1] = 0;
    connection->path = realpath(folder, NULL);
    free(folder);
    if (connection->path == NULL && errno == ENOENT)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA,
            "make its folder first, then " SQLITE_HINT_INIT,
            "cannot open %s: there is no such folder", path);
    if (connection->path == NULL)
        return sqlite_system_error(errno, "open", path, reterr);
    if (!may_create)
        return sqlite_system_error(ENOENT, "open", path, reterr);
    folder = connection->path;
    connection->path = sqlite_join(folder, strcmp(folder, "/") == 0 ? slash + 1 : slash);
    free(folder);
    return connection->path != NULL ? DBLOCK_OK : sqlite_system_error(ENOMEM, "open", path, reterr);
}

static dblock_status check_file_system(const char *path, struct dblock_error *reterr)
{
    char folder[4096];
    struct statfs system;
    const char *kind;

    dblock_text_copy(folder, sizeof folder, path);
    if (statfs(path, &system) != 0) {
        *strrchr(folder, '/') = 0; /* not there yet: its folder */
        if (statfs(folder[0] != 0 ? folder : "/", &system) != 0)
            return sqlite_system_error(errno, "look at", path, reterr);
    }
    kind = sqlite_shared_file_system((unsigned long)system.f_type);
    if (kind == NULL)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
        "use a file on a local disk; between machines use PostgreSQL or MySQL",
        "cannot open %s: it is on %s, where the locks of SQLite do not hold", path, kind);
}

static dblock_status check_file(struct dblock_connection *connection, struct dblock_error *reterr)
{
    const char *path = connection->path;

    if (stat(path, &connection->identity) != 0) {
        connection->identity.st_ino = 0;
        return DBLOCK_OK; /* to be made: resolve_path has let only install come here */
    }
    if (!S_ISREG(connection->identity.st_mode))
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA, "name a file",
            "cannot open %s: it is %s", path,
            S_ISDIR(connection->identity.st_mode) ? "a folder" : "not a plain file");
    if (connection->identity.st_nlink > 1)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "remove the other names of the file",
            "cannot open %s: the file has %lu names (hard links), and whoever uses another one "
            "would not meet these locks",
            path, (unsigned long)connection->identity.st_nlink);
    if (sqlite_is_mounted_alone(path))
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "mount its folder instead of the file",
            "cannot open %s: the file is mounted by itself (a bind mount, as of docker -v), and "
            "whoever uses it by its other path would not meet these locks",
            path);
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
        return sqlite_system_error(errno, "read", path, reterr);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return dblock_error_set(reterr, DBLOCK_E_READ_ONLY,
            "make the file and its folder writable for this user", "cannot write %s: %s", path,
            strerror(errno));
    if (sqlite_fork_has_inherited(&connection->identity))
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "fork before the first call that needs the database, or exec after the fork",
            "cannot open %s: it was open in the process that this one was forked from", path);
    return DBLOCK_OK;
}

dblock_status sqlite_connection_new(struct dblock_target *target, int role, int may_create,
    struct dblock_connection **ret_connection, struct dblock_error *reterr)
{
    struct dblock_connection *connection = calloc(1, sizeof *connection);
    dblock_status status;

    if (connection == NULL)
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "no memory for a connection to %s", target->path);
    connection->target = target;
    connection->self = connection;
    connection->is_lent = target->loan != NULL;
    connection->role = role;
    connection->may_create = may_create;
    connection->is_patient = 1;
    connection->random =
        dblock_clock_us() ^ ((uint64_t)(uintptr_t)connection << 16) ^ ((uint64_t)getpid() << 40);
    connection->random |= 1;
    status = resolve_path(connection, may_create, reterr);
    if (status == DBLOCK_OK)
        status = check_file_system(connection->path, reterr);
    if (status == DBLOCK_OK)
        status = check_file(connection, reterr);
    if (status != DBLOCK_OK) {
        free(connection->path);
        free(connection);
        return status;
    }
    sqlite_fork_register(connection);
    *ret_connection = connection;
    return DBLOCK_OK;
}

/* NORMAL is enough in the write-ahead log (session.sql says why), and costs no flush for each
 * commit. With a rollback journal it could leave the file damaged by a power cut: not ours to
 * risk. The question is also the first that reads the file, and finds one that is no database. */
static int set_synchronous(sqlite3 *handle)
{
    sqlite3_stmt *statement = NULL;
    int is_log = 0;
    int code = sqlite3_prepare_v2(handle, "PRAGMA journal_mode", -1, &statement, NULL);

    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        is_log = strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    if (statement != NULL)
        code = sqlite3_finalize(statement);
    if (code == SQLITE_OK && is_log)
        code = sqlite3_exec(handle, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
    return code;
}

static dblock_status open_failed(
    struct dblock_connection *connection, int code, struct dblock_error *reterr)
{
    dblock_status status = sqlite_error(connection, code, reterr);

    if (status != SQLITE_STEP_AGAIN)
        return status;
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "find out who keeps the file locked",
        "cannot open %s: it stayed locked", connection->path);
}

dblock_status sqlite_connection_handle(
    struct dblock_connection *connection, int may_create, struct dblock_error *reterr)
{
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (may_create ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(connection->path, &connection->handle, flags, NULL);
    dblock_status status;

    if (connection->handle == NULL)
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "no memory to open %s", connection->path);
    (void)sqlite3_extended_result_codes(connection->handle, 1);
    (void)sqlite3_busy_handler(connection->handle, sqlite_wait_for_write_lock, connection);
    if (code == SQLITE_OK)
        code = sqlite_functions_add(connection->handle, &connection->self, NULL);
    if (code == SQLITE_OK)
        code = set_synchronous(connection->handle);
    if (code == SQLITE_OK && stat(connection->path, &connection->identity) != 0)
        code = SQLITE_READONLY_DBMOVED;
    connection->moved_us = dblock_clock_us() + SQLITE_MOVED_EVERY_US;
    if (code == SQLITE_OK)
        return DBLOCK_OK;
    status = open_failed(connection, code, reterr);
    (void)sqlite3_close(connection->handle);
    connection->handle = NULL;
    return status;
}

dblock_status sqlite_connection_check_moved(
    struct dblock_connection *connection, struct dblock_error *reterr)
{
    uint64_t now_us = dblock_clock_us();
    int has_moved = 0;

    if (now_us < connection->moved_us)
        return DBLOCK_OK;
    connection->moved_us = now_us + SQLITE_MOVED_EVERY_US;
    sqlite_connection_renew_side(connection);
    (void)sqlite3_file_control(connection->handle, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    if (!has_moved)
        return DBLOCK_OK;
    connection->is_broken = 1;
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION,
        "never delete or replace the file while programs use it",
        "cannot %s in %s: the file that was open has been deleted or replaced", connection->action,
        connection->path);
}

dblock_status sqlite_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_connection *connection = NULL;
    dblock_status status = sqlite_connection_new(target, role, 0, &connection, reterr);

    if (status != DBLOCK_OK)
        return status;
    connection->call = call;
    if (sqlite_connection_has_own_side(connection))
        status = sqlite_connection_side(connection, reterr); /* the handle when it is needed */
    else if (!connection->is_lent) /* else each step takes it */
        status = sqlite_connection_handle(connection, 0, reterr);
    connection->call = NULL;
    if (status != DBLOCK_OK) {
        sqlite_connection_close(connection, DBLOCK_CLOSE_ABORT);
        return status;
    }
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->now_us = sqlite_clock_us();
    *ret_connection = connection;
    return DBLOCK_OK;
}

void sqlite_connection_close(struct dblock_connection *connection, int how)
{
    int i;

    if (connection == NULL)
        return;
    if (how == DBLOCK_CLOSE_FORKED) {
        /* the handle stays as it is, for ever: sqlite_fork.h */
        if (connection->side != NULL)
            sqlite_side_abandon(connection->side);
        return;
    }
    sqlite_fork_unregister(connection);
    sqlite_helper_free(connection->chain.helper);
    sqlite_side_close(connection->side);
    for (i = 0; i < N_STATEMENTS; ++i)
        (void)sqlite3_finalize(connection->statements[i]);
    if (connection->handle != NULL && !connection->is_lent) {
        if (!connection->may_create)
            sqlite_log_keep(connection);
        (void)sqlite3_close(connection->handle);
    }
    sqlite_slot_list_free(&connection->slots);
    free(connection->held);
    free(connection->path);
    free(connection);
}

int sqlite_connection_is_alive(const struct dblock_connection *connection)
{
    return !connection->is_broken;
}

int sqlite_connection_fd(const struct dblock_connection *connection)
{
    (void)connection;
    return -1; /* a file says nothing by itself */
}

dblock_status sqlite_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int has_row = 0;
    dblock_status status;

    if (sqlite_connection_has_own_side(connection))
        return sqlite_byte_ping(connection, answer);
    connection->moved_us = 0;
    status = sqlite_step_begin(connection, call, "ping", NULL, reterr);
    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_PING, &statement, reterr);
    if (status == DBLOCK_OK)
        status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (has_row)
        (void)sqlite3_reset(statement);
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}
