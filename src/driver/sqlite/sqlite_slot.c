/* SPDX-License-Identifier: MIT */
/* sqlite_slot.c - reads and writes slots; see sqlite_slot.h. Failures leave a
 * holder without a slot, which is seen as "held, and not known by whom". */
#define _FILE_OFFSET_BITS 64

#include "sqlite_slot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT_SIZE 1024
#define N_SLOTS_MAX (1 << 20)
#define N_SLOTS_READ 32 /* in one go */

_Static_assert(sizeof(struct slot) <= SLOT_SIZE, "a slot must fit into its place");

static int64_t place_of(int64_t index)
{
    return SIDE_SLOTS_AT + index * SLOT_SIZE;
}

static uint64_t check_sum(const struct slot *slot)
{
    const unsigned char *bytes = (const unsigned char *)slot;
    uint64_t sum = UINT64_C(14695981039346656037);
    size_t i;

    for (i = sizeof slot->check; i < sizeof *slot; i += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * UINT64_C(1099511628211);
    }
    return sum;
}

static int reserve(struct slot_list *list)
{
    size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
    uint32_t *owned, *idle;

    if (list->n_owned < list->capacity)
        return 1;
    owned = realloc(list->owned, capacity * sizeof *owned);
    if (owned == NULL)
        return 0;
    list->owned = owned;
    idle = realloc(list->idle, capacity * sizeof *idle);
    if (idle == NULL)
        return 0;
    list->idle = idle;
    list->capacity = capacity;
    return 1;
}

static int is_owned(const struct slot_list *list, int64_t index)
{
    size_t low = 0;
    size_t high = list->n_owned;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->owned[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n_owned && list->owned[low] == index;
}

/* The first slot above those that are ours already, so that `owned` ascends. Slots of ours are
 * never given up before the connection ends, so there is nothing of ours above. */
int64_t sqlite_slot_claim(struct sqlite_side *side, struct slot_list *list)
{
    static const struct slot nothing;
    int64_t index = list->n_owned > 0 ? (int64_t)list->owned[list->n_owned - 1] + 1 : 0;
    int64_t end;

    if (list->n_idle > 0)
        return list->idle[--list->n_idle];
    if (!reserve(list))
        return -1;
    while (index < N_SLOTS_MAX && sqlite_side_lock(side, SIDE_SLOT_LOCKS + index) != 0) {
        if (sqlite_side_is_locked(side, SIDE_SLOT_LOCKS + index, &end) && end > SIDE_SLOT_LOCKS)
            index = end - SIDE_SLOT_LOCKS;
        else
            ++index;
    }
    if (index >= N_SLOTS_MAX)
        return -1;
    /* a dead holder's words must not be taken for ours */
    (void)(pwrite(side->fd, &nothing, sizeof nothing, place_of(index)) < 0);
    list->owned[list->n_owned++] = (uint32_t)index;
    return index;
}

void sqlite_slot_write(struct sqlite_side *side, int64_t index, struct slot *slot)
{
    slot->check = check_sum(slot);
    (void)(pwrite(side->fd, slot, sizeof *slot, place_of(index)) < 0);
}

void sqlite_slot_clear(struct sqlite_side *side, struct slot_list *list, int64_t index)
{
    const uint64_t wrong_check[2] = {0, 0};

    (void)(pwrite(side->fd, wrong_check, sizeof wrong_check, place_of(index)) < 0);
    list->idle[list->n_idle++] = (uint32_t)index;
}

void sqlite_slot_list_free(struct slot_list *list)
{
    free(list->owned);
    free(list->idle);
    memset(list, 0, sizeof *list);
}

static int is_in_use(
    struct sqlite_side *side, const struct slot_list *list, const struct slot *slot, int64_t index)
{
    if (slot->offset == 0 || slot->check != check_sum(slot))
        return 0;
    if (is_owned(list, index))
        return 1;
    return sqlite_side_is_locked(side, SIDE_SLOT_LOCKS + index, NULL) &&
           sqlite_side_is_locked(side, slot->offset, NULL);
}

void sqlite_slot_each(
    struct sqlite_side *side, const struct slot_list *list, slot_fn fn, void *context)
{
    unsigned char places[N_SLOTS_READ * SLOT_SIZE];
    struct slot slot;
    int64_t index = 0;
    ssize_t n_read;
    int64_t i;

    do {
        n_read = pread(side->fd, places, sizeof places, place_of(index));
        for (i = 0; n_read > 0 && i * SLOT_SIZE < n_read; ++i) {
            /* the last one need not fill its place */
            if (n_read - i * SLOT_SIZE < (ssize_t)sizeof slot)
                break;
            memcpy(&slot, places + i * SLOT_SIZE, sizeof slot);
            slot.name[sizeof slot.name - 1] = 0;
            slot.label[sizeof slot.label - 1] = 0;
            slot.host[sizeof slot.host - 1] = 0;
            if (is_in_use(side, list, &slot, index + i) && fn(&slot, index + i, context) != 0)
                return;
        }
        index += N_SLOTS_READ;
    } while (n_read == (ssize_t)sizeof places);
}
