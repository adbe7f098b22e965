/* SPDX-License-Identifier: MIT */
/* pgsql_advisory_wait.c - standing in the server's queue for an advisory lock. What it
 * takes is a lock of the server's session, so whatever goes wrong ends the connection, or
 * it gives back what it got. The statements are in sql/advisory.sql. */
#include "pgsql_advisory.h"

#include "pgsql_error.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"

#include <stdio.h>

struct waiting {
    const struct dblock_take *take;
    int64_t id;
    int32_t ticket; /* of who waits in order of arrival; -1: none yet */
    int is_first;   /* no slice has been waited for yet */
    int is_cancelled;
};

/* One slice in the server's queue, where there is no procedure for it. */
static dblock_status wait_slice(struct dblock_connection *connection,
    const struct dblock_call *call, struct waiting *waiting, uint64_t slice_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &waiting->take->subject;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    char slice[24];
    dblock_status status;

    (void)snprintf(slice, sizeof slice, "%llu", (unsigned long long)(slice_us / 1000 + 1));
    pgsql_advisory_put(&parameters, connection, waiting->id);
    pgsql_put_text(&parameters, slice);
    pgsql_message_init(&message, connection, call, "take advisory", subject->name,
        PGSQL_WRITES | PGSQL_WAITS);
    pgsql_message_add(&message, STATEMENT_ADVISORY_ARM, &parameters);
    pgsql_message_add_quiet(&message, STATEMENT_ADVISORY_WAIT, NULL);
    pgsql_message_add(&message, STATEMENT_ADVISORY_WAITED, NULL);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[1], 0, 0);
        answer->outcome = pgsql_get_bool(message.results[1], 0, 1) ? DBLOCK_ANSWER_YES
                                                                   : DBLOCK_ANSWER_BUSY;
        if (!pgsql_get_bool(message.results[0], 0, 0))
            status = pgsql_advisory_refuse_other(connection, subject, reterr);
        else if (pgsql_get_bool(message.results[0], 0, 1))
            status = pgsql_advisory_refuse_standby(subject, reterr);
    } else if (status != PGSQL_CONFLICT) {
        connection->is_broken = 1;
    }
    waiting->is_cancelled = message.is_cancelled;
    return pgsql_message_fini(&message, status, answer);
}

static dblock_status wait_first(struct dblock_connection *connection,
    const struct dblock_call *call, struct waiting *waiting, uint64_t slice_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &waiting->take->subject;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_advisory_put(&parameters, connection, waiting->id);
    pgsql_put_int32(&parameters, (int32_t)(slice_us / 1000 + 1));
    pgsql_message_init(&message, connection, call, "take advisory", subject->name,
        PGSQL_WRITES | PGSQL_WAITS);
    status = pgsql_message_ask(&message, STATEMENT_ADVISORY_FIRST, &parameters, reterr);
    if (status == DBLOCK_OK)
        status = pgsql_advisory_judge(connection, subject, message.results[0], answer, reterr);
    else if (status != PGSQL_CONFLICT)
        connection->is_broken = 1;
    waiting->is_cancelled = message.is_cancelled;
    return pgsql_message_fini(&message, status, answer);
}

