/* SPDX-License-Identifier: MIT */
/* close.h - the part of dblock_close() that talks to the database. */
#ifndef DBLK_CLOSE_H
#define DBLK_CLOSE_H

#include "core/lock.h"

/* Releases all that is held or still to be given back, by `deadline_us`, and closes every
 * connection. The keeper has been stopped. */
void dblk_close_give_back(dblock_client *client, uint64_t deadline_us);

/* By the thread of a call that was granted a lease or insert while dblock_close() ran, and that
 * answers E_CLOSED: gives it back, over a connection of its own. */
void dblk_close_drop(dblock_client *client, dblock_lock *lock) DBLOCK_COLD_;

#endif
