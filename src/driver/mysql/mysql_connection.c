/* SPDX-License-Identifier: MIT */
/* mysql_connection.c - opens, checks and closes one connection.
 *
 * What its tables look like is mysql_install.c's business; statements are
 * mysql_statement.c's. */
#include "mysql_connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mysql_bell.h"
#include "mysql_call.h"
#include "mysql_error.h"
#include "mysql_server.h"
#include "mysql_target.h"
#include "mysql_text.h"

/* A connection that was used so shortly ago is not looked at before it is used again. */
#define IDLE_US 5000u

void mysql_note_error(struct dblock_connection *connection, unsigned int code,
    const char *sqlstate, const char *text, int is_effect_possible)
{
    connection->error_code = code;
    connection->is_effect_possible = is_effect_possible;
    dblock_text_copy(connection->error_sqlstate, sizeof connection->error_sqlstate, sqlstate);
    dblock_text_copy(connection->error_text, sizeof connection->error_text, text);
    if (mysql_error_class(code) == MYSQL_CLASS_GONE)
        connection->is_dead = 1;
}

int mysql_is_in_transaction(const struct dblock_connection *connection)
{
    return (connection->mysql->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

unsigned int mysql_check_sendable(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    uint64_t now_us;
    uint64_t idle_us;
    char byte;
    ssize_t n;

    if (connection->is_dead) {
        mysql_note_error(connection, 2006, "HY000", "the connection has ended", 0);
        return connection->error_code;
    }
    now_us = dblock_clock_us();
    if (now_us >= call->deadline_us) {
        connection->error_code = 2006;
        connection->is_effect_possible = 0;
        dblock_text_copy(connection->error_sqlstate, sizeof connection->error_sqlstate, "HY000");
        dblock_text_copy(connection->error_text, sizeof connection->error_text,
            "the time was over before it was sent");
        return connection->error_code;
    }
    if (connection->is_answer_due && mysql_text_collect(connection, call) != 0 &&
        connection->is_dead)
        return connection->error_code;
    idle_us = now_us - connection->used_us;
    connection->used_us = now_us;
    if (idle_us < IDLE_US)
        return 0;
    n = recv(mysql_socket(connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    /* Between statements a server says only that it is going. Under TLS the bytes may be
     * a session ticket; then just the end itself counts. */
    if (n == 0 || (n > 0 && mysql_get_ssl_cipher(connection->mysql) == NULL)) {
        mysql_note_error(
            connection, 2006, "HY000", "the server has closed the connection meanwhile", 0);
        return connection->error_code;
    }
    return 0;
}

unsigned int mysql_count_seconds(uint64_t duration_us)
{
    uint64_t seconds = duration_us / 1000000 + (duration_us % 1000000 != 0);

    return seconds < 1 ? 1 : seconds > 1000000 ? 1000000 : (unsigned int)seconds;
}

static uint64_t find_remaining(const struct dblock_call *call)
{
    uint64_t now = dblock_clock_us();

    return call->deadline_us > now ? call->deadline_us - now : 0;
}

/* As an option that could not be noted would be one that is left out (the check of a certificate,
 * say), all of them count: 0 if they are set. */
static int set_tls(MYSQL *mysql, const struct dblock_target *target)
{
    int failed = 0;
#if MYSQL_IS_MARIADB_CLIENT
    mysql_flag on = 1;
    mysql_flag off = 0;

    if (target->tls == MYSQL_TLS_UNSAID && target->ssl_ca == NULL && target->ssl_cert == NULL)
        return 0;
    if (target->tls == MYSQL_TLS_DISABLED)
        return mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &off);
    failed |= mysql_ssl_set(mysql, target->ssl_key, target->ssl_cert, target->ssl_ca, NULL, NULL);
    if (target->tls >= MYSQL_TLS_REQUIRED)
        failed |= mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &on);
    /* This library verifies chain and name together. */
    failed |= mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT,
        target->tls >= MYSQL_TLS_VERIFY_CA ? &on : &off);
#else
    if (target->tls != MYSQL_TLS_UNSAID) {
        unsigned int mode = (unsigned int)target->tls; /* the library's own numbers */

        failed |= mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
    }
    if (target->ssl_ca != NULL)
        failed |= mysql_options(mysql, MYSQL_OPT_SSL_CA, target->ssl_ca);
    if (target->ssl_cert != NULL)
        failed |= mysql_options(mysql, MYSQL_OPT_SSL_CERT, target->ssl_cert);
    if (target->ssl_key != NULL)
        failed |= mysql_options(mysql, MYSQL_OPT_SSL_KEY, target->ssl_key);
#endif
    return failed;
}

/* How a server may want to have the password. As it is, MariaDB's library gives it to whoever asks,
 * also to somebody in between: only one that is proved, or of this machine, gets that. The plugin
 * "dialog" asks at the terminal for as long as it likes. */
static int set_logins(MYSQL *mysql, const struct dblock_target *target)
{
#if defined(MARIADB_PACKAGE_VERSION_ID) && MARIADB_PACKAGE_VERSION_ID >= 30300
#define HIDDEN "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec," \
               "auth_gssapi_client"
    int is_trusted = target->tls >= MYSQL_TLS_VERIFY_CA ||
        (target->host != NULL && strcmp(target->host, "localhost") == 0);

    return mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH,
        is_trusted ? HIDDEN ",mysql_clear_password" : HIDDEN);
#undef HIDDEN
#else
    (void)mysql;
    (void)target;
    return 0;
#endif
}

