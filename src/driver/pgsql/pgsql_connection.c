/* SPDX-License-Identifier: MIT */
/* pgsql_connection.c - connecting, closing, and whether it is still there. */
#include "pgsql_connection.h"

#include "pgsql_cancel.h"
#include "pgsql_error.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const role_words[] = { "", "short", "keeper", "control", "row", "advisory", "line" };

/* libpq prints notices to stderr otherwise. */
static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

/* "dblock HOST PID ROLE", at most the 63 bytes that the server keeps; what reads it again is
 * pgsql_grant_holder(). */
static void name_application(const struct dblock_target *target, int role, char name[64])
{
    const size_t size = 64;
    char tail[40];
    char host[57];
    char *place;

    (void)snprintf(
        tail, sizeof tail, " %lld %s", (long long)target->pid, role_words[role]);
    dblock_text_copy(host, sizeof host - strlen(tail), target->host);
    for (place = host; *place != 0; ++place)
        if (*place == ' ')
            *place = '_';
    (void)snprintf(name, size, "dblock %.*s%s", (int)(size - 8 - strlen(tail)), host, tail);
}

/* 1 connected, 0 failed, -1 cancelled, -2 out of time. */
static int finish_connecting(PGconn *pg, const struct dblock_call *call)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    for (;;) {
        int ready;

        if (state == PGRES_POLLING_OK)
            return 1;
        if (state == PGRES_POLLING_FAILED)
            return 0;
        ready = dblock_fd_wait(
            PQsocket(pg), state == PGRES_POLLING_READING ? POLLIN : POLLOUT, call, 1);
        if (ready <= 0)
            return ready < 0 ? -1 : -2;
        state = PQconnectPoll(pg);
    }
}

static dblock_status start(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    const char **values = malloc((target->n_values + 1) * sizeof *values);
    char application[64];
    int outcome;

    if (values == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    memcpy(values, target->values, (target->n_values + 1) * sizeof *values);
    if (!target->names_application) {
        name_application(target, connection->role, application);
        values[target->n_values - 1] = application;
    }
    connection->pg = PQconnectStartParams((const char *const *)target->keywords, values, 0);
    free(values);
    if (connection->pg == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    (void)PQsetNoticeReceiver(connection->pg, ignore_notice, NULL);
    /* the only way to the SQLSTATE of a refused login */
    (void)PQsetErrorVerbosity(connection->pg, PQERRORS_VERBOSE);
    if (PQstatus(connection->pg) == CONNECTION_BAD)
        return pgsql_connect_error(connection->pg, reterr);
    outcome = finish_connecting(connection->pg, call);
    (void)PQsetErrorVerbosity(connection->pg, PQERRORS_DEFAULT);
    if (outcome == -1)
        return DBLOCK_CANCELLED;
    if (outcome == -2)
        return dblock_error_set(
            reterr, DBLOCK_E_CONNECTION, NULL, "cannot connect to PostgreSQL: no answer in time");
    if (outcome == 0)
        return pgsql_connect_error(connection->pg, reterr);
    if (PQserverVersion(connection->pg) == 0) /* libpq had no memory to note it */
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL,
            "cannot connect to PostgreSQL: no memory for what the server says of itself");
    if (PQserverVersion(connection->pg) < 120000)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "PostgreSQL 12 or later is needed",
            "cannot connect to PostgreSQL: its version %d is too old",
            PQserverVersion(connection->pg) / 10000);
    if (PQsetnonblocking(connection->pg, 1) != 0)
        return pgsql_connect_error(connection->pg, reterr);
    return DBLOCK_OK;
}

static const char *write_ms(char *text, size_t size, uint64_t duration_us, uint64_t least_ms)
{
    uint64_t duration_ms = duration_us / 1000;

    if (duration_ms < least_ms)
        duration_ms = least_ms;
    if (duration_ms > INT32_MAX)
        duration_ms = INT32_MAX;
    (void)snprintf(text, size, "%llu", (unsigned long long)duration_ms);
    return text;
}

static const char *write_seconds(char *text, size_t size, uint64_t duration_us)
{
    uint64_t duration_s = duration_us / 1000000;

    if (duration_s < 1)
        duration_s = 1;
    if (duration_s > 7200)
        duration_s = 7200;
    (void)snprintf(text, size, "%llu", (unsigned long long)duration_s);
    return text;
}

