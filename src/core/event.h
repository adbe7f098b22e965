/* SPDX-License-Identifier: MIT */
/* event.h - telling the application: the client's queue, callbacks on the
 * keeper's thread, descriptors. The client's mutex is held for all of it. */
#ifndef DBLK_EVENT_H
#define DBLK_EVENT_H

#include <dblock/dblock.h>

struct dblk_event_node { /* lives in its lock, so that telling never needs memory */
    struct dblk_event_node *next;
    struct dblock_lock *lock;
    int32_t kind; /* 0: not queued */
    int32_t cause;
    uint64_t deadline_us;
    struct dblock_error *error; /* NULL if none, or no memory for it */
};

/* Queues for the callback or for the client's queue, whichever the lock has. */
void dblk_event_tell(struct dblock_lock *lock, struct dblk_event_node *node, int32_t kind,
    int32_t cause, const struct dblock_error *error);

/* Takes all events of a lock out of both queues. */
void dblk_event_forget(struct dblock_lock *lock);

/* Clock thread: calls one pending callback, without the mutex meanwhile. 0: there was none. */
int dblk_event_call(dblock_client *client);

/* A descriptor that becomes readable; 0 or an errno. */
int dblk_signal_fd_new(int *ret_fd);
void dblk_signal_fd_raise(int fd); /* takes -1; async-signal-safe */
void dblk_signal_fd_lower(int fd);

#endif
