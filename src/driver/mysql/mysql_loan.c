/* SPDX-License-Identifier: MIT */
/* mysql_loan.c - see mysql_loan.h.
 *
 * The settings that our statements depend on are read in one round trip, set in a second, and put
 * back in a third, with what LAST_INSERT_ID() says, which our takes use. Statements are prepared
 * anew in each step and closed at its end: who counts them finds none of ours. Of the client
 * library's side the wire is lent (mysql_wire.h), so that answers are waited for until the
 * deadline, and reconnecting by itself is turned off: what the session holds would be lost
 * without a word. */
#include "mysql_loan.h"

#include <dblock/mysql.h>

#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_advisory.h"
#include "mysql_application.h"
#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_lent.h"
#include "mysql_server.h"
#include "mysql_sql.h"
#include "mysql_target.h"

#define SQL_SIZE 2048
/* From the start of a statement to its SYSDATE(): a clock that is further off may stand still. */
#define CLOCK_OFF_US 1000

enum { /* columns of loan_settings; those in between are put back by their names */
    COLUMN_DATABASE,
    COLUMN_INSERT_ID,
    COLUMN_CLOCK,
    COLUMN_BEHIND,
    COLUMN_FIRST
};

/* --------------------------------------------------------------------- is it free? */

static dblock_status refuse(const char *action, const char *name, const char *hint,
    const char *reason, struct dblock_error *reterr)
{
    if (name == NULL || *name == 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s: %s", action, reason);
    return dblock_error_set(
        reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s \"%s\": %s", action, name, reason);
}

dblock_status mysql_loan_check(
    MYSQL *mysql, const char *action, const char *name, struct dblock_error *reterr)
{
    if (mysql->host == NULL)
        return refuse(action, name, "connect before", "the connection is not connected", reterr);
    if (mysql->status != MYSQL_STATUS_READY || mysql_more_results(mysql))
        return refuse(action, name, "read all results (mysql_free_result(), mysql_next_result())",
            "an answer on the connection was not read", reterr);
    if ((mysql->server_status & SERVER_STATUS_IN_TRANS) != 0)
        return refuse(action, name,
            "COMMIT or ROLLBACK before; in a transaction: dblock_mysql_acquire_in(), _guard(),"
            " _release_in()",
            "the connection is in a transaction, and this would be a part of it", reterr);
    if ((mysql->client_flag & CLIENT_FOUND_ROWS) != 0)
        return refuse(action, name, "connect without CLIENT_FOUND_ROWS",
            "the connection counts rows that are found, and locks are judged by rows that are"
            " changed", reterr);
    return DBLOCK_OK;
}

/* ------------------------------------------------------------- as it was, and as we want it */

#if MYSQL_IS_MARIADB_CLIENT
static void lend_wire(struct dblock_connection *connection)
{
    connection->loan.methods = mysql_wire_lend(&connection->wire, connection->mysql);
}

static void return_wire(struct dblock_connection *connection)
{
    if (connection->loan.methods != NULL && connection->mysql->net.pvio != NULL)
        connection->mysql->net.pvio->methods = connection->loan.methods;
    connection->loan.methods = NULL;
}

static mysql_flag set_reconnect(MYSQL *mysql, mysql_flag value)
{
    mysql_flag before = mysql->options.reconnect;

    mysql->options.reconnect = value;
    return before;
}
#else
static void lend_wire(struct dblock_connection *connection)
{
    (void)connection;
}

static void return_wire(struct dblock_connection *connection)
{
    (void)connection;
}

static mysql_flag set_reconnect(MYSQL *mysql, mysql_flag value)
{
    mysql_flag before = mysql->reconnect;

    mysql->reconnect = value;
    return before;
}
#endif

/* 0, or the native code, which is noted. */
static unsigned int ask(struct dblock_connection *connection, const struct dblock_call *call,
    const char *sql, MYSQL_RES **ret_rows)
{
    MYSQL *mysql = connection->mysql;
    unsigned int code;

    if (mysql_check_sendable(connection, call) != 0)
        return connection->error_code;
    if (mysql_call_send(mysql, sql, call) == 0 && mysql_call_answer(mysql, call, 0, ret_rows) == 0)
        return 0;
    code = mysql_errno(mysql) != 0 ? mysql_errno(mysql) : CR_SERVER_LOST;
    mysql_note_error(connection, code, mysql_sqlstate(mysql), mysql_error(mysql), 0);
    return code;
}

static unsigned int tell(
    struct dblock_connection *connection, const struct dblock_call *call, const char *sql)
{
    MYSQL_RES *rows = NULL;
    unsigned int code = ask(connection, call, sql, &rows);

    mysql_free_result(rows);
    return code;
}

/* Whether the application has set the session's clock, which then stands still. One that is off may
 * also be that of a statement that took its time, so it is read again. */
static unsigned int find_frozen(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    struct mysql_loan *loan = &connection->loan;
    const char *clock = loan->settings[COLUMN_CLOCK];
    const char *behind = loan->settings[COLUMN_BEHIND];
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    unsigned int code;

    if (clock == NULL || (behind != NULL && llabs(strtoll(behind, NULL, 10)) < CLOCK_OFF_US))
        return 0;
    code = ask(connection, call, mysql_sql_loan_clock, &rows);
    row = code == 0 ? mysql_call_row(rows, 1) : NULL;
    loan->is_frozen = row != NULL && row[0] != NULL && strcmp(row[0], clock) == 0;
    mysql_free_result(rows);
    return code;
}

static unsigned int read_settings(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    struct mysql_loan *loan = &connection->loan;
    unsigned int code = ask(connection, call,
        connection->is_mariadb && connection->is_multi_writer ? mysql_sql_loan_settings_galera
            : connection->is_mariadb                         ? mysql_sql_loan_settings_mariadb
                                                             : mysql_sql_loan_settings_mysql,
        &loan->rows);

    if (code != 0)
        return code;
    loan->settings = mysql_call_row(loan->rows, COLUMN_FIRST);
    if (loan->settings == NULL || loan->settings[COLUMN_INSERT_ID] == NULL) {
        loan->settings = NULL;
        mysql_note_error(connection, CR_UNKNOWN_ERROR, "HY000", "no settings came", 0);
        return connection->error_code;
    }
    return find_frozen(connection, call);
}

/* Ours, as session_settings; the time limits are those of short steps. */
static unsigned int set_ours(struct dblock_connection *connection, const struct dblock_call *call)
{
    char sql[SQL_SIZE];
    uint64_t limit_us = connection->target->io_timeout_us;

    (void)snprintf(sql, sizeof sql,
        "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
        " autocommit = 1, completion_type = 0, timestamp = DEFAULT, sql_safe_updates = 0,"
        " sql_select_limit = 18446744073709551615, sql_big_selects = 1, unique_checks = 1,"
        " innodb_lock_wait_timeout = 1, lock_wait_timeout = %u, %s = 'READ-COMMITTED'",
        mysql_count_seconds(limit_us),
        connection->is_mariadb ? "tx_isolation" : "max_execution_time = 0, transaction_isolation");
    if (connection->is_mariadb)
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ", max_statement_time = %llu.%06llu%s",
            (unsigned long long)(limit_us / 1000000), (unsigned long long)(limit_us % 1000000),
            connection->is_multi_writer ? ", wsrep_sync_wait = 1" : "");
    return tell(connection, call, sql);
}

