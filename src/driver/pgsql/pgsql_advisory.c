/* SPDX-License-Identifier: MIT */
/* pgsql_advisory.c - strategy advisory: the server's own named locks, held by the
 * session of a connection. The statements, and why they are safe, are in
 * sql/advisory.sql.
 *
 * The server counts: a session that asks for a lock it has gets it again. So the
 * connection knows by their ids which ones it has (by id and not by name: two names
 * may have one id), and gives a second one back at once. */
#include "pgsql_advisory.h"

#include "pgsql_error.h"
#include "pgsql_grant.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

#include <stdlib.h>

enum { SOME_LOCKS = 16 };

static int has_id(const struct dblock_connection *connection, int64_t id)
{
    size_t i;

    for (i = 0; i < connection->n_ids; ++i)
        if (connection->ids[i] == id)
            return 1;
    return 0;
}

/* From the end, as what was taken last is most often given back first. */
static void forget_id(struct dblock_connection *connection, int64_t id)
{
    size_t i = connection->n_ids;

    while (i > 0)
        if (connection->ids[--i] == id) {
            connection->ids[i] = connection->ids[--connection->n_ids];
            return;
        }
}

/* Room first: a lock that was got must not be forgotten for want of memory. */
static int make_room(struct dblock_connection *connection)
{
    size_t room = connection->room > 0 ? 2 * connection->room : 8;
    int64_t *ids;

    if (connection->n_ids < connection->room)
        return 0;
    ids = realloc(connection->ids, room * sizeof *ids);
    if (ids == NULL)
        return -1;
    connection->ids = ids;
    connection->room = room;
    return 0;
}

/* The id of the name that was last asked for is not made again. */
int64_t pgsql_advisory_id(
    struct dblock_connection *connection, const struct dblock_subject *subject)
{
    if (subject->has_advisory_id)
        return subject->advisory_id;
    if (connection->last_size != subject->name_size ||
        memcmp(connection->last_name, subject->name, subject->name_size) != 0) {
        connection->last_id = dblock_name_number(subject->name, subject->name_size);
        connection->last_size = subject->name_size;
        memcpy(connection->last_name, subject->name, subject->name_size);
    }
    return connection->last_id;
}

void pgsql_advisory_put(struct pgsql_parameters *parameters,
    const struct dblock_connection *connection, int64_t id)
{
    parameters->n = 0;
    pgsql_put_int64(parameters, id);
    pgsql_put_int32(parameters, PQbackendPID(connection->pg));
}

static dblock_status refuse_pooler(const struct dblock_connection *connection,
    const struct dblock_subject *subject, struct dblock_error *reterr)
{
    if (!connection->is_pooled || connection->is_direct)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
        "use a URL that leads to the server directly, or strategy lease",
        "cannot take advisory \"%s\": a pooler stands between, and may give the server's session"
        " that holds the lock to somebody else",
        subject->name);
}

/* It looked like a connection to one session. What was got on it before cannot be proved on it. */
dblock_status pgsql_advisory_refuse_other(struct dblock_connection *connection,
    const struct dblock_subject *subject, struct dblock_error *reterr)
{
    connection->is_pooled = 1;
    connection->is_direct = 0;
    connection->is_broken = !connection->is_lent;
    return refuse_pooler(connection, subject, reterr);
}

dblock_status pgsql_advisory_refuse_standby(
    const struct dblock_subject *subject, struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_READ_ONLY, "connect to the primary",
        "cannot take advisory \"%s\": this server is a standby, whose locks exclude nobody on the"
        " primary",
        subject->name);
}

dblock_status pgsql_advisory_give_back(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t *ret_now_us,
    struct dblock_error *reterr)
{
    struct dblock_call short_call = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status;

    if (short_call.deadline_us > call->deadline_us)
        short_call.deadline_us = call->deadline_us;
    pgsql_message_init(
        &message, connection, &short_call, "release advisory", subject->name, PGSQL_READS);
    pgsql_advisory_put(&parameters, connection, pgsql_advisory_id(connection, subject));
    pgsql_message_add_quiet(&message, STATEMENT_ADVISORY_DROP, &parameters);
    pgsql_message_add(&message, STATEMENT_PING, NULL);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK)
        *ret_now_us = pgsql_get_time(message.results[0], 0, 0);
    else
        connection->is_broken = 1;
    return pgsql_message_fini(&message, status, &unused);
}

dblock_status pgsql_advisory_judge(struct dblock_connection *connection,
    const struct dblock_subject *subject, const PGresult *taken, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    if (PQgetisnull(taken, 0, 0))
        return pgsql_advisory_refuse_other(connection, subject, reterr);
    switch (pgsql_get_int32(taken, 0, 0)) {
    case PGSQL_TAKEN:
        answer->outcome = DBLOCK_ANSWER_YES;
        return DBLOCK_OK;
    case PGSQL_TAKE_ON_STANDBY:
        return pgsql_advisory_refuse_standby(subject, reterr);
    default:
        answer->outcome = DBLOCK_ANSWER_BUSY;
        return DBLOCK_OK;
    }
}

