/* SPDX-License-Identifier: MIT */
/* mysql_change.c - what is done to a grant that is a row and is there: give it back, extend
 * it, draw a new token for it, end it. Lease and insert differ in their tables only
 * (mysql_lease.c, mysql_insert.c). Why each is safe: sql/lease.sql; who is woken:
 * sql/line.sql. */
#include "mysql_bell.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_grant.h"
#include "mysql_hold.h"
#include "mysql_line.h"
#include "mysql_text.h"

#define TRIES_MAX 3 /* of a change that meets brief locks of others */
#define REST_LAST_US 5000000 /* the longest rest of a first in line (strategy/moves.h) */

/* drop and extend: a row that stays locked carries a guard. */
static dblock_status fail_change(const struct mysql_hold *hold,
    struct dblock_connection *connection, const char *verb, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    enum mysql_class class_ = mysql_error_class(connection->error_code);

    if (class_ == MYSQL_CLASS_LOCKED) {
        answer->outcome = DBLOCK_ANSWER_PINNED;
        return DBLOCK_OK;
    }
    if (class_ == MYSQL_CLASS_CONFLICT || class_ == MYSQL_CLASS_TIMEOUT) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    return mysql_fail(connection, reterr, "cannot %s %s \"%s\"", verb, hold->what, subject->name);
}

/* extend and draw: judged by the insert id, as a row may already have what is written. 0 or a
 * native code. */
static unsigned int run_update(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, enum mysql_statement_id lease_statement,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t *ret_insert_id)
{
    enum mysql_statement_id id = mysql_hold_statement(hold, lease_statement);
    struct mysql_result result;
    int n_tries = 1;

    mysql_in_bytes(connection, MYSQL_B_NAME, subject->name, subject->name_size);
    mysql_in_bytes(connection, MYSQL_B_OWNER, owner, DBLOCK_ID_SIZE);
    /* MySQL's UPDATE would wait a second for a guard: there, ask first. */
    if (!connection->is_mariadb) {
        connection->error_code = 1205;
        if (!mysql_hold_is_lock_brief(hold, connection, call))
            return connection->error_code;
    }
    while (mysql_run(connection, id, call, &result) != 0)
        if (n_tries++ == TRIES_MAX || !mysql_hold_is_lock_brief(hold, connection, call))
            return connection->error_code;
    *ret_insert_id = result.insert_id;
    if (result.insert_id != 0 || result.affected_rows == 0)
        return 0;
    if (mysql_hold_find_token(hold, connection, call, owner, ret_insert_id) != 0)
        return connection->error_code;
    if (*ret_insert_id != 0 && lease_statement == MYSQL_LEASE_EXTEND)
        *ret_insert_id = (uint64_t)mysql_out_number(connection, MYSQL_N_CLOCK);
    return 0;
}

static dblock_status extend(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const char *verb, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    uint64_t insert_id;

    mysql_in_number(connection, MYSQL_N_TTL, (int64_t)ttl_us);
    if (run_update(hold, connection, call, MYSQL_LEASE_EXTEND, subject, owner, &insert_id) != 0)
        return fail_change(hold, connection, verb, subject, answer, reterr);
    answer->outcome = insert_id != 0 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    answer->now_us = mysql_bound((int64_t)insert_id);
    return DBLOCK_OK;
}

/* The first in line is woken inside the statement if this connection has the bell; else the
 * statement tells who he is. */
static dblock_status drop(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    int is_insert_form = !connection->is_mariadb && connection->has_nowait;
    enum mysql_statement_id id =
        mysql_hold_statement(hold, is_insert_form ? MYSQL_LEASE_DROP_NOWAIT : MYSQL_LEASE_DROP);
    int is_mine = mysql_bell_find(connection, owner);
    struct mysql_result result;
    int n_tries = 1;

    mysql_in_bytes(connection, MYSQL_B_NAME, subject->name, subject->name_size);
    mysql_in_bytes(connection, MYSQL_B_OWNER, owner, DBLOCK_ID_SIZE);
    while (mysql_run(connection, id, call, &result) != 0)
        if (n_tries++ == TRIES_MAX || !mysql_hold_is_lock_brief(hold, connection, call))
            return fail_change(hold, connection, "release", subject, answer, reterr);
    answer->outcome = result.affected_rows > 0 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    if (is_mine && result.affected_rows > 0)
        mysql_bell_rung(connection, owner);
    else
        mysql_bell_mark(connection, owner);
    if (result.affected_rows > 0 && result.insert_id != 0 && connection->has_line)
        mysql_line_wake_connection(connection, call, result.insert_id);
    /* a transaction of the application may have given it back, and that rings no bell */
    if (result.affected_rows == 0 && !is_mine)
        mysql_line_wake(hold, connection, call, subject);
    return DBLOCK_OK;
}