/* Numbers as numbers, texts in quotes; by the names that loan_settings gives them. */
static int write_restoring(struct dblock_connection *connection, char *sql, size_t size)
{
    const struct mysql_loan *loan = &connection->loan;
    unsigned int n = mysql_num_fields(loan->rows);
    const MYSQL_FIELD *fields = mysql_fetch_fields(loan->rows);
    unsigned long *lengths = mysql_fetch_lengths(loan->rows);
    size_t used = (size_t)snprintf(sql, size, "SET last_insert_id = %s%s%s%s",
        loan->settings[COLUMN_INSERT_ID], loan->has_autocommit ? "" : ", autocommit = 0",
        loan->is_frozen ? ", timestamp = " : "",
        loan->is_frozen ? loan->settings[COLUMN_CLOCK] : "");
    unsigned int i;

    for (i = COLUMN_FIRST; i < n; ++i) {
        const char *quote = fields[i].type == MYSQL_TYPE_VAR_STRING ? "'" : "";

        /* none of these values has a quote or a backslash in it, but for a name of a zone */
        if (loan->settings[i] == NULL || strpbrk(loan->settings[i], "'\\") != NULL ||
            used + lengths[i] + strlen(fields[i].name) + 16 > size)
            return 0;
        used += (size_t)snprintf(sql + used, size - used, ", %s = %s%s%s", fields[i].name, quote,
            loan->settings[i], quote);
    }
    return 1;
}

