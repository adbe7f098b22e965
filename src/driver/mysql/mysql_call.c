/* SPDX-License-Identifier: MIT */
/* mysql_call.c - see mysql_call.h. What the calls mean is their callers' business. */
#include "mysql_call.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "mysql_statement.h"
#include "mysql_target.h"
#include "mysql_wire.h"

/* The rows of an answer whose head was read. 0 or not. */
static int store(MYSQL *mysql, MYSQL_RES **ret_rows)
{
    if (mysql_field_count(mysql) == 0)
        return 0;
    *ret_rows = mysql_store_result(mysql);
    return *ret_rows == NULL && mysql_errno(mysql) != 0;
}

MYSQL_ROW mysql_call_row(MYSQL_RES *rows, unsigned int n_columns)
{
    return rows != NULL && mysql_num_fields(rows) >= n_columns ? mysql_fetch_row(rows) : NULL;
}

#if MYSQL_IS_MARIADB_CLIENT

/* For name resolution and TLS handshakes too; pages that are not used cost nothing. */
#define STACK_SIZE (256u * 1024)
/* So often a call that is over is told so before its socket is taken away from it. */
#define TELL_MAX 20

struct waiting {
    MYSQL *mysql;
    const struct dblock_call *call;
    int heed_cancel;
    int is_cancelled;
    int n_told;
};

int mysql_call_prepare_handle(MYSQL *mysql)
{
    size_t size = STACK_SIZE;

    return mysql_options(mysql, MYSQL_OPT_NONBLOCK, &size);
}

/* Waits for what the library says that it waits for, and returns what came. Once the time
 * is over (or the canceller raised) the library is told "time-out", which ends its call
 * with an error of its own, and with its memory and descriptors in order. */
static int await(struct waiting *waiting, int wanted)
{
    struct dblock_call limit = *waiting->call;
    short events = 0;
    int ready = 0;

    if ((wanted & MYSQL_WAIT_READ) != 0)
        events |= POLLIN;
    if ((wanted & MYSQL_WAIT_WRITE) != 0)
        events |= POLLOUT;
    if ((wanted & MYSQL_WAIT_TIMEOUT) != 0) {
        uint64_t end_us =
            dblock_clock_us() + (uint64_t)mysql_get_timeout_value_ms(waiting->mysql) * 1000;

        if (end_us < limit.deadline_us)
            limit.deadline_us = end_us;
    }
    if (waiting->n_told == 0)
        ready = dblock_fd_wait(
            mysql_get_socket(waiting->mysql), events, &limit, waiting->heed_cancel);
    if (ready > 0)
        return wanted & ~MYSQL_WAIT_TIMEOUT;
    if (ready < 0)
        waiting->is_cancelled = 1;
    if (ready < 0 || dblock_clock_us() >= waiting->call->deadline_us)
        ++waiting->n_told;
    if (waiting->n_told > TELL_MAX)
        (void)shutdown(mysql_get_socket(waiting->mysql), SHUT_RDWR);
    return MYSQL_WAIT_TIMEOUT;
}

/* A TLS handshake does not tell us what it waits for: it waits by itself, for whole seconds and anew
 * for each piece. While connecting, the library's way of waiting is therefore ours (mysql_wire.h has
 * more of this): not beyond the deadline, and not after a cancel. */
struct handshake {
    PVIO_METHODS methods; /* first: what the library hands to them leads here */
    struct waiting *waiting;
    MARIADB_PVIO *pvio; /* whose methods these are; NULL: nobody's yet */
    PVIO_METHODS *before;
};

static int wait_within(MARIADB_PVIO *pvio, my_bool is_read, int timeout)
{
    const struct handshake *handshake = (const void *)pvio->methods;
    int ready = dblock_fd_wait(mysql_get_socket(pvio->mysql), is_read ? POLLIN : POLLOUT,
        handshake->waiting->call, handshake->waiting->heed_cancel);

    (void)timeout; /* it is in whole seconds */
    if (ready > 0)
        return 1;
    if (ready < 0)
        handshake->waiting->is_cancelled = 1;
    errno = ETIMEDOUT;
    return 0;
}

