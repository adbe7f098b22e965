/* SPDX-License-Identifier: MIT */
/* mysql_grant.c - grants as their rows describe them, and as the OK packet of a take does.
 * How they come about is mysql_hold.c's business. */
#include "mysql_grant.h"

#include <string.h>

#include "mysql_connection.h"

void mysql_grant_fill(struct dblock_connection *connection, struct dblock_grant *grant)
{
    const struct mysql_bytes *owner = mysql_out_bytes(connection, MYSQL_B_OWNER);

    grant->token = mysql_out_number(connection, MYSQL_N_TOKEN);
    grant->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    grant->since_us = mysql_out_number(connection, MYSQL_N_SINCE);
    grant->expires_us = mysql_out_number(connection, MYSQL_N_EXPIRES);
    grant->pid = mysql_out_number(connection, MYSQL_N_PID);
    grant->n_waiters = UINT32_MAX;
    if (!owner->is_null && owner->size == DBLOCK_ID_SIZE)
        dblock_id_text((const unsigned char *)owner->data, grant->owner);
    dblock_text_copy(
        grant->name, sizeof grant->name, mysql_out_bytes(connection, MYSQL_B_NAME)->data);
    dblock_text_copy(
        grant->label, sizeof grant->label, mysql_out_bytes(connection, MYSQL_B_LABEL)->data);
    dblock_text_copy(
        grant->host, sizeof grant->host, mysql_out_bytes(connection, MYSQL_B_HOST)->data);
}

int mysql_grant_is_in_force(const struct dblock_connection *connection, uint64_t *ret_remaining_us)
{
    int has_session = !mysql_out_bytes(connection, MYSQL_B_SESSION)->is_null;
    int64_t now = mysql_out_number(connection, MYSQL_N_CLOCK);
    int64_t end = mysql_out_number(
        connection, has_session ? MYSQL_N_SESSION_END : MYSQL_N_EXPIRES);

    *ret_remaining_us = end > now ? (uint64_t)(end - now) : 0;
    if (mysql_out_is_null(connection, MYSQL_N_TOKEN) ||
        (has_session && mysql_out_is_null(connection, MYSQL_N_SESSION_END)))
        return 0;
    /* An expired session keeps its rows until somebody wants them, but nobody believes in it. */
    return end > now;
}

void mysql_grant_fill_holder(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_grant *grant)
{
    uint64_t remaining_us;

    if (grant == NULL)
        return;
    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    (void)mysql_grant_is_in_force(connection, &remaining_us);
    mysql_grant_fill(connection, grant);
    grant->strategy = strategy;
    grant->is_heartbeat = !mysql_out_bytes(connection, MYSQL_B_SESSION)->is_null;
    if (grant->is_heartbeat)
        grant->expires_us = mysql_out_number(connection, MYSQL_N_SESSION_END);
    grant->remaining_ms = remaining_us / 1000;
    dblock_text_copy(grant->name, sizeof grant->name, subject->name);
}

void mysql_grant_read_token(uint64_t insert_id, struct dblock_answer *answer)
{
    answer->token = (int64_t)(insert_id >> 11);
    answer->now_us = (insert_id & 1024) != 0 ? answer->token : 0;
}

void mysql_grant_read(
    const struct dblock_take *take, uint64_t insert_id, struct dblock_answer *answer)
{
    /* 2 ** (i / 16) in units of 2 ** -16, rounded down */
    static const uint32_t roots[16] = { 65536, 68437, 71467, 74631, 77935, 81386, 84989, 88752,
        92681, 96785, 101070, 105545, 110217, 115097, 120193, 125514 };
    uint64_t q = insert_id & 1023;

    answer->outcome = DBLOCK_ANSWER_YES;
    mysql_grant_read_token(insert_id, answer);
    if (take->session == NULL) {
        answer->remaining_us = take->ttl_us;
        return;
    }
    answer->session_remaining_us = q < 47 * 16 ? ((uint64_t)roots[q & 15] << (q >> 4)) >> 16
                                               : (uint64_t)1 << 47;
    answer->remaining_us = answer->session_remaining_us;
}