static void restore(struct dblock_connection *connection)
{
    struct mysql_loan *loan = &connection->loan;
    struct dblock_call call = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    char sql[SQL_SIZE];
    int i;

    for (i = 0; i < MYSQL_N_STATEMENTS; ++i)
        if (connection->statements[i] != NULL) {
            mysql_call_forget(connection->statements[i]);
            connection->statements[i] = NULL;
        }
    if (loan->settings != NULL && !connection->is_dead) {
        if (!write_restoring(connection, sql, sizeof sql) || tell(connection, &call, sql) != 0)
            connection->is_dead = 1;
        if (loan->is_elsewhere && !connection->is_dead &&
            mysql_select_db(connection->mysql, loan->settings[COLUMN_DATABASE]) != 0)
            connection->is_dead = 1;
    }
    mysql_free_result(loan->rows);
    return_wire(connection);
    (void)set_reconnect(connection->mysql, loan->reconnect);
    memset(loan, 0, sizeof *loan);
}

/* The tables are where they were when the connection was first used. */
static dblock_status choose_database(struct dblock_connection *connection, const char *action,
    const char *name, struct dblock_error *reterr)
{
    struct mysql_loan *loan = &connection->loan;
    const char *now = loan->settings[COLUMN_DATABASE];

    if (connection->database[0] == 0)
        dblock_text_copy(connection->database, sizeof connection->database,
            connection->target->database != NULL ? connection->target->database
                : now != NULL                    ? now
                                                 : "");
    if (now == NULL || connection->database[0] == 0)
        return refuse(action, name, "USE a database before", "the connection has no database",
            reterr);
    if (strcmp(now, connection->database) == 0)
        return DBLOCK_OK;
    if (mysql_select_db(connection->mysql, connection->database) != 0) {
        mysql_note_error(connection, mysql_errno(connection->mysql),
            mysql_sqlstate(connection->mysql), mysql_error(connection->mysql), 0);
        return mysql_fail(connection, reterr, "cannot use the database %s", connection->database);
    }
    loan->is_elsewhere = 1;
    return DBLOCK_OK;
}

static dblock_status begin(struct dblock_connection *connection, const struct dblock_call *call,
    const char *action, const char *name, struct dblock_error *reterr)
{
    struct mysql_loan *loan = &connection->loan;
    MYSQL *mysql = connection->mysql;
    dblock_status status = mysql_loan_check(mysql, action, name, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (connection->server_id != mysql_thread_id(mysql)) {
        connection->is_dead = 1;
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, NULL,
            "cannot %s \"%s\": the application has connected anew: what the connection held is gone",
            action, name != NULL ? name : "");
    }
    loan->is_taken = 1;
    loan->has_autocommit = (mysql->server_status & SERVER_STATUS_AUTOCOMMIT) != 0;
    loan->reconnect = set_reconnect(mysql, 0);
    lend_wire(connection);
    if (read_settings(connection, call) != 0 || set_ours(connection, call) != 0)
        status = mysql_fail(connection, reterr, "cannot use the connection");
    else
        status = choose_database(connection, action, name, reterr);
    if (status != DBLOCK_OK)
        restore(connection);
    return status;
}

dblock_status mysql_loan_take(struct dblock_connection *connection, const struct dblock_call *call,
    const char *action, const char *name, struct dblock_error *reterr)
{
    struct dblock_target *target = (struct dblock_target *)connection->target;
    dblock_status status;

    if (!connection->is_lent)
        return DBLOCK_OK;
    if (atomic_flag_test_and_set(&target->is_lent_used))
        return refuse(action, name, "one thread at a time",
            "another call is at work with the connection", reterr);
    status = begin(connection, call, action, name, reterr);
    if (status != DBLOCK_OK)
        atomic_flag_clear(&target->is_lent_used);
    return status;
}

