/* SPDX-License-Identifier: MIT */
/* seat.h - where a thread of the client rests until another one calls it. The client keeps it for the
 * next thread. A condition, as waking by it takes a third less than by a descriptor; who heeds a
 * canceller needs the latter, as a signal handler can raise nothing else. */
#ifndef DBLK_SEAT_H
#define DBLK_SEAT_H

#include "core/client.h"

struct dblk_seat {
    struct dblk_seat *next;
    pthread_cond_t called;
    atomic_int is_polled; /* who sits here waits for the descriptor */
    int fd;               /* readable once it has been called; -1: nobody with a canceller sat here */
    atomic_uint n_calls;  /* promised and not yet made: it is not to be closed */
};

/* The client's mutex held for all but dblk_seat_call() and dblk_seats_fini(). */

/* For a thread that has a canceller, or not. NULL: no memory, or no descriptor. Nobody has called. */
struct dblk_seat *dblk_seat_take(dblock_client *client, int has_canceller);
void dblk_seat_put(dblock_client *client, struct dblk_seat *seat);
/* To sit down once more: what was called before is over. */
void dblk_seat_clear(struct dblk_seat *seat);
/* Until a call, the end of the client, the canceller that it was taken for, or `until_us`; sometimes
 * sooner. The mutex is given up meanwhile. */
void dblk_seat_rest(dblock_client *client, struct dblk_seat *seat,
    const dblock_canceller *canceller, uint64_t until_us);
/* The client is closing: whoever sits there is to see that. */
void dblk_seat_rouse(struct dblk_seat *seat);
/* Promises a call, for when the mutex is not held any more: who is called needs it at once, and on
 * the caller's own processor is there before the caller goes on. The thread may have learned by
 * itself what the call is to tell, and may have left: then it reaches whoever has the seat next,
 * who finds that it was not meant for him. */
void dblk_seat_promise(struct dblk_seat *seat);

/* Makes the call. */
void dblk_seat_call(struct dblk_seat *seat);
/* Without the client's mutex, as nobody else has the client any more. */
void dblk_seats_fini(dblock_client *client);

#endif
