/* SPDX-License-Identifier: MIT */
/* attempt.h - one acquire under way: what it keeps, and what acquiring one name and many have in
 * common around the loop. */
#ifndef DBLK_ATTEMPT_H
#define DBLK_ATTEMPT_H

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

/* What the strategy has to go by, for a call that began then. */
void dblk_attempt_set_terms(
    const struct dblk_attempt *attempt, uint64_t begun_us, struct dblk_terms *ret_terms);

/* stats.waiters, before (1) and after (-1) a step; one that does not wait does not count. */
void dblk_attempt_count_waiter(
    const struct dblk_attempt *attempt, const struct dblk_step *step, int by);
/* The other stats, at the end of a call that was not granted. */
void dblk_attempt_count(
    const struct dblk_attempt *attempt, dblock_status status, uint64_t begun_us);
/* Its caller gets what he asked to be told: the error, or who has it (options.busy). Returns
 * `status`, or the error of a struct in which that cannot be told. */
dblock_status dblk_attempt_tell(
    struct dblk_attempt *attempt, dblock_status status, struct dblock_error *reterr);

#endif