static void lead_here(struct handshake *handshake, MARIADB_PVIO *pvio)
{
    if (pvio == NULL || handshake->pvio == pvio)
        return;
    handshake->pvio = pvio;
    handshake->before = pvio->methods;
    handshake->methods = *pvio->methods;
    handshake->methods.wait_io_or_timeout = wait_within;
    pvio->methods = &handshake->methods;
}

/* Before its greeting a server can only refuse, by an error. One with the number of a progress
 * report makes this library (3.3) look into the version that the greeting was to bring, by a pointer
 * that is NULL. So there is one, of no server, until the greeting puts its own in the place of it. If
 * that is never seen the library has most likely freed it, with the rest that a failure leaves; a
 * greeting and a failure that come in one piece cost this byte. */
static void take_version_back(const MYSQL *mysql, char **version)
{
    if (mysql->server_version == *version)
        return;
    if (mysql->server_version != NULL)
        free(*version);
    *version = NULL;
}

int mysql_call_connect(
    MYSQL *mysql, const struct dblock_target *target, const struct dblock_call *call)
{
    struct waiting waiting = { mysql, call, 1, 0, 0 };
    struct handshake handshake;
    MYSQL *result = NULL;
    char *version = calloc(1, 1);
    int wanted;

    mysql->server_version = version;
    wanted = mysql_real_connect_start(&result, mysql, target->host, target->user, target->password,
        target->database, target->port, target->socket, 0);
    take_version_back(mysql, &version);
    memset(&handshake, 0, sizeof handshake);
    handshake.waiting = &waiting;
    while (wanted != 0) {
        lead_here(&handshake, mysql->net.pvio);
        wanted = mysql_real_connect_cont(&result, mysql, await(&waiting, wanted));
        take_version_back(mysql, &version);
    }
    if (handshake.pvio != NULL && mysql->net.pvio == handshake.pvio)
        handshake.pvio->methods = handshake.before;
    if (waiting.is_cancelled)
        return -1;
    return result != NULL;
}

int mysql_call_prepare(
    MYSQL *mysql, MYSQL_STMT *statement, const char *sql, const struct dblock_call *call)
{
    struct waiting waiting = { mysql, call, 0, 0, 0 };
    int result = 1;
    int wanted;

    if (mysql_wire_limit(mysql, call))
        return mysql_stmt_prepare(statement, sql, (unsigned long)strlen(sql));
    wanted = mysql_stmt_prepare_start(&result, statement, sql, (unsigned long)strlen(sql));
    while (wanted != 0)
        wanted = mysql_stmt_prepare_cont(&result, statement, await(&waiting, wanted));
    return result;
}

int mysql_call_execute(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    struct waiting waiting = { mysql, call, 0, 0, 0 };
    int result = 1;
    int wanted;

    if (mysql_wire_limit(mysql, call))
        return mysql_stmt_execute(statement);
    wanted = mysql_stmt_execute_start(&result, statement);
    while (wanted != 0)
        wanted = mysql_stmt_execute_cont(&result, statement, await(&waiting, wanted));
    return result;
}

int mysql_call_fetch(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    struct waiting waiting = { mysql, call, 0, 0, 0 };
    int result = 1;
    int wanted;

    if (mysql_wire_limit(mysql, call))
        return mysql_stmt_fetch(statement);
    wanted = mysql_stmt_fetch_start(&result, statement);
    while (wanted != 0)
        wanted = mysql_stmt_fetch_cont(&result, statement, await(&waiting, wanted));
    return result;
}

int mysql_call_store(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    struct waiting waiting = { mysql, call, 0, 0, 0 };
    int result = 1;
    int wanted;

    if (mysql_wire_limit(mysql, call))
        return mysql_stmt_store_result(statement);
    wanted = mysql_stmt_store_result_start(&result, statement);
    while (wanted != 0)
        wanted = mysql_stmt_store_result_cont(&result, statement, await(&waiting, wanted));
    return result;
}

