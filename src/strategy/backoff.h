/* SPDX-License-Identifier: MIT */
/* backoff.h - how long to pause before asking again: pure. */
#ifndef DBLK_BACKOFF_H
#define DBLK_BACKOFF_H

#include <stdint.h>

/* Pauses grow by half from `first_us` to `last_us`, and each is spread over its upper half by
 * `random`, so that a herd that was woken together does not come back together. */
static inline uint64_t dblk_backoff(
    unsigned n_pauses, uint64_t random, uint64_t first_us, uint64_t last_us)
{
    uint64_t pause_us = first_us;

    for (; n_pauses > 0 && pause_us < last_us; --n_pauses)
        pause_us += pause_us / 2;
    if (pause_us > last_us)
        pause_us = last_us;
    return pause_us / 2 + random % (pause_us / 2 + 1);
}

#endif
