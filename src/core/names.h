/* SPDX-License-Identifier: MIT */
/* names.h - what a client holds, by strategy and name: whether a thread that wants
 * a name would only wait for another thread of its own client. The client's mutex
 * is held for all of it. */
#ifndef DBLK_NAMES_H
#define DBLK_NAMES_H

#include <dblock/sys/driver.h>

struct dblk_names {
    struct dblock_lock **buckets;
    size_t n_buckets; /* a power of two, or 0 */
    size_t n_locks;
};

uint64_t dblk_name_hash(int strategy, const struct dblock_subject *subject);
int dblk_subject_equal(const struct dblock_subject *left, const struct dblock_subject *right);

/* Cannot fail: without memory for more buckets, the ones that there are grow longer; without any
 * the lock is not found, and who wants it asks the database. */
void dblk_names_add(struct dblk_names *names, struct dblock_lock *lock);
void dblk_names_remove(struct dblk_names *names, struct dblock_lock *lock);
struct dblock_lock *dblk_names_find(const struct dblk_names *names, const struct dblock_lock *like);
void dblk_names_fini(struct dblk_names *names);

#endif
