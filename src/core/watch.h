/* SPDX-License-Identifier: MIT */
/* watch.h - connections of the application on which what runs is cancelled when a lock is lost.
 *
 * Each has a thread of its own, so one server that does not answer keeps neither the keeper nor
 * another cancel waiting. */
#ifndef DBLK_WATCH_H
#define DBLK_WATCH_H

#include "core/lock.h"

/* The lock is lost; the client's mutex held. */
void dblk_watch_fire(dblock_lock *lock);

/* Nothing is cancelled for this lock any more when it returns; the mutex not held. A cancel under
 * way is waited for. */
void dblk_watch_end_now(dblock_lock *lock) DBLOCK_COLD_;
static inline void dblk_watch_end(dblock_lock *lock)
{
    if (atomic_load_explicit(&lock->n_watches, memory_order_relaxed) != 0)
        dblk_watch_end_now(lock);
}
/* The same for all locks of a client. */
void dblk_watch_end_all(dblock_client *client);

/* In a child after fork, where the threads do not exist: frees their memory. */
void dblk_watch_forget(dblock_lock *lock);

#endif
