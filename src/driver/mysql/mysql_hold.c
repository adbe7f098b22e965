/* SPDX-License-Identifier: MIT */
/* mysql_hold.c - one attempt to take a grant that is a row, and a look at it. What is done to
 * one that is there: mysql_change.c. Lease and insert differ in their tables only
 * (mysql_lease.c, mysql_insert.c).
 *
 * The usual answers are one prepared statement each. Only a take that did not get its
 * name asks more: who has it; and, if that holder has ended, three statements that end
 * its session, look for a guard, and take over. Why each is safe: sql/lease.sql. */
#include "mysql_hold.h"

#include <string.h>

#include "mysql_bell.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_grant.h"

enum mysql_statement_id mysql_hold_statement(
    const struct mysql_hold *hold, enum mysql_statement_id lease_statement)
{
    return (enum mysql_statement_id)(hold->first + (lease_statement - MYSQL_LEASE_TAKE));
}

static void put_subject(
    struct dblock_connection *connection, const struct dblock_subject *subject)
{
    mysql_in_bytes(connection, MYSQL_B_NAME, subject->name, subject->name_size);
}

/* The outputs of a look are there. Not in force, or its session has expired. */
static int is_ended(const struct dblock_connection *connection)
{
    uint64_t remaining_us;

    if (mysql_out_is_null(connection, MYSQL_N_TOKEN) ||
        mysql_out_bytes(connection, MYSQL_B_OWNER)->is_null)
        return 0; /* free, or kept by nobody */
    return !mysql_grant_is_in_force(connection, &remaining_us) || remaining_us == 0;
}

/* Takes over from a holder that a look found ended. 0 or a native code. */
static unsigned int take_ended(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, int *ret_is_pinned, struct mysql_result *result)
{
    const struct mysql_bytes *seen = mysql_out_bytes(connection, MYSQL_B_SESSION);
    int has_row;

    result->affected_rows = 0;
    if (!seen->is_null && !mysql_out_is_null(connection, MYSQL_N_SESSION_END)) {
        mysql_in_bytes(connection, MYSQL_B_SESSION, seen->data, DBLOCK_ID_SIZE);
        if (mysql_run(connection, MYSQL_SESSION_END_EXPIRED, call, NULL) != 0)
            return connection->error_code;
        mysql_in_bytes(connection, MYSQL_B_SESSION, take->session, DBLOCK_ID_SIZE);
    }
    mysql_in_number(connection, MYSQL_N_TOKEN, mysql_out_number(connection, MYSQL_N_TOKEN));
    if (mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_PROBE), call, &has_row) !=
        0) {
        *ret_is_pinned = mysql_error_class(connection->error_code) == MYSQL_CLASS_LOCKED;
        return connection->error_code;
    }
    if (!has_row)
        return 0;
    return mysql_run(
        connection, mysql_hold_statement(hold, MYSQL_LEASE_TAKE_ENDED), call, result);
}

/* A conflict is an answer; the rest is a failure. */
static dblock_status fail_take(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_take *take, struct dblock_answer *answer, struct dblock_error *reterr)
{
    enum mysql_class class_ = mysql_error_class(connection->error_code);

    if (class_ == MYSQL_CLASS_CONFLICT || class_ == MYSQL_CLASS_LOCKED ||
        class_ == MYSQL_CLASS_TIMEOUT) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    return mysql_fail(connection, reterr, "cannot take %s \"%s\"", hold->what, take->subject.name);
}

int mysql_hold_is_lock_brief(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call)
{
    unsigned int locked = connection->error_code;
    int has_row;

    if (mysql_error_class(locked) != MYSQL_CLASS_LOCKED)
        return 0;
    if (mysql_run_row(
            connection, mysql_hold_statement(hold, MYSQL_LEASE_WAIT), call, &has_row) == 0)
        return 1;
    if (mysql_error_class(connection->error_code) == MYSQL_CLASS_TIMEOUT)
        connection->error_code = locked; /* a guard stands there */
    return 0;
}

/* The row of an ended holder is locked: by a guard, or by others who are taking over. */
static dblock_status explain_locked(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    int is_brief = mysql_hold_is_lock_brief(hold, connection, call);

    if (!is_brief && mysql_error_class(connection->error_code) != MYSQL_CLASS_LOCKED)
        return fail_take(hold, connection, take, answer, reterr);
    if (mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_LOOK), call, NULL) != 0)
        return fail_take(hold, connection, take, answer, reterr);
    mysql_grant_fill_holder(connection, hold->strategy, &take->subject, holder);
    if (mysql_grant_is_in_force(connection, &answer->remaining_us) && !is_ended(connection)) {
        answer->outcome = DBLOCK_ANSWER_BUSY;
    } else if (is_brief) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    } else {
        answer->outcome = DBLOCK_ANSWER_PINNED;
        if (holder != NULL)
            holder->is_pinned = 1;
    }
    return DBLOCK_OK;
}

/* q of lease.sql, as whole octaves: a little less than was left. */
unsigned int mysql_hold_find_token(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const unsigned char *owner, uint64_t *ret_insert_id)
{
    const struct mysql_bytes *found;
    int64_t left_us;
    uint64_t q = 0;

    *ret_insert_id = 0;
    if (mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_LOOK), call, NULL) != 0)
        return connection->error_code;
    found = mysql_out_bytes(connection, MYSQL_B_OWNER);
    if (found->is_null || found->size != DBLOCK_ID_SIZE ||
        memcmp(found->data, owner, DBLOCK_ID_SIZE) != 0)
        return 0;
    left_us = mysql_out_is_null(connection, MYSQL_N_MY_END)
        ? 0
        : mysql_out_number(connection, MYSQL_N_MY_END) -
            mysql_out_number(connection, MYSQL_N_CLOCK);
    for (; left_us > 1; left_us >>= 1)
        q += 16;
    *ret_insert_id = (uint64_t)mysql_out_number(connection, MYSQL_N_TOKEN) << 11 | q;
    return 0;
}

