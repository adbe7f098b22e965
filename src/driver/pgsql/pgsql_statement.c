/* SPDX-License-Identifier: MIT */
/* pgsql_statement.c - see pgsql_statement.h.
 *
 * What a failure means is decided here. Nothing leaves libpq's buffer before the
 * message is complete, so until then there is no effect. After that (a statement
 * alone is sent by libpq itself, and if that fails it may have been sent):
 *   the server answers a statement with an error   the transaction is undone
 *   it says that it ends the session, in place of
 *   the answer of a statement that writes          undone as well
 *   it says so after such an answer                the commit may have been made: uncertain
 *   it says nothing any more, in time              uncertain, if the message writes */
#include "pgsql_statement.h"

#include "pgsql_cancel.h"
#include "pgsql_error.h"
#include "pgsql_loan.h"
#include "pgsql_receive.h"

#include <poll.h>
#include <stdio.h>

static const int binary_formats[PGSQL_PARAMETERS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static void note(struct pgsql_message *message, enum pgsql_statement statement, int is_prepare,
    int is_wanted)
{
    struct pgsql_entry *entry = &message->entries[message->n_entries++];

    entry->statement = (int)statement;
    entry->is_prepare = is_prepare;
    entry->is_wanted = is_wanted;
}

static int send_prepared(struct dblock_connection *connection, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters)
{
    const char *name = pgsql_texts[statement].name;

    if (parameters == NULL)
        return PQsendQueryPrepared(connection->pg, name, 0, NULL, NULL, NULL, 1);
    return PQsendQueryPrepared(connection->pg, name, parameters->n, parameters->values,
        parameters->sizes, binary_formats, 1);
}

/* Only between messages. */
static int set_pipeline(PGconn *pg, PGpipelineStatus status)
{
    if (PQpipelineStatus(pg) == status)
        return 1;
    return status == PQ_PIPELINE_ON ? PQenterPipelineMode(pg) : PQexitPipelineMode(pg);
}

static void send_statement(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters, int is_wanted)
{
    struct dblock_connection *connection = message->connection;
    const char *text = connection->target->texts[statement];
    int n = parameters != NULL ? parameters->n : 0;
    const Oid *types = parameters != NULL ? parameters->types : NULL;
    const char *const *values = parameters != NULL ? parameters->values : NULL;
    const int *sizes = parameters != NULL ? parameters->sizes : NULL;
    int is_sent;

    if (connection->is_broken || message->is_kept_out)
        return;
    if (message->n_entries == 0 && !set_pipeline(connection->pg, PQ_PIPELINE_ON)) {
        connection->is_broken = 1;
        return;
    }
    if (connection->is_pooled) {
        is_sent = PQsendQueryParams(
            connection->pg, text, n, types, values, sizes, binary_formats, 1);
    } else {
        if (!connection->is_prepared[statement]) {
            if (!PQsendPrepare(connection->pg, pgsql_texts[statement].name, text, n, types)) {
                connection->is_broken = 1;
                return;
            }
            note(message, statement, 1, 0);
        }
        is_sent = send_prepared(connection, statement, parameters);
    }
    if (!is_sent)
        connection->is_broken = 1;
    else
        note(message, statement, 0, is_wanted);
}

static void set_call(struct pgsql_message *message, const struct dblock_call *call)
{
    message->call = call;
    message->is_watched = call != NULL && call->cancel_fd == DBLOCK_CALL_IS_WATCHED;
}

void pgsql_message_init(struct pgsql_message *message, struct dblock_connection *connection,
    const struct dblock_call *call, const char *action, const char *name, int flags)
{
    message->connection = connection;
    message->action = action;
    message->name = name;
    message->flags = flags;
    message->is_alone = 0;
    message->is_bounded = 0;
    message->is_cancelled = 0;
    message->is_interrupted = 0;
    message->is_refused = 0;
    message->n_entries = 0;
    message->n_results = 0;
    set_call(message, call);
    message->waits_in_read = message->is_watched && pgsql_receive_by_waiting(connection);
    if (!message->is_watched)
        pgsql_receive_after_poll(connection);
    message->is_kept_out = connection->is_lent && !pgsql_loan_take(connection);
    if (connection->is_pooled && !connection->is_holding && !(flags & PGSQL_OWN_BOUNDS)) {
        message->is_bounded = 1;
        pgsql_message_add_begin(message);
    }
}

void pgsql_message_add(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters)
{
    send_statement(message, statement, parameters, 1);
}

void pgsql_message_add_quiet(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters)
{
    send_statement(message, statement, parameters, 0);
}

void pgsql_message_add_begin(struct pgsql_message *message)
{
    struct pgsql_parameters settings;
    char limit[32];

    if (!message->connection->is_pooled) { /* connection_open has set the isolation */
        send_statement(message, STATEMENT_BEGIN, NULL, 0);
        return;
    }
    send_statement(message, STATEMENT_BEGIN_COMMITTED, NULL, 0);
    settings.n = 0;
    (void)snprintf(limit, sizeof limit, "%llu",
        (unsigned long long)(message->connection->target->io_timeout_us / 1000));
    pgsql_put_text(&settings, limit);
    send_statement(message, STATEMENT_POOLED_SETTINGS, &settings, 0);
}

void pgsql_message_add_nothing(struct pgsql_message *message)
{
    send_statement(message, STATEMENT_NOTHING, NULL, 0);
}

/* Uncaught, a cancel request is a line in the server's log. So one that is wanted at once waits
 * until the server has most likely come to where it is caught. */
enum { LEAST_WAIT_US = 5000, CANCEL_LIMIT_US = 250000, LATE_LIMIT_US = 2000000 };

/* 0: the server is out of reach. */
static int interrupt(struct pgsql_message *message, short events)
{
    struct dblock_call pause = { message->sent_us + LEAST_WAIT_US, -1 };

    if (dblock_fd_wait(PQsocket(message->connection->pg), events, &pause, 0) == 1)
        return 1; /* it ends by itself; or this is asked again */
    message->is_interrupted = 1;
    return pgsql_cancel(message->connection->pg, CANCEL_LIMIT_US);
}

/* 1: the socket may be ready; whoever waits asks libpq, and waits again. 0: give up. */
static int await(struct pgsql_message *message, short events)
{
    struct dblock_connection *connection = message->connection;
    int fd = PQsocket(connection->pg);
    int heeds = (message->flags & (PGSQL_WAITS | PGSQL_CONNECTS)) && !message->is_interrupted;
    int ready = dblock_fd_wait(fd, events, message->call, heeds);

    if (ready >= 0)
        return ready;
    message->is_cancelled = 1;
    if (message->flags & PGSQL_CONNECTS)
        return 0;
    return interrupt(message, events);
}

/* All of it to the kernel. 1 sent, 0 the deadline came, -1 the connection is lost. */
static int flush(struct pgsql_message *message)
{
    PGconn *pg = message->connection->pg;
    int rest;

    if (message->is_watched)
        return 1; /* PQgetResult() does it before it waits */
    while ((rest = PQflush(pg)) == 1) {
        if (!await(message, POLLIN | POLLOUT))
            return 0;
        if (!PQconsumeInput(pg))
            return -1;
    }
    return rest == 0 ? 1 : -1;
}

/* Until the next result is here, or the connection is lost: then PQgetResult() has the last words,
 * and does not wait. 0: the deadline came. */
static int receive(struct pgsql_message *message)
{
    PGconn *pg = message->connection->pg;

    while (PQisBusy(pg)) {
        if (!message->is_watched && !await(message, POLLIN))
            return 0;
        if (!PQconsumeInput(pg))
            break;
    }
    return 1;
}

/* The next result: 1, and maybe NULL. 0: the deadline came. */
static int fetch(struct pgsql_message *message, PGresult **ret_result)
{
    PGconn *pg = message->connection->pg;

    if ((!message->is_watched || message->waits_in_read) && !receive(message))
        return 0;
    *ret_result = PQgetResult(pg);
    return 1;
}

/* The socket was shut down because the time was over, and not by the server. */
static int is_late(const struct pgsql_message *message)
{
    return message->is_watched && dblock_clock_us() >= message->call->deadline_us;
}

struct reading {
    PGresult *error;    /* the first one */
    int is_after_write; /* it came after the answer of a statement of ours */
    int n_succeeded;
    int is_in_time;
    int is_synced;
    int place; /* of the entry whose answers come */
};

static DBLOCK_COLD_ void take_error(struct reading *reading, PGresult *result)
{
    if (reading->error != NULL) {
        PQclear(result);
        return;
    }
    reading->error = result;
    reading->is_after_write = reading->n_succeeded > 0;
}

static void take_result(struct pgsql_message *message, struct reading *reading,
    const struct pgsql_entry *entry, PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
        if (entry->is_prepare)
            message->connection->is_prepared[entry->statement] = 1;
        else if (entry->statement == STATEMENT_COMMIT &&
            strcmp(PQcmdStatus(result), "COMMIT") != 0)
            message->connection->is_broken = 1; /* cannot be: an error came before */
        else
            ++reading->n_succeeded;
        if (entry->is_wanted)
            message->results[message->n_results++] = result;
        else
            PQclear(result);
        break;
    case PGRES_FATAL_ERROR:
        take_error(reading, result);
        break;
    default: /* PGRES_PIPELINE_ABORTED */
        PQclear(result);
        break;
    }
}