/* How long the server's session may go on without its client is a matter of the ttl where locks
 * live in it, and of the I/O limit elsewhere. Standing in line is one long statement, which sets
 * limits of its own; whoever comes next waits for the session of a dead client to end. */
static void add_settings(struct pgsql_message *message)
{
    const struct dblock_connection *connection = message->connection;
    const struct dblock_target *target = connection->target;
    int is_lasting =
        connection->role == DBLOCK_ROLE_ROW || connection->role == DBLOCK_ROLE_ADVISORY;
    int is_line = connection->role == DBLOCK_ROLE_LINE;
    uint64_t patience_us = is_lasting ? target->ttl_us : target->io_timeout_us;
    int32_t pid = PQbackendPID(connection->pg);
    struct pgsql_parameters parameters;
    char limit[24], idle[24], interval[24], unacknowledged[24], standing[24];

    parameters.n = 0;
    pgsql_put_int32(&parameters, pid);
    /* a slice of a wait must not be cut short */
    pgsql_put_text(&parameters,
        is_line ? "0"
                : write_ms(limit, sizeof limit, target->io_timeout_us, is_lasting ? 2000 : 10));
    pgsql_put_text(&parameters, write_seconds(idle, sizeof idle, patience_us / 3));
    pgsql_put_text(&parameters, write_seconds(interval, sizeof interval, patience_us / 9));
    pgsql_put_text(
        &parameters, write_ms(unacknowledged, sizeof unacknowledged, patience_us, 1000));
    pgsql_put_text(&parameters, connection->role == DBLOCK_ROLE_ROW || is_line ? "off" : "on");
    pgsql_put_text(&parameters, is_lasting ? target->schema_quoted : NULL);
    /* A row lock that is held is pinged every third of its ttl. One that has not been for a whole ttl
     * is not believed in any more, and keepalive does not tell of a holder that stands still, nor of
     * something in between that keeps its own connections while it passes nothing on. */
    pgsql_put_text(&parameters,
        connection->role == DBLOCK_ROLE_ROW
            ? write_ms(standing, sizeof standing, target->ttl_us, 1000)
            : "0");
    pgsql_message_add(message, STATEMENT_OPEN, &parameters);
    if (PQserverVersion(connection->pg) >= 140000) {
        parameters.n = 0;
        pgsql_put_int32(&parameters, pid);
        /* Each look wakes who waits, and is for nothing: the turn of a dead one that waits is
         * over as soon as he is told of it. */
        pgsql_put_text(&parameters, is_line || is_lasting ? "0" : "2000");
        pgsql_message_add(message, STATEMENT_OPEN_14, &parameters);
    }
    if (PQserverVersion(connection->pg) >= 170000) {
        parameters.n = 0;
        pgsql_put_int32(&parameters, pid);
        pgsql_message_add(message, STATEMENT_OPEN_17, &parameters);
    }
}

/* Microseconds of a setting as the server shows it, like "1s" or "1500ms"; 0: not understood. */
static uint64_t read_duration(const PGresult *result, int row, int column)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = { { "ms", 1000 }, { "s", 1000000 }, { "min", 60000000 },
        { "h", UINT64_C(3600000000) }, { "d", UINT64_C(86400000000) } };
    char text[32];
    char *end;
    uint64_t number;
    size_t i;

    pgsql_get_text(result, row, column, text, sizeof text);
    number = strtoull(text, &end, 10);

    for (i = 0; i < sizeof units / sizeof *units; ++i)
        if (strcmp(end, units[i].name) == 0 && number <= INT32_MAX)
            return number * units[i].us;
    return 0;
}