static int set_options(MYSQL *mysql, const struct dblock_target *target, uint64_t connect_us)
{
    unsigned int seconds = mysql_count_seconds(connect_us);
    unsigned int io_seconds = mysql_count_seconds(target->io_timeout_us);
    unsigned int none = 0;
    mysql_flag off = 0;
    int failed = 0;

    if (target->option_file != NULL)
        failed |= mysql_options(mysql, MYSQL_READ_DEFAULT_FILE, target->option_file);
    failed |= mysql_options(mysql, MYSQL_READ_DEFAULT_GROUP,
        target->option_group != NULL ? target->option_group : "client");
    failed |= mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    failed |= mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io_seconds);
    failed |= mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io_seconds);
    failed |= mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &none);
    failed |= mysql_options(mysql, MYSQL_REPORT_DATA_TRUNCATION, &off);
    failed |= mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    failed |= set_logins(mysql, target);
    /* for people; an empty one is an error to this library */
    (void)mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "dblock_label", target->label);
    (void)mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "dblock_host", target->client_host);
#if MYSQL_IS_MARIADB_CLIENT
    failed |= mysql_options(mysql, MYSQL_OPT_RECONNECT, &off);
#endif
    return set_tls(mysql, target) | mysql_call_prepare_handle(mysql) | failed;
}

/* A half-open connection is noticed by the kernel: when nothing comes, by keepalive, and
 * when something was sent, by the user timeout. */
