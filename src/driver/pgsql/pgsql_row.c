/* SPDX-License-Identifier: MIT */
/* pgsql_row.c - strategy row: a lock held by the open transaction of its
 * connection. The statements, and why they are safe, are in sql/row.sql.
 *
 * The lost answer of a take is never uncertain: what the connection may have got goes with it.
 * That of a release is: either it came, or the lock ended with the connection before. */
#include "pgsql_error.h"
#include "pgsql_grant.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

#include <stdio.h>

dblock_status pgsql_row_seed(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_message_init(&message, connection, call, "make row", subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_ROW_SEED, &parameters, reterr);
    if (status == DBLOCK_OK)
        answer->outcome = DBLOCK_ANSWER_YES;
    return pgsql_message_fini(&message, status, answer);
}

/* Ends the transaction of an attempt that got nothing. */
static dblock_status roll_back(struct dblock_connection *connection,
    const struct dblock_call *call, const char *name, struct dblock_error *reterr)
{
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status;

    connection->is_holding = 0;
    if (!pgsql_connection_is_alive(connection) ||
        PQtransactionStatus(connection->pg) == PQTRANS_IDLE)
        return DBLOCK_OK;
    pgsql_message_init(
        &message, connection, call, "give up row", name, PGSQL_READS | PGSQL_OWN_BOUNDS);
    status = pgsql_message_ask(&message, STATEMENT_ROLLBACK, NULL, reterr);
    return pgsql_message_fini(&message, status, &unused);
}

static void put_turn(struct pgsql_parameters *parameters,
    const struct dblock_connection *connection, const struct dblock_subject *subject)
{
    parameters->n = 0;
    pgsql_put_name(parameters, subject);
    pgsql_put_line(parameters, connection->target, DBLOCK_ROW, subject);
}

static int32_t read_take(const PGresult *result)
{
    return PQgetisnull(result, 0, 0)   ? DBLOCK_ANSWER_UNSEEDED
        : pgsql_get_bool(result, 0, 0) ? DBLOCK_ANSWER_YES
                                       : DBLOCK_ANSWER_BUSY;
}

/* In a new transaction; one of an earlier attempt is ended on the way. */
static void begin_attempt(struct pgsql_message *message, struct dblock_connection *connection,
    const struct dblock_call *call, const char *name, int flags)
{
    pgsql_message_init(
        message, connection, call, "take row", name, PGSQL_WRITES | PGSQL_OWN_BOUNDS | flags);
    if (PQtransactionStatus(connection->pg) != PQTRANS_IDLE)
        pgsql_message_add_quiet(message, STATEMENT_ROLLBACK, NULL);
    pgsql_message_add_begin(message);
}

/* The transaction stays open. What became of it is in the last result, which `judge` understands. */
static dblock_status end_attempt(struct pgsql_message *message,
    int32_t (*judge)(const PGresult *result), int *ret_is_cancelled, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status;

    pgsql_message_add_nothing(message);
    status = pgsql_message_run(message, reterr);
    if (status == DBLOCK_OK)
        answer->outcome = judge(message->results[message->n_results - 1]);
    *ret_is_cancelled = message->is_cancelled;
    return pgsql_message_fini(message, status, answer);
}

/* `slice_us` above 0: stands in the server's queue so long. Else it is a try, which takes a row that
 * is free for the moment in which the first of those who wait is on his way to it. Not one that
 * `is_heeding`: whoever waits has the turn, or waits for it. */
static dblock_status attempt(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, int is_heeding, uint64_t slice_us, int *ret_is_cancelled,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    char slice[24];

    begin_attempt(&message, connection, call, subject->name, slice_us > 0 ? PGSQL_WAITS : 0);
    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    if (slice_us > 0) {
        (void)snprintf(slice, sizeof slice, "%llu", (unsigned long long)(slice_us / 1000 + 1));
        pgsql_put_text(&parameters, slice);
        pgsql_put_line(&parameters, connection->target, DBLOCK_ROW, subject);
        pgsql_message_add(&message, STATEMENT_ROW_ARM, &parameters);
        pgsql_message_add_quiet(&message, STATEMENT_ROW_WAIT, NULL);
    }
    if (slice_us > 0 || is_heeding) {
        put_turn(&parameters, connection, subject);
        pgsql_message_add(&message, STATEMENT_ROW_TAKE_TURN, &parameters);
    } else {
        pgsql_message_add(&message, STATEMENT_ROW_TAKE, &parameters);
    }
    return end_attempt(&message, read_take, ret_is_cancelled, answer, reterr);
}