static dblock_status greet(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_message message;
    dblock_status status;

    /* unnamed, as it is not known yet whether a pooler stands between */
    connection->is_pooled = 1;
    pgsql_message_init(&message, connection, call, "connect to PostgreSQL", NULL,
        PGSQL_READS | PGSQL_CONNECTS | PGSQL_OWN_BOUNDS);
    add_settings(&message);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        const uint64_t slice_us = 890000;
        uint64_t patience_us = read_duration(message.results[0], 0, 3);

        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = DBLOCK_ANSWER_YES;
        connection->is_pooled = !pgsql_get_bool(message.results[0], 0, 1);
        connection->slice_us = slice_us;
        connection->has_queue =
            !connection->is_pooled && pgsql_get_bool(message.results[0], 0, 4);
        if (patience_us > 0 && patience_us / 100 * 89 < slice_us)
            connection->slice_us = patience_us / 100 * 89;
    }
    if (message.is_cancelled)
        status = DBLOCK_CANCELLED;
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_connection *connection = calloc(1, sizeof *connection);
    dblock_status status;

    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    connection->target = target;
    connection->role = role;
    status = start(connection, call, reterr);
    if (status == DBLOCK_OK)
        status = greet(connection, call, answer, reterr);
    if (status == DBLOCK_OK)
        *ret_connection = connection;
    else
        pgsql_connection_close(connection, DBLOCK_CLOSE_POLITE);
    return status;
}

/* A parent's socket: what libpq says at the end must not reach the server, which would end the
 * parent's session. A socket that leads nowhere takes its place. */
static void cut_off(PGconn *pg)
{
    int nowhere = socket(AF_UNIX, SOCK_STREAM, 0);

    if (PQsocket(pg) >= 0 && nowhere >= 0)
        (void)dup2(nowhere, PQsocket(pg));
    else if (PQsocket(pg) >= 0)
        (void)close(PQsocket(pg)); /* no descriptor to be had: libpq finds it closed */
    if (nowhere >= 0)
        (void)close(nowhere);
}

void pgsql_connection_close(struct dblock_connection *connection, int how)
{
    if (connection == NULL)
        return;
    if (how != DBLOCK_CLOSE_FORKED)
        pgsql_line_settle(connection);
    if (connection->pg != NULL && how == DBLOCK_CLOSE_FORKED)
        cut_off(connection->pg);
    else if (connection->pg != NULL && how == DBLOCK_CLOSE_ABORT && connection->is_busy)
        (void)pgsql_cancel(connection->pg, 50000); /* or the server's own limits end it */
    PQfinish(connection->pg);
    pgsql_line_free(connection->line);
    free(connection->ids);
    free(connection);
}

int pgsql_connection_is_alive(const struct dblock_connection *connection)
{
    return !connection->is_broken && PQstatus(connection->pg) == CONNECTION_OK;
}

int pgsql_connection_fd(const struct dblock_connection *connection)
{
    return connection->is_leaving ? -1 : PQsocket(connection->pg);
}

dblock_status pgsql_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    int is_advisory = connection->n_ids > 0;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(&message, connection, call, "ping", NULL, PGSQL_READS);
    parameters.n = 0;
    if (is_advisory)
        pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    pgsql_message_add(
        &message, is_advisory ? STATEMENT_PING_ADVISORY : STATEMENT_PING, &parameters);
    if (connection->is_holding)
        pgsql_message_add_nothing(&message);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = DBLOCK_ANSWER_YES;
        if ((is_advisory &&
                pgsql_get_int64(message.results[0], 0, 1) < (int64_t)connection->n_ids) ||
            (connection->is_holding &&
                PQtransactionStatus(connection->pg) != PQTRANS_INTRANS))
            answer->outcome = DBLOCK_ANSWER_NO;
    } else if (message.is_refused && (is_advisory || connection->is_holding)) {
        connection->is_broken = 1; /* the session has ended, or its transaction has failed */
        answer->outcome = DBLOCK_ANSWER_NO;
        status = DBLOCK_OK;
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(&message, connection, call, "use the tables of dblock", NULL, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_VERIFY, NULL, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];
        int32_t version = PQntuples(result) == 1 ? pgsql_get_int32(result, 0, 1) : 0;

        if (version != 1)
            status = dblock_error_set(reterr, DBLOCK_E_SCHEMA,
                version > 1 ? "install a newer release of dblock here" : PGSQL_HINT_INIT,
                "cannot use the tables of dblock: their version is %d, and not 1", (int)version);
        else if (!pgsql_get_bool(result, 0, 2))
            status = pgsql_rights_error(connection, "use the tables of dblock", reterr);
        answer->now_us = PQntuples(result) == 1 ? pgsql_get_time(result, 0, 0) : 0;
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return pgsql_message_fini(&message, status, answer);
}
