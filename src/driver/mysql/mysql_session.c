/* SPDX-License-Identifier: MIT */
/* mysql_session.c - heartbeat rows: begin, renew, end, and what names one. When to do
 * which is the library's business; why each statement is safe: sql/session.sql. */
#include "mysql_session.h"

#include <string.h>

#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_grant.h"
#include "mysql_target.h"

dblock_status mysql_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_result result;

    mysql_in_bytes(connection, MYSQL_B_SESSION, session, DBLOCK_ID_SIZE);
    mysql_in_number(connection, MYSQL_N_TTL, (int64_t)ttl_us);
    mysql_in_text(connection, MYSQL_B_LABEL, connection->target->label);
    if (mysql_run(connection, MYSQL_SESSION_BEGIN, call, &result) != 0) {
        if (mysql_error_class(connection->error_code) == MYSQL_CLASS_CONFLICT) {
            answer->outcome = DBLOCK_ANSWER_AGAIN;
            return DBLOCK_OK;
        }
        return mysql_fail(connection, reterr, "cannot begin a session");
    }
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->now_us = mysql_bound((int64_t)result.insert_id);
    return DBLOCK_OK;
}

dblock_status mysql_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_result result;

    mysql_in_bytes(connection, MYSQL_B_SESSION, session, DBLOCK_ID_SIZE);
    mysql_in_number(connection, MYSQL_N_TTL, (int64_t)ttl_us);
    if (mysql_run(connection, MYSQL_SESSION_RENEW, call, &result) != 0) {
        if (mysql_error_class(connection->error_code) == MYSQL_CLASS_CONFLICT ||
            mysql_error_class(connection->error_code) == MYSQL_CLASS_LOCKED) {
            answer->outcome = DBLOCK_ANSWER_AGAIN;
            return DBLOCK_OK;
        }
        return mysql_fail(connection, reterr, "cannot renew a session");
    }
    answer->outcome = result.affected_rows == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    if (result.affected_rows == 1) {
        answer->now_us = (int64_t)(result.insert_id >> 11);
        answer->changed = result.insert_id & 2047;
    }
    return DBLOCK_OK;
}

dblock_status mysql_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct mysql_result result;

    mysql_in_bytes(connection, MYSQL_B_SESSION, session, DBLOCK_ID_SIZE);
    if (mysql_run(connection, MYSQL_SESSION_END, call, &result) != 0) {
        if (mysql_error_class(connection->error_code) == MYSQL_CLASS_CONFLICT ||
            mysql_error_class(connection->error_code) == MYSQL_CLASS_LOCKED) {
            answer->outcome = DBLOCK_ANSWER_AGAIN;
            return DBLOCK_OK;
        }
        return mysql_fail(connection, reterr, "cannot end a session");
    }
    answer->outcome = result.affected_rows == 1 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

dblock_status mysql_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_grant grant;

    mysql_in_bytes(connection, MYSQL_B_SESSION, session, DBLOCK_ID_SIZE);
    if (mysql_run_rows(connection, MYSQL_SESSION_HOLDS, call) != 0)
        return mysql_fail(connection, reterr, "cannot read what a session holds");
    answer->outcome = DBLOCK_ANSWER_YES;
    while (mysql_fetch(connection, MYSQL_SESSION_HOLDS)) {
        memset(&grant, 0, sizeof grant);
        grant.struct_size = sizeof grant;
        grant.strategy = (int32_t)mysql_out_number(connection, MYSQL_N_STRATEGY);
        answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
        mysql_grant_fill(connection, &grant);
        grant.is_heartbeat = 1;
        if (fn(&grant, context) != 0)
            break;
    }
    mysql_end_rows(connection, MYSQL_SESSION_HOLDS);
    return DBLOCK_OK;
}