dblock_status mysql_hold_drop(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status;

    if (keep_us == 0) {
        status = drop(hold, connection, call, subject, owner, answer, reterr);
    } else { /* it ends at another time now than the first in line knows */
        status = extend(
            hold, connection, call, "release", subject, owner, keep_us, answer, reterr);
        if (status == DBLOCK_OK && answer->outcome != DBLOCK_ANSWER_PINNED) {
            mysql_bell_mark(connection, owner);
            if (!mysql_bell_find(connection, owner))
                mysql_line_wake(hold, connection, call, subject);
        }
    }
    mysql_bell_settle(connection, call);
    return status;
}

dblock_status mysql_hold_extend(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status =
        extend(hold, connection, call, "extend", subject, owner, ttl_us, answer, reterr);

    /* The first in line may know of a later end, but he never rests longer than that. */
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES && ttl_us < REST_LAST_US)
        mysql_line_wake(hold, connection, call, subject);
    return status;
}

dblock_status mysql_hold_draw(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    const unsigned char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t insert_id;

    if (run_update(hold, connection, call, MYSQL_LEASE_DRAW, subject, owner, &insert_id) != 0)
        return fail_change(hold, connection, "draw a token for", subject, answer, reterr);
    answer->outcome = insert_id != 0 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    mysql_grant_read_token(insert_id, answer);
    return DBLOCK_OK;
}

/* Inside the transaction of a break. 0 or a native code. */
static unsigned int end_grant(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, struct mysql_result *result)
{
    const struct mysql_bytes *session = mysql_out_bytes(connection, MYSQL_B_SESSION);
    int has_row;

    result->affected_rows = 0;
    if (mysql_run_row(connection, mysql_hold_statement(hold, MYSQL_LEASE_PROBE), call, &has_row) !=
        0)
        return connection->error_code;
    if (!has_row)
        return 0;
    if (mysql_run(connection, mysql_hold_statement(hold, MYSQL_LEASE_BREAK), call, result) != 0)
        return connection->error_code;
    if (result->affected_rows == 0 || session->is_null)
        return 0;
    mysql_in_bytes(connection, MYSQL_B_SESSION, session->data, DBLOCK_ID_SIZE);
    return mysql_run(connection, MYSQL_SESSION_CHANGED, call, NULL);
}

/* One transaction of a break; the outputs of the look are there. */
static dblock_status end_once(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_result result;
    unsigned int code;
    dblock_status status;

    answer->outcome = DBLOCK_ANSWER_NO;
    if (mysql_text_run(connection, "START TRANSACTION", call, 0, 0, NULL) != 0)
        return mysql_fail(connection, reterr, "cannot break %s \"%s\"", hold->what, subject->name);
    code = end_grant(hold, connection, call, &result);
    if (code != 0) {
        connection->is_effect_possible = 0; /* without its COMMIT it is rolled back */
    } else {
        code = mysql_text_run(connection, "COMMIT", call, 0, 1, NULL);
        if (code == 0) {
            if (result.affected_rows > 0)
                answer->outcome = DBLOCK_ANSWER_YES;
            return DBLOCK_OK;
        }
    }
    status = fail_change(hold, connection, "break", subject, answer, reterr);
    mysql_text_roll_back(connection, call);
    connection->error_code = code;
    return status;
}

dblock_status mysql_hold_end(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t remaining_us;
    dblock_status status;
    int n_tries = 1;

    if (mysql_hold_read(hold, connection, call, subject) != 0)
        return mysql_fail(connection, reterr, "cannot break %s \"%s\"", hold->what, subject->name);
    answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    answer->outcome = DBLOCK_ANSWER_NO;
    if (!mysql_grant_is_in_force(connection, &remaining_us) ||
        (token != 0 && token != mysql_out_number(connection, MYSQL_N_TOKEN)))
        return DBLOCK_OK;
    mysql_in_number(connection, MYSQL_N_TOKEN, mysql_out_number(connection, MYSQL_N_TOKEN));
    do {
        status = end_once(hold, connection, call, subject, answer, reterr);
    } while (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_PINNED &&
        ++n_tries <= TRIES_MAX && mysql_hold_is_lock_brief(hold, connection, call));
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES)
        mysql_line_wake(hold, connection, call, subject); /* the holder has the bell */
    return status;
}
