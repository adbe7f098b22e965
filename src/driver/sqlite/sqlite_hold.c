/* SPDX-License-Identifier: MIT */
/* sqlite_hold.c - the steps of lease and insert, over the statements that a
 * struct sqlite_hold names. Why each statement is safe: sql/lease.sql. */
#include "sqlite_hold.h"

#include "sqlite_clock.h"
#include "sqlite_grant.h"
#include "sqlite_stand.h"
#include "sqlite_statement.h"

#include <string.h>

dblock_status sqlite_hold_look_at(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_subject *subject,
    struct sqlite_finding *finding, struct dblock_grant *grant, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int has_row = 0;
    dblock_status status = sqlite_prepare(connection, hold->look, &statement, reterr);

    finding->judgement = GRANT_FREE;
    if (status != DBLOCK_OK)
        return status;
    sqlite_bind_name(statement, 1, subject);
    status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (!has_row)
        return status;
    finding->judgement = sqlite_grant_judge(statement, 1, connection->clock_us, &finding->end_us);
    if (finding->judgement == GRANT_EXPIRED &&
        sqlite3_column_bytes(statement, 1 + GRANT_SESSION) == DBLOCK_ID_SIZE)
        memcpy(finding->session, sqlite3_column_blob(statement, 1 + GRANT_SESSION),
            sizeof finding->session);
    if (grant != NULL && finding->judgement == GRANT_HELD)
        sqlite_grant_fill(statement, 1, hold->strategy, connection->clock_us, grant);
    (void)sqlite3_reset(statement);
    return DBLOCK_OK;
}

dblock_status sqlite_hold_attempt(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_take *take, int32_t *ret_outcome,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_target *target = connection->target;
    sqlite3_stmt *statement = NULL;
    int n_changed = 0;
    int64_t session_end_us;
    dblock_status status = sqlite_prepare(connection, hold->take, &statement, reterr);

    if (status != DBLOCK_OK)
        return status;
    sqlite_bind_name(statement, 1, &take->subject);
    sqlite_bind_id(statement, 2, take->session);
    sqlite_bind_id(statement, 3, take->owner);
    sqlite_bind_us(statement, 4, take->ttl_us);
    (void)sqlite3_bind_int64(statement, 5, take->not_after_us);
    (void)sqlite3_bind_text(statement, 6, take->label, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 7, target->host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 8, target->pid);
    status = sqlite_change(connection, statement, &n_changed, reterr);
    if (status != DBLOCK_OK)
        return status;
    session_end_us = connection->notes[1]; /* -1: no such session, or not asked for */
    if (n_changed == 1) {
        answer->token = connection->notes[0];
        answer->remaining_us = take->ttl_us;
        if (take->session != NULL) {
            answer->session_remaining_us = (uint64_t)(session_end_us - connection->clock_us);
            answer->remaining_us = answer->session_remaining_us;
        }
        *ret_outcome = DBLOCK_ANSWER_YES;
    } else if (take->session != NULL && session_end_us <= connection->clock_us) {
        *ret_outcome = DBLOCK_ANSWER_SESSION;
    } else if (connection->clock_us > take->not_after_us) {
        *ret_outcome = DBLOCK_ANSWER_LATE;
    } else {
        *ret_outcome = DBLOCK_ANSWER_AGAIN;
    }
    return DBLOCK_OK;
}

dblock_status sqlite_hold_end_expired(struct dblock_connection *connection,
    const unsigned char *session, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    dblock_status status =
        sqlite_prepare(connection, STATEMENT_SESSION_END_EXPIRED, &statement, reterr);

    if (status == DBLOCK_OK) {
        sqlite_bind_id(statement, 1, session);
        status = sqlite_change(connection, statement, NULL, reterr);
    }
    return status;
}

/* Ends the expired session and takes the name, or neither. If it turns out that the session was
 * renewed meanwhile the attempt fails by itself: the row still names a session that is there. */
