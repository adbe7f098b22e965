/* SPDX-License-Identifier: MIT */
/* perform.h - does one step of an acquire through the driver and turns the
 * answer into the event that the strategy wants to hear. */
#ifndef DBLK_PERFORM_H
#define DBLK_PERFORM_H

#include "core/lock.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/waiter.h"

struct dblk_attempt {
    dblock_client *client;
    dblock_lock *lock;
    const struct dblk_wish *wish;
    struct dblk_machine machine;
    struct dblk_waiter waiter;
    struct dblk_queued queued;   /* among the threads of this client */
    struct dblk_place place;     /* in the line of the name */
    int64_t not_after_us;        /* of the last take, by the database's clock */
    uint64_t sent_us;            /* of the last take */
    uint64_t link_id;            /* the connection of the last take of a lease or insert */
    uint64_t end_us;             /* of the wait, and one I/O limit: no step goes on beyond it */
    struct dblock_grant *holder; /* of the last busy answer; NULL: nobody asks for it */
    struct dblock_error error;   /* of the last failure */
};

/* Nobody holds the name, and a guarded transaction keeps it all the same: for options.busy. */
void dblk_perform_tell_pinned(struct dblk_attempt *attempt);

/* The step must not be END. `*ret_event` is the last event: its time is the time now. */
void dblk_perform(
    struct dblk_attempt *attempt, const struct dblk_step *step, struct dblk_event *ret_event);

#endif
