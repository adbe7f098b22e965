/* SPDX-License-Identifier: MIT */
/* many.h - several names at once, all or none: the same machine as for one name (strategy/), whose
 * steps are done for all of them.
 *
 * Whoever waits holds nothing: he stands in the line of one name that was in his way, and takes all
 * of them anew when it may have become free. So callers of this can not keep each other waiting for
 * ever, whatever names they share. */
#ifndef DBLK_MANY_H
#define DBLK_MANY_H

#include "core/link.h"
#include "core/perform.h"

struct dblk_many {
    struct dblk_attempt attempt; /* its `lock` is the name that a step is about */
    dblock_lock **locks;         /* in byte order of their names, as all below */
    struct dblock_many names;    /* the same for the driver; its arrays are one allocation */
    size_t place;                /* of the name in the way, as the last take said */
    const dblock_lock *stands_for; /* in whose line */
};

/* One name, and where the caller has it. */
struct dblk_wanted {
    const char *name;
    size_t place;
};

/* What a caller asked for, checked; `wanted` has room for n_names and is in byte order. */
dblock_status dblk_many_check(dblock_client *client, const char *const *names, size_t n_names,
    const struct dblock_options *options, dblock_lock *const *locks, struct dblk_wanted *wanted,
    struct dblk_wish *ret_wish, struct dblock_error *reterr);

/* All of them or none, into ret_locks[wanted[i].place]. On BUSY `ret_is_in_way` (n_names; NULL: not
 * wanted) says which were in the way, as far as is known. */
dblock_status dblk_many_acquire(dblock_client *client, const struct dblk_wanted *wanted,
    size_t n_names, const struct dblk_wish *wish, dblock_lock **ret_locks, int *ret_is_in_way,
    struct dblock_error *reterr);

/* Arrays for n names, which the caller fills: 0, or -1 without memory. */
int dblk_many_names_init(struct dblock_many *names, size_t n_names);
void dblk_many_names_fini(struct dblock_many *names);
void dblk_many_names_set(struct dblock_many *names, size_t i, const dblock_lock *lock);

/* As dblk_perform(). */
void dblk_many_perform(
    struct dblk_many *many, const struct dblk_step *step, struct dblk_event *ret_event);

/* One drop for all, in one message where the driver can. OK: names->outcomes are set, of those that
 * were neither YES nor NO before, and answer->outcome is the worst of them. */
dblock_status dblk_many_drop(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, int32_t strategy, const struct dblock_many *names,
    struct dblock_answer *answer, struct dblock_error *error);

#endif
