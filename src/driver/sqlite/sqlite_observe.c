/* SPDX-License-Identifier: MIT */
/* sqlite_observe.c - listing, breaking, purging. Why the statements are safe:
 * sql/observe.sql. */
#include "sqlite_byte.h"
#include "sqlite_clock.h"
#include "sqlite_grant.h"
#include "sqlite_hold.h"
#include "sqlite_stand.h"
#include "sqlite_statement.h"
#include "sqlite_steps.h"

#include <string.h>

#define HOUR_US ((int64_t)3600 * 1000000)

static void bind_text_as_blob(sqlite3_stmt *statement, int index, const char *text)
{
    if (text != NULL)
        (void)sqlite3_bind_blob(statement, index, text, (int)strlen(text), SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(statement, index);
}

static int is_on_page(const struct dblock_page *page, const char *name)
{
    if (page->name != NULL && strcmp(page->name, name) != 0)
        return 0;
    return page->prefix == NULL || strncmp(page->prefix, name, strlen(page->prefix)) == 0;
}

static dblock_status list_rows(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_page *page, dblock_grant_fn fn, void *context, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    struct dblock_grant grant;
    int has_row = 1;
    int is_over = 0;
    dblock_status status = sqlite_prepare(connection, hold->list, &statement, reterr);

    if (status != DBLOCK_OK)
        return status;
    bind_text_as_blob(statement, 1, page->after);
    bind_text_as_blob(statement, 2, page->name != NULL ? page->name : page->prefix);
    (void)sqlite3_bind_int(statement, 3, page->is_idle != 0);
    (void)sqlite3_bind_int64(
        statement, 4, page->limit < INT64_MAX ? (int64_t)page->limit : INT64_MAX);
    while (status == DBLOCK_OK && has_row && !is_over) {
        status = sqlite_fetch(connection, statement, &has_row, reterr);
        if (status != DBLOCK_OK || !has_row)
            continue;
        sqlite_grant_fill(statement, 1, hold->strategy, connection->clock_us, &grant);
        is_over = !is_on_page(page, grant.name);
        if (is_over)
            continue;
        grant.n_waiters = sqlite_stand_count(connection, hold->strategy, grant.name);
        is_over = fn(&grant, context) != 0;
    }
    if (is_over)
        (void)sqlite3_reset(statement);
    return status;
}

dblock_status sqlite_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = sqlite_step_begin(connection, call, "list locks in", NULL, reterr);

    if (status == DBLOCK_OK && page->strategy == DBLOCK_LEASE)
        status = list_rows(&sqlite_lease_hold, connection, page, fn, context, reterr);
    else if (status == DBLOCK_OK && page->strategy == DBLOCK_INSERT)
        status = list_rows(&sqlite_insert_hold, connection, page, fn, context, reterr);
    else if (status == DBLOCK_OK)
        status = sqlite_byte_list(connection, page, fn, context, reterr);
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (strategy == DBLOCK_LEASE)
        return sqlite_hold_end(
            &sqlite_lease_hold, connection, call, subject, token, answer, reterr);
    if (strategy == DBLOCK_INSERT)
        return sqlite_hold_end(
            &sqlite_insert_hold, connection, call, subject, token, answer, reterr);
    return sqlite_byte_end(connection, call, strategy, subject, token, answer, reterr);
}

dblock_status sqlite_observe_purge(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    static const int ids[] = {STATEMENT_SESSION_PURGE, STATEMENT_LEASE_PURGE,
        STATEMENT_INSERT_PURGE, STATEMENT_TOKEN_PURGE};
    int64_t before_us = sqlite_clock_us() - HOUR_US;
    dblock_status status = sqlite_step_begin(connection, call, "purge", NULL, reterr);
    size_t n_ids = sizeof ids / sizeof ids[0];
    size_t i;

    connection->is_patient = 0; /* waits for nobody; the next purge is soon enough */
    if (sqlite_connection_lines(connection) == NULL)
        --n_ids; /* the last one asks who holds what there */
    for (i = 0; status == DBLOCK_OK && i < n_ids; ++i) {
        sqlite3_stmt *statement = NULL;
        int n_changed = 0;

        status = sqlite_prepare(connection, ids[i], &statement, reterr);
        if (status != DBLOCK_OK)
            continue;
        (void)sqlite3_bind_int64(statement, 1, before_us);
        status = sqlite_change(connection, statement, &n_changed, reterr);
        answer->n_rows += (uint64_t)n_changed;
    }
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}
