/* SPDX-License-Identifier: MIT */
/* grant_list.h - the grants of a listing, kept together. */
#ifndef CLI_GRANT_LIST_H
#define CLI_GRANT_LIST_H

#include <dblock/dblock.h>

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty list. */
struct grant_list {
    struct dblock_grant *grants;
    size_t n_grants;
    size_t n_room;
    const char *host; /* only grants of this machine; NULL all */
    size_t limit;     /* stops there; 0 none */
    bool is_cut;      /* there were more than `limit` */
    bool is_out_of_memory;
};

/* For dblock_list(), with the list as its context. */
int grant_list_add(const struct dblock_grant *grant, void *context);

/* dblock_list() into the list; without a client there is nothing to list. Returns -1, or the exit status after a message. */
int grant_list_read(
    struct grant_list *list, dblock_client *client, const struct dblock_filter *filter);

/* Those that somebody holds under `name`. */
int grant_list_read_holders(
    struct grant_list *list, dblock_client *client, const char *name, int strategy);

/* What there is to know of a lock that is held here: as the database has it; if it cannot be asked,
 * as the lock itself knows. */
void grant_of_lock(dblock_client *client, dblock_lock *lock, struct dblock_grant *ret_grant);

void grant_list_clear(struct grant_list *list);

#endif
