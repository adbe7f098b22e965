/* SPDX-License-Identifier: MIT */
/* mysql_grant.h - from what statements give to struct dblock_grant and struct
 * dblock_answer. No I/O. */
#ifndef DBLOCK_MYSQL_GRANT_H
#define DBLOCK_MYSQL_GRANT_H

#include <dblock/sys/driver.h>

struct dblock_connection;

/* From the outputs of a look, a listing or a session's holdings: what they have of name,
 * owner, token, times, host, process and label. */
void mysql_grant_fill(struct dblock_connection *connection, struct dblock_grant *grant);
/* Whether the outputs of a look or a listing describe a grant in force, and how long it
 * lasts at the clock of those outputs. */
int mysql_grant_is_in_force(const struct dblock_connection *connection, uint64_t *ret_remaining_us);
/* What a look found, as a holder. `grant` may be NULL. */
void mysql_grant_fill_holder(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_grant *grant);
/* What the insert id of a take says (head of sql/lease.sql): YES. */
void mysql_grant_read(
    const struct dblock_take *take, uint64_t insert_id, struct dblock_answer *answer);
/* The same of a draw: token and clock only. */
void mysql_grant_read_token(uint64_t insert_id, struct dblock_answer *answer);

#endif
