/* SPDX-License-Identifier: MIT */
/* sqlite_grant.c - reads the columns that sqlite_grant.h names. No I/O. */
#include "sqlite_grant.h"

#include <string.h>

int sqlite_grant_judge(
    sqlite3_stmt *statement, int first_column, int64_t now_us, int64_t *ret_end_us)
{
    int has_session = sqlite3_column_type(statement, first_column + GRANT_SESSION) != SQLITE_NULL;
    int column = first_column + (has_session ? GRANT_SESSION_EXPIRES : GRANT_EXPIRES);
    int64_t end_us = sqlite3_column_int64(statement, column);

    *ret_end_us = end_us;
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return GRANT_FREE;
    if (end_us > now_us)
        return GRANT_HELD;
    return has_session ? GRANT_EXPIRED : GRANT_FREE;
}

static void copy_text(sqlite3_stmt *statement, int column, char *target, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    dblock_text_copy(target, size, text != NULL ? text : "");
}

static void copy_name(sqlite3_stmt *statement, int column, char *target, size_t size)
{
    const void *name = sqlite3_column_blob(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);

    if (length >= size)
        length = size - 1; /* the table does not let it be */
    if (length > 0)
        memcpy(target, name, length);
    target[length] = 0;
}

void sqlite_grant_fill(sqlite3_stmt *statement, int first_column, int strategy, int64_t now_us,
    struct dblock_grant *grant)
{
    int64_t end_us;

    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    grant->strategy = strategy;
    grant->n_waiters = UINT32_MAX;
    grant->now_us = now_us;
    grant->token = sqlite3_column_int64(statement, first_column + GRANT_TOKEN);
    copy_name(statement, first_column + GRANT_NAME, grant->name, sizeof grant->name);
    if (sqlite_grant_judge(statement, first_column, now_us, &end_us) != GRANT_HELD)
        return;
    grant->is_heartbeat =
        sqlite3_column_type(statement, first_column + GRANT_SESSION) != SQLITE_NULL;
    grant->since_us = sqlite3_column_int64(statement, first_column + GRANT_SINCE);
    grant->expires_us = end_us;
    grant->remaining_ms = (uint64_t)(end_us - now_us) / 1000;
    grant->pid = sqlite3_column_int64(statement, first_column + GRANT_PID);
    copy_text(statement, first_column + GRANT_LABEL, grant->label, sizeof grant->label);
    copy_text(statement, first_column + GRANT_HOST, grant->host, sizeof grant->host);
    sqlite_grant_fill_owner(statement, first_column, grant);
}

void sqlite_grant_fill_owner(sqlite3_stmt *statement, int first_column, struct dblock_grant *grant)
{
    int column = first_column + GRANT_OWNER;

    if (sqlite3_column_bytes(statement, column) == DBLOCK_ID_SIZE)
        dblock_id_text(sqlite3_column_blob(statement, column), grant->owner);
}
