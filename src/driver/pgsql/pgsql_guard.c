/* SPDX-License-Identifier: MIT */
/* pgsql_guard.c - a transaction of the application that is bound to a grant. Why that works is
 * said in sql/guard.sql. */
#include <dblock/pgsql.h>

#include "pgsql_application.h"
#include "pgsql_line.h"
#include "pgsql_target.h"

#include <poll.h>

#define LOOK_AGAIN_US 5000u

static struct pgsql_application application_of(
    const struct dblock_guarded *guarded, PGconn *pg, const char *action)
{
    struct pgsql_application application = { guarded->target, pg, action, guarded->subject.name,
        "GRANT SELECT, UPDATE ON dblock_lease, dblock_insert, dblock_token TO this role; GRANT"
        " SELECT ON dblock_session TO this role",
        guarded->io_timeout_us };

    return application;
}

/* What the answer of lease_guard means; -1: somebody else stands on the row at this moment. */
static dblock_status judge(const PGresult *result, int64_t token)
{
    int is_fresh = pgsql_get_bool(result, 0, 4);
    int64_t seen = pgsql_get_int64(result, 0, 1);

    if (pgsql_get_bool(result, 0, 0))
        return DBLOCK_OK;
    if (!is_fresh && seen < token) /* tokens rise: the grant came after the snapshot */
        return DBLOCK_STALE_SNAPSHOT;
    if (seen != token || !pgsql_get_bool(result, 0, 2))
        return DBLOCK_LOST;
    if (!pgsql_get_bool(result, 0, 3)) /* by a heartbeat that may be an old one */
        return is_fresh ? DBLOCK_LOST : DBLOCK_STALE_SNAPSHOT;
    return -1;
}

static void put_grant(
    const struct dblock_guarded *guarded, int is_live, struct pgsql_parameters *parameters)
{
    parameters->n = 0;
    if (is_live) {
        pgsql_put_token_name(parameters, guarded->strategy, &guarded->subject);
        pgsql_put_int32(parameters, guarded->strategy);
    } else {
        pgsql_put_name(parameters, &guarded->subject);
        pgsql_put_id(parameters, guarded->owner);
    }
    pgsql_put_int64(parameters, guarded->token);
}

static dblock_status pin(
    const struct dblock_guarded *guarded, PGconn *pg, struct dblock_error *reterr)
{
    enum pgsql_statement statement = guarded->strategy == DBLOCK_LEASE ? STATEMENT_LEASE_GUARD
        : guarded->strategy == DBLOCK_INSERT                           ? STATEMENT_INSERT_GUARD
                                                                       : STATEMENT_TOKEN_GUARD;
    const char *text = guarded->target->texts[statement];
    const struct pgsql_application application = application_of(guarded, pg, "guard");
    uint64_t until_us = dblock_clock_us() + guarded->io_timeout_us;
    struct dblock_call pause = { 0, -1 };
    struct pgsql_parameters parameters;
    PGresult *result;
    dblock_status status;

    put_grant(guarded, statement == STATEMENT_TOKEN_GUARD, &parameters);
    for (;;) {
        status = pgsql_application_ask(&application, text, &parameters, &result, reterr);
        if (status != DBLOCK_OK)
            return status;
        status = judge(result, guarded->token);
        PQclear(result);
        if (status >= 0)
            return status;
        if (dblock_clock_us() >= until_us)
            break;
        pause.deadline_us = dblock_clock_us() + LOOK_AGAIN_US;
        (void)dblock_fd_wait(-1, 0, &pause, 0);
    }
    status = dblock_error_set(reterr, DBLOCK_E_DATABASE, "roll back, and begin again",
        "cannot guard \"%s\": another transaction stands on its row", guarded->subject.name);
    dblock_error_native(reterr, 0, NULL, 1);
    return status;
}

/* What is pinned is given back by this transaction. */
static dblock_status leave(
    const struct dblock_guarded *guarded, PGconn *pg, struct dblock_error *reterr)
{
    int is_lease = guarded->strategy == DBLOCK_LEASE;
    enum pgsql_statement statement = guarded->keep_us == 0
        ? (is_lease ? STATEMENT_LEASE_LEAVE : STATEMENT_INSERT_LEAVE)
        : (is_lease ? STATEMENT_LEASE_KEEP : STATEMENT_INSERT_KEEP);
    const char *text = guarded->target->texts[statement];
    const struct pgsql_application application = application_of(guarded, pg, "release");
    struct pgsql_parameters parameters;
    PGresult *result;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_name(&parameters, &guarded->subject);
    pgsql_put_id(&parameters, guarded->owner);
    pgsql_put_line(&parameters, guarded->target, guarded->strategy, &guarded->subject);
    if (guarded->keep_us != 0) {
        pgsql_put_id(&parameters, guarded->kept_owner);
        pgsql_put_duration(&parameters, guarded->keep_us);
    }
    status = pgsql_application_ask(&application, text, &parameters, &result, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (PQntuples(result) != 1) /* twice in one transaction */
        status = DBLOCK_NOT_HELD;
    PQclear(result);
    return status;
}

static dblock_status bind_to(
    dblock_lock *lock, PGconn *pg, int gives_back, struct dblock_error *reterr)
{
    struct dblock_guarded guarded;
    dblock_status status = gives_back ? dblock_guard_check_release(lock, reterr) : DBLOCK_OK;

    if (status == DBLOCK_OK)
        status = dblock_guard_begin(lock, dblock_pgsql_driver(), &guarded, reterr);
    if (status != DBLOCK_OK)
        return status;
    status = pgsql_application_check(
        pg, gives_back ? "release" : "guard", guarded.subject.name, reterr);
    if (status == DBLOCK_OK)
        status = pin(&guarded, pg, reterr);
    if (status == DBLOCK_OK && gives_back) {
        status = leave(&guarded, pg, reterr);
        if (status == DBLOCK_OK)
            dblock_guard_gives_back(lock);
    }
    return dblock_guard_end(lock, status, reterr);
}

dblock_status dblock_pgsql_guard(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr)
{
    return bind_to(lock, connection, 0, reterr);
}

dblock_status dblock_pgsql_release_in(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr)
{
    return bind_to(lock, connection, 1, reterr);
}