static void set_socket(const struct dblock_connection *connection)
{
    int fd = mysql_socket(connection);
    int on = 1;
    int idle = 5, interval = 2, count = 3;
    unsigned int unanswered_ms = (unsigned int)(mysql_count_seconds(connection->target->io_timeout_us) *
        1000);

    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    /* All of these fail on a local socket, which needs none. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

/* `is_late`: the time was over, and then the library was told so. What it makes of that depends on
 * where it was: under TLS an error that reads like a refusal. */
static dblock_status fail_connect(
    struct dblock_connection *connection, int is_late, struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    unsigned int code = mysql_errno(connection->mysql);
    const char *cause = mysql_error(connection->mysql);
    const char *hint;
    dblock_status status;

    if (code == 0 || (is_late && mysql_error_class(code) == MYSQL_CLASS_GONE)) {
        code = 2013;
        cause = "no answer in time";
    }
    status = mysql_error_status(code, 1, &hint);
    (void)dblock_error_set(reterr, status, hint, "cannot connect to %s: %s",
        target->socket != NULL     ? target->socket
            : target->host != NULL ? target->host
                                   : "the mysql server",
        cause);
    dblock_error_native(reterr, (int32_t)code, mysql_sqlstate(connection->mysql),
        status == DBLOCK_E_CONNECTION);
    return status;
}

/* The client library looks names up itself, in a call that nobody can end, and cannot be given
 * addresses: certificates are for names. But what was answered before half of the time was over is
 * likely to be answered again within the other half. In a list of hosts each may
 * have a port. */
static dblock_status look_up_hosts(
    const char *list, const struct dblock_call *call, struct dblock_error *reterr)
{
    uint64_t now_us = dblock_clock_us();
    struct dblock_call half = *call;
    struct dblock_addresses addresses;
    dblock_status status = DBLOCK_OK;
    int is_found = 0;
    const char *ends = list != NULL && strchr(list, ',') != NULL ? ":," : ",";
    char host[256];

    half.deadline_us = now_us + (call->deadline_us > now_us ? call->deadline_us - now_us : 0) / 2;
    while (list != NULL && *list != 0) {
        (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(list, ends), list);
        status = dblock_host_look_up(host, &half, &addresses, reterr);
        if (status == DBLOCK_OK)
            is_found = 1;
        else if (status != DBLOCK_E_CONNECTION || dblock_clock_us() >= half.deadline_us)
            return status; /* the library would wait for this one */
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return is_found ? DBLOCK_OK : status;
}

dblock_status mysql_connect(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_error *reterr)
{
    struct dblock_connection *connection;
    struct pollfd cancel = { call->cancel_fd, POLLIN, 0 };
    uint64_t limit_us = find_remaining(call);
    struct dblock_call limit = *call;
    dblock_status status = DBLOCK_OK;
    int connected;

    if (call->cancel_fd >= 0 && poll(&cancel, 1, 0) > 0)
        return DBLOCK_CANCELLED;
    if (limit_us == 0)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, NULL,
            "cannot connect to the mysql server: the time was over before");
    if (limit_us > target->connect_timeout_us)
        limit_us = target->connect_timeout_us;
    limit.deadline_us = dblock_clock_us() + limit_us;
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "cannot connect to the mysql server: out of memory");
    connection->target = target;
    connection->role = role;
    connection->mysql = mysql_init(NULL);
    if (connection->mysql == NULL || set_options(connection->mysql, target, limit_us) != 0) {
        status = dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "cannot connect to the mysql server: out of memory");
        goto done;
    }
    status = look_up_hosts(target->host, &limit, reterr);
    if (status != DBLOCK_OK)
        goto done;
    connected = mysql_call_connect(connection->mysql, target, &limit);
    if (connected <= 0) {
        status = connected < 0
            ? DBLOCK_CANCELLED
            : fail_connect(connection, dblock_clock_us() >= limit.deadline_us, reterr);
        goto done;
    }
#if MYSQL_IS_MARIADB_CLIENT
    {
        mysql_flag off = 0; /* again: an option file may have turned it on */

        (void)mysql_options(connection->mysql, MYSQL_OPT_RECONNECT, &off);
    }
#endif
    /* MariaDB's library goes on without TLS if the server has none, whatever was asked. */
    if (target->tls >= MYSQL_TLS_REQUIRED && mysql_get_ssl_cipher(connection->mysql) == NULL) {
        status = dblock_error_set(reterr, DBLOCK_E_LOGIN,
            "give the server a certificate, or say ssl-mode=PREFERRED",
            "cannot connect: the URL requires TLS, and the server has none");
        goto done;
    }
    set_socket(connection);
    mysql_wire_take(&connection->wire, connection->mysql);
    connection->server_id = mysql_thread_id(connection->mysql);
    if ((connection->mysql->client_flag & CLIENT_FOUND_ROWS) != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "take client-found-rows out of the option file",
            "cannot use the connection: an option file asks to count rows that are found, and "
            "locks are judged by rows that are changed");
        goto done;
    }
    *ret_connection = connection;
    connection = NULL;