static void read_answers(struct pgsql_message *message, struct reading *reading)
{
    PGconn *pg = message->connection->pg;
    PGresult *result = NULL;
    int i = reading->place;

    reading->is_in_time = 1;
    while (!reading->is_synced && PQstatus(pg) == CONNECTION_OK) {
        if (!fetch(message, &result)) {
            reading->is_in_time = 0;
            reading->place = i;
            return;
        }
        if (result == NULL) { /* ends the answers of one statement; alone, of the message */
            if (message->is_alone)
                reading->is_synced = PQstatus(pg) == CONNECTION_OK;
            if (i < message->n_entries)
                ++i;
        } else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            reading->is_synced = 1;
            PQclear(result);
        } else if (i < message->n_entries) {
            take_result(message, reading, &message->entries[i], result);
        } else {
            take_error(reading, result); /* the commit itself failed */
        }
    }
}

static dblock_status judge(struct pgsql_message *message, const struct reading *reading, int sent,
    struct dblock_error *reterr)
{
    struct dblock_connection *connection = message->connection;
    const char *sqlstate =
        reading->error != NULL ? PQresultErrorField(reading->error, PG_DIAG_SQLSTATE) : NULL;
    const char *severity = reading->error != NULL
        ? PQresultErrorField(reading->error, PG_DIAG_SEVERITY_NONLOCALIZED)
        : NULL;
    int is_fatal = severity != NULL && severity[0] != 'E'; /* FATAL, PANIC */
    dblock_status lost =
        message->flags & PGSQL_WRITES ? DBLOCK_E_UNCERTAIN : DBLOCK_E_CONNECTION;

