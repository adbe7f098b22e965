/* SPDX-License-Identifier: MIT */
/* borrowed.h - a client over a connection of the application. Only the application's own threads,
 * inside of a call, may touch that connection: whatever else goes on in a client has to go another
 * way (the keeper's URL), or waits for the next call. */
#ifndef DBLK_BORROWED_H
#define DBLK_BORROWED_H

#include "core/client.h"

static inline int dblk_is_borrowing(const dblock_client *client)
{
    return client->borrowing.roles != 0;
}

/* Can its keeper reach the database by itself? */
static inline int dblk_has_keeper(const dblock_client *client)
{
    return !dblk_is_borrowing(client) || client->keeper_target != client->target;
}

/* Is a connection of this role the application's? */
static inline int dblk_is_borrowed(const dblock_client *client, int role)
{
    return (client->borrowing.roles >> role & 1u) != 0;
}

/* By which way a connection of this role is opened; NULL: by none (E_UNSUPPORTED). */
struct dblock_target *dblk_way_of(
    const dblock_client *client, int role, struct dblock_error *error);

/* Before an acquire: what cannot be done there, or not now, is refused with the reason. What
 * earlier calls left behind is given back. */
dblock_status dblk_borrowed_check_wish(
    dblock_client *client, const struct dblk_wish *wish, const char *name, struct dblock_error *error);

/* Before a release, which ends the belief before it sends anything. */
dblock_status dblk_borrowed_check_release(const dblock_lock *lock, struct dblock_error *error);

/* On a thread of the application, the mutex not held: the keeper's work that the keeper may not do. */
void dblk_borrowed_settle(dblock_client *client);

/* May this thread work with what was left behind by `lock`, or with `channel` (one is NULL)? The
 * mutex held. */
int dblk_may_touch(const dblock_client *client, const struct dblk_channel *channel);

#endif
