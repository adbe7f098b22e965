/* SPDX-License-Identifier: MIT */
/* pgsql_advisory_wait.c - standing in the server's queue for an advisory lock. What it
 * takes is a lock of the server's session, so whatever goes wrong ends the connection, or
 * it gives back what it got. The statements are in sql/advisory.sql. */
#include "pgsql_advisory.h"

#include "pgsql_line.h"
#include "pgsql_statement.h"

#include <stdio.h>

enum { /* what dblock_queue answers, in the first column of its row */
    QUEUED_NOT_YET = 0,
    QUEUED_HELD = 1,
    QUEUED_CANCELLED = 2,
    QUEUED_STANDBY = 3
};

struct waiting {
    const struct dblock_take *take;
    int32_t ticket; /* of who waits in order of arrival; -1: none yet */
    int is_cancelled;
};

/* One slice in the server's queue, where there is no procedure for it. */
static dblock_status wait_slice(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, uint64_t slice_us,
    int *ret_is_cancelled, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    char slice[24];
    dblock_status status;

    (void)snprintf(slice, sizeof slice, "%llu", (unsigned long long)(slice_us / 1000 + 1));
    pgsql_advisory_put(&parameters, subject);
    pgsql_put_text(&parameters, slice);
    pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    pgsql_message_init(&message, connection, call, "take advisory", subject->name,
        PGSQL_READS | PGSQL_WAITS);
    pgsql_message_add(&message, STATEMENT_ADVISORY_ARM, &parameters);
    pgsql_message_add_quiet(&message, STATEMENT_ADVISORY_WAIT, NULL);
    pgsql_message_add(&message, STATEMENT_ADVISORY_WAITED, NULL);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[1], 0, 0);
        answer->outcome = pgsql_get_bool(message.results[1], 0, 1) ? DBLOCK_ANSWER_YES
                                                                   : DBLOCK_ANSWER_BUSY;
        if (PQgetisnull(message.results[0], 0, 0))
            status = pgsql_advisory_refuse_other(connection, subject, reterr);
        else if (pgsql_get_bool(message.results[0], 0, 1))
            status = pgsql_advisory_refuse_standby(subject, reterr);
        else if (answer->outcome == DBLOCK_ANSWER_YES)
            connection->ids[connection->n_ids++] = pgsql_get_int64(message.results[0], 0, 0);
        if (status == DBLOCK_OK)
            pgsql_advisory_remember(connection, subject, pgsql_get_int64(message.results[0], 0, 0));
    }
    *ret_is_cancelled = message.is_cancelled;
    return pgsql_message_fini(&message, status, answer);
}

/* Some slices, in one statement. */
static dblock_status wait_slices(struct dblock_connection *connection,
    const struct dblock_call *call, struct waiting *waiting, uint64_t wait_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &waiting->take->subject;
    struct pgsql_slices slices = pgsql_slices_of(connection, wait_us);
    struct dblock_call step = { 0, call->cancel_fd };
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int32_t outcome = QUEUED_NOT_YET;
    dblock_status status;

    if (waiting->take->is_fair) /* so many in the line, and so many in the queue */
        slices.n = (slices.n + 1) / 2;
    step.deadline_us =
        dblock_clock_us() + 2 * slices.n * slices.each_us + connection->target->io_timeout_us;
    if (step.deadline_us > call->deadline_us)
        step.deadline_us = call->deadline_us;
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
    if (subject->has_advisory_id)
        pgsql_put_int64(&parameters, subject->advisory_id);
    else
        pgsql_put_null_int64(&parameters);
    pgsql_put_int32(&parameters, PQbackendPID(connection->pg));
    pgsql_message_init(&message, connection, &step, "take advisory", subject->name,
        PGSQL_READS | PGSQL_WAITS);
    status = pgsql_message_ask(&message, STATEMENT_ADVISORY_QUEUE, &parameters, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];

        outcome = pgsql_get_int32(result, 0, 0);
        waiting->ticket = outcome != QUEUED_NOT_YET || PQgetisnull(result, 0, 1)
            ? -1
            : pgsql_get_int32(result, 0, 1);
        answer->outcome = outcome == QUEUED_HELD ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_BUSY;
        if (outcome == QUEUED_HELD) {
            connection->ids[connection->n_ids++] = pgsql_get_int64(result, 0, 2);
            pgsql_advisory_remember(connection, subject, pgsql_get_int64(result, 0, 2));
        }
    } else {
        connection->is_broken = 1;
    }
    waiting->is_cancelled = message.is_cancelled;
    if (outcome == QUEUED_NOT_YET && status == DBLOCK_OK &&
        PQgetisnull(message.results[0], 0, 2))
        status = pgsql_advisory_refuse_other(connection, subject, reterr);
    if (outcome == QUEUED_STANDBY)
        status = pgsql_advisory_refuse_standby(subject, reterr);
    return pgsql_message_fini(&message, status, answer);
}

/* The ticket of a wait that is over. */
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
    struct dblock_call slice = *call;
    uint64_t deadline_us;

    if (connection->has_queue)
        return wait_slices(connection, call, waiting, wait_us, answer, reterr);
    if (wait_us > connection->slice_us)
        wait_us = connection->slice_us;
    deadline_us = dblock_clock_us() + wait_us + connection->target->io_timeout_us;
    if (slice.deadline_us > deadline_us)
        slice.deadline_us = deadline_us;
    return wait_slice(connection, &slice, &waiting->take->subject, wait_us,
        &waiting->is_cancelled, answer, reterr);
}

dblock_status pgsql_advisory_wait(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct waiting waiting = { take, -1, 0 };
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = take->wait_us < UINT64_MAX - now_us ? now_us + take->wait_us : UINT64_MAX;
    dblock_status status;

    do {
        status = wait_on(connection, call, &waiting, until_us - now_us, answer, reterr);
        now_us = dblock_clock_us();
    } while (status == DBLOCK_OK && !waiting.is_cancelled &&
        answer->outcome != DBLOCK_ANSWER_YES && now_us < until_us);
    if (status == DBLOCK_OK && answer->outcome != DBLOCK_ANSWER_YES && waiting.ticket >= 0)
        status = leave(connection, call, &take->subject, reterr);
    if (!waiting.is_cancelled)
        return status;
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
        --connection->n_ids;
        /* or the connection is given up */
        (void)pgsql_advisory_give_back(connection, call, &take->subject, &answer->now_us, NULL);
    } else if (status != DBLOCK_OK) {
        connection->is_broken = 1;
    }
    return DBLOCK_CANCELLED;
}