int mysql_call_answer(
    MYSQL *mysql, const struct dblock_call *call, int is_here, MYSQL_RES **ret_rows)
{
    struct waiting waiting = { mysql, call, 0, 0, 0 };
    my_bool failed = 1;
    int wanted;

    *ret_rows = NULL;
    if (mysql_wire_limit(mysql, call)) {
        if (is_here)
            mysql_wire_is_here(mysql);
        return mysql_read_query_result(mysql) != 0 || store(mysql, ret_rows) != 0;
    }
    wanted = mysql_read_query_result_start(&failed, mysql);
    while (wanted != 0)
        wanted = mysql_read_query_result_cont(&failed, mysql, await(&waiting, wanted));
    if (failed)
        return 1;
    wanted = mysql_store_result_start(ret_rows, mysql);
    while (wanted != 0)
        wanted = mysql_store_result_cont(ret_rows, mysql, await(&waiting, wanted));
    return *ret_rows == NULL && mysql_errno(mysql) != 0;
}

int mysql_call_send(MYSQL *mysql, const char *sql, const struct dblock_call *call)
{
    (void)mysql_wire_limit(mysql, call);
    return mysql_send_query(mysql, sql, (unsigned long)strlen(sql));
}

void mysql_call_forget(MYSQL_STMT *statement)
{
    (void)mysql_stmt_close(statement);
}

void mysql_call_close(MYSQL *mysql)
{
    mysql_close(mysql);
}

#else

/* Oracle's library writes to sockets that may be closed, and counts on SIGPIPE being
 * ignored, which is not ours to do. So the signal is held back in this thread while the
 * library works, and taken away again if it came from there. */
struct held {
    sigset_t before;
    int was_pending;
};

static void hold_sigpipe(struct held *held)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigpending(&set);
    held->was_pending = sigismember(&set, SIGPIPE) == 1;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

static void let_sigpipe(const struct held *held)
{
    static const struct timespec at_once = {0, 0};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    if (!held->was_pending)
        while (sigtimedwait(&set, NULL, &at_once) > 0)
            ;
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

int mysql_call_prepare_handle(MYSQL *mysql)
{
    (void)mysql;
    return 0;
}

/* Bounded by MYSQL_OPT_CONNECT_TIMEOUT. The library's other way, which does not wait, forgets
 * the time-outs of all later reads under TLS (seen with 9.7): worse than what it would cure. */
int mysql_call_connect(
    MYSQL *mysql, const struct dblock_target *target, const struct dblock_call *call)
{
    struct held held;
    int is_done;

    (void)call;
    hold_sigpipe(&held);
    is_done = mysql_real_connect(mysql, target->host, target->user, target->password,
                  target->database, target->port, target->socket, 0) != NULL;
    let_sigpipe(&held);
    return is_done;
}

int mysql_call_prepare(
    MYSQL *mysql, MYSQL_STMT *statement, const char *sql, const struct dblock_call *call)
{
    struct held held;
    int result;

    (void)mysql;
    (void)call;
    hold_sigpipe(&held);
    result = mysql_stmt_prepare(statement, sql, (unsigned long)strlen(sql));
    let_sigpipe(&held);
    return result;
}

int mysql_call_execute(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    struct held held;
    int result;

    (void)mysql;
    (void)call;
    hold_sigpipe(&held);
    result = mysql_stmt_execute(statement);
    let_sigpipe(&held);
    return result;
}

int mysql_call_fetch(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    (void)mysql;
    (void)call;
    return mysql_stmt_fetch(statement);
}

int mysql_call_store(MYSQL *mysql, MYSQL_STMT *statement, const struct dblock_call *call)
{
    (void)mysql;
    (void)call;
    return mysql_stmt_store_result(statement);
}

int mysql_call_answer(
    MYSQL *mysql, const struct dblock_call *call, int is_here, MYSQL_RES **ret_rows)
{
    (void)call;
    (void)is_here;
    *ret_rows = NULL;
    return mysql_read_query_result(mysql) != 0 || store(mysql, ret_rows) != 0;
}

int mysql_call_send(MYSQL *mysql, const char *sql, const struct dblock_call *call)
{
    struct held held;
    int result;

    (void)call;
    hold_sigpipe(&held);
    result = mysql_send_query(mysql, sql, (unsigned long)strlen(sql));
    let_sigpipe(&held);
    return result;
}

void mysql_call_forget(MYSQL_STMT *statement)
{
    struct held held;

    hold_sigpipe(&held);
    (void)mysql_stmt_close(statement);
    let_sigpipe(&held);
}

void mysql_call_close(MYSQL *mysql)
{
    struct held held;

    hold_sigpipe(&held);
    mysql_close(mysql);
    let_sigpipe(&held);
}

#endif
