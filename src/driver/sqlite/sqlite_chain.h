/* SPDX-License-Identifier: MIT */
/* sqlite_chain.h - waiting in a line until one is the first, with an end. */
#ifndef DBLK_SQLITE_CHAIN_H
#define DBLK_SQLITE_CHAIN_H

#include "sqlite_helper.h"
#include "sqlite_line.h"

/* Of one connection. */
struct sqlite_chain {
    struct sqlite_side *side;
    struct place place;      /* without a line: whoever is quicker gets the byte */
    int64_t lock;            /* the byte that is wanted besides being the first; 0: none */
    struct place walked;     /* the helper's copy: it may still be on its way when we are gone */
    _Atomic uint64_t before; /* the ticket that it waits for; 0: none, we are the first */
    _Atomic uint32_t turn;   /* sleeps here if there is no line */
    struct sqlite_helper *helper; /* NULL: never needed yet */
};

/* Stands in the line of `key`, if there is room for one, and waits until it is the first and has
 * the byte `lock`; until `until_us` (CLOCK_BOOTTIME) or the cancel. A first that does not act for
 * a second or two, although the name is free, is passed by.
 * 0: `place` is kept. EAGAIN the time is over, ECANCELED, ESTALE the file was replaced, ENOSPC
 * there is no line and no byte is wanted, or another errno: has left the line. */
int sqlite_chain_wait(struct sqlite_chain *chain, struct sqlite_side *side, uint64_t key,
    int64_t lock, uint64_t until_us, int cancel_fd);
/* Before a byte that was waited for is unlocked: a helper that is still about to get it would lock
 * it anew. */
void sqlite_chain_settle(struct sqlite_chain *chain);

/* Whether the name is free, although somebody living stands in line, and has been for more than a
 * second: then the line does not count. Notes when it was first seen free. */
int sqlite_chain_may_pass(struct sqlite_side *side, struct line *line, int64_t lock);

#endif
