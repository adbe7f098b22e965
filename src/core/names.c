/* SPDX-License-Identifier: MIT */
/* names.c - see names.h. */
#include "core/names.h"

#include <string.h>

#include "core/environment.h"
#include "core/lock.h"

/* As FNV, but eight bytes at a time: of short texts that nobody outside chooses to collide for gain
 * (what collides is looked at one after the other). Never stored: the order of bytes in a word
 * does not matter. */
uint64_t dblk_name_hash(int strategy, const struct dblock_subject *subject)
{
    const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + (uint64_t)strategy;
    const char *text = subject->name;
    size_t left = subject->name_size;
    uint64_t word;

    for (; left >= sizeof word; left -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 29;
    }
    for (word = left; left > 0; --left, ++text)
        word = word << 8 | (unsigned char)*text;
    hash = (hash ^ word) * prime;
    return hash ^ hash >> 32;
}

int dblk_subject_equal(const struct dblock_subject *left, const struct dblock_subject *right)
{
    return left->name_size == right->name_size &&
        left->has_advisory_id == right->has_advisory_id &&
        left->advisory_id == right->advisory_id &&
        memcmp(left->name, right->name, left->name_size) == 0;
}

static struct dblock_lock **find_bucket(const struct dblk_names *names, uint64_t hash)
{
    return &names->buckets[hash & (names->n_buckets - 1)];
}

static void put(struct dblk_names *names, struct dblock_lock *lock)
{
    struct dblock_lock **bucket = find_bucket(names, lock->name_hash);

    lock->next_of_name = *bucket;
    *bucket = lock;
}

static void grow(struct dblk_names *names)
{
    struct dblk_names larger = { NULL, names->n_buckets != 0 ? names->n_buckets * 2 : 16,
        names->n_locks };
    size_t i;

    larger.buckets = dblk_allocate(larger.n_buckets * sizeof *larger.buckets);
    if (larger.buckets == NULL)
        return;
    for (i = 0; i < names->n_buckets; ++i)
        while (names->buckets[i] != NULL) {
            struct dblock_lock *lock = names->buckets[i];

            names->buckets[i] = lock->next_of_name;
            put(&larger, lock);
        }
    dblk_release(names->buckets);
    *names = larger;
}

void dblk_names_add(struct dblk_names *names, struct dblock_lock *lock)
{
    if (names->n_locks >= names->n_buckets)
        grow(names);
    if (names->n_buckets == 0)
        return;
    put(names, lock);
    lock->is_in_names = 1;
    ++names->n_locks;
}

void dblk_names_remove(struct dblk_names *names, struct dblock_lock *lock)
{
    struct dblock_lock **place;

    if (!lock->is_in_names)
        return;
    for (place = find_bucket(names, lock->name_hash); *place != lock;)
        place = &(*place)->next_of_name;
    *place = lock->next_of_name;
    lock->next_of_name = NULL;
    lock->is_in_names = 0;
    --names->n_locks;
}

struct dblock_lock *dblk_names_find(const struct dblk_names *names, const struct dblock_lock *like)
{
    struct dblock_lock *lock = NULL;

    if (names->n_buckets != 0)
        lock = *find_bucket(names, like->name_hash);
    while (lock != NULL &&
        (lock->name_hash != like->name_hash || lock->strategy != like->strategy ||
            !dblk_subject_equal(&lock->subject, &like->subject)))
        lock = lock->next_of_name;
    return lock;
}

void dblk_names_fini(struct dblk_names *names)
{
    dblk_release(names->buckets);
    memset(names, 0, sizeof *names);
}