/* The first slice of a wait for the turn. */
static dblock_status attempt_in_turn(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, uint64_t slice_us,
    int *ret_is_cancelled, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;

    begin_attempt(&message, connection, call, subject->name, PGSQL_WAITS);
    put_turn(&parameters, connection, subject);
    pgsql_put_int32(&parameters, (int32_t)(slice_us / 1000 + 1));
    pgsql_message_add(&message, STATEMENT_ROW_TAKE_IN_TURN, &parameters);
    return end_attempt(&message, read_take, ret_is_cancelled, answer, reterr);
}

/* Stands in line for the turn, for some slices, and attempts it then, whether or not it is the
 * first (`standing`). No transaction is open. */
static dblock_status attempt_in_line(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, uint64_t wait_us,
    struct pgsql_standing *standing, int *ret_is_cancelled, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct pgsql_slices slices = pgsql_slices_of(connection, wait_us);
    struct dblock_call step = pgsql_slices_call(connection, call, slices.n * slices.each_us);
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(&message, connection, &step, "take row", take->subject.name,
        PGSQL_READS | PGSQL_OWN_BOUNDS | PGSQL_WAITS);
    pgsql_line_put(&parameters, connection, DBLOCK_ROW, &take->subject, take->is_fair, slices,
        standing);
    pgsql_message_add(&message, STATEMENT_LINE_STAND, &parameters);
    pgsql_message_add_begin(&message);
    put_turn(&parameters, connection, &take->subject);
    pgsql_message_add(&message, STATEMENT_ROW_TAKE_TURN, &parameters);
    pgsql_message_add_nothing(&message);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        pgsql_line_get(standing, message.results[0]);
        answer->outcome = read_take(message.results[1]);
    }
    *ret_is_cancelled = message.is_cancelled;
    return pgsql_message_fini(&message, status, answer);
}

/* What row_wait_in_turn answers. */
static int32_t read_wait(const PGresult *result)
{
    switch (pgsql_get_int32(result, 0, 0)) {
    case 1:
        return DBLOCK_ANSWER_YES;
    case 3:
        return DBLOCK_ANSWER_UNSEEDED;
    default:
        return DBLOCK_ANSWER_BUSY;
    }
}

/* One slice, of the first in line: for who holds the row without a turn. */
static dblock_status attempt_as_first(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, uint64_t slice_us,
    int *ret_is_cancelled, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;

    begin_attempt(&message, connection, call, subject->name, PGSQL_WAITS);
    parameters.n = 0;
    pgsql_put_text(&parameters, connection->target->schema_quoted);
    pgsql_put_name(&parameters, subject);
    pgsql_put_line(&parameters, connection->target, DBLOCK_ROW, subject);
    pgsql_put_int32(&parameters, (int32_t)(slice_us / 1000 + 1));
    pgsql_message_add(&message, STATEMENT_ROW_WAIT_IN_TURN, &parameters);
    return end_attempt(&message, read_wait, ret_is_cancelled, answer, reterr);
}

/* One slice in the server's queue: for the turn if it is not had already (`is_in_line`), and for
 * who holds the row without one. */
static dblock_status attempt_slice(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, uint64_t wait_us,
    int is_in_line, int *ret_is_cancelled, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    uint64_t slice_us = wait_us < connection->slice_us ? wait_us : connection->slice_us;
    struct dblock_call step = pgsql_slices_call(connection, call, slice_us);

    if (is_in_line)
        return attempt_in_turn(
            connection, &step, subject, slice_us, ret_is_cancelled, answer, reterr);
    if (connection->has_queue)
        return attempt_as_first(
            connection, &step, subject, slice_us, ret_is_cancelled, answer, reterr);
    return attempt(connection, &step, subject, 0, slice_us, ret_is_cancelled, answer, reterr);
}

/* Ends what is left of a wait in line. Only a connection without a pooler has any. */
static dblock_status leave_line(struct dblock_connection *connection,
    const struct dblock_call *call, const char *name, struct dblock_error *reterr)
{
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status = roll_back(connection, call, name, reterr);

    if (status == DBLOCK_OK) {
        pgsql_message_init(
            &message, connection, call, "give up row", name, PGSQL_READS | PGSQL_OWN_BOUNDS);
        status = pgsql_message_ask(&message, STATEMENT_LINE_LEAVE, NULL, reterr);
        status = pgsql_message_fini(&message, status, &unused);
    }
    if (status != DBLOCK_OK)
        connection->is_broken = 1;
    return status;
}