done:
    mysql_connection_close(connection, DBLOCK_CLOSE_ABORT);
    return status;
}

dblock_status mysql_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_connection *connection = NULL;
    dblock_status status;
    unsigned int code;

    status = mysql_connect(target, role, call, &connection, reterr);
    if (status != DBLOCK_OK)
        return status;
    code = mysql_server_greet(connection, call, answer);
    if (code == MYSQL_TEXT_CANCELLED) {
        status = DBLOCK_CANCELLED;
        goto done;
    }
    if (code != 0) {
        status = mysql_fail(connection, reterr, "cannot set up the connection");
        goto done;
    }
    if (connection->in.bytes[MYSQL_B_PREFIX].size == 0) {
        status = dblock_error_set(reterr, DBLOCK_E_SCHEMA,
            "name a database: mysql://user@host/database", "the URL names no database");
        goto done;
    }
    mysql_in_text(connection, MYSQL_B_HOST, target->client_host);
    mysql_in_number(connection, MYSQL_N_PID, target->pid);
    *ret_connection = connection;
    connection = NULL;
done:
    mysql_connection_close(connection, DBLOCK_CLOSE_ABORT);
    return status;
}

/* Puts another socket under the client library: it takes whatever is still said, and has
 * nothing to say. In the parent of a fork the connection goes on; else the server sees its
 * end at once. Returns the socket's other end, to be closed afterwards; -1: not done. */
static int sever(const struct dblock_connection *connection)
{
    int fd = mysql_socket(connection);
    int ends[2];

    if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    (void)shutdown(ends[1], SHUT_WR); /* who reads finds the end */
    (void)dup2(ends[0], fd);
    (void)close(ends[0]);
    return ends[1];
}

void mysql_connection_close(struct dblock_connection *connection, int how)
{
    int i;

    if (connection == NULL)
        return;
    /* A thread of the parent may have been inside this handle at the fork, so its memory is in no
     * known state: freeing it could free twice. The descriptor is closed, the rest stays. */
    if (how == DBLOCK_CLOSE_FORKED) {
        int fd = connection->mysql != NULL ? mysql_socket(connection) : -1;

        if (fd >= 0)
            (void)close(fd);
        return;
    }
    if (connection->mysql != NULL) {
        int other_end = how != DBLOCK_CLOSE_POLITE ? sever(connection) : -1;

        mysql_call_close(connection->mysql); /* before the statements: they then say no goodbye */
        if (other_end >= 0)
            (void)close(other_end);
    }
    for (i = 0; i < MYSQL_N_STATEMENTS; ++i)
        if (connection->statements[i] != NULL)
            (void)mysql_stmt_close(connection->statements[i]);
    mysql_bell_end(connection);
    free(connection);
}

int mysql_connection_is_alive(const struct dblock_connection *connection)
{
    return !connection->is_dead;
}

int mysql_connection_fd(const struct dblock_connection *connection)
{
    return connection->is_answer_due ? -1 : mysql_socket(connection);
}

int mysql_socket(const struct dblock_connection *connection)
{
#if MYSQL_IS_MARIADB_CLIENT
    return mysql_get_socket(connection->mysql);
#else
    return connection->mysql->net.fd;
#endif
}

dblock_status mysql_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (mysql_run_row(connection, MYSQL_CLOCK, call, NULL) != 0)
        return mysql_fail(connection, reterr, "cannot ping the database");
    answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    answer->outcome = DBLOCK_ANSWER_YES;
    if (connection->has_transaction && !mysql_is_in_transaction(connection)) {
        connection->has_transaction = 0;
        answer->outcome = DBLOCK_ANSWER_NO;
    }
    return DBLOCK_OK;
}
