/* SPDX-License-Identifier: MIT */
/* hearing.c - see hearing.h. */
#include "hearing.h"

void hear(const struct dblock_event *event, void *context)
{
    struct hearing *hearing = context;

    if (hearing->act != NULL)
        hearing->act(event, hearing);
    else
        hearing->lock = event->lock;
    if (event->kind == DBLOCK_EVENT_LOST) {
        atomic_store(&hearing->cause, event->cause);
        atomic_store(&hearing->was_held,
            event->lock != NULL && hearing->lock != NULL ? dblock_lock_is_held(event->lock) : 0);
        (void)atomic_fetch_add(&hearing->n_lost, 1);
    } else if (event->kind == DBLOCK_EVENT_EXPIRING) {
        atomic_store(&hearing->remaining_ms, event->remaining_ms);
        (void)atomic_fetch_add(&hearing->n_expiring, 1);
    } else if (event->kind == DBLOCK_EVENT_RESTORED) {
        (void)atomic_fetch_add(&hearing->n_restored, 1);
    } else {
        (void)atomic_fetch_add(&hearing->n_others, 1);
    }
}

int has_heard_lost(void *context)
{
    return atomic_load(&((struct hearing *)context)->n_lost) > 0;
}

dblock_lock *take_hearing(
    struct contract *contract, dblock_client *client, const char *name, struct hearing *hearing)
{
    struct dblock_options options = own_options(contract);

    if (hearing->ttl_ms == 0)
        hearing->ttl_ms = HEARING_TTL_MS;
    options.ttl_ms = hearing->ttl_ms;
    options.on_event = hear;
    options.context = hearing;
    hearing->client = client;
    return take_with(contract, client, name, &options);
}
