/* SPDX-License-Identifier: MIT */
/* sqlite_byte.h - steps of row and advisory: both hold a byte of the side file. */
#ifndef DBLK_SQLITE_BYTE_H
#define DBLK_SQLITE_BYTE_H

#include "sqlite_connection.h"

dblock_status sqlite_byte_take(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_byte_drop(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_answer *answer);
dblock_status sqlite_byte_prove(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_answer *answer);
dblock_status sqlite_byte_ping(struct dblock_connection *connection, struct dblock_answer *answer);
/* Whether this connection holds it, by its own books. */
int sqlite_byte_is_held(
    const struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);
/* Draws a token of the lock, without asking who holds it. */
dblock_status sqlite_byte_draw(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* Within a step that has begun. */
dblock_status sqlite_byte_list(struct dblock_connection *connection, const struct dblock_page *page,
    dblock_grant_fn fn, void *context, struct dblock_error *reterr);
dblock_status sqlite_byte_end(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* By which the token of `*subject` is kept in dblock_token, into that: its name, or "#NUMBER" in
 * `buffer`. Two names, or a name and a number, may mean one advisory lock: they share a token. */
void sqlite_byte_token_name(
    int strategy, char *buffer, size_t size, struct dblock_subject *subject);
/* Whether somebody, also this connection, has the lock of such a name. */
int sqlite_byte_has_holder(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *token_name);

/* The number of a lock: what was given, or the name's. */
int64_t sqlite_byte_number(int strategy, const struct dblock_subject *subject);
void sqlite_byte_grant(const struct slot *slot, int64_t now_us, struct dblock_grant *grant);

#endif