/* The statement got it. A grant that is not there any more when its token is read has ended since. */
static dblock_status read_taken(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, uint64_t insert_id, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    mysql_bell_locked(connection, take->owner, 1);
    if (insert_id == 0 &&
        mysql_hold_find_token(hold, connection, call, take->owner, &insert_id) != 0) {
        (void)mysql_fail(connection, reterr, "cannot read the token of %s \"%s\"", hold->what,
            take->subject.name);
        return DBLOCK_E_UNCERTAIN;
    }
    if (insert_id == 0)
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    else
        mysql_grant_read(take, insert_id, answer);
    return DBLOCK_OK;
}

/* The statement did not get it: why not? */
static dblock_status explain_take(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct mysql_result result;
    uint64_t remaining_us;
    int is_pinned = 0;
    int64_t now_us;

    if (mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_LOOK), call, NULL) != 0) {
        /* The take itself is known to have had no effect; only its reason is not. */
        return fail_take(hold, connection, take, answer, reterr);
    }
    now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    answer->now_us = now_us;
    if (take->session != NULL) {
        int64_t my_end = mysql_out_number(connection, MYSQL_N_MY_END);

        if (mysql_out_is_null(connection, MYSQL_N_MY_END) || my_end <= now_us) {
            answer->outcome = DBLOCK_ANSWER_SESSION;
            return DBLOCK_OK;
        }
        answer->session_remaining_us = (uint64_t)(my_end - now_us);
    }
    if (mysql_grant_is_in_force(connection, &remaining_us) && !is_ended(connection)) {
        mysql_grant_fill_holder(connection, hold->strategy, &take->subject, holder);
        answer->outcome = DBLOCK_ANSWER_BUSY;
        answer->remaining_us = remaining_us;
        return DBLOCK_OK;
    }
    if (now_us > take->not_after_us) {
        answer->outcome = DBLOCK_ANSWER_LATE;
        return DBLOCK_OK;
    }
    /* Free: somebody came and went in between; or somebody is first in line, who is not asked
     * for: standing in line tells, at the same cost. */
    answer->outcome = take->heeds_line && connection->has_line ? DBLOCK_ANSWER_BUSY : DBLOCK_ANSWER_AGAIN;
    if (!is_ended(connection))
        return DBLOCK_OK;
    if (take_ended(hold, connection, call, take, &is_pinned, &result) != 0) {
        mysql_bell_locked(connection, take->owner, 0);
        if (!is_pinned)
            return fail_take(hold, connection, take, answer, reterr);
        return explain_locked(hold, connection, call, take, holder, answer, reterr);
    }
    if (result.affected_rows > 0)
        return read_taken(hold, connection, call, take, result.insert_id, answer, reterr);
    return DBLOCK_OK;
}

static dblock_status take_once(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_result result;

    put_subject(connection, &take->subject);
    mysql_in_bytes(connection, MYSQL_B_OWNER, take->owner, DBLOCK_ID_SIZE);
    mysql_in_bytes(connection, MYSQL_B_SESSION, take->session, DBLOCK_ID_SIZE);
    mysql_in_text(connection, MYSQL_B_LABEL, take->label);
    mysql_in_number(connection, MYSQL_N_TTL, (int64_t)take->ttl_us);
    mysql_in_number(connection, MYSQL_N_NOT_AFTER, take->not_after_us);
    mysql_in_number(connection, MYSQL_N_PASSES, !(take->heeds_line && connection->has_line));
    mysql_bell_offer(connection, take->owner);
    if (mysql_run(connection, mysql_hold_statement(hold, MYSQL_LEASE_TAKE), call, &result) != 0) {
        mysql_bell_locked(connection, take->owner, 0);
        return fail_take(hold, connection, take, answer, reterr);
    }
    if (result.affected_rows == 0) {
        if (mysql_has_selected(connection))
            mysql_bell_locked(connection, take->owner, 0);
        return explain_take(hold, connection, call, take, holder, answer, reterr);
    }
    return read_taken(hold, connection, call, take, result.insert_id, answer, reterr);
}

dblock_status mysql_hold_take(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = take_once(hold, connection, call, take, holder, answer, reterr);

    mysql_bell_settle(connection, call);
    return status;
}

unsigned int mysql_hold_read(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject)
{
    put_subject(connection, subject);
    mysql_in_bytes(connection, MYSQL_B_SESSION, NULL, 0);
    return mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_LOOK), call, NULL);
}

dblock_status mysql_hold_look(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_grant *grant, struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (mysql_hold_read(hold, connection, call, subject) != 0)
        return mysql_fail(
            connection, reterr, "cannot look at %s \"%s\"", hold->what, subject->name);
    answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    answer->outcome = DBLOCK_ANSWER_NO;
    if (mysql_grant_is_in_force(connection, &answer->remaining_us)) {
        answer->outcome = DBLOCK_ANSWER_YES;
        answer->token = mysql_out_number(connection, MYSQL_N_TOKEN);
        mysql_grant_fill_holder(connection, hold->strategy, subject, grant);
    }
    return DBLOCK_OK;
}
