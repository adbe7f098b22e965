/* SPDX-License-Identifier: MIT */
/* pgsql_application.c - see pgsql_application.h. */
#include "pgsql_application.h"

#include <poll.h>
#include <string.h>

#include "pgsql_cancel.h"
#include "pgsql_error.h"

#define CANCEL_LIMIT_US 2000000u

dblock_status pgsql_application_check(
    PGconn *pg, const char *action, const char *name, struct dblock_error *reterr)
{
    if (pg == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "connection: NULL");
    if (PQstatus(pg) != CONNECTION_OK)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": the connection is broken, and its transaction is over", action, name);
    if (PQpipelineStatus(pg) != PQ_PIPELINE_OFF)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "call PQexitPipelineMode() before",
            "cannot %s \"%s\": the connection is in pipeline mode", action, name);
    if (PQisnonblocking(pg))
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "call PQsetnonblocking(connection, 0) before",
            "cannot %s \"%s\": the connection is in non-blocking mode", action, name);
    switch (PQtransactionStatus(pg)) {
    case PQTRANS_INTRANS:
        return DBLOCK_OK;
    case PQTRANS_INERROR:
        return DBLOCK_ROLLED_BACK;
    case PQTRANS_ACTIVE:
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "call PQgetResult() until it answers NULL",
            "cannot %s \"%s\": a statement runs on the connection, or its answer was not read",
            action, name);
    case PQTRANS_IDLE:
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "BEGIN before",
            "cannot %s \"%s\": the connection is in no transaction", action, name);
    default:
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": the connection is broken", action, name);
    }
}

/* Its results, until the server is ready or the limit comes: 1 ready, 0 late, -1 broken. `*result`
 * is the first with a fault, else the first. */
static int collect(PGconn *pg, const struct dblock_call *call, PGresult **result)
{
    PGresult *next;

    for (;;) {
        while (PQisBusy(pg)) {
            if (dblock_fd_wait(PQsocket(pg), POLLIN, call, 0) != 1)
                return 0;
            if (!PQconsumeInput(pg))
                return -1;
        }
        next = PQgetResult(pg);
        if (next == NULL)
            return PQstatus(pg) == CONNECTION_OK ? 1 : -1;
        if (*result == NULL || PQresultStatus(next) == PGRES_FATAL_ERROR) {
            PQclear(*result);
            *result = next;
        } else {
            PQclear(next);
        }
    }
}

static int is_one_of(const char *sqlstate, const char *const *all)
{
    for (; *all != NULL; ++all)
        if (strcmp(sqlstate, *all) == 0)
            return 1;
    return 0;
}

static dblock_status refused(PGconn *pg, const PGresult *result, const char *action,
    const char *name, int *ret_is_stale, struct dblock_error *reterr)
{
    /* the transaction is as it was for the next try: deadlock, limits, cancelled */
    static const char *const try_again[] = { "40P01", "55P03", "57014", NULL };
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *reason = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    dblock_status status;

    if (PQstatus(pg) != CONNECTION_OK)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": the connection was lost, and its transaction is over", action, name);
    if (sqlstate == NULL)
        sqlstate = "";
    *ret_is_stale = strcmp(sqlstate, "40001") == 0;
    if (*ret_is_stale || is_one_of(sqlstate, try_again))
        return DBLOCK_ROLLED_BACK;
    status = pgsql_status_of(sqlstate);
    (void)dblock_error_set(reterr, status,
        status == DBLOCK_E_SCHEMA ? PGSQL_HINT_INIT
            : status == DBLOCK_E_PERMISSION
            ? "GRANT SELECT, UPDATE ON dblock_lease, dblock_insert TO this role; GRANT SELECT ON"
              " dblock_session TO this role"
            : NULL,
        "cannot %s \"%s\": %s", action, name, reason != NULL ? reason : PQresultErrorMessage(result));
    dblock_error_native(reterr, 0, sqlstate, 0);
    return status;
}

dblock_status pgsql_application_ask(PGconn *pg, const char *text,
    const struct pgsql_parameters *parameters, uint64_t limit_us, const char *action,
    const char *name, PGresult **ret_result, int *ret_is_stale, struct dblock_error *reterr)
{
    static const int formats[PGSQL_PARAMETERS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    struct dblock_call call = { dblock_clock_us() + limit_us, -1 };
    PGresult *result = NULL;
    dblock_status status;
    int ready;

    *ret_is_stale = 0;
    *ret_result = NULL;
    if (!PQsendQueryParams(pg, text, parameters->n, parameters->types, parameters->values,
            parameters->sizes, formats, 1))
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": it could not be sent", action, name);
    ready = collect(pg, &call, &result);
    if (ready == 0 && pgsql_cancel(pg, CANCEL_LIMIT_US)) {
        call.deadline_us = dblock_clock_us() + CANCEL_LIMIT_US;
        ready = collect(pg, &call, &result);
    }
    if (ready != 1) {
        PQclear(result);
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "close the connection, and begin again",
            "cannot %s \"%s\": no answer on the application's connection", action, name);
    }
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        *ret_result = result;
        return DBLOCK_OK;
    }
    status = refused(pg, result, action, name, ret_is_stale, reterr);
    PQclear(result);
    return status;
}
