/* SPDX-License-Identifier: MIT */
/* sqlite_session.c - heartbeat rows. Why each statement is safe: sql/session.sql. */
#include "sqlite_clock.h"
#include "sqlite_grant.h"
#include "sqlite_statement.h"
#include "sqlite_steps.h"

dblock_status sqlite_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    sqlite3_stmt *statement = NULL;
    dblock_status status = sqlite_step_begin(connection, call, "begin a session in", NULL, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_SESSION_BEGIN, &statement, reterr);
    if (status == DBLOCK_OK) {
        sqlite_bind_id(statement, 1, session);
        sqlite_bind_us(statement, 2, ttl_us);
        (void)sqlite3_bind_text(statement, 3, target->host, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 4, target->pid);
        (void)sqlite3_bind_text(statement, 5, target->label, -1, SQLITE_STATIC);
        status = sqlite_change(connection, statement, NULL, reterr);
    }
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int n_changed = 0;
    dblock_status status = sqlite_step_begin(connection, call, "renew a session", NULL, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_SESSION_RENEW, &statement, reterr);
    if (status == DBLOCK_OK) {
        sqlite_bind_id(statement, 1, session);
        sqlite_bind_us(statement, 2, ttl_us);
        status = sqlite_change(connection, statement, &n_changed, reterr);
    }
    if (n_changed == 1)
        answer->changed = (uint64_t)connection->notes[0];
    answer->outcome = n_changed == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int n_changed = 0;
    dblock_status status = sqlite_step_begin(connection, call, "end a session", NULL, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_SESSION_END, &statement, reterr);
    if (status == DBLOCK_OK) {
        sqlite_bind_id(statement, 1, session);
        status = sqlite_change(connection, statement, &n_changed, reterr);
    }
    answer->outcome = n_changed == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    struct dblock_grant grant;
    int64_t now_us = sqlite_clock_us();
    int has_row = 1;
    int is_stopped = 0;
    dblock_status status =
        sqlite_step_begin(connection, call, "read the grants of a session", NULL, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_SESSION_HOLDS, &statement, reterr);
    if (status == DBLOCK_OK)
        sqlite_bind_id(statement, 1, session);
    while (status == DBLOCK_OK && has_row && !is_stopped) {
        status = sqlite_fetch(connection, statement, &has_row, reterr);
        if (status != DBLOCK_OK || !has_row)
            continue;
        sqlite_grant_fill(statement, 1, sqlite3_column_int(statement, 0), now_us, &grant);
        sqlite_grant_fill_owner(statement, 1, &grant);
        is_stopped = fn(&grant, context) != 0;
    }
    if (is_stopped)
        (void)sqlite3_reset(statement);
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}
