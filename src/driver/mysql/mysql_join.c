/* SPDX-License-Identifier: MIT */
/* mysql_join.c - row locks in a transaction of the application. The statements, and why they are
 * safe, are in sql/joined.sql; what is done around them in src/core/join.c. */
#include <dblock/sys/driver.h>

#include <mysql.h>

#include <dblock/mysql.h>

#include <string.h>

#include "mysql_application.h"
#include "mysql_error.h"
#include "mysql_sql.h"
#include "mysql_target.h"

/* Below the shortest MYSQL_OPT_READ_TIMEOUT, a second. */
#define SLICE_US 700000u
/* While somebody may cancel: he is seen between two slices. */
#define SHORT_SLICE_US 60000u

#define CODE_KILLED 1317u

struct handle {
    MYSQL *mysql;
    const char *client_text;
};

static struct mysql_application application_of(
    const struct dblock_joining *joining, struct dblock_error *reterr)
{
    const struct handle *handle = joining->connection;
    struct mysql_application application = { handle->mysql, joining->target->database, "lock",
        joining->subject.name, reterr };

    return application;
}

static dblock_status check(void *connection, const char *name, struct dblock_error *reterr)
{
    const struct handle *handle = connection;
    const struct mysql_application application = { handle->mysql, NULL, "lock", name, reterr };

    return mysql_application_check(&application, handle->client_text);
}

/* Without these a try would wait for innodb_lock_wait_timeout, a setting of the application. */
static dblock_status check_server(MYSQL *mysql, const char *name, struct dblock_error *reterr)
{
    if (strstr(mysql_get_server_info(mysql), "MariaDB") != NULL ||
        mysql_get_server_version(mysql) >= 80000)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
        "use MySQL 8, MariaDB, or dblock_acquire() and a guard",
        "cannot lock \"%s\": this server cannot bound a wait without a change of the connection's"
        " settings", name);
}

/* One statement. OK with YES, BUSY or UNSEEDED. */
static dblock_status ask(const struct dblock_joining *joining, uint64_t slice_us, int *ret_outcome,
    struct dblock_error *reterr)
{
    const struct mysql_application application = application_of(joining, reterr);
    const struct mysql_literal literals[3] = { { MYSQL_LITERAL_SECONDS, slice_us, NULL, 0 },
        { MYSQL_LITERAL_NUMBER, slice_us / 1000, NULL, 0 },
        { MYSQL_LITERAL_BYTES, 0, joining->subject.name, joining->subject.name_size } };
    MYSQL *mysql = application.mysql;
    unsigned int was_begun = mysql->server_status & SERVER_STATUS_IN_TRANS;
    MYSQL_RES *rows;
    unsigned int code = slice_us == 0
        ? mysql_application_run(
              &application, mysql_sql_joined_row_take, &literals[2], 1, "", &rows)
        : mysql_application_run(&application, mysql_sql_joined_row_wait, literals, 3, "", &rows);

    if (code == 0) {
        *ret_outcome = rows != NULL && mysql_num_rows(rows) == 1 ? DBLOCK_ANSWER_YES
                                                                 : DBLOCK_ANSWER_UNSEEDED;
        mysql_free_result(rows);
        if ((mysql->server_status & SERVER_STATUS_IN_TRANS) == 0)
            return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
                "connect to the server itself, or turn multiplexing off",
                "cannot lock \"%s\": something between here and the server ends transactions",
                application.name);
        return DBLOCK_OK;
    }
    if (mysql_error_class(code) != MYSQL_CLASS_LOCKED &&
        mysql_error_class(code) != MYSQL_CLASS_TIMEOUT)
        return mysql_application_fail(&application, code);
    /* innodb_rollback_on_timeout: all of it is gone */
    if (was_begun != 0 && (mysql->server_status & SERVER_STATUS_IN_TRANS) == 0)
        return DBLOCK_ROLLED_BACK;
    *ret_outcome = DBLOCK_ANSWER_BUSY;
    return code == CODE_KILLED ? DBLOCK_CANCELLED : DBLOCK_OK;
}

static int is_cancelled(int cancel_fd)
{
    const struct dblock_call now = { dblock_clock_us(), cancel_fd };

    return cancel_fd >= 0 && dblock_fd_wait(-1, 0, &now, 1) < 0;
}

static dblock_status take(const struct dblock_joining *joining, uint64_t wait_us, int cancel_fd,
    int *ret_outcome, struct dblock_error *reterr)
{
    const struct handle *handle = joining->connection;
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    uint64_t most_us = joining->has_canceller ? SHORT_SLICE_US : SLICE_US;
    dblock_status status;

    if (joining->strategy != DBLOCK_ROW)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "options.strategy = DBLOCK_ROW",
            "cannot lock \"%s\": an advisory lock, GET_LOCK(), does not end with a transaction",
            joining->subject.name);
    status = check_server(handle->mysql, joining->subject.name, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (wait_us == 0)
        return ask(joining, 0, ret_outcome, reterr);
    *ret_outcome = DBLOCK_ANSWER_BUSY;
    while (status == DBLOCK_OK && *ret_outcome == DBLOCK_ANSWER_BUSY && now_us < until_us) {
        uint64_t slice_us = until_us - now_us < most_us ? until_us - now_us : most_us;

        if (is_cancelled(cancel_fd))
            return DBLOCK_CANCELLED;
        /* 0 is "no limit" to both servers */
        status = ask(joining, slice_us < 1000 ? 1000 : slice_us, ret_outcome, reterr);
        now_us = dblock_clock_us();
    }
    return status;
}

dblock_status dblock_mysql_acquire_in_(dblock_client *client, void *mysql, const char *client_text,
    const char *name, const struct dblock_options *options, dblock_lock **ret_lock,
    struct dblock_error *reterr)
{
    static const struct dblock_join_steps steps = {
        .check = check, .take = take, .has_gap_locks = 1 };
    struct handle handle = { mysql, client_text };

    return dblock_join(
        client, dblock_mysql_driver(), &steps, &handle, name, options, ret_lock, reterr);
}