    if (sqlstate != NULL && (is_fatal || pgsql_is_end_of_session(connection, sqlstate)))
        connection->is_broken = 1;
    if (!reading->is_synced)
        connection->is_broken = 1;
    if (!reading->is_in_time || sent == 0 || (sqlstate == NULL && is_late(message)))
        return pgsql_connection_error(connection, message->action, message->name, lost,
            "no answer from the server in time", reterr);
    if (sqlstate == NULL)
        return pgsql_connection_error(
            connection, message->action, message->name, lost, NULL, reterr);
    if (is_fatal && reading->is_after_write && lost == DBLOCK_E_UNCERTAIN)
        return pgsql_connection_error(connection, message->action, message->name, lost,
            PQresultErrorField(reading->error, PG_DIAG_MESSAGE_PRIMARY), reterr);
    return pgsql_server_error(
        connection, message->action, message->name, reading->error, reterr);
}

/* The application's connection is not left in the middle: what runs is cancelled, and waited for. */
static DBLOCK_COLD_ void end_late(struct pgsql_message *message, struct reading *reading)
{
    struct dblock_call more = { dblock_clock_us() + LATE_LIMIT_US, -1 };
    const struct dblock_call *call = message->call;

    if (PQstatus(message->connection->pg) != CONNECTION_OK ||
        !pgsql_cancel(message->connection->pg, CANCEL_LIMIT_US))
        return;
    set_call(message, &more);
    read_answers(message, reading);
    set_call(message, call);
}

/* A transaction that failed in the middle of its message is still open. */
static DBLOCK_COLD_ void roll_back(struct pgsql_message *message)
{
    struct dblock_connection *connection = message->connection;
    PGconn *pg = connection->pg;
    struct dblock_call limit = { dblock_clock_us() + LATE_LIMIT_US, -1 };
    const struct dblock_call *call = message->call;
    PGresult *result = NULL;
    int is_there = 0;

    if (PQstatus(pg) != CONNECTION_OK || PQtransactionStatus(pg) == PQTRANS_IDLE)
        return;
    set_call(message, &limit);
    if (set_pipeline(pg, PQ_PIPELINE_OFF) && PQsendQuery(pg, "ROLLBACK"))
        while ((is_there = flush(message) == 1 && fetch(message, &result)) && result != NULL)
            PQclear(result);
    set_call(message, call);
    if (!is_there)
        connection->is_broken = 1;
}

