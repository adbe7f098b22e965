/* SPDX-License-Identifier: MIT */
/* mysql_call.h - the client library's calls that wait for the server, bounded by a
 * struct dblock_call to the millisecond.
 *
 * MariaDB's library lets us read its socket (mysql_wire.h). While it connects, and under
 * TLS, it can leave a call and come back to it; then the wait is ours.
 * Oracle's cannot: there its own time-outs bound connecting and statements, in whole
 * seconds, rounded up, and a canceller is heeded before connecting only. Results as of the
 * calls that they stand for. */
#ifndef DBLOCK_MYSQL_CALL_H
#define DBLOCK_MYSQL_CALL_H

#include <dblock/sys/driver.h>

#include <mysql.h>

struct dblock_target;

/* Before mysql_call_connect(). */
int mysql_call_prepare_handle(MYSQL *mysql);

/* 1, 0 (see mysql_errno()), or -1: call->cancel_fd is readable. */
int mysql_call_connect(
    MYSQL *mysql, const struct dblock_target *target, const struct dblock_call *call);
int mysql_call_prepare(
    MYSQL *mysql, MYSQL_STMT *statement, const char *sql, const struct dblock_call *call);
int mysql_call_execute(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call);
int mysql_call_fetch(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call);
int mysql_call_store(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call);
/* These three wait for nothing but room in the socket's buffer. */
int mysql_call_send(MYSQL *mysql, const char *sql, const struct dblock_call *call);
void mysql_call_forget(MYSQL_STMT *statement);
void mysql_call_close(MYSQL *mysql);
/* The answer to mysql_call_send(); `is_here`: the socket is readable. `*ret_rows` NULL: it has none.
 * 0 or not. */
int mysql_call_answer(
    MYSQL *mysql, const struct dblock_call *call, int is_here, MYSQL_RES **ret_rows);
/* The next row; NULL also if the server sent fewer columns than were asked for. */
MYSQL_ROW mysql_call_row(MYSQL_RES *rows, unsigned int n_columns);

#endif
