/* SPDX-License-Identifier: MIT */
/* registry.h - the lock objects of a client by owner id, and lists of them.
 *
 * An object of a heartbeat grant is in the registry from before its owner id is first sent until it
 * is certain that the database no longer names that id. So a row of our session
 * whose owner is not here belongs to nobody, and may be given back (the sweep).
 * All of it is guarded by the client's mutex. */
#ifndef DBLK_REGISTRY_H
#define DBLK_REGISTRY_H

#include <dblock/sys/driver.h>

struct dblk_registry {
    struct dblock_lock **buckets;
    size_t n_buckets; /* a power of two, or 0 */
    size_t n_locks;
};

/* Room for one more: 0, or -1 without memory. Before dblk_registry_add(), which then cannot fail. */
int dblk_registry_reserve(struct dblk_registry *registry);
void dblk_registry_add(struct dblk_registry *registry, struct dblock_lock *lock);
void dblk_registry_remove(struct dblk_registry *registry, struct dblock_lock *lock);
struct dblock_lock *dblk_registry_find(
    const struct dblk_registry *registry, const unsigned char owner[DBLOCK_ID_SIZE]);
void dblk_registry_fini(struct dblk_registry *registry);

/* A doubly linked list through the objects; an object is in one list at a time. */
struct dblk_lock_list {
    struct dblock_lock *first;
    size_t n_locks;
};

void dblk_list_add(struct dblk_lock_list *list, struct dblock_lock *lock);
void dblk_list_remove(struct dblk_lock_list *list, struct dblock_lock *lock);

#endif
