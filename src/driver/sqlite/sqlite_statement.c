/* SPDX-License-Identifier: MIT */
/* sqlite_statement.c - named statements: prepared once, run within the limits of a
 * step, and reset on every path, because a statement that is left in the middle
 * keeps the write lock. */
#include "sqlite_statement.h"

#include "sqlite_clock.h"
#include "sqlite_error.h"
#include "sqlite_loan.h"
#include "sqlite_sql.h"

#include <string.h>

static const char *const texts[N_STATEMENTS] = {
    [STATEMENT_PING] = sqlite_sql_ping,
    [STATEMENT_VERIFY] = sqlite_sql_verify_tables,
    [STATEMENT_COUNT_TABLES] = sqlite_sql_install_count,
    [STATEMENT_SESSION_BEGIN] = sqlite_sql_session_begin,
    [STATEMENT_SESSION_RENEW] = sqlite_sql_session_renew,
    [STATEMENT_SESSION_END] = sqlite_sql_session_end,
    [STATEMENT_SESSION_END_EXPIRED] = sqlite_sql_session_end_expired,
    [STATEMENT_SESSION_TOUCH] = sqlite_sql_session_touch,
    [STATEMENT_SESSION_HOLDS] = sqlite_sql_session_holds,
    [STATEMENT_SESSION_PURGE] = sqlite_sql_session_purge,
    [STATEMENT_LEASE_TAKE] = sqlite_sql_lease_take,
    [STATEMENT_LEASE_DROP] = sqlite_sql_lease_drop,
    [STATEMENT_LEASE_EXTEND] = sqlite_sql_lease_extend,
    [STATEMENT_LEASE_LOOK] = sqlite_sql_lease_look,
    [STATEMENT_LEASE_DRAW] = sqlite_sql_lease_draw,
    [STATEMENT_LEASE_LIST] = sqlite_sql_lease_list,
    [STATEMENT_LEASE_END] = sqlite_sql_lease_end,
    [STATEMENT_LEASE_PURGE] = sqlite_sql_lease_purge,
    [STATEMENT_INSERT_TAKE] = sqlite_sql_insert_take,
    [STATEMENT_INSERT_DROP] = sqlite_sql_insert_drop,
    [STATEMENT_INSERT_EXTEND] = sqlite_sql_insert_extend,
    [STATEMENT_INSERT_LOOK] = sqlite_sql_insert_look,
    [STATEMENT_INSERT_DRAW] = sqlite_sql_insert_draw,
    [STATEMENT_INSERT_LIST] = sqlite_sql_insert_list,
    [STATEMENT_INSERT_END] = sqlite_sql_insert_end,
    [STATEMENT_INSERT_PURGE] = sqlite_sql_insert_purge,
    [STATEMENT_TOKEN_DRAW] = sqlite_sql_token_draw,
    [STATEMENT_TOKEN_LOOK] = sqlite_sql_token_look,
    [STATEMENT_TOKEN_PURGE] = sqlite_sql_token_purge,
};

dblock_status sqlite_step_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const char *action, const char *name,
    struct dblock_error *reterr)
{
    connection->call = call;
    connection->action = action;
    connection->name = name;
    connection->clock_us = 0;
    connection->is_patient = 1;
    connection->is_cancelled = 0;
    if (connection->is_lent) {
        dblock_status status = sqlite_loan_take(connection, reterr);

        return status == DBLOCK_OK ? sqlite_connection_check_moved(connection, reterr) : status;
    }
    if (connection->handle == NULL)
        return sqlite_connection_handle(connection, 0, reterr);
    return sqlite_connection_check_moved(connection, reterr);
}

dblock_status sqlite_step_end(
    struct dblock_connection *connection, dblock_status status, struct dblock_answer *answer)
{
    int is_ours = !connection->is_lent || sqlite_loan_is_taken(connection);

