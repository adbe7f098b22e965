/* SPDX-License-Identifier: MIT */
/* pgsql_hold.c - the steps of lease and insert: the same code over two tables.
 * What makes them safe is said at the statements, in sql/lease.sql. */
#include "pgsql_error.h"
#include "pgsql_fit.h"
#include "pgsql_grant.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

enum { /* columns of a gate */
    GATE_SESSION_EXPIRES,
    GATE_STATE, /* "mine", "no", "line" */
    GATE_GRANT,
    GATE_NOW
};

enum { /* of a take */
    TAKE_TOKEN,
    TAKE_NOW
};

enum { /* of a look and a list */
    LOOK_NOW,
    LOOK_IN_FORCE,
    LOOK_GRANT
};

enum { /* of extend, draw and end */
    END_NOW,
    END_IS_DONE,
    END_WAS_IN_FORCE,
    END_OWNER,
    DRAW_TOKEN = END_OWNER
};

/* What follows from the answers of one message; 0: a grant has ended, and is to be cleared away. */
static char read_gate(const PGresult *gate)
{
    return pgsql_get_letter(gate, 0, GATE_STATE);
}

static int32_t judge_take(const struct dblock_take *take, const struct pgsql_message *message)
{
    const PGresult *gate = message->results[0];
    const PGresult *taken = message->results[message->n_results - 1];
    int has_cleared = message->n_results == 3;
    int64_t now_us;

    if (PQntuples(taken) == 1)
        return DBLOCK_ANSWER_YES;
    now_us = pgsql_get_time(gate, 0, GATE_NOW);
    if (take->session != NULL && PQgetisnull(gate, 0, GATE_SESSION_EXPIRES))
        return DBLOCK_ANSWER_SESSION;
    if (pgsql_grant_expires(gate, 0, GATE_GRANT) > now_us)
        return DBLOCK_ANSWER_BUSY;
    if (now_us > take->not_after_us)
        return DBLOCK_ANSWER_LATE;
    if (read_gate(gate) == 'l')
        return DBLOCK_ANSWER_BUSY;
    if (!has_cleared && PQgetisnull(gate, 0, GATE_STATE))
        return 0;
    if (has_cleared && read_gate(gate) == 'm' &&
        !pgsql_get_bool(message->results[1], 0, 0) && !PQgetisnull(gate, 0, GATE_GRANT))
        return DBLOCK_ANSWER_PINNED;
    return DBLOCK_ANSWER_AGAIN;
}

/* A timed grant ends a ttl after a moment between the two statements. */
static void tell_grant(const struct dblock_take *take, const struct pgsql_message *message,
    struct dblock_answer *answer)
{
    const PGresult *gate = message->results[0];
    const PGresult *taken = message->results[message->n_results - 1];
    int64_t gate_us = pgsql_get_time(gate, 0, GATE_NOW);

    answer->token = pgsql_get_int64(taken, 0, TAKE_TOKEN);
    answer->now_us = pgsql_get_time(taken, 0, TAKE_NOW);
    answer->session_remaining_us =
        pgsql_remaining(pgsql_get_time(gate, 0, GATE_SESSION_EXPIRES), answer->now_us);
    answer->remaining_us = answer->session_remaining_us;
    if (take->session == NULL) {
        uint64_t spent_us = pgsql_remaining(answer->now_us, gate_us);

        answer->remaining_us = take->ttl_us > spent_us ? take->ttl_us - spent_us : 0;
    }
}

static void tell_holder(const struct pgsql_hold *hold, const struct pgsql_message *message,
    struct dblock_grant *holder, struct dblock_answer *answer)
{
    const PGresult *gate = message->results[0];

    answer->now_us = pgsql_get_time(gate, 0, GATE_NOW);
    answer->session_remaining_us =
        pgsql_remaining(pgsql_get_time(gate, 0, GATE_SESSION_EXPIRES), answer->now_us);
    if (answer->outcome != DBLOCK_ANSWER_BUSY && answer->outcome != DBLOCK_ANSWER_PINNED)
        return;
    answer->remaining_us = answer->outcome == DBLOCK_ANSWER_BUSY
        ? pgsql_remaining(pgsql_grant_expires(gate, 0, GATE_GRANT), answer->now_us)
        : DBLOCK_NO_END;
    if (holder == NULL || read_gate(gate) == 'l')
        return;
    pgsql_grant_row(holder, hold->strategy, gate, 0, GATE_GRANT, answer->now_us, 1);
    holder->is_pinned = answer->outcome == DBLOCK_ANSWER_PINNED;
}