/* Slices, each a transaction of its own, until the lock is had or the wait is over. */
static dblock_status wait_for(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    const char *name = take->subject.name;
    struct pgsql_standing standing = PGSQL_STANDING_INIT;
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = take->wait_us < UINT64_MAX - now_us ? now_us + take->wait_us : UINT64_MAX;
    int is_cancelled = 0;
    int is_first = !take->is_fair;
    dblock_status status = DBLOCK_OK;

    do {
        int is_in_line = connection->has_queue && standing.outcome != PGSQL_STOOD_FIRST;

        if (is_in_line)
            status = roll_back(connection, call, name, reterr);
        if (status == DBLOCK_OK)
            status = is_in_line && !is_first
                ? attempt_in_line(connection, call, take, until_us - now_us, &standing,
                      &is_cancelled, answer, reterr)
                : attempt_slice(connection, call, &take->subject, until_us - now_us, is_in_line,
                      &is_cancelled, answer, reterr);
        if (status == DBLOCK_OK && connection->has_queue &&
            answer->outcome == DBLOCK_ANSWER_AGAIN) { /* and it was not told what is had in line */
            status = leave_line(connection, call, name, reterr);
            standing = (struct pgsql_standing) PGSQL_STANDING_INIT;
        }
        is_first = 0;
        now_us = dblock_clock_us();
    } while (status == DBLOCK_OK && !is_cancelled && answer->outcome != DBLOCK_ANSWER_YES &&
        answer->outcome != DBLOCK_ANSWER_UNSEEDED && now_us < until_us);
    if (connection->has_queue && status != DBLOCK_OK)
        connection->is_broken = 1; /* with what it may have in a line */
    else if (connection->has_queue && (is_cancelled || answer->outcome != DBLOCK_ANSWER_YES))
        status = leave_line(connection, call, name, reterr);
    if (!is_cancelled)
        return status;
    /* whatever it got meanwhile */
    if (roll_back(connection, call, name, NULL) != DBLOCK_OK || connection->is_pooled)
        connection->is_broken = 1; /* a pooler may pass on the cancel request later still */
    return DBLOCK_CANCELLED;
}

dblock_status pgsql_row_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &take->subject;
    int is_cancelled;
    dblock_status status = pgsql_line_check_take(connection, take, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (connection->is_holding) { /* one at a time; and it cannot wait for itself */
        answer->outcome = DBLOCK_ANSWER_BUSY;
        answer->remaining_us = DBLOCK_NO_END;
        return DBLOCK_OK;
    }
    if (take->wait_us > 0)
        status = wait_for(connection, call, take, answer, reterr);
    else
        status = attempt(connection, call, subject, take->is_fair && connection->has_queue, 0,
            &is_cancelled, answer, reterr);
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
        connection->is_holding = 1;
        answer->remaining_us = DBLOCK_NO_END;
        return DBLOCK_OK;
    }
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_BUSY) {
        answer->remaining_us = DBLOCK_NO_END;
        if (holder != NULL)
            return pgsql_row_holder(connection, call, subject, holder, answer, reterr);
    }
    if (status == DBLOCK_CANCELLED)
        return status;
    if (status == DBLOCK_OK)
        return roll_back(connection, call, subject->name, reterr);
    (void)roll_back(connection, call, subject->name, NULL); /* the failure is told already */
    return status;
}

/* The attempt's transaction ends in the same message, before it asks. */
dblock_status pgsql_row_holder(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_message_init(&message, connection, call, "look at row", subject->name,
        PGSQL_READS | PGSQL_OWN_BOUNDS);
    if (PQtransactionStatus(connection->pg) != PQTRANS_IDLE)
        pgsql_message_add_quiet(&message, STATEMENT_ROLLBACK, NULL);
    pgsql_message_add(&message, STATEMENT_ROW_HOLDER, &parameters);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        pgsql_grant_holder(
            holder, DBLOCK_ROW, subject->name, message.results[0], 0, 1, answer->now_us);
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_row_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    int was_held =
        connection->is_holding && PQtransactionStatus(connection->pg) == PQTRANS_INTRANS;
    struct pgsql_message message;
    dblock_status status;

    answer->outcome = DBLOCK_ANSWER_NO;
    if (!was_held) {
        status = roll_back(connection, call, subject->name, reterr);
        return status;
    }
    /* COMMIT answers with ROLLBACK if the transaction had failed: then it is no answer of ours */
    pgsql_message_init(&message, connection, call, "release row", subject->name,
        PGSQL_WRITES | PGSQL_OWN_BOUNDS);
    status = pgsql_message_ask(&message, STATEMENT_COMMIT, NULL, reterr);
    connection->is_holding = 0;
    if (status == DBLOCK_OK)
        answer->outcome = DBLOCK_ANSWER_YES;
    else if (message.is_refused)
        status = DBLOCK_OK; /* the session had ended before this came */
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_row_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)subject;
    if (!connection->is_holding) {
        answer->outcome = DBLOCK_ANSWER_NO;
        return DBLOCK_OK;
    }
    return pgsql_connection_ping(connection, call, answer, reterr);
}

dblock_status pgsql_row_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return pgsql_token_draw(connection, call, DBLOCK_ROW, subject, answer, reterr);
}
