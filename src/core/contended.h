/* SPDX-License-Identifier: MIT */
/* contended.h - the names that other clients had when this one wanted them last. Whoever waits for
 * one of these stands in line at once: to ask first whether it is free is a round trip for
 * nothing, and overtakes those who stand there where the database lets it pass.
 *
 * It is a guess about the next few times, and after those it is asked again: a name that nobody
 * else wants any more costs a line's round trips so often, and no more. Names that fall into one
 * place forget each other. The client's mutex is held. */
#ifndef DBLK_CONTENDED_H
#define DBLK_CONTENDED_H

#include <stdint.h>

enum {
    DBLK_CONTENDED_NAMES = 16,
    DBLK_CONTENDED_TIMES = 8,
    DBLK_CONTENDED_LEAST_US = 50000 /* of a shorter wait the way into line is too large a part */
};

struct dblk_contended {
    uint64_t hashes[DBLK_CONTENDED_NAMES];
    unsigned char n_left[DBLK_CONTENDED_NAMES];
};

static inline void dblk_contended_note(struct dblk_contended *contended, uint64_t name_hash)
{
    contended->hashes[name_hash % DBLK_CONTENDED_NAMES] = name_hash;
    contended->n_left[name_hash % DBLK_CONTENDED_NAMES] = DBLK_CONTENDED_TIMES;
}

/* Is it one of them? Counts as one of the times. */
static inline int dblk_contended_use(struct dblk_contended *contended, uint64_t name_hash)
{
    unsigned char *n_left = &contended->n_left[name_hash % DBLK_CONTENDED_NAMES];

    if (*n_left == 0 || contended->hashes[name_hash % DBLK_CONTENDED_NAMES] != name_hash)
        return 0;
    --*n_left;
    return 1;
}

#endif
