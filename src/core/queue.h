/* SPDX-License-Identifier: MIT */
/* queue.h - threads of one client that wait for the same name: one of them asks the
 * database, the others wait here for it, and what the client holds already goes
 * from one to the next without a round trip. Waits in order of arrival over all
 * machines (DBLOCK_FAIR) do not come here. */
#ifndef DBLK_QUEUE_H
#define DBLK_QUEUE_H

#include "core/client.h"

struct dblk_attempt;

enum dblk_turn {
    DBLK_TURN_ASK = 1, /* ask the database: nobody else of this client does */
    DBLK_TURN_AGAIN,   /* the same after a wait here: what is known of the name is old */
    DBLK_TURN_GRANTED, /* a thread of this client has handed its grant over */
    DBLK_TURN_OVER     /* the time is over, or the wait was ended: see dblk_waiter_verdict() */
};

struct dblk_queue; /* of one name */

struct dblk_queued { /* one waiting thread; lives in its attempt */
    struct dblk_attempt *attempt;
    struct dblk_queue *queue;  /* NULL: in none */
    struct dblk_queued *next;
    enum dblk_turn turn;       /* 0 while it waits */
    struct dblk_seat *seat;    /* is called with the turn; NULL until needed */
};

/* Has it ever waited, or made others wait? Most calls have not, and there is nothing to leave. */
static inline int dblk_queued_is_used(const struct dblk_queued *queued)
{
    return queued->queue != NULL || queued->seat != NULL;
}

/* Before the database is asked at all: waits if a thread of this client has the name or waits for
 * it. The client's mutex is not held. `*now_us` is the time before and after. */
enum dblk_turn dblk_queue_enter(struct dblk_queued *queued, uint64_t give_up_us, uint64_t *now_us);
/* Before a wait in the database's line, or a pause: one thread of the client is enough for that. */
enum dblk_turn dblk_queue_contend(
    struct dblk_queued *queued, uint64_t give_up_us, uint64_t *now_us);
/* After DBLK_TURN_GRANTED: is it still in force? 0: it is lost, and nothing is left of it. */
int dblk_queue_accept(struct dblk_queued *queued, uint64_t now_us);
/* At the end of the call: whoever is next asks the database, unless the name is `is_held` now by
 * this client, and frees what belongs to the queue. */
void dblk_queue_leave(struct dblk_queued *queued, int is_held);

/* The client's mutex held for these; of no use while client->queues is NULL. */

/* Gives what `lock` holds to the first thread that waits here, if that may be: then `lock` holds
 * nothing any more, and that thread is to be called once the mutex is free (dblk_seat_call). */
struct dblk_seat *dblk_queue_hand_over(struct dblock_lock *lock, uint64_t now_us);
/* When the database was seen to grant what `lock` holds, to it or to the one that it was handed from. */
uint64_t dblk_queue_since(const struct dblock_lock *lock);
/* The client is closing: all who wait here see that. */
void dblk_queues_rouse(dblock_client *client);
/* `lock` is not held any more: the first thread that waits for the name asks the database. */
void dblk_queue_wake(struct dblock_lock *lock);
#endif
