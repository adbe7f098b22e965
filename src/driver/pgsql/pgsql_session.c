/* SPDX-License-Identifier: MIT */
/* pgsql_session.c - the rows that heartbeats renew. */
#include "pgsql_error.h"
#include "pgsql_fit.h"
#include "pgsql_grant.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

static dblock_status begin(struct dblock_connection *connection, const struct dblock_call *call,
    const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    char host[PGSQL_FIT_SIZE], label[PGSQL_FIT_SIZE];
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_id(&parameters, session);
    pgsql_put_duration(&parameters, ttl_us);
    pgsql_put_int64(&parameters, (int64_t)ttl_us);
    pgsql_put_text(&parameters, pgsql_fit(connection, target->host, host));
    pgsql_put_int64(&parameters, target->pid);
    pgsql_put_text(&parameters, pgsql_fit(connection, target->label, label));
    pgsql_message_init(&message, connection, call, "begin a session", NULL, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_SESSION_BEGIN, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->session_remaining_us = ttl_us;
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = begin(connection, call, session, ttl_us, answer, reterr);

    if (pgsql_fit_is_wanted(connection, status, reterr))
        status = begin(connection, call, session, ttl_us, answer, reterr);
    return status;
}

dblock_status pgsql_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_id(&parameters, session);
    pgsql_put_duration(&parameters, ttl_us);
    pgsql_message_init(&message, connection, call, "renew a session", NULL, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_SESSION_RENEW, &parameters, reterr);
    if (status == DBLOCK_OK && PQntuples(message.results[0]) == 1) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->changed = (uint64_t)pgsql_get_int64(message.results[0], 0, 1);
        answer->server_start_us = pgsql_get_time(message.results[0], 0, 2);
        answer->session_remaining_us = ttl_us;
        answer->outcome = DBLOCK_ANSWER_YES;
    } else if (status == DBLOCK_OK) {
        answer->outcome = DBLOCK_ANSWER_NO;
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_id(&parameters, session);
    pgsql_message_init(&message, connection, call, "end a session", NULL, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_SESSION_END, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->outcome =
            PQntuples(message.results[0]) == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
        if (answer->outcome == DBLOCK_ANSWER_YES)
            answer->now_us = pgsql_get_time(message.results[0], 0, 0);
    }
    return pgsql_message_fini(&message, status, answer);
}

static void tell_holds(const PGresult *result, int64_t now_us, dblock_grant_fn fn, void *context)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    int row;

    grant.now_us = now_us;
    grant.is_heartbeat = 1;
    grant.n_waiters = UINT32_MAX;
    for (row = 0; row < PQntuples(result); ++row) {
        if (PQgetisnull(result, row, 2))
            continue;
        grant.strategy = pgsql_get_int32(result, row, 1);
        pgsql_get_text(result, row, 2, grant.name, sizeof grant.name);
        pgsql_get_id_text(result, row, 3, grant.owner);
        grant.token = pgsql_get_int64(result, row, 4);
        if (fn(&grant, context) != 0)
            return;
    }
}

dblock_status pgsql_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_id(&parameters, session);
    pgsql_message_init(
        &message, connection, call, "read what a session holds", NULL, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_SESSION_HOLDS, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = DBLOCK_ANSWER_YES;
        tell_holds(message.results[0], answer->now_us, fn, context);
    }
    return pgsql_message_fini(&message, status, answer);
}
