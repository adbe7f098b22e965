/* SPDX-License-Identifier: MIT */
/* token.h - the fencing token of a grant, drawn if need be. */
#ifndef DBLK_TOKEN_H
#define DBLK_TOKEN_H

#include "core/lock.h"

struct dblk_channel;

/* OK, LOST, NOT_HELD, or a failure; by the deadline. PENDING: not while a guarded transaction
 * stands on the name, which `error` says as a failure. */
dblock_status dblk_token_get(dblock_lock *lock, uint64_t deadline_us, int64_t *ret_token,
    struct dblock_error *error);

/* Of a row or advisory lock that `channel` holds, whether or not anybody has been told so. OK:
 * `drawn` is YES with the token, PINNED, or AGAIN. LOST: that connection is gone. Or a failure. */
dblock_status dblk_token_draw(dblock_client *client, const dblock_lock *lock,
    struct dblk_channel *channel, uint64_t deadline_us, struct dblock_answer *drawn,
    struct dblock_error *error);

/* Of a row lock, before it is known whether that is still held: drawn and committed. PENDING: as
 * dblk_token_get(). */
dblock_status dblk_token_draw_on_control(dblock_client *client,
    const struct dblock_subject *subject, uint64_t deadline_us, int64_t *ret_token,
    struct dblock_error *error);

/* One step on the connection that is never lent: row.draw or row.seed. */
typedef dblock_status dblk_control_step(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status dblk_control_ask(dblock_client *client, dblk_control_step *step,
    const struct dblock_subject *subject, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *error);

/* A row that somebody has damaged gives tokens that no more fit where they are to be compared. */
dblock_status dblk_token_check(
    const dblock_lock *lock, int64_t token, struct dblock_error *error);

/* As a function of the library answers it: PENDING is a failure there, which `error` says. */
dblock_status dblk_token_status(dblock_status status);

#endif
