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

/* As dblock_fd_wait(). The alarm is one for all threads: who comes second does without. */
static int await(struct dblock_target *target, int fd, const struct dblock_call *call)
{
    int is_ready;

    if (call->cancel_fd >= 0 || atomic_flag_test_and_set(&target->is_alarm_used))
        return dblock_fd_wait(fd, POLLIN, call, call->cancel_fd >= 0);
    if (target->alarm.fd < 0)
        pgsql_alarm_open(&target->alarm);
    is_ready = pgsql_alarm_wait(&target->alarm, fd, POLLIN, call);
    atomic_flag_clear(&target->is_alarm_used);
    return is_ready;
}

/* Its results, until the server is ready or the limit comes: 1 ready, 0 late, -1 broken, 2 shall be
 * cancelled. `*result` is the first with a fault, else the last. */
static int collect(const struct pgsql_application *application, const struct dblock_call *call,
    PGresult **result)
{
    PGconn *pg = application->pg;
    PGresult *next;
    int is_there;

    for (;;) {
        while (PQisBusy(pg)) {
            is_there = await(application->target, PQsocket(pg), call);
            if (is_there != 1)
                return is_there == 0 ? 0 : 2;
            if (!PQconsumeInput(pg))
                return -1;
        }
        next = PQgetResult(pg);
        if (next == NULL)
            return PQstatus(pg) == CONNECTION_OK ? 1 : -1;
        if (PQresultStatus(*result) == PGRES_FATAL_ERROR && *result != NULL) {
            PQclear(next);
        } else {
            PQclear(*result);
            *result = next;
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

static dblock_status refused(const struct pgsql_application *application, const PGresult *result,
    struct dblock_error *reterr)
{
    /* the transaction is as it was for the next try: deadlock, limits, cancelled */
    static const char *const try_again[] = { "40P01", "55P03", "57014", NULL };
    PGconn *pg = application->pg;
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *reason = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    dblock_status status;

    if (PQstatus(pg) != CONNECTION_OK)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": the connection was lost, and its transaction is over",
            application->action, application->name);
    if (sqlstate == NULL)
        sqlstate = "";
    if (strcmp(sqlstate, "40001") == 0)
        return DBLOCK_STALE_SNAPSHOT;
    if (is_one_of(sqlstate, try_again))
        return DBLOCK_ROLLED_BACK;
    status = pgsql_status_of(sqlstate);
    (void)dblock_error_set(reterr, status,
        status == DBLOCK_E_SCHEMA           ? PGSQL_HINT_INIT
            : status == DBLOCK_E_PERMISSION ? application->rights
                                            : NULL,
        "cannot %s \"%s\": %s", application->action, application->name,
        reason != NULL ? reason : PQresultErrorMessage(result));
    dblock_error_native(reterr, 0, sqlstate, 0);
    return status;
}

/* What was sent, to its end. */
static dblock_status finish(const struct pgsql_application *application, int is_sent,
    int cancel_fd, PGresult **ret_result, struct dblock_error *reterr)
{
    struct dblock_call call = { dblock_clock_us() + application->limit_us, cancel_fd };
    PGconn *pg = application->pg;
    PGresult *result = NULL;
    dblock_status status;
    int ready;

    *ret_result = NULL;
    if (!is_sent)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew, and begin again",
            "cannot %s \"%s\": it could not be sent", application->action, application->name);
    ready = collect(application, &call, &result);
    if (ready == 2) { /* if it cannot be cancelled, it ends by itself */
        (void)pgsql_cancel(pg, CANCEL_LIMIT_US);
        call.cancel_fd = -1;
        ready = collect(application, &call, &result);
    }
    if (ready == 0 && pgsql_cancel(pg, CANCEL_LIMIT_US)) {
        call.deadline_us = dblock_clock_us() + CANCEL_LIMIT_US;
        ready = collect(application, &call, &result);
    }
    if (ready != 1) {
        PQclear(result);
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "close the connection, and begin again",
            "cannot %s \"%s\": no answer on the application's connection", application->action,
            application->name);
    }
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        *ret_result = result;
        return DBLOCK_OK;
    }
    status = refused(application, result, reterr);
    PQclear(result);
    return status;
}

dblock_status pgsql_application_ask(const struct pgsql_application *application, const char *text,
    const struct pgsql_parameters *parameters, PGresult **ret_result, struct dblock_error *reterr)
{
    static const int formats[PGSQL_PARAMETERS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };

    return finish(application,
        PQsendQueryParams(application->pg, text, parameters->n, parameters->types,
            parameters->values, parameters->sizes, formats, 1),
        -1, ret_result, reterr);
}

dblock_status pgsql_application_run(const struct pgsql_application *application, const char *text,
    int cancel_fd, PGresult **ret_result, struct dblock_error *reterr)
{
    return finish(
        application, PQsendQuery(application->pg, text), cancel_fd, ret_result, reterr);
}
