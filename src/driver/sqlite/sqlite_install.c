/* SPDX-License-Identifier: MIT */
/* sqlite_install.c - makes the file and its tables, and checks that they are there. */
#include "sqlite_error.h"
#include "sqlite_side.h"
#include "sqlite_sql.h"
#include "sqlite_statement.h"
#include "sqlite_steps.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA_VERSION 1
#define N_TRIGGERS 3

static dblock_status read_number(
    struct dblock_connection *connection, int id, int64_t *ret_number, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int has_row = 0;
    dblock_status status = sqlite_prepare(connection, id, &statement, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (!has_row)
        return status;
    *ret_number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return DBLOCK_OK;
}

/* Whoever changes the journal mode needs the file alone for a moment, and SQLite says BUSY at once
 * instead of asking the handler, when several open a new file together. */
static dblock_status turn_log_on(struct dblock_connection *connection, struct dblock_error *reterr)
{
    for (;;) {
        int code = sqlite3_exec(connection->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        dblock_status status =
            code == SQLITE_OK ? DBLOCK_OK : sqlite_error(connection, code, reterr);

        if (status != SQLITE_STEP_AGAIN)
            return status;
        if (!sqlite_pause(connection, connection->call))
            return connection->is_cancelled ? DBLOCK_CANCELLED : SQLITE_STEP_AGAIN;
    }
}

/* All in one transaction: who comes second waits, and finds that everything exists. */
static dblock_status make_tables(struct dblock_connection *connection, struct dblock_error *reterr)
{
    dblock_status status = sqlite_begin(connection, reterr);
    int code;

    if (status != DBLOCK_OK)
        return status;
    code = sqlite3_exec(connection->handle, sqlite_schema_text, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return sqlite_error(connection, code, reterr);
    return sqlite_commit(connection, reterr);
}

static dblock_status check_tables(struct dblock_connection *connection, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int64_t version = 0;
    int is_complete = 0;
    int has_row = 0;
    dblock_status status = sqlite_prepare(connection, STATEMENT_VERIFY, &statement, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (has_row) {
        version = sqlite3_column_int64(statement, 0);
        is_complete =
            sqlite3_column_int(statement, 1) == 1 && sqlite3_column_int(statement, 2) == N_TRIGGERS;
        (void)sqlite3_reset(statement);
    }
    if (version > SCHEMA_VERSION)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA, "install a newer release of dblock here",
            "the tables in %s are of schema version %lld, this release knows %d", connection->path,
            (long long)version, SCHEMA_VERSION);
    if (version != SCHEMA_VERSION || !is_complete)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA, SQLITE_HINT_INIT,
            "the tables in %s are not complete", connection->path);
    return DBLOCK_OK;
}

dblock_status sqlite_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status =
        sqlite_step_begin(connection, call, "verify the tables in", NULL, reterr);

    if (status == DBLOCK_OK)
        status = check_tables(connection, reterr);
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}

/* The write-ahead log is turned on in a file that is new, so that locking one name does not make
 * others wait for a flush; the journal mode of a file that has other tables is its owner's. */
static dblock_status set_up(struct dblock_connection *connection, struct dblock_error *reterr)
{
    int64_t n_tables = 0;
    dblock_status status = read_number(connection, STATEMENT_COUNT_TABLES, &n_tables, reterr);

    if (status == DBLOCK_OK && n_tables == 0)
        status = turn_log_on(connection, reterr);
    if (status == DBLOCK_OK && n_tables > 0 && check_tables(connection, reterr) == DBLOCK_OK)
        return DBLOCK_OK;
    if (status == DBLOCK_OK)
        status = make_tables(connection, reterr);
    if (status == DBLOCK_OK)
        status = check_tables(connection, reterr);
    return status;
}

/* SQLite says only that it cannot open what it could not make. */
static dblock_status refuse_place(
    struct dblock_connection *connection, dblock_status status, struct dblock_error *reterr)
{
    char *end = strrchr(connection->path, '/');
    int is_writable;

    if (status != DBLOCK_E_SCHEMA || (reterr->native_code & 0xFF) != SQLITE_CANTOPEN || end == NULL)
        return status;
    *end = 0;
    is_writable = access(end == connection->path ? "/" : connection->path, W_OK | X_OK) == 0;
    *end = '/';
    if (!is_writable)
        return sqlite_system_error(errno, "make", connection->path, reterr);
    return dblock_error_set(reterr, DBLOCK_E_SCHEMA, "name another path",
        "cannot make %s: its folder takes no such file", connection->path);
}

dblock_status sqlite_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr)
{
    struct dblock_connection *connection = NULL;
    struct dblock_answer answer;
    dblock_status status =
        sqlite_connection_new(target, DBLOCK_ROLE_CONTROL, 1, &connection, reterr);

    if (status != DBLOCK_OK)
        return status;
    memset(&answer, 0, sizeof answer);
    connection->call = call;
    connection->action = "create tables in";
    status = refuse_place(connection, sqlite_connection_handle(connection, 1, reterr), reterr);
    if (status == DBLOCK_OK)
        status = sqlite_step_begin(connection, call, "create tables in", NULL, reterr);
    if (status == DBLOCK_OK)
        status = sqlite_step_end(connection, set_up(connection, reterr), &answer);
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_AGAIN) {
        status = dblock_error_set(reterr, DBLOCK_E_DATABASE, "find out who keeps the file locked",
            "cannot create tables in %s: it stayed locked", connection->path);
        dblock_error_native(reterr, SQLITE_BUSY, NULL, 1);
    }
    /* so that those who may lock later need no right to make files */
    if (status == DBLOCK_OK)
        status = sqlite_connection_side(connection, reterr);
    sqlite_connection_close(connection, DBLOCK_CLOSE_POLITE);
    return status;
}
