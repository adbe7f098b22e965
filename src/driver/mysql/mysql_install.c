/* SPDX-License-Identifier: MIT */
/* mysql_install.c - runs schemas/mysql, and verifies what is there.
 *
 * The DDL may run twice and by many at once: every statement of it is IF NOT EXISTS or
 * INSERT IGNORE. */
#include "mysql_install.h"

#include <string.h>

#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

#define SCHEMA_VERSION 1

/* Copies the next statement of the script without comments and its semicolon, and returns
 * what follows it; NULL when there is none. The script keeps "--" and ";" out of literals. */
static const char *read_statement(const char *script, char *statement, size_t size)
{
    size_t n = 0;

    while (*script != 0) {
        if (script[0] == '-' && script[1] == '-') {
            script += strcspn(script, "\n");
        } else if (*script == ';') {
            statement[n] = 0;
            return script + 1;
        } else {
            if (n + 1 < size && (n > 0 || *script != '\n'))
                statement[n++] = *script;
            ++script;
        }
    }
    return NULL;
}

dblock_status mysql_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr)
{
    struct dblock_connection *connection = NULL;
    struct dblock_answer answer;
    const char *script = mysql_schema_text;
    char statement[2000];
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    status = mysql_connection_open(
        target, DBLOCK_ROLE_SHORT, call, &connection, &answer, reterr);
    while (status == DBLOCK_OK &&
        (script = read_statement(script, statement, sizeof statement)) != NULL) {
        if (mysql_text_run(connection, statement, call, 0, 1, NULL) != 0)
            status = mysql_fail(connection, reterr, "cannot make the tables");
    }
    if (status == DBLOCK_OK) {
        status = mysql_connection_verify(connection, call, &answer, reterr);
    }
    mysql_connection_close(connection, DBLOCK_CLOSE_POLITE);
    return status;
}

dblock_status mysql_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    /* Every right and every column is used by one of these; the server checks when it
     * prepares, and the first locks find them prepared. */
    static const enum mysql_statement_id needed[] = { MYSQL_SESSION_BEGIN, MYSQL_SESSION_RENEW,
        MYSQL_SESSION_END, MYSQL_LEASE_TAKE, MYSQL_LEASE_LOOK, MYSQL_LEASE_DROP,
        MYSQL_LEASE_PURGE, MYSQL_INSERT_TAKE, MYSQL_INSERT_LOOK, MYSQL_INSERT_DROP,
        MYSQL_INSERT_PURGE, MYSQL_ROW_SEED, MYSQL_ROW_PURGE, MYSQL_TOKEN_DRAW,
        MYSQL_TOKEN_PURGE, MYSQL_FLOOR_RAISE };
    static const char hint[] = "run: dblock init";
    int has_row;
    size_t i;

    if (mysql_run_row(connection, MYSQL_VERIFY_VERSION, call, &has_row) != 0)
        return mysql_fail(connection, reterr, "cannot verify the tables");
    if (!has_row)
        return dblock_error_set(
            reterr, DBLOCK_E_SCHEMA, hint, "cannot verify the tables: dblock_meta is empty");
    if (mysql_out_number(connection, MYSQL_N_ANSWER) != SCHEMA_VERSION)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA,
            mysql_out_number(connection, MYSQL_N_ANSWER) > SCHEMA_VERSION
                ? "use the release of dblock that made them, or a later one"
                : hint,
            "the tables are of schema version %lld, this release needs %d",
            (long long)mysql_out_number(connection, MYSQL_N_ANSWER), SCHEMA_VERSION);
    for (i = 0; i < sizeof needed / sizeof *needed; ++i)
        if (mysql_prepare(connection, needed[i], call) != 0)
            return mysql_fail(connection, reterr, "cannot verify the tables");
    if (mysql_run_row(connection, MYSQL_VERIFY_NAMES, call, NULL) != 0)
        return mysql_fail(connection, reterr, "cannot verify the tables");
    if (mysql_out_number(connection, MYSQL_N_ANSWER) != 4 ||
        mysql_out_number(connection, MYSQL_N_MINE) != 7)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA,
            "drop the dblock_ tables and run: dblock init",
            "the tables were changed: names must be VARBINARY(255), the engine InnoDB");
    answer->outcome = DBLOCK_ANSWER_YES;
    return DBLOCK_OK;
}