/* Without waiting. `*ret_is_again`: this session had it already. */
static dblock_status attempt(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, int *ret_is_again, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    int64_t id = pgsql_advisory_id(connection, subject);
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(
        &message, connection, call, "take advisory", subject->name, PGSQL_WRITES);
    pgsql_advisory_put(&parameters, connection, id);
    if (connection->is_lent) { /* the session may have it by the application, or another client */
        pgsql_message_add(&message, STATEMENT_ADVISORY_PROVE, &parameters);
        pgsql_message_add(&message, STATEMENT_ADVISORY_TAKE, &parameters);
        status = pgsql_message_run(&message, reterr);
    } else {
        status = pgsql_message_ask(&message, STATEMENT_ADVISORY_TAKE, &parameters, reterr);
    }
    if (status == DBLOCK_OK)
        status = pgsql_advisory_judge(
            connection, subject, message.results[message.n_results - 1], answer, reterr);
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
        *ret_is_again = has_id(connection, id) ||
            (connection->is_lent && pgsql_get_bool(message.results[0], 0, 1));
        if (!*ret_is_again)
            connection->ids[connection->n_ids++] = id;
    }
    return pgsql_message_fini(&message, status, answer);
}

static DBLOCK_COLD_ void fill_own(const struct dblock_connection *connection,
    const struct dblock_subject *subject, struct dblock_grant *holder,
    const struct dblock_answer *answer)
{
    memset(holder, 0, sizeof *holder);
    holder->struct_size = sizeof *holder;
    holder->strategy = DBLOCK_ADVISORY;
    holder->n_waiters = UINT32_MAX;
    holder->now_us = answer->now_us;
    holder->remaining_ms = DBLOCK_FOREVER;
    holder->server_pid = PQbackendPID(connection->pg);
    holder->pid = connection->target->pid;
    dblock_text_copy(holder->name, sizeof holder->name, subject->name);
    dblock_text_copy(holder->host, sizeof holder->host, connection->target->host);
    dblock_text_copy(holder->label, sizeof holder->label, connection->target->label);
}

enum { ASK_FIRST_US = 2000, ASK_LAST_US = 50000 };

/* The server's queue would keep the application's connection, and a cancel there would cost it
 * locks of its own: so it is asked from time to time. */
static DBLOCK_COLD_ dblock_status ask_again(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, int *ret_is_again,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = take->wait_us < UINT64_MAX - now_us ? now_us + take->wait_us : UINT64_MAX;
    uint64_t pause_us = ASK_FIRST_US;
    dblock_status status;

    if (take->is_fair)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "leave DBLOCK_FAIR out",
            "cannot take advisory \"%s\" in order of arrival over a connection of the application",
            take->subject.name);
    for (;;) {
        struct dblock_call pause = { 0, call->cancel_fd };
        struct dblock_call step = { now_us + connection->target->io_timeout_us, -1 };

        status = attempt(connection, &step, &take->subject, ret_is_again, answer, reterr);
        now_us = dblock_clock_us();
        if (status != DBLOCK_OK || answer->outcome == DBLOCK_ANSWER_YES || now_us >= until_us)
            return status;
        pause.deadline_us = pause_us < until_us - now_us ? now_us + pause_us : until_us;
        if (dblock_fd_wait(-1, 0, &pause, 1) < 0)
            return DBLOCK_CANCELLED;
        pause_us = 2 * pause_us < ASK_LAST_US ? 2 * pause_us : ASK_LAST_US;
        now_us = dblock_clock_us();
    }
}

/* A process of the server that sees these statements for the first time reads its catalogs under
 * more locks than it has places of its own, for which there is no room in the server's table of
 * locks once that is full: what is held could not be proved any more. So who holds some asks once
 * while there is room. What is answered does not matter. */
static DBLOCK_COLD_ void learn_to_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status;

    pgsql_message_init(
        &message, connection, call, "prove advisory", subject->name, PGSQL_READS);
    parameters.n = 0;
    pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    pgsql_message_add_quiet(&message, STATEMENT_PING_ADVISORY, &parameters);
    pgsql_advisory_put(&parameters, connection, pgsql_advisory_id(connection, subject));
    pgsql_message_add(&message, STATEMENT_ADVISORY_PROVE, &parameters);
    status = pgsql_message_run(&message, NULL);
    (void)pgsql_message_fini(&message, status, &unused);
}