static dblock_status take_over(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_take *take, const unsigned char *session, int32_t *ret_outcome,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = sqlite_begin(connection, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_hold_end_expired(connection, session, reterr);
    if (status == DBLOCK_OK)
        status = sqlite_hold_attempt(hold, connection, take, ret_outcome, answer, reterr);
    /* an expired session is ended for good, whatever became of the attempt */
    if (status == DBLOCK_OK)
        status = sqlite_commit(connection, reterr);
    return status;
}

/* Looks who has the name; `*ret_outcome` becomes BUSY if anybody does. */
static dblock_status find_holder(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_take *take, struct sqlite_finding *finding,
    int32_t *ret_outcome, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status = sqlite_hold_look_at(hold, connection, &take->subject, finding, holder, reterr);

    connection->expects_busy = status == DBLOCK_OK && finding->judgement == GRANT_HELD;
    if (connection->expects_busy) {
        *ret_outcome = DBLOCK_ANSWER_BUSY;
        answer->remaining_us = (uint64_t)(finding->end_us - connection->clock_us);
    }
    return status;
}

/* The first attempt looks at nothing first and does not wait for the write lock: a free name costs
 * one statement then, and a held one is not kept waiting by other writers. If it did not get the
 * name, or the last take here found a holder and no release has woken anybody since, a read comes
 * first, which needs no lock at all, and only a name that it finds free is worth waiting for the
 * write lock. Whoever was faster meanwhile is looked for once more, so AGAIN means that nobody holds
 * it. */
dblock_status sqlite_hold_take(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sqlite_finding finding = {GRANT_FREE, 0, {0}};
    int32_t outcome = DBLOCK_ANSWER_AGAIN;
    dblock_status status =
        sqlite_step_begin(connection, call, hold->take_action, take->subject.name, reterr);

    if (status == DBLOCK_OK && take->heeds_line &&
        sqlite_stand_is_waited(connection, hold->strategy, &take->subject)) {
        outcome = DBLOCK_ANSWER_BUSY;
        status = find_holder(hold, connection, take, &finding, &outcome, holder, answer, reterr);
        goto done;
    }
    if (status == DBLOCK_OK && !take->heeds_line && connection->expects_busy &&
        sqlite_stand_was_woken(connection, hold->strategy, &take->subject))
        connection->expects_busy = 0;
    if (status == DBLOCK_OK && !connection->expects_busy) {
        connection->is_patient = 0;
        status = sqlite_hold_attempt(hold, connection, take, &outcome, answer, reterr);
        connection->is_patient = 1;
        if (status == SQLITE_STEP_AGAIN)
            status = DBLOCK_OK;
    }
    if (status != DBLOCK_OK || outcome == DBLOCK_ANSWER_YES)
        goto done;
    status = find_holder(hold, connection, take, &finding, &outcome, holder, answer, reterr);
    if (status != DBLOCK_OK || finding.judgement == GRANT_HELD)
        goto done;
    if (finding.judgement == GRANT_EXPIRED)
        status = take_over(hold, connection, take, finding.session, &outcome, answer, reterr);
    else if (outcome == DBLOCK_ANSWER_AGAIN)
        status = sqlite_hold_attempt(hold, connection, take, &outcome, answer, reterr);
    if (status == DBLOCK_OK && outcome == DBLOCK_ANSWER_AGAIN)
        status = find_holder(hold, connection, take, &finding, &outcome, holder, answer, reterr);
done:
    answer->outcome = outcome;
    return sqlite_step_end(connection, status, answer);
}

/* `statement_id` takes name, owner and, if it is the extending one, a time. */
static dblock_status change_grant(struct dblock_connection *connection,
    const struct dblock_call *call, int statement_id, const char *action,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t time_us,
    int has_time, struct dblock_answer *answer, struct dblock_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int n_changed = 0;
    dblock_status status = sqlite_step_begin(connection, call, action, subject->name, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, statement_id, &statement, reterr);
    if (status == DBLOCK_OK) {
        sqlite_bind_name(statement, 1, subject);
        sqlite_bind_id(statement, 2, owner);
        if (has_time)
            sqlite_bind_us(statement, 3, time_us);
        status = sqlite_change(connection, statement, &n_changed, reterr);
    }
    answer->outcome = n_changed == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_hold_drop(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status = change_grant(connection, call, keep_us > 0 ? hold->extend : hold->drop,
        hold->drop_action, subject, owner, keep_us, keep_us > 0, answer, reterr);

    /* NO: a transaction of the application may have given it back, and that rings no bell */
    if (status == DBLOCK_OK &&
        (answer->outcome == DBLOCK_ANSWER_YES || answer->outcome == DBLOCK_ANSWER_NO))
        sqlite_stand_wake(connection, hold->strategy, subject);
    return status;
}

dblock_status sqlite_hold_extend(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return change_grant(connection, call, hold->extend, hold->extend_action, subject, owner, ttl_us,
        1, answer, reterr);
}

dblock_status sqlite_hold_draw(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = change_grant(
        connection, call, hold->draw, hold->draw_action, subject, owner, 0, 0, answer, reterr);

    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES)
        answer->token = connection->notes[0];
    return status;
}

dblock_status sqlite_hold_look(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sqlite_finding finding = {GRANT_FREE, 0, {0}};
    dblock_status status =
        sqlite_step_begin(connection, call, hold->look_action, subject->name, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_hold_look_at(hold, connection, subject, &finding, grant, reterr);
    answer->outcome = DBLOCK_ANSWER_NO;
    if (finding.judgement == GRANT_HELD) {
        answer->outcome = DBLOCK_ANSWER_YES;
        answer->remaining_us = (uint64_t)(finding.end_us - connection->clock_us);
    }
    return sqlite_step_end(connection, status, answer);
}

static dblock_status end_found(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_subject *subject, int64_t token, int32_t *ret_outcome,
    struct dblock_error *reterr)
{
    unsigned char session[DBLOCK_ID_SIZE];
    sqlite3_stmt *statement = NULL;
    int64_t found_token = 0;
    int64_t end_us;
    int has_row = 0;
    int has_session = 0;
    dblock_status status = sqlite_prepare(connection, hold->look, &statement, reterr);

    if (status != DBLOCK_OK)
        return status;
    sqlite_bind_name(statement, 1, subject);
    status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (!has_row)
        return status;
    if (sqlite_grant_judge(statement, 1, connection->clock_us, &end_us) == GRANT_HELD) {
        found_token = sqlite3_column_int64(statement, 1 + GRANT_TOKEN);
        has_session = sqlite3_column_bytes(statement, 1 + GRANT_SESSION) == DBLOCK_ID_SIZE;
        if (has_session)
            memcpy(session, sqlite3_column_blob(statement, 1 + GRANT_SESSION), sizeof session);
    }
    (void)sqlite3_reset(statement);
    if (found_token == 0 || (token != 0 && token != found_token))
        return DBLOCK_OK;
    if (has_session) {
        status = sqlite_prepare(connection, STATEMENT_SESSION_TOUCH, &statement, reterr);
        if (status != DBLOCK_OK)
            return status;
        sqlite_bind_id(statement, 1, session);
        status = sqlite_change(connection, statement, NULL, reterr);
    }
    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, hold->end, &statement, reterr);
    if (status != DBLOCK_OK)
        return status;
    sqlite_bind_name(statement, 1, subject);
    (void)sqlite3_bind_int64(statement, 2, found_token);
    *ret_outcome = DBLOCK_ANSWER_YES;
    return sqlite_change(connection, statement, NULL, reterr);
}

dblock_status sqlite_hold_end(const struct sqlite_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    int32_t outcome = DBLOCK_ANSWER_NO;
    dblock_status status =
        sqlite_step_begin(connection, call, hold->end_action, subject->name, reterr);

    if (status == DBLOCK_OK)
        status = sqlite_begin(connection, reterr);
    if (status == DBLOCK_OK)
        status = end_found(hold, connection, subject, token, &outcome, reterr);
    if (status == DBLOCK_OK)
        status = sqlite_commit(connection, reterr);
    if (status == DBLOCK_OK && outcome == DBLOCK_ANSWER_YES)
        sqlite_stand_wake(connection, hold->strategy, subject);
    answer->outcome = outcome;
    return sqlite_step_end(connection, status, answer);
}