dblock_status mysql_loan_end(struct dblock_connection *connection, dblock_status status)
{
    if (connection->is_lent && connection->loan.is_taken) {
        restore(connection);
        atomic_flag_clear(&((struct dblock_target *)connection->target)->is_lent_used);
    }
    return status;
}

/* ------------------------------------------------------------------------ opening */

/* A temporary table hides the one of its name, in all databases' spellings of it: what is locked
 * there is seen by nobody else. To ask before each step would be a round trip for each table. */
static dblock_status refuse_temporary(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_error *reterr)
{
    static const char *const tables[] = { "dblock_meta", "dblock_floor", "dblock_session",
        "dblock_lease", "dblock_insert", "dblock_row", "dblock_token" };
    dblock_status status = DBLOCK_OK;
    size_t i;

    for (i = 0; i < sizeof tables / sizeof *tables && status == DBLOCK_OK; ++i) {
        MYSQL_RES *rows = NULL;
        MYSQL_ROW row;
        char sql[64];

        (void)snprintf(sql, sizeof sql, "SHOW CREATE TABLE %s", tables[i]);
        /* one that is not there yet, or not to be seen, is told by who uses it */
        if (ask(connection, call, sql, &rows) != 0 && connection->is_dead)
            status = mysql_fail(connection, reterr, "cannot use the connection");
        row = mysql_call_row(rows, 2);
        if (row != NULL && row[1] != NULL && strncmp(row[1], "CREATE TEMPORARY ", 17) == 0)
            status = refuse("use the connection", NULL, "DROP TEMPORARY TABLE, or rename it",
                "the connection has a temporary table with the name of one of dblock's", reterr);
        mysql_free_result(rows);
    }
    return status;
}

dblock_status mysql_loan_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct dblock_connection *connection;
    dblock_status status = mysql_loan_check(target->lent, "use the connection", NULL, reterr);

    if (status != DBLOCK_OK)
        return status;
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    connection->target = target;
    connection->role = role;
    connection->is_lent = 1;
    connection->mysql = target->lent;
    connection->server_id = mysql_thread_id(target->lent);
    mysql_server_read_version(connection);
    connection->is_multi_writer = atomic_load(&target->is_multi_writer);
    status = mysql_loan_take(connection, call, "use the connection", NULL, reterr);
    if (status == DBLOCK_OK) {
        if (mysql_server_look(connection, call, answer) != 0)
            status = mysql_fail(connection, reterr, "cannot use the connection");
        if (status == DBLOCK_OK)
            status = refuse_temporary(connection, call, reterr);
        status = mysql_loan_end(connection, status);
    }
    if (status != DBLOCK_OK) {
        mysql_lent_close(connection, DBLOCK_CLOSE_POLITE);
        return status;
    }
    connection->has_line = 0; /* a bell would be a named lock of the application's session */
    mysql_in_text(connection, MYSQL_B_HOST, target->client_host);
    mysql_in_number(connection, MYSQL_N_PID, target->pid);
    *ret_connection = connection;
    return DBLOCK_OK;
}

static dblock_status check_target(struct dblock_target *target, const char *action,
    const char *name, struct dblock_error *reterr)
{
    return mysql_loan_check(target->lent, action, name, reterr);
}

dblock_status dblock_mysql_open_on_(void *mysql, const char *client_text,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr)
{
    const struct dblock_borrowing borrowing = { mysql, mysql_target_open_lent, check_target,
        1u << DBLOCK_ROLE_SHORT | 1u << DBLOCK_ROLE_KEEPER | 1u << DBLOCK_ROLE_ADVISORY, 0 };

    if (mysql == NULL || client_text == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "mysql: NULL");
    if (strcmp(client_text, mysql_get_client_info()) != 0)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-mysql with the same client library",
            "the connection belongs to client library %s, the driver uses %s", client_text,
            mysql_get_client_info());
    if ((((MYSQL *)mysql)->client_flag & CLIENT_FOUND_ROWS) != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "connect without CLIENT_FOUND_ROWS",
            "the connection counts rows that are found, and locks are judged by rows that are"
            " changed");
    return dblock_open_borrowed(dblock_mysql_driver(), &borrowing, config, ret_client, reterr);
}
