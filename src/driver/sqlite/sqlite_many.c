/* SPDX-License-Identifier: MIT */
/* sqlite_many.c - several names of lease or insert in one transaction. The file has one writer, so
 * from BEGIN IMMEDIATE to COMMIT nobody else takes, drops or renews anything: what is found is so
 * until the end, and two that want the same names wait for the file, not for each other. Nothing of
 * a transaction that was cut is there. The statements are those for one name (sql/lease.sql). */
#include "sqlite_hold.h"

#include "sqlite_grant.h"
#include "sqlite_stand.h"
#include "sqlite_statement.h"

#include <string.h>

struct attempt {
    const struct sqlite_hold *hold;
    struct dblock_connection *connection;
    const struct dblock_many *many;
    size_t place; /* the name that it is about */
    struct dblock_grant *holder;
    struct dblock_answer *answer;
    struct dblock_error *reterr;
};

/* `*ret_outcome` becomes BUSY if the name is held. */
static dblock_status look_at(
    struct attempt *attempt, struct sqlite_finding *finding, int32_t *ret_outcome)
{
    struct dblock_connection *connection = attempt->connection;
    dblock_status status = sqlite_hold_look_at(attempt->hold, connection,
        &attempt->many->subjects[attempt->place], finding, attempt->holder, attempt->reterr);

    if (status == DBLOCK_OK && finding->judgement == GRANT_HELD) {
        *ret_outcome = DBLOCK_ANSWER_BUSY;
        attempt->answer->remaining_us = (uint64_t)(finding->end_us - connection->clock_us);
    }
    return status;
}

/* Before the write lock is waited for: a read, which needs none. The first obstacle is the one that
 * is told of, and all are marked. */
static dblock_status find_obstacles(
    struct attempt *attempt, const struct dblock_take *terms, int32_t *ret_outcome)
{
    struct sqlite_finding finding = { GRANT_FREE, 0, { 0 } };
    struct attempt other = *attempt;
    struct dblock_answer of_other = *attempt->answer;
    dblock_status status = DBLOCK_OK;
    int32_t outcome;
    size_t i;

    other.holder = NULL;
    other.answer = &of_other;
    for (i = 0; i < attempt->many->n_names && status == DBLOCK_OK; ++i) {
        struct attempt *of_this = *ret_outcome != DBLOCK_ANSWER_BUSY ? attempt : &other;

        of_this->place = i;
        outcome = DBLOCK_ANSWER_AGAIN;
        if (terms->heeds_line &&
            sqlite_stand_is_waited(
                attempt->connection, attempt->hold->strategy, &attempt->many->subjects[i]))
            outcome = DBLOCK_ANSWER_BUSY;
        status = look_at(of_this, &finding, &outcome);
        if (outcome != DBLOCK_ANSWER_BUSY)
            continue;
        *ret_outcome = outcome;
        attempt->many->outcomes[i] = outcome;
    }
    return status;
}

static dblock_status take_one(
    struct attempt *attempt, const struct dblock_take *take, int32_t *ret_outcome)
{
    struct sqlite_finding finding = { GRANT_FREE, 0, { 0 } };
    dblock_status status = sqlite_hold_attempt(attempt->hold, attempt->connection, take, ret_outcome,
        attempt->answer, attempt->reterr);

    if (status != DBLOCK_OK || *ret_outcome != DBLOCK_ANSWER_AGAIN)
        return status;
    status = look_at(attempt, &finding, ret_outcome);
    if (status != DBLOCK_OK || finding.judgement != GRANT_EXPIRED)
        return status;
    status = sqlite_hold_end_expired(attempt->connection, finding.session, attempt->reterr);
    if (status == DBLOCK_OK)
        status = sqlite_hold_attempt(attempt->hold, attempt->connection, take, ret_outcome,
            attempt->answer, attempt->reterr);
    return status;
}

static dblock_status take_all(
    struct attempt *attempt, const struct dblock_take *terms, int32_t *ret_outcome)
{
    struct dblock_take take = *terms;
    dblock_status status = sqlite_begin(attempt->connection, attempt->reterr);
    size_t i;

    for (i = 0; i < attempt->many->n_names && status == DBLOCK_OK; ++i) {
        attempt->place = i;
        take.subject = attempt->many->subjects[i];
        take.owner = attempt->many->owners[i];
        status = take_one(attempt, &take, ret_outcome);
        if (status != DBLOCK_OK || *ret_outcome != DBLOCK_ANSWER_YES)
            return status; /* the end of the step rolls back */
        attempt->many->tokens[i] = attempt->answer->token;
    }
    if (status == DBLOCK_OK)
        status = sqlite_commit(attempt->connection, attempt->reterr);
    return status;
}

dblock_status sqlite_hold_take_many(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct attempt attempt = { hold, connection, many, 0, holder, answer, reterr };
    int32_t outcome = DBLOCK_ANSWER_AGAIN;
    dblock_status status =
        sqlite_step_begin(connection, call, hold->take_action, many->subjects[0].name, reterr);

    if (status == DBLOCK_OK)
        status = find_obstacles(&attempt, terms, &outcome);
    if (status == DBLOCK_OK && outcome != DBLOCK_ANSWER_BUSY)
        status = take_all(&attempt, terms, &outcome);
    *ret_place = attempt.place;
    answer->outcome = outcome;
    return sqlite_step_end(connection, status, answer);
}

dblock_status sqlite_hold_drop_many(const struct sqlite_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr)
{
    int32_t outcomes[DBLOCK_MANY_MAX];
    sqlite3_stmt *statement = NULL;
    dblock_status status =
        sqlite_step_begin(connection, call, hold->drop_action, many->subjects[0].name, reterr);
    int n_changed;
    size_t i;

    if (status == DBLOCK_OK)
        status = sqlite_begin(connection, reterr);
    for (i = 0; i < many->n_names && status == DBLOCK_OK; ++i) {
        outcomes[i] = many->outcomes[i];
        if (outcomes[i] == DBLOCK_ANSWER_YES || outcomes[i] == DBLOCK_ANSWER_NO)
            continue;
        status = sqlite_prepare(connection, hold->drop, &statement, reterr);
        if (status != DBLOCK_OK)
            break;
        n_changed = 0;
        sqlite_bind_name(statement, 1, &many->subjects[i]);
        sqlite_bind_id(statement, 2, many->owners[i]);
        status = sqlite_change(connection, statement, &n_changed, reterr);
        outcomes[i] = n_changed == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    }
    if (status == DBLOCK_OK)
        status = sqlite_commit(connection, reterr);
    for (i = 0; i < many->n_names && status == DBLOCK_OK; ++i) {
        many->outcomes[i] = outcomes[i];
        sqlite_stand_wake(connection, hold->strategy, &many->subjects[i]);
    }
    answer->outcome = 0;
    return sqlite_step_end(connection, status, answer);
}