/* Some slices, in one statement. */
static dblock_status wait_slices(struct dblock_connection *connection,
    const struct dblock_call *call, struct waiting *waiting, uint64_t wait_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &waiting->take->subject;
    struct pgsql_slices slices = pgsql_slices_of(connection, wait_us);
    struct dblock_call step;
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int32_t outcome = PGSQL_TAKEN_BY_OTHER;
    dblock_status status;

    if (waiting->take->is_fair) /* so many in the line, and so many in the queue */
        slices.n = (slices.n + 1) / 2;
    step = pgsql_slices_call(connection, call, 2 * slices.n * slices.each_us);
    parameters.n = 0;
    pgsql_put_text(&parameters, connection->target->schema_quoted);
    pgsql_put_name(&parameters, subject);
    pgsql_put_line(&parameters, connection->target, DBLOCK_ADVISORY, subject);
    pgsql_put_bool(&parameters, waiting->take->is_fair);
    pgsql_put_int32(&parameters, (int32_t)(slices.each_us / 1000 + 1));
    pgsql_put_int32(&parameters, (int32_t)slices.n);
    pgsql_put_int32(&parameters, 0);
    if (waiting->ticket >= 0)
        pgsql_put_int32(&parameters, waiting->ticket);
    else
        pgsql_put_null_int32(&parameters);
    pgsql_put_int64(&parameters, waiting->id);
    pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    pgsql_message_init(&message, connection, &step, "take advisory", subject->name,
        PGSQL_WRITES | PGSQL_WAITS);
    status = pgsql_message_ask(&message, STATEMENT_ADVISORY_QUEUE, &parameters, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];

        outcome = pgsql_get_int32(result, 0, 0);
        waiting->ticket = outcome != PGSQL_TAKEN_BY_OTHER || PQgetisnull(result, 0, 1)
            ? -1
            : pgsql_get_int32(result, 0, 1);
        answer->outcome = outcome == PGSQL_TAKEN ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_BUSY;
    } else if (status != PGSQL_CONFLICT) {
        connection->is_broken = 1;
    }
    waiting->is_cancelled = message.is_cancelled;
    if (outcome == PGSQL_TAKEN_BY_OTHER && status == DBLOCK_OK &&
        PQgetisnull(message.results[0], 0, 2))
        status = pgsql_advisory_refuse_other(connection, subject, reterr);
    if (outcome == PGSQL_TAKE_ON_STANDBY)
        status = pgsql_advisory_refuse_standby(subject, reterr);
    return pgsql_message_fini(&message, status, answer);
}

/* All that the session has, which is no more than a wait left: it waits for its only lock. */
static dblock_status leave(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_error *reterr)
{
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status;

    pgsql_message_init(&message, connection, call, "give up advisory", subject->name, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_LINE_LEAVE, NULL, reterr);
    if (status != DBLOCK_OK)
        connection->is_broken = 1;
    return pgsql_message_fini(&message, status, &unused);
}

static dblock_status wait_on(struct dblock_connection *connection,
    const struct dblock_call *call, struct waiting *waiting, uint64_t wait_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t slice_us = wait_us < connection->slice_us ? wait_us : connection->slice_us;
    struct dblock_call step;
    int is_first = waiting->is_first && !waiting->take->is_fair;

    waiting->is_first = 0;
    if (connection->has_queue && !is_first)
        return wait_slices(connection, call, waiting, wait_us, answer, reterr);
    step = pgsql_slices_call(connection, call, slice_us);
    return connection->has_queue
        ? wait_first(connection, &step, waiting, slice_us, answer, reterr)
        : wait_slice(connection, &step, waiting, slice_us, answer, reterr);
}

dblock_status pgsql_advisory_wait(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct waiting waiting = { take, pgsql_advisory_id(connection, &take->subject), -1, 1, 0 };
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = take->wait_us < UINT64_MAX - now_us ? now_us + take->wait_us : UINT64_MAX;
    dblock_status status;

    do {
        status = wait_on(connection, call, &waiting, until_us - now_us, answer, reterr);
        if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_AGAIN) {
            /* the end of a slice met the grant, where nothing caught it: what is had is not told */
            status = leave(connection, call, &take->subject, reterr);
            waiting.ticket = -1;
        }
        now_us = dblock_clock_us();
    } while (status == DBLOCK_OK && !waiting.is_cancelled &&
        answer->outcome != DBLOCK_ANSWER_YES && now_us < until_us);
    if (status == DBLOCK_OK && answer->outcome != DBLOCK_ANSWER_YES && waiting.ticket >= 0)
        status = leave(connection, call, &take->subject, reterr);
    if (!waiting.is_cancelled) {
        if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
            connection->ids[connection->n_ids++] = waiting.id;
            connection->waited_us = now_us;
        }
        return status;
    }
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) /* or it is given up */
        (void)pgsql_advisory_give_back(connection, call, &take->subject, &answer->now_us, NULL);
    else if (status != DBLOCK_OK)
        connection->is_broken = 1;
    return DBLOCK_CANCELLED;
}
