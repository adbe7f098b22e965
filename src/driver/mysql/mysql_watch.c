/* SPDX-License-Identifier: MIT */
/* mysql_watch.c - what runs on a connection of the application is ended by KILL QUERY when a
 * lock is lost, over a connection made for it. Whom it may hit is said in sql/watch.sql. */
#include <dblock/sys/driver.h>

#include <mysql.h>

#include <dblock/mysql.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

#define CLOCK_ERROR_S 2 /* Uptime counts whole seconds */

struct watched {
    struct dblock_target *target;
    unsigned long long id; /* the server's number of the connection */
    char server[48];
    char whom[128]; /* user@host:port */
    uint64_t begun_us;
};

/* 0 or the native code. */
static unsigned int find(struct dblock_connection *connection, const struct watched *watched,
    const struct dblock_call *call, struct mysql_text_answer *answer)
{
    const struct mysql_literal literals[2] = {
        { MYSQL_LITERAL_BYTES, 0, watched->server, strlen(watched->server) },
        { MYSQL_LITERAL_NUMBER, watched->id, NULL, 0 } };
    char sql[600];

    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_watch_find, literals, 2))
        return 2020;
    return mysql_text_run(connection, sql, call, 1, 0, answer);
}

/* 0, 1, or -1: no answer. */
static int is_running(struct dblock_connection *connection, const struct watched *watched,
    const struct dblock_call *call)
{
    uint64_t age_s = (dblock_clock_us() - watched->begun_us) / 1000000;
    struct mysql_text_answer answer;

    if (find(connection, watched, call, &answer) != 0)
        return -1;
    if (answer.values[0][0] != '1' || strcmp(answer.values[1], watched->whom) != 0 ||
        answer.values[2][0] != '1')
        return 0;
    if (mysql_text_run(connection, mysql_sql_watch_age, call, 1, 0, &answer) != 0)
        return -1;
    return strtoull(answer.values[1], NULL, 10) + CLOCK_ERROR_S >= age_s;
}

static void kill_query(void *context, const struct dblock_call *call)
{
    const struct watched *watched = context;
    struct dblock_connection *connection = NULL;
    char sql[64];
    int running;

    if (mysql_connect(watched->target, DBLOCK_ROLE_SHORT, call, &connection, NULL) != DBLOCK_OK)
        return;
    (void)snprintf(sql, sizeof sql, "KILL QUERY %llu", watched->id);
    running = is_running(connection, watched, call);
    if (running == 1)
        (void)mysql_text_run(connection, sql, call, 0, 0, NULL);
    mysql_connection_close(connection,
        running < 0 || connection->is_dead ? DBLOCK_CLOSE_ABORT : DBLOCK_CLOSE_POLITE);
}

static dblock_status check(
    MYSQL *mysql, const char *client_text, const char *name, struct dblock_error *reterr)
{
    if (mysql == NULL || client_text == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL,
            mysql == NULL ? "mysql: NULL" : "client_text: NULL");
    if (strcmp(client_text, mysql_get_client_info()) != 0)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-mysql with the same client library",
            "cannot watch \"%s\": the connection belongs to client library %s, the driver uses %s",
            name, client_text, mysql_get_client_info());
    if (mysql->net.fd < 0 && mysql->host == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "connect before",
            "cannot watch \"%s\": the handle is not connected", name);
    if (mysql->status != MYSQL_STATUS_READY || mysql_more_results(mysql))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "read all results (mysql_free_result(), mysql_next_result())",
            "cannot watch \"%s\": an answer on the connection was not read", name);
    return DBLOCK_OK;
}

/* Asks the application's connection who it is. */
static dblock_status ask_whom(
    MYSQL *mysql, struct watched *watched, const char *name, struct dblock_error *reterr)
{
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    const char *hint = NULL;
    dblock_status status;

    if (mysql_query(mysql, mysql_sql_watch_whom) == 0)
        rows = mysql_store_result(mysql);
    row = mysql_call_row(rows, 2);
    if (row == NULL || row[0] == NULL || row[1] == NULL) {
        unsigned int code = mysql_errno(mysql);

        mysql_free_result(rows);
        status = mysql_error_class(code) == MYSQL_CLASS_GONE ? DBLOCK_E_CONNECTION
                                                             : mysql_error_status(code, 0, &hint);
        status = dblock_error_set(reterr, status < 0 ? status : DBLOCK_E_DATABASE, hint,
            "cannot watch \"%s\": %s", name, mysql_error(mysql));
        dblock_error_native(
            reterr, (int32_t)code, mysql_sqlstate(mysql), status == DBLOCK_E_CONNECTION);
        return status;
    }
    watched->id = strtoull(row[0], NULL, 10);
    dblock_text_copy(watched->server, sizeof watched->server, row[1]);
    mysql_free_result(rows);
    if ((uint32_t)watched->id != (uint32_t)mysql_thread_id(mysql))
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "connect to the server itself",
            "cannot watch \"%s\": the connection leads to a proxy that lends out others", name);
    return DBLOCK_OK;
}

/* Can our connections see it, on the same server? Then they may end what runs there. */
static dblock_status find_whom(
    struct watched *watched, const char *name, struct dblock_error *reterr)
{
    const struct dblock_call call = { dblock_clock_us() + watched->target->io_timeout_us, -1 };
    struct dblock_connection *connection = NULL;
    struct mysql_text_answer answer;
    dblock_status status = mysql_connect(
        watched->target, DBLOCK_ROLE_SHORT, &call, &connection, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (find(connection, watched, &call, &answer) != 0) {
        connection->is_dead = 1; /* its answer may be still to come */
        status = mysql_fail(connection, reterr, "cannot watch \"%s\"", name);
    } else if (answer.values[0][0] != '1') {
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "watch a connection to the server that the client's URL leads to",
            "cannot watch \"%s\": the connection is to another server", name);
    } else if (answer.is_null[1]) {
        status = dblock_error_set(reterr, DBLOCK_E_PERMISSION,
            "let both connect as the same user, or GRANT PROCESS and CONNECTION_ADMIN (MariaDB:"
            " CONNECTION ADMIN) ON *.* TO the user of the client's URL",
            "cannot watch \"%s\": the connection belongs to a user whom the client's may not end",
            name);
    } else {
        dblock_text_copy(watched->whom, sizeof watched->whom, answer.values[1]);
    }
    mysql_connection_close(
        connection, connection->is_dead ? DBLOCK_CLOSE_ABORT : DBLOCK_CLOSE_POLITE);
    return status;
}

dblock_status dblock_mysql_watch_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr)
{
    struct dblock_watch way = { kill_query, free, NULL };
    struct watched *watched;
    struct dblock_target *target;
    dblock_status status = dblock_watch_check(lock, dblock_mysql_driver(), &target, reterr);
    const char *name = dblock_lock_name(lock);

    if (status == DBLOCK_OK)
        status = check(mysql, client_text, name, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (target->lent != NULL)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "give config.keeper_url",
            "cannot watch \"%s\": what runs on the only connection is ended over another", name);
    way.context = watched = calloc(1, sizeof *watched);
    if (watched == NULL)
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "cannot watch \"%s\": out of memory", name);
    watched->target = target;
    watched->begun_us = dblock_clock_us();
    status = ask_whom(mysql, watched, name, reterr);
    if (status == DBLOCK_OK)
        status = find_whom(watched, name, reterr);
    if (status == DBLOCK_OK)
        return dblock_watch_begin(lock, &way, reterr);
    free(watched);
    return status;
}

void dblock_mysql_unwatch(dblock_lock *lock)
{
    dblock_watch_end(lock);
}