dblock_status pgsql_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &take->subject;
    int is_again = 0;
    dblock_status status = refuse_pooler(connection, subject, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (make_room(connection) != 0)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    if (!connection->is_lent)
        status = pgsql_line_check_take(connection, take, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (take->wait_us > 0 && connection->is_lent)
        status = ask_again(connection, call, take, &is_again, answer, reterr);
    else if (take->wait_us > 0 && connection->n_ids == 0)
        status = pgsql_advisory_wait(connection, call, take, answer, reterr);
    else
        status = attempt(connection, call, subject, &is_again, answer, reterr);
    if (status != DBLOCK_OK)
        return status;
    answer->remaining_us = DBLOCK_NO_END;
    if (answer->outcome == DBLOCK_ANSWER_YES && connection->n_ids == SOME_LOCKS && !is_again)
        learn_to_prove(connection, call, subject);
    if (is_again) {
        answer->outcome = DBLOCK_ANSWER_BUSY;
        status = pgsql_advisory_give_back(connection, call, subject, &answer->now_us, reterr);
        if (status == DBLOCK_OK && holder != NULL)
            fill_own(connection, subject, holder, answer);
        return status;
    }
    if (answer->outcome == DBLOCK_ANSWER_BUSY && holder != NULL)
        return pgsql_advisory_holder(connection, call, subject, holder, answer, reterr);
    return DBLOCK_OK;
}

dblock_status pgsql_advisory_holder(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_token_name(&parameters, DBLOCK_ADVISORY, subject);
    pgsql_put_int64(&parameters, pgsql_advisory_id(connection, subject));
    pgsql_message_init(
        &message, connection, call, "look at advisory", subject->name, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_ADVISORY_HOLDER, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        pgsql_grant_holder(
            holder, DBLOCK_ADVISORY, subject->name, message.results[0], 0, 1, answer->now_us);
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int64_t id = pgsql_advisory_id(connection, subject);
    dblock_status status = refuse_pooler(connection, subject, reterr);

    if (status != DBLOCK_OK)
        return status;
    pgsql_advisory_put(&parameters, connection, id);
    pgsql_message_init(
        &message, connection, call, "release advisory", subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_ADVISORY_DROP, &parameters, reterr);
    if (status == DBLOCK_OK && PQgetisnull(message.results[0], 0, 0)) {
        answer->outcome = DBLOCK_ANSWER_NO; /* another session, in which nothing was given back */
        connection->is_broken = !connection->is_lent;
    } else if (status == DBLOCK_OK && pgsql_get_bool(message.results[0], 0, 0)) {
        answer->outcome = DBLOCK_ANSWER_YES;
        forget_id(connection, id);
    } else if (status == DBLOCK_OK) {
        answer->outcome = DBLOCK_ANSWER_NO; /* if a hand took it away, the next ping misses it */
    } else if (message.is_refused && connection->is_broken) {
        answer->outcome = DBLOCK_ANSWER_NO; /* the session had ended before this came */
        status = DBLOCK_OK;
    }
    return pgsql_message_fini(&message, status, answer);
}

void pgsql_advisory_leave(struct dblock_connection *connection)
{
    struct dblock_call call = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    struct pgsql_message message;
    struct pgsql_parameters parameters;
    struct dblock_answer unused;
    dblock_status status = DBLOCK_OK;

    while (status == DBLOCK_OK && connection->n_ids > 0 && !connection->is_broken) {
        pgsql_advisory_put(&parameters, connection, connection->ids[--connection->n_ids]);
        pgsql_message_init(
            &message, connection, &call, "release advisory", NULL, PGSQL_READS);
        status = pgsql_message_ask(&message, STATEMENT_ADVISORY_DROP, &parameters, NULL);
        status = pgsql_message_fini(&message, status, &unused);
    }
}

enum { A_MOMENT_US = 100000 };

dblock_status pgsql_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    int64_t id = pgsql_advisory_id(connection, subject);
    int is_just_granted = has_id(connection, id) &&
        dblock_clock_us() < connection->waited_us + A_MOMENT_US;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    if (is_just_granted) {
        parameters.n = 0;
        pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    } else {
        pgsql_advisory_put(&parameters, connection, id);
    }
    pgsql_message_init(
        &message, connection, call, "prove advisory", subject->name, PGSQL_READS);
    status = pgsql_message_ask(&message,
        is_just_granted ? STATEMENT_ADVISORY_STANDS : STATEMENT_ADVISORY_PROVE, &parameters,
        reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = pgsql_get_bool(message.results[0], 0, 1) ? DBLOCK_ANSWER_YES
                                                                   : DBLOCK_ANSWER_NO;
    } else if (message.is_refused && connection->is_broken) {
        answer->outcome = DBLOCK_ANSWER_NO;
        status = DBLOCK_OK;
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_token_draw(connection, call, DBLOCK_ADVISORY, subject, answer, reterr);
}
