/* SPDX-License-Identifier: MIT */
/* breaking.h - breaks that met a guarded transaction: repeated until it ends. */
#ifndef DBLK_BREAKING_H
#define DBLK_BREAKING_H

#include "core/client.h"
#include "core/link.h"

struct dblk_breaking {
    struct dblk_breaking *next;
    struct dblock_subject subject; /* the name stands behind the struct */
    int32_t strategy;
    int64_t token; /* never 0: of the grant that was looked at, not of a later one */
    int is_token_left; /* row, advisory: the grant has been ended, and its token not yet */
    uint64_t retry_us;
    unsigned n_retries;
};

/* Goes on with it in the background; the client's mutex NOT held. 0, or -1 without memory. */
int dblk_breaking_add(dblock_client *client, const struct dblock_subject *subject,
    int32_t strategy, int64_t token, int is_token_left);

/* The client's mutex held, but not meanwhile. 1 if one was due and was tried. */
int dblk_breaking_try(
    dblock_client *client, struct dblk_link *link, uint64_t now_us, uint64_t limit_us);

/* The client's mutex held: when the next one is due. */
uint64_t dblk_breaking_next(const dblock_client *client);

void dblk_breaking_forget(dblock_client *client);

#endif
