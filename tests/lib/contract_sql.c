/* SPDX-License-Identifier: MIT */
/* contract_sql.c - see contract_sql.h. */
#include "contract_sql.h"

#include <stdio.h>
#include <string.h>

#include <dblock/dblock.h>

enum { BLOB_SIZE = 2 * DBLOCK_NAME_MAX + 32, STATEMENT_SIZE = 4 * BLOB_SIZE };

const char *contract_sql_table(int strategy)
{
    return strategy == DBLOCK_LEASE ? "dblock_lease" : "dblock_insert";
}

const char *contract_sql_guarded(int strategy)
{
    return strategy == DBLOCK_LEASE ? "dblock_lease WHERE"
        : strategy == DBLOCK_INSERT ? "dblock_insert WHERE"
        : strategy == DBLOCK_ROW    ? "dblock_token WHERE strategy = 3 AND"
                                    : "dblock_token WHERE strategy = 4 AND";
}

void contract_sql_blob(
    const struct contract_sql *sql, const char *bytes, char *text, size_t text_size)
{
    size_t length = (size_t)snprintf(text, text_size, "%s", sql->blob_begin);

    for (; *bytes != 0; ++bytes)
        length += (size_t)snprintf(
            text + length, text_size - length, "%02x", (unsigned)(unsigned char)*bytes);
    (void)snprintf(text + length, text_size - length, "%s", sql->blob_end);
}

void contract_sql_delete_row(const struct contract_sql *sql, int strategy, const char *name)
{
    char statement[STATEMENT_SIZE];
    char blob[BLOB_SIZE];

    contract_sql_blob(sql, name, blob, sizeof blob);
    (void)snprintf(statement, sizeof statement, "DELETE FROM %s%s WHERE name = %s", sql->tables,
        contract_sql_table(strategy), blob);
    sql->run(statement);
}

void contract_sql_delete_session(const struct contract_sql *sql, int strategy, const char *name)
{
    char statement[STATEMENT_SIZE];
    char blob[BLOB_SIZE];

    contract_sql_blob(sql, name, blob, sizeof blob);
    (void)snprintf(statement, sizeof statement,
        "DELETE FROM %sdblock_session WHERE id = (SELECT session FROM %s%s WHERE name = %s)",
        sql->tables, sql->tables, contract_sql_table(strategy), blob);
    sql->run(statement);
}

void contract_sql_plant(
    const struct contract_sql *sql, int strategy, const char *name, const char *like)
{
    const char *table = contract_sql_table(strategy);
    char statement[STATEMENT_SIZE];
    char name_blob[BLOB_SIZE];
    char like_blob[BLOB_SIZE];
    char owner_blob[64];

    contract_sql_blob(sql, name, name_blob, sizeof name_blob);
    contract_sql_blob(sql, like, like_blob, sizeof like_blob);
    contract_sql_blob(sql, "planted by hand.", owner_blob, sizeof owner_blob); /* 16 bytes */
    (void)snprintf(statement, sizeof statement,
        "INSERT INTO %s%s (name, session, owner, token, since, expires_at, label, host, pid) "
        "SELECT %s, session, %s, token, since, expires_at, label, host, pid FROM %s%s "
        "WHERE name = %s",
        sql->tables, table, name_blob, owner_blob, sql->tables, table, like_blob);
    sql->run(statement);
}

void contract_sql_damage_token(const struct contract_sql *sql, const char *name)
{
    char statement[STATEMENT_SIZE];
    char blob[BLOB_SIZE];

    contract_sql_blob(sql, name, blob, sizeof blob);
    (void)snprintf(statement, sizeof statement,
        "UPDATE %sdblock_lease SET token = 9007199254740992 WHERE name = %s", sql->tables, blob);
    sql->run(statement);
}

void contract_sql_age(const struct contract_sql *sql, const char *name)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    char statement[STATEMENT_SIZE];
    char blob[BLOB_SIZE];
    size_t i;

    contract_sql_blob(sql, name, blob, sizeof blob);
    for (i = 0; i < 2; ++i) {
        (void)snprintf(statement, sizeof statement,
            "UPDATE %s%s SET since = since - %s WHERE name = %s AND owner IS NULL", sql->tables,
            contract_sql_table(strategies[i]), sql->two_hours, blob);
        sql->run(statement);
    }
    /* all of them: that of an advisory lock may go by another name */
    (void)snprintf(statement, sizeof statement, "UPDATE %sdblock_token SET since = since - %s",
        sql->tables, sql->two_hours);
    sql->run(statement);
    if (sql->row_time == NULL)
        return;
    (void)snprintf(statement, sizeof statement,
        "UPDATE %sdblock_row SET %s = %s - %s WHERE name = %s", sql->tables, sql->row_time,
        sql->row_time, sql->two_hours, blob);
    sql->run(statement);
}
