/* SPDX-License-Identifier: MIT */
/* pgsql_observe.c - listing, breaking and purging. */
#include "pgsql_error.h"
#include "pgsql_grant.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

#include <stdio.h>

#define PURGE_AGE_US UINT64_C(3600000000)
#define PURGE_LIMIT 100

typedef void (*fill_fn)(struct dblock_grant *grant, const PGresult *result, int row, int64_t now_us);

static void fill_lease(struct dblock_grant *grant, const PGresult *result, int row, int64_t now_us)
{
    pgsql_grant_row(
        grant, DBLOCK_LEASE, result, row, 2, now_us, pgsql_get_bool(result, row, 1));
}

static void fill_insert(
    struct dblock_grant *grant, const PGresult *result, int row, int64_t now_us)
{
    pgsql_grant_row(
        grant, DBLOCK_INSERT, result, row, 2, now_us, pgsql_get_bool(result, row, 1));
}

static void fill_row(struct dblock_grant *grant, const PGresult *result, int row, int64_t now_us)
{
    char name[256];

    pgsql_get_text(result, row, 1, name, sizeof name);
    pgsql_grant_holder(grant, DBLOCK_ROW, name, result, row, 3, now_us);
}

static void fill_advisory(
    struct dblock_grant *grant, const PGresult *result, int row, int64_t now_us)
{
    char name[256];

    pgsql_get_text(result, row, 1, name, sizeof name);
    pgsql_grant_holder(grant, DBLOCK_ADVISORY, name, result, row, 2, now_us);
}

static const struct listing {
    enum pgsql_statement statement;
    const char *action;
    fill_fn fill;
} listings[] = {
    [DBLOCK_LEASE] = { STATEMENT_LEASE_LIST, "list leases", fill_lease },
    [DBLOCK_INSERT] = { STATEMENT_INSERT_LIST, "list inserts", fill_insert },
    [DBLOCK_ROW] = { STATEMENT_ROW_LIST, "list row locks", fill_row },
    [DBLOCK_ADVISORY] = { STATEMENT_ADVISORY_LIST, "list advisory locks", fill_advisory },
};

static void put_optional(struct pgsql_parameters *parameters, const char *name)
{
    pgsql_put_bytes(parameters, name, name != NULL ? strlen(name) : 0);
}

static void put_page(struct pgsql_parameters *parameters, const struct dblock_page *page)
{
    const size_t most = 10000;

    parameters->n = 0;
    put_optional(parameters, page->name);
    put_optional(parameters, page->prefix);
    put_optional(parameters, page->after);
    if (page->strategy != DBLOCK_ADVISORY)
        pgsql_put_bool(parameters, page->is_idle != 0);
    else if (page->has_advisory_id)
        pgsql_put_int64(parameters, page->advisory_id);
    else
        pgsql_put_null_int64(parameters);
    pgsql_put_int64(parameters, (int64_t)(page->limit < most ? page->limit : most));
}

/* Whoever asks for one name wants to know who waits for it; of a page nobody does. */
static int add_line(struct pgsql_message *message, const struct dblock_page *page)
{
    const struct dblock_subject subject = {
        page->name, page->name != NULL ? strlen(page->name) : 0, 0, 0
    };
    struct pgsql_parameters parameters;

    if (page->name == NULL ||
        (page->strategy != DBLOCK_LEASE && page->strategy != DBLOCK_INSERT))
        return 0;
    parameters.n = 0;
    pgsql_put_line(&parameters, message->connection->target, page->strategy, &subject);
    pgsql_message_add(message, STATEMENT_LINE_COUNT, &parameters);
    return 1;
}

dblock_status pgsql_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct listing *listing = &listings[page->strategy];
    struct dblock_grant grant;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;
    int has_line;
    int row;

    put_page(&parameters, page);
    pgsql_message_init(&message, connection, call, listing->action, NULL, PGSQL_READS);
    pgsql_message_add(&message, listing->statement, &parameters);
    has_line = add_line(&message, page);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];

        answer->outcome = DBLOCK_ANSWER_YES;
        for (row = 0; row < PQntuples(result); ++row) {
            answer->now_us = pgsql_get_time(result, row, 0);
            listing->fill(&grant, result, row, answer->now_us);
            if (has_line)
                grant.n_waiters = (uint32_t)pgsql_get_int64(message.results[1], 0, 0);
            if (fn(&grant, context) != 0)
                break;
        }
    }
    return pgsql_message_fini(&message, status, answer);
}

/* What lets this role end the sessions of others. */
static void hint_rights(const struct dblock_connection *connection, struct dblock_error *reterr)
{
    if (reterr != NULL)
        (void)snprintf(reterr->hint, sizeof reterr->hint,
            "GRANT pg_read_all_stats, pg_signal_backend TO \"%s\"; a session of a superuser is"
            " ended by a superuser", PQuser(connection->pg));
}

