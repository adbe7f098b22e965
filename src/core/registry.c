/* SPDX-License-Identifier: MIT */
/* registry.c - see registry.h. Owner ids are random, so their first bytes are
 * the hash. */
#include "core/registry.h"

#include <assert.h>
#include <string.h>

#include "core/environment.h"
#include "core/lock.h"

static size_t find_bucket(const struct dblk_registry *registry, const unsigned char *owner)
{
    size_t hash;

    memcpy(&hash, owner, sizeof hash);
    return hash & (registry->n_buckets - 1);
}

int dblk_registry_reserve(struct dblk_registry *registry)
{
    struct dblk_registry larger = { NULL, registry->n_buckets * 2, 0 };
    size_t i;

    if (registry->n_locks < registry->n_buckets)
        return 0;
    if (larger.n_buckets == 0)
        larger.n_buckets = 16;
    larger.buckets = dblk_allocate(larger.n_buckets * sizeof *larger.buckets);
    if (larger.buckets == NULL)
        return -1;
    for (i = 0; i < registry->n_buckets; ++i)
        while (registry->buckets[i] != NULL) {
            struct dblock_lock *lock = registry->buckets[i];

            registry->buckets[i] = lock->next_in_bucket;
            dblk_registry_add(&larger, lock);
        }
    dblk_release(registry->buckets);
    *registry = larger;
    return 0;
}

void dblk_registry_add(struct dblk_registry *registry, struct dblock_lock *lock)
{
    size_t bucket = find_bucket(registry, lock->owner);

    lock->next_in_bucket = registry->buckets[bucket];
    registry->buckets[bucket] = lock;
    ++registry->n_locks;
}

void dblk_registry_remove(struct dblk_registry *registry, struct dblock_lock *lock)
{
    struct dblock_lock **link = &registry->buckets[find_bucket(registry, lock->owner)];

    while (*link != lock) {
        assert(*link != NULL);
        link = &(*link)->next_in_bucket;
    }
    *link = lock->next_in_bucket;
    lock->next_in_bucket = NULL;
    --registry->n_locks;
}

struct dblock_lock *dblk_registry_find(
    const struct dblk_registry *registry, const unsigned char owner[DBLOCK_ID_SIZE])
{
    struct dblock_lock *lock = NULL;

    if (registry->n_buckets != 0)
        lock = registry->buckets[find_bucket(registry, owner)];
    while (lock != NULL && memcmp(lock->owner, owner, DBLOCK_ID_SIZE) != 0)
        lock = lock->next_in_bucket;
    return lock;
}

void dblk_registry_fini(struct dblk_registry *registry)
{
    dblk_release(registry->buckets);
    memset(registry, 0, sizeof *registry);
}

void dblk_list_add(struct dblk_lock_list *list, struct dblock_lock *lock)
{
    lock->previous = NULL;
    lock->next = list->first;
    if (list->first != NULL)
        list->first->previous = lock;
    list->first = lock;
    ++list->n_locks;
}

void dblk_list_remove(struct dblk_lock_list *list, struct dblock_lock *lock)
{
    if (lock->previous != NULL)
        lock->previous->next = lock->next;
    else
        list->first = lock->next;
    if (lock->next != NULL)
        lock->next->previous = lock->previous;
    lock->next = lock->previous = NULL;
    --list->n_locks;
}
