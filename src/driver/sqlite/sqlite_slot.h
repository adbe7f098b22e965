/* SPDX-License-Identifier: MIT */
/* sqlite_slot.h - what holders of row and advisory locks say of themselves in the
 * side file, for busy answers and listings. Exclusion never depends on it.
 *
 * A slot belongs to the connection that has its byte locked, so a dead holder's
 * slot is nobody's and is used again. It is believed only while that byte and the
 * name's own byte are locked, and its check sum is right (a reader may come in the
 * middle of a write). */
#ifndef DBLK_SQLITE_SLOT_H
#define DBLK_SQLITE_SLOT_H

#include "sqlite_side.h"

struct slot {
    uint64_t check; /* of all that follows */
    int64_t offset; /* byte of the name; 0: holds nothing just now */
    int64_t since_us;
    int64_t token; /* 0: none drawn on this connection */
    int64_t pid;
    int64_t number; /* advisory id, or the hash of the name */
    int32_t strategy;
    int32_t reserved;
    unsigned char owner[DBLOCK_ID_SIZE];
    char name[256];
    char label[128];
    char host[256];
};

/* The slots that a connection owns: taken when needed, kept for the next grant. */
struct slot_list {
    uint32_t *owned; /* all, ascending as they were taken */
    size_t n_owned;
    uint32_t *idle; /* those of them that are not in use */
    size_t n_idle;
    size_t capacity; /* of both */
};

/* A slot of ours that is not in use, or -1: then the grant goes without. */
int64_t sqlite_slot_claim(struct sqlite_side *side, struct slot_list *list);
void sqlite_slot_write(struct sqlite_side *side, int64_t index, struct slot *slot);
/* Says that it holds nothing; the slot stays ours. */
void sqlite_slot_clear(struct sqlite_side *side, struct slot_list *list, int64_t index);
void sqlite_slot_list_free(struct slot_list *list);

/* The kernel does not show a connection its own locks. */
/* Calls `fn` for each slot that holds something now, until it answers non-zero. `list` has the
 * caller's own, whose locks the kernel does not show it. */
typedef int (*slot_fn)(const struct slot *slot, int64_t index, void *context);
void sqlite_slot_each(
    struct sqlite_side *side, const struct slot_list *list, slot_fn fn, void *context);

#endif