static dblock_status refuse_foreign(const struct dblock_connection *connection, const char *action,
    const struct dblock_subject *subject, const struct dblock_grant *holder, int is_visible,
    struct dblock_error *reterr)
{
    dblock_status status;

    if (is_visible)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "end it with pg_terminate_backend() if you know what else it does",
            "cannot %s \"%s\": the session %lld that holds it is not one of dblock's", action,
            subject->name, (long long)holder->server_pid);
    status = dblock_error_set(reterr, DBLOCK_E_PERMISSION, NULL,
        "cannot %s \"%s\": this role may not see the session %lld that holds it", action,
        subject->name, (long long)holder->server_pid);
    hint_rights(connection, reterr);
    return status;
}

/* pg_terminate_backend() only tells the session: its locks are free once it is gone, within
 * milliseconds as it runs nothing that matters. So it is asked until then, by round trips alone. */
static dblock_status await_end(struct dblock_connection *connection,
    const struct dblock_call *call, int32_t server_pid, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int is_there = 1;
    dblock_status status = DBLOCK_OK;

    while (status == DBLOCK_OK && is_there) {
        parameters.n = 0;
        pgsql_put_int32(&parameters, server_pid);
        pgsql_message_init(
            &message, connection, call, "await the end of a session", NULL, PGSQL_READS);
        pgsql_message_add(&message, STATEMENT_SESSION_IS_THERE, &parameters);
        status = pgsql_message_run(&message, reterr);
        if (status == DBLOCK_OK) {
            answer->now_us = pgsql_get_time(message.results[0], 0, 0);
            is_there = pgsql_get_bool(message.results[0], 0, 1);
        }
        status = pgsql_message_fini(&message, status, answer);
    }
    return status;
}

static dblock_status end_holder(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const char *action = strategy == DBLOCK_ROW ? "break row" : "break advisory";
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int is_ended = 0;
    dblock_status status = strategy == DBLOCK_ROW
        ? pgsql_row_holder(connection, call, subject, &holder, answer, reterr)
        : pgsql_advisory_holder(connection, call, subject, &holder, answer, reterr);

    if (status != DBLOCK_OK)
        return status;
    answer->outcome = DBLOCK_ANSWER_NO;
    if (holder.server_pid == 0 || (token != 0 && holder.token != token))
        return DBLOCK_OK;
    parameters.n = 0;
    pgsql_put_int32(&parameters, (int32_t)holder.server_pid);
    pgsql_message_init(&message, connection, call, action, subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_SESSION_TERMINATE, &parameters, reterr);
    if (status == DBLOCK_OK && PQntuples(message.results[0]) == 1) {
        const PGresult *result = message.results[0];

        is_ended = pgsql_get_bool(result, 0, 1);
        if (!is_ended && !pgsql_get_bool(result, 0, 0))
            status = refuse_foreign(
                connection, action, subject, &holder, !PQgetisnull(result, 0, 0), reterr);
    } else if (status == DBLOCK_E_PERMISSION) {
        hint_rights(connection, reterr);
    }
    status = pgsql_message_fini(&message, status, answer);
    if (status != DBLOCK_OK || !is_ended)
        return status;
    answer->outcome = DBLOCK_ANSWER_YES;
    status = await_end(connection, call, (int32_t)holder.server_pid, answer, reterr);
    if (status == DBLOCK_OK && holder.token != 0)
        status = pgsql_token_end(
            connection, call, strategy, subject, holder.token, answer, reterr);
    /* The session has been told to end. That its end could not be seen is no refusal, and not
     * "without effect": asked again, the answer might be that nobody holds it. */
    if (status < 0) {
        status = DBLOCK_E_UNCERTAIN;
        reterr->status = status;
        reterr->is_transient = 1;
    }
    return status;
}

dblock_status pgsql_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    switch (strategy) {
    case DBLOCK_LEASE:
        return pgsql_hold_end(
            &pgsql_hold_lease, connection, call, subject, token, answer, reterr);
    case DBLOCK_INSERT:
        return pgsql_hold_end(
            &pgsql_hold_insert, connection, call, subject, token, answer, reterr);
    default:
        return end_holder(connection, call, strategy, subject, token, answer, reterr);
    }
}

dblock_status pgsql_observe_purge(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_duration(&parameters, PURGE_AGE_US);
    pgsql_put_int64(&parameters, PURGE_LIMIT);
    pgsql_message_init(&message, connection, call, "purge the tables of dblock", NULL, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_PURGE, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->n_rows = (uint64_t)pgsql_get_int64(message.results[0], 0, 1);
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return pgsql_message_fini(&message, status, answer);
}