static DBLOCK_COLD_ dblock_status refuse_broken(struct pgsql_message *message, struct dblock_error *reterr)
{
    message->connection->is_broken = 1;
    return pgsql_connection_error(message->connection, message->action, message->name,
        DBLOCK_E_CONNECTION, NULL, reterr);
}

/* Not all was answered, or not well. */
static DBLOCK_COLD_ dblock_status fail(struct pgsql_message *message, struct reading *reading,
    int sent, struct dblock_error *reterr)
{
    dblock_status status = judge(message, reading, sent, reterr);

    if (reading->error == NULL)
        return status;
    message->is_refused = reading->n_succeeded == 0 &&
        PQresultErrorField(reading->error, PG_DIAG_SQLSTATE) != NULL;
    PQclear(reading->error);
    return status;
}

/* `sent`: 1 all of it, 0 not in time, -1 not all of it, maybe. */
static dblock_status finish(struct pgsql_message *message, int sent, struct dblock_error *reterr)
{
    struct reading reading = { NULL, 0, 0, 1, 0, 0 };

    if (message->flags & PGSQL_WAITS)
        message->sent_us = dblock_clock_us();
    if (sent > 0)
        sent = flush(message);
    if (sent != 0)
        read_answers(message, &reading);
    if (message->connection->is_lent && !reading.is_synced)
        end_late(message, &reading);
    if (message->is_bounded && reading.is_synced)
        roll_back(message);
    message->connection->is_busy = !reading.is_synced;
    if (reading.is_synced && reading.error == NULL && !message->connection->is_broken)
        return DBLOCK_OK;
    return fail(message, &reading, sent, reterr);
}

static dblock_status run(struct pgsql_message *message, struct dblock_error *reterr)
{
    struct dblock_connection *connection = message->connection;

    if (message->is_bounded)
        send_statement(message, STATEMENT_COMMIT, NULL, 0);
    if (connection->is_broken || PQstatus(connection->pg) != CONNECTION_OK)
        return refuse_broken(message, reterr);
    connection->is_busy = 1;
    return finish(message, PQpipelineSync(connection->pg) ? 1 : -1, reterr);
}

dblock_status pgsql_message_run(struct pgsql_message *message, struct dblock_error *reterr)
{
    struct dblock_connection *connection = message->connection;
    dblock_status status;

    if (message->is_kept_out)
        return pgsql_loan_refuse(connection, message->action, message->name, reterr);
    status = run(message, reterr);
    if (connection->is_lent)
        pgsql_loan_give_back(connection);
    return status;
}

dblock_status pgsql_message_ask(struct pgsql_message *message, enum pgsql_statement statement,
    const struct pgsql_parameters *parameters, struct dblock_error *reterr)
{
    struct dblock_connection *connection = message->connection;

    if (connection->is_pooled || !connection->is_prepared[statement]) {
        send_statement(message, statement, parameters, 1);
        return pgsql_message_run(message, reterr);
    }
    if (connection->is_broken || PQstatus(connection->pg) != CONNECTION_OK ||
        !set_pipeline(connection->pg, PQ_PIPELINE_OFF))
        return refuse_broken(message, reterr);
    message->is_alone = 1;
    connection->is_busy = 1;
    note(message, statement, 0, 1);
    return finish(message, send_prepared(connection, statement, parameters) ? 1 : -1, reterr);
}

int pgsql_message_post(struct pgsql_message *message)
{
    struct dblock_connection *connection = message->connection;

    if (connection->is_broken || PQstatus(connection->pg) != CONNECTION_OK ||
        !PQpipelineSync(connection->pg) || PQflush(connection->pg) != 0) {
        connection->is_broken = 1;
        return 0;
    }
    connection->is_busy = 1;
    return 1;
}

dblock_status pgsql_message_collect(struct pgsql_message *message, struct dblock_error *reterr)
{
    return finish(message, 1, reterr);
}

dblock_status pgsql_message_fini(
    struct pgsql_message *message, dblock_status status, struct dblock_answer *answer)
{
    int i;

    for (i = 0; i < message->n_results; ++i)
        PQclear(message->results[i]);
    message->n_results = 0;
    if (status != PGSQL_CONFLICT)
        return status;
    answer->outcome = DBLOCK_ANSWER_AGAIN;
    return DBLOCK_OK;
}
