/* SPDX-License-Identifier: MIT */
/* pgsql_loan.c - see pgsql_loan.h.
 *
 * Of the session nothing is changed: what a statement depends on is set for its transaction
 * (pooled_settings). Of libpq's side two things are, and put back: the blocking mode, and the
 * pipeline mode. Notices go to the application's receiver, as there is no way to learn what to
 * put back. */
#include "pgsql_loan.h"

#include <dblock/pgsql.h>

#include <stdlib.h>

#include "pgsql_advisory.h"
#include "pgsql_error.h"
#include "pgsql_statement.h"

static dblock_status refuse(const char *action, const char *name, const char *hint,
    const char *reason, struct dblock_error *reterr)
{
    if (name == NULL || *name == 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s: %s", action, reason);
    return dblock_error_set(
        reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s \"%s\": %s", action, name, reason);
}

dblock_status pgsql_loan_check(
    PGconn *pg, const char *action, const char *name, struct dblock_error *reterr)
{
    if (PQstatus(pg) != CONNECTION_OK)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, with a client over that",
            "cannot %s%s%s: the connection is broken", action, name != NULL ? " " : "",
            name != NULL ? name : "");
    if (PQpipelineStatus(pg) != PQ_PIPELINE_OFF)
        return refuse(action, name, "call PQexitPipelineMode() before",
            "the connection is in pipeline mode", reterr);
    if (PQisnonblocking(pg))
        return refuse(action, name, "call PQsetnonblocking(connection, 0) before",
            "the connection is in non-blocking mode", reterr);
    switch (PQtransactionStatus(pg)) {
    case PQTRANS_IDLE:
        return DBLOCK_OK;
    case PQTRANS_INTRANS:
        return refuse(action, name,
            "COMMIT or ROLLBACK before; in a transaction: dblock_pgsql_acquire_in(), _guard(),"
            " _release_in()",
            "the connection is in a transaction, and this would be a part of it", reterr);
    case PQTRANS_INERROR:
        return refuse(action, name, "ROLLBACK before",
            "the connection is in a transaction that has failed", reterr);
    case PQTRANS_ACTIVE:
        return refuse(action, name, "call PQgetResult() until it answers NULL; end a COPY",
            "a statement runs on the connection, or its answer was not read", reterr);
    default:
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, with a client over that",
            "cannot %s: the connection is broken", action);
    }
}

int pgsql_loan_take(struct dblock_connection *connection)
{
    struct dblock_target *target = connection->target;

    if (atomic_flag_test_and_set(&target->is_lent_used))
        return 0;
    if (pgsql_loan_check(connection->pg, "", NULL, NULL) == DBLOCK_OK &&
        (connection->server_pid == 0 || connection->server_pid == PQbackendPID(connection->pg)) &&
        PQsetnonblocking(connection->pg, 1) == 0)
        return 1;
    atomic_flag_clear(&target->is_lent_used);
    return 0;
}

dblock_status pgsql_loan_refuse(struct dblock_connection *connection, const char *action,
    const char *name, struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_OK;

    /* another call's pipeline is not the application's */
    if (!atomic_flag_test_and_set(&connection->target->is_lent_used)) {
        status = pgsql_loan_check(connection->pg, action, name, reterr);
        atomic_flag_clear(&connection->target->is_lent_used);
        if (status == DBLOCK_OK && connection->server_pid != PQbackendPID(connection->pg)) {
            connection->is_broken = 1;
            return pgsql_connection_error(connection, action, name, DBLOCK_E_CONNECTION,
                "the application has reset the connection: what it held is gone", reterr);
        }
    }
    if (status == DBLOCK_E_CONNECTION)
        connection->is_broken = 1;
    if (status != DBLOCK_OK)
        return status;
    return refuse(action, name, "one thread at a time",
        "another call is at work with the connection", reterr);
}

void pgsql_loan_give_back(struct dblock_connection *connection)
{
    PGconn *pg = connection->pg;

    if (PQpipelineStatus(pg) != PQ_PIPELINE_OFF && !PQexitPipelineMode(pg))
        connection->is_broken = 1; /* no answer came: the application finds it in the middle of it */
    if (PQsetnonblocking(pg, 0) != 0)
        connection->is_broken = 1;
    atomic_flag_clear(&connection->target->is_lent_used);
}

static dblock_status greet(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    connection->is_pooled = 1;
    connection->server_pid = PQbackendPID(connection->pg);
    parameters.n = 0;
    pgsql_put_int32(&parameters, connection->server_pid);
    pgsql_message_init(&message, connection, call, "use the connection", NULL, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_OPEN_LENT, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = DBLOCK_ANSWER_YES;
        connection->is_direct = pgsql_get_bool(message.results[0], 0, 1);
    }
    return pgsql_message_fini(&message, status, answer);
}

/* ------------------------------------------------------------------------ opening */

dblock_status pgsql_loan_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct dblock_connection *connection;
    dblock_status status;

    if (target->lent == NULL)
        return pgsql_connection_open(target, role, call, ret_connection, answer, reterr);
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    connection->target = target;
    connection->role = role;
    connection->pg = target->lent;
    connection->is_lent = 1;
    status = greet(connection, call, answer, reterr);
    if (status == DBLOCK_OK)
        *ret_connection = connection;
    else
        pgsql_loan_close(connection, DBLOCK_CLOSE_POLITE);
    return status;
}

void pgsql_loan_close(struct dblock_connection *connection, int how)
{
    if (connection != NULL && connection->is_lent) {
        if (how != DBLOCK_CLOSE_FORKED)
            pgsql_advisory_leave(connection);
        connection->pg = NULL; /* it is the application's */
    }
    pgsql_connection_close(connection, how);
}

int pgsql_loan_fd(const struct dblock_connection *connection)
{
    return connection->is_lent ? -1 : pgsql_connection_fd(connection);
}

/* A target of no URL in particular: there is nothing to connect to. */
static dblock_status open_target(void *connection, const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    struct dblock_target_config without = *config;
    dblock_status status;

    without.url = "postgresql://";
    status = pgsql_target_open(&without, ret_target, reterr);
    if (status != DBLOCK_OK)
        return status;
    (*ret_target)->lent = connection;
    atomic_flag_clear(&(*ret_target)->is_lent_used);
    return DBLOCK_OK;
}

static dblock_status check_target(struct dblock_target *target, const char *action,
    const char *name, struct dblock_error *reterr)
{
    return pgsql_loan_check(target->lent, action, name, reterr);
}

dblock_status dblock_pgsql_open_on(struct pg_conn *connection, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr)
{
    const struct dblock_borrowing borrowing = { connection, open_target, check_target,
        1u << DBLOCK_ROLE_SHORT | 1u << DBLOCK_ROLE_KEEPER | 1u << DBLOCK_ROLE_ADVISORY, 0 };

    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "connection: NULL");
    if (PQstatus(connection) == CONNECTION_OK && PQserverVersion(connection) < 120000)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "PostgreSQL 12 or later is needed",
            "cannot use the connection: the server's version %d is too old",
            PQserverVersion(connection) / 10000);
    return dblock_open_borrowed(dblock_pgsql_driver(), &borrowing, config, ret_client, reterr);
}