/* One message. */
static dblock_status attempt(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, int may_clear,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    char host[PGSQL_FIT_SIZE], label[PGSQL_FIT_SIZE];
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(
        &message, connection, call, hold->take_action, take->subject.name, PGSQL_WRITES);
    parameters.n = 0;
    pgsql_put_name(&parameters, &take->subject);
    pgsql_put_id(&parameters, take->session);
    pgsql_put_time(&parameters, take->not_after_us);
    pgsql_put_bool(&parameters, may_clear);
    if (take->heeds_line) {
        pgsql_put_line(&parameters, target, hold->strategy, &take->subject);
    } else {
        pgsql_put_null_int32(&parameters);
        pgsql_put_null_int32(&parameters);
    }
    pgsql_message_add(&message, hold->gate, &parameters);
    if (may_clear) {
        parameters.n = 1;
        pgsql_message_add(&message, hold->clear, &parameters);
    }
    parameters.n = 3;
    pgsql_put_id(&parameters, take->owner);
    pgsql_put_duration(&parameters, take->ttl_us);
    pgsql_put_text(&parameters, pgsql_fit(connection, take->label, label));
    pgsql_put_text(&parameters, pgsql_fit(connection, target->host, host));
    pgsql_put_int64(&parameters, target->pid);
    pgsql_message_add(&message, hold->take, &parameters);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->outcome = judge_take(take, &message);
        if (answer->outcome == DBLOCK_ANSWER_YES)
            tell_grant(take, &message, answer);
        else
            tell_holder(hold, &message, holder, answer);
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_hold_take(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status =
        attempt(hold, connection, call, take, 0, holder, answer, reterr);

    if (pgsql_fit_is_wanted(connection, status, reterr))
        status = attempt(hold, connection, call, take, 0, holder, answer, reterr);
    if (status != DBLOCK_OK || answer->outcome != 0)
        return status;
    return attempt(hold, connection, call, take, 1, holder, answer, reterr);
}

dblock_status pgsql_hold_look(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_message_init(
        &message, connection, call, hold->look_action, subject->name, PGSQL_READS);
    status = pgsql_message_ask(&message, hold->look, &parameters, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];

        answer->now_us = pgsql_get_time(result, 0, LOOK_NOW);
        answer->outcome = DBLOCK_ANSWER_NO;
        if (pgsql_get_bool(result, 0, LOOK_IN_FORCE)) {
            answer->outcome = DBLOCK_ANSWER_YES;
            pgsql_grant_row(grant, hold->strategy, result, 0, LOOK_GRANT, answer->now_us, 1);
            answer->token = grant->token;
            answer->remaining_us = pgsql_remaining(grant->expires_us, answer->now_us);
        }
    }
    return pgsql_message_fini(&message, status, answer);
}

/* A grant that was in force, and was skipped: is somebody standing on its row, or has it changed
 * hands since the snapshot? One more round trip, in this rare case alone. */
dblock_status pgsql_hold_judge_skipped(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, int32_t otherwise,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char owner_text[40];
    dblock_status status =
        pgsql_hold_look(hold, connection, call, subject, &grant, answer, reterr);

    if (status != DBLOCK_OK)
        return status;
    dblock_id_text(owner, owner_text);
    answer->token = 0;
    answer->remaining_us = 0;
    answer->outcome =
        answer->outcome == DBLOCK_ANSWER_YES && strcmp(grant.owner, owner_text) == 0
        ? DBLOCK_ANSWER_PINNED
        : otherwise;
    return DBLOCK_OK;
}

static dblock_status run_ending(const struct pgsql_hold *hold, enum pgsql_statement statement,
    const char *action, struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner,
    const struct pgsql_parameters *parameters, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    unsigned char seen[DBLOCK_ID_SIZE] = { 0 };
    struct pgsql_message message;
    int is_skipped = 0;
    dblock_status status;

    pgsql_message_init(&message, connection, call, action, subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, statement, parameters, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *result = message.results[0];

        answer->now_us = pgsql_get_time(result, 0, END_NOW);
        answer->outcome = pgsql_get_bool(result, 0, END_IS_DONE) ? DBLOCK_ANSWER_YES
                                                                 : DBLOCK_ANSWER_NO;
        is_skipped = answer->outcome == DBLOCK_ANSWER_NO &&
            pgsql_get_bool(result, 0, END_WAS_IN_FORCE);
        if (statement == hold->draw)
            answer->token = pgsql_get_int64(result, 0, DRAW_TOKEN);
        if (is_skipped && owner == NULL && PQgetlength(result, 0, END_OWNER) == sizeof seen)
            memcpy(seen, PQgetvalue(result, 0, END_OWNER), sizeof seen);
    }
    status = pgsql_message_fini(&message, status, answer);
    if (!is_skipped)
        return status;
    /* a break: whoever has it now is another, and was not meant by what was read */
    return pgsql_hold_judge_skipped(hold, connection, call, subject, owner != NULL ? owner : seen,
        owner != NULL ? DBLOCK_ANSWER_NO : DBLOCK_ANSWER_AGAIN, answer, reterr);
}

dblock_status pgsql_hold_extend(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_put_id(&parameters, owner);
    pgsql_put_duration(&parameters, ttl_us);
    pgsql_put_line(&parameters, connection->target, hold->strategy, subject);
    return run_ending(hold, hold->extend, hold->extend_action, connection, call, subject, owner,
        &parameters, answer, reterr);
}

dblock_status pgsql_hold_draw(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_put_id(&parameters, owner);
    return run_ending(hold, hold->draw, hold->draw_action, connection, call, subject, owner,
        &parameters, answer, reterr);
}

dblock_status pgsql_hold_drop(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    int is_done = 0;
    dblock_status status;

    if (keep_us > 0)
        return pgsql_hold_extend(
            hold, connection, call, subject, owner, keep_us, answer, reterr);
    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_put_id(&parameters, owner);
    pgsql_put_line(&parameters, connection->target, hold->strategy, subject);
    pgsql_message_init(&message, connection, call, hold->drop_action, subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, hold->drop, &parameters, reterr);
    if (status == DBLOCK_OK && PQntuples(message.results[0]) == 1) {
        is_done = 1;
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome =
            pgsql_get_bool(message.results[0], 0, 1) ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    }
    status = pgsql_message_fini(&message, status, answer);
    if (status != DBLOCK_OK || is_done || answer->outcome != 0)
        return status;
    return pgsql_hold_judge_skipped(
        hold, connection, call, subject, owner, DBLOCK_ANSWER_NO, answer, reterr);
}

dblock_status pgsql_hold_end(const struct pgsql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_put_int64(&parameters, token);
    pgsql_put_line(&parameters, connection->target, hold->strategy, subject);
    return run_ending(hold, hold->end, hold->end_action, connection, call, subject, NULL,
        &parameters, answer, reterr);
}
