/* SPDX-License-Identifier: MIT */
/* place.h - the place of one waiting call in the line of a name, on a connection
 * of its own (sys/driver.h, struct dblock_driver_line). */
#ifndef DBLK_PLACE_H
#define DBLK_PLACE_H

#include "core/waiter.h"

struct dblk_link;

struct dblk_place {
    struct dblk_link *link; /* NULL: none yet */
    int is_standing;        /* has a place to leave */
};

/* Does this database have lines, as far as is known? */
static inline int dblk_place_is_possible(const dblock_client *client)
{
    return client->driver->line.stand != NULL && !atomic_load(&client->has_no_line);
}

/* line.stand and line.rest, with a connection that is got when it is needed. Results as those;
 * a connection that died is gone afterwards. `*now_us` is the time before and after. */
dblock_status dblk_place_stand(struct dblk_place *place, struct dblk_waiter *waiter,
    const dblock_lock *lock, int is_fair, uint64_t wait_us, uint64_t *now_us,
    struct dblock_answer *answer, struct dblock_error *error);
dblock_status dblk_place_rest(struct dblk_place *place, struct dblk_waiter *waiter,
    const char *owner, uint64_t until_us, uint64_t *now_us, struct dblock_answer *answer,
    struct dblock_error *error);

/* E_UNSUPPORTED: a wait in order of arrival where nobody can be woken. */
dblock_status dblk_place_refuse(const char *name, struct dblock_error *error) DBLOCK_COLD_;

/* At the end of the call: leaves the line, and gives the connection to the next that waits. */
void dblk_place_leave(struct dblk_place *place, dblock_client *client, uint64_t now_us);

#endif
