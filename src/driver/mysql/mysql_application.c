/* SPDX-License-Identifier: MIT */
/* mysql_application.c - see mysql_application.h. */
#include "mysql_application.h"

#include <errmsg.h>
#include <stdio.h>
#include <string.h>

#include "mysql_error.h"

#define SQL_SIZE 4096

enum {
    CODE_DEADLOCK = 1213, /* and certification: the transaction is rolled back */
    CODE_CHANGED = 1020   /* MariaDB with innodb_snapshot_isolation: newer than the snapshot */
};

int mysql_application_is_in_transaction(const MYSQL *mysql)
{
    return (mysql->server_status & SERVER_STATUS_IN_TRANS) != 0 ||
        (mysql->server_status & SERVER_STATUS_AUTOCOMMIT) == 0;
}

dblock_status mysql_application_check(
    const struct mysql_application *application, const char *client_text)
{
    const char *action = application->action;
    const char *name = application->name;
    const MYSQL *mysql = application->mysql;

    if (mysql == NULL || client_text == NULL)
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT, NULL, "mysql: NULL");
    if (strcmp(client_text, mysql_get_client_info()) != 0)
        return dblock_error_set(application->reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-mysql with the same client library",
            "cannot %s \"%s\": the connection belongs to client library %s, the driver uses %s",
            action, name, client_text, mysql_get_client_info());
    if (mysql->net.fd < 0 && mysql->host == NULL)
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT, "connect before",
            "cannot %s \"%s\": the handle is not connected", action, name);
    if (mysql->status != MYSQL_STATUS_READY || mysql_more_results((MYSQL *)mysql))
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT,
            "read all results (mysql_free_result(), mysql_next_result())",
            "cannot %s \"%s\": an answer on the connection was not read", action, name);
    if (!mysql_application_is_in_transaction(mysql))
        return dblock_error_set(application->reterr, DBLOCK_E_ARGUMENT, "START TRANSACTION before",
            "cannot %s \"%s\": the connection is in no transaction", action, name);
    return DBLOCK_OK;
}

struct room {
    char *next; /* NULL: there was not enough */
    size_t left;
};

static void append(struct room *room, const char *text, size_t size)
{
    if (room->next == NULL || size >= room->left) {
        room->next = NULL;
        return;
    }
    memcpy(room->next, text, size);
    room->next += size;
    room->left -= size;
}

static void append_database(struct room *room, const char *database)
{
    append(room, "`", 1);
    for (; *database != 0; ++database) {
        if (*database == '`')
            append(room, "`", 1);
        append(room, database, 1);
    }
    append(room, "`.", 2);
}

/* "dblock_lease" -> "`app`.dblock_lease": the connection may have another default. 0: no room. */
static int qualify(
    const char *database, const char *sql, const char *clause, char *target, size_t size)
{
    static const char mark[] = "dblock_";
    struct room room = { target, size };
    const char *name;

    for (; database != NULL && (name = strstr(sql, mark)) != NULL; sql = name + sizeof mark - 1) {
        append(&room, sql, (size_t)(name - sql));
        append_database(&room, database);
        append(&room, mark, sizeof mark - 1);
    }
    append(&room, sql, strlen(sql));
    append(&room, clause, strlen(clause) + 1);
    return room.next != NULL;
}

unsigned int mysql_application_run(const struct mysql_application *application, const char *text,
    const struct mysql_literal *literals, size_t n_literals, const char *clause,
    MYSQL_RES **ret_rows)
{
    MYSQL *mysql = application->mysql;
    char filled[SQL_SIZE];
    char whole[2 * SQL_SIZE];

    *ret_rows = NULL;
    /* in this order: a database may have a "?" in its name, and a literal has letters of hex only */
    if (!mysql_text_fill(filled, sizeof filled, text, literals, n_literals) ||
        !qualify(application->database, filled, clause, whole, sizeof whole))
        return CR_OUT_OF_MEMORY;
    if (mysql_real_query(mysql, whole, (unsigned long)strlen(whole)) != 0)
        return mysql_errno(mysql);
    *ret_rows = mysql_store_result(mysql);
    return mysql_errno(mysql);
}

dblock_status mysql_application_fail(
    const struct mysql_application *application, unsigned int code)
{
    MYSQL *mysql = application->mysql;
    const char *hint = NULL;
    dblock_status status;

    if (code == CODE_CHANGED)
        return DBLOCK_STALE_SNAPSHOT;
    if (code == CODE_DEADLOCK)
        return DBLOCK_ROLLED_BACK;
    status = mysql_error_status(code, 0, &hint);
    if (mysql_error_class(code) == MYSQL_CLASS_GONE) {
        status = DBLOCK_E_CONNECTION;
        hint = "connect anew, and begin again";
    }
    (void)dblock_error_set(application->reterr, status < 0 ? status : DBLOCK_E_DATABASE, hint,
        "cannot %s \"%s\": %s", application->action, application->name, mysql_error(mysql));
    dblock_error_native(application->reterr, (int32_t)code, mysql_sqlstate(mysql),
        status == DBLOCK_E_CONNECTION);
    return status < 0 ? status : DBLOCK_E_DATABASE;
}
