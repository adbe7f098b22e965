/* SPDX-License-Identifier: MIT */
/* sqlite_bell.h - a word of memory, shared between processes or not, that a thread
 * sleeps on until somebody changes it. */
#ifndef DBLK_SQLITE_BELL_H
#define DBLK_SQLITE_BELL_H

#include <stdatomic.h>
#include <stdint.h>

#define SQLITE_BELL_ALL UINT32_MAX

struct sqlite_bell {
    _Atomic uint32_t *word; /* counts */
    uint32_t bits;          /* who sleeps on it, and who is woken: those that have one in common */
};

void sqlite_bell_ring(struct sqlite_bell bell);
/* Sleeps while the word is `heard`, for so long at most. May return early. */
void sqlite_bell_sleep(struct sqlite_bell bell, uint32_t heard, uint64_t duration_us);

#endif
