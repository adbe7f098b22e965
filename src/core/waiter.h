/* SPDX-License-Identifier: MIT */
/* waiter.h - what ends the wait of one call: its canceller, and the closing of
 * its client. */
#ifndef DBLK_WAITER_H
#define DBLK_WAITER_H

#include "core/client.h"
#include "strategy/strategy.h"

struct dblk_waiter {
    dblock_client *client;
    dblock_canceller *canceller; /* may be NULL */
    int epoll_fd;                /* of both, while a driver needs one descriptor; -1 */
};

void dblk_waiter_init(
    struct dblk_waiter *waiter, dblock_client *client, dblock_canceller *canceller);
void dblk_waiter_fini(struct dblk_waiter *waiter);

/* One descriptor that is readable when either wants the wait to end: made for a long wait. */
int dblk_waiter_fd(struct dblk_waiter *waiter);

/* For what ends by itself soon (connecting, a short step): the canceller if there is one, else the
 * closing; costs nothing. */
int dblk_waiter_short_fd(const struct dblk_waiter *waiter);

/* CANCELLED, CLOSED, or 0 for neither. */
int dblk_waiter_verdict(const struct dblk_waiter *waiter);

/* Pauses. PAUSED, CANCELLED or CLOSED. */
int dblk_waiter_pause(struct dblk_waiter *waiter, uint64_t until_us);

#endif
