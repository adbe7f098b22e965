/* SPDX-License-Identifier: MIT */
/* seat.h - where a thread of the client rests until another one calls it: a descriptor, which the
 * client keeps for the next thread, as to make and to close one are two of the five system calls
 * that such a rest takes. */
#ifndef DBLK_SEAT_H
#define DBLK_SEAT_H

#include "core/client.h"

struct dblk_seat {
    struct dblk_seat *next;
    int fd;              /* readable once it has been called */
    atomic_uint n_calls; /* promised and not yet made: it is not to be closed */
};

/* The client's mutex held for all but the last two. */

/* NULL: no memory, or no descriptor. Nobody has called. */
struct dblk_seat *dblk_seat_take(dblock_client *client);
void dblk_seat_put(dblock_client *client, struct dblk_seat *seat);
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