    if (is_ours && connection->handle != NULL && !sqlite3_get_autocommit(connection->handle))
        (void)sqlite3_exec(connection->handle, "ROLLBACK", NULL, NULL, NULL); /* or it is broken */
    answer->now_us = connection->clock_us != 0 ? connection->clock_us : sqlite_clock_us();
    if (is_ours && connection->is_lent)
        sqlite_loan_give_back(connection);
    connection->call = NULL;
    connection->action = NULL;
    connection->name = NULL;
    if (status != SQLITE_STEP_AGAIN)
        return status;
    answer->outcome = DBLOCK_ANSWER_AGAIN;
    return DBLOCK_OK;
}

dblock_status sqlite_prepare(struct dblock_connection *connection, int id,
    sqlite3_stmt **ret_statement, struct dblock_error *reterr)
{
    int code;

    if (sqlite3_get_autocommit(connection->handle))
        connection->clock_us = 0;
    connection->notes[0] = -1;
    connection->notes[1] = -1;
    if (connection->statements[id] == NULL) {
        code = sqlite3_prepare_v3(connection->handle, texts[id], -1, SQLITE_PREPARE_PERSISTENT,
            &connection->statements[id], NULL);
        if (code != SQLITE_OK)
            return sqlite_error(connection, code, reterr);
    }
    *ret_statement = connection->statements[id];
    return DBLOCK_OK;
}

dblock_status sqlite_fetch(struct dblock_connection *connection, sqlite3_stmt *statement,
    int *ret_has_row, struct dblock_error *reterr)
{
    int code = sqlite3_step(statement);
    dblock_status status = DBLOCK_OK;

    while (sqlite_loan_waits(connection, code)) {
        (void)sqlite3_reset(statement);
        code = sqlite3_step(statement);
    }
    *ret_has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return DBLOCK_OK;
    if (code != SQLITE_DONE)
        status = sqlite_error(connection, code, reterr);
    (void)sqlite3_reset(statement); /* says again what the step said */
    return status;
}

dblock_status sqlite_change(struct dblock_connection *connection, sqlite3_stmt *statement,
    int *ret_n_changed, struct dblock_error *reterr)
{
    int has_row;
    dblock_status status = sqlite_fetch(connection, statement, &has_row, reterr);

    /* the application's connection may have PRAGMA count_changes: a row, and the commit after it */
    while (status == DBLOCK_OK && has_row)
        status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (status == DBLOCK_OK && ret_n_changed != NULL)
        *ret_n_changed = sqlite3_changes(connection->handle);
    return status;
}

static dblock_status run_text(
    struct dblock_connection *connection, const char *text, struct dblock_error *reterr)
{
    int code = sqlite3_exec(connection->handle, text, NULL, NULL, NULL);

    while (sqlite_loan_waits(connection, code))
        code = sqlite3_exec(connection->handle, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? DBLOCK_OK : sqlite_error(connection, code, reterr);
}

dblock_status sqlite_begin(struct dblock_connection *connection, struct dblock_error *reterr)
{
    dblock_status status = run_text(connection, "BEGIN IMMEDIATE", reterr);

    connection->clock_us = 0;
    return status;
}

dblock_status sqlite_commit(struct dblock_connection *connection, struct dblock_error *reterr)
{
    return run_text(connection, "COMMIT", reterr);
}

/* Binding fails only for lack of memory (nothing is copied here) or a wrong index, and a NULL that
 * is bound instead violates a constraint: such a statement fails by itself. */
void sqlite_bind_name(sqlite3_stmt *statement, int index, const struct dblock_subject *subject)
{
    (void)sqlite3_bind_blob(
        statement, index, subject->name, (int)subject->name_size, SQLITE_STATIC);
}

void sqlite_bind_id(sqlite3_stmt *statement, int index, const unsigned char *id)
{
    if (id != NULL)
        (void)sqlite3_bind_blob(statement, index, id, DBLOCK_ID_SIZE, SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(statement, index);
}

void sqlite_bind_us(sqlite3_stmt *statement, int index, uint64_t duration_us)
{
    const uint64_t longest_us = (uint64_t)1 << 61;

    (void)sqlite3_bind_int64(
        statement, index, (int64_t)(duration_us < longest_us ? duration_us : longest_us));
}
