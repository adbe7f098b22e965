/* SPDX-License-Identifier: MIT */
/* place.c - see place.h. */
#include "core/place.h"

#include <string.h>

#include "core/link.h"
#include "core/lock.h"
#include "core/trace.h"

dblock_status dblk_place_refuse(const char *name, struct dblock_error *error)
{
    return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
        "use a URL that leads to the server directly, or leave DBLOCK_FAIR out",
        "nobody can be woken over this connection, so lock \"%s\" cannot be waited for in order "
        "of arrival", name);
}

static struct dblk_link *borrow(dblock_client *client, uint64_t now_us)
{
    struct dblk_link *link;

    dblk_lock_client(client);
    while ((link = client->idle_places) != NULL) {
        client->idle_places = link->next;
        --client->n_idle_places;
        link->next = NULL;
        dblk_unlock_client(client);
        if (dblk_link_is_good(client, link, now_us)) {
            link->is_reused = 1;
            return link;
        }
        dblk_link_close(client, link, DBLOCK_CLOSE_ABORT);
        dblk_lock_client(client);
    }
    dblk_unlock_client(client);
    return NULL;
}

static void drop_dead(struct dblk_place *place, dblock_client *client)
{
    if (client->driver->connection.is_alive(place->link->connection))
        return;
    dblk_link_close(client, place->link, DBLOCK_CLOSE_ABORT);
    place->link = NULL;
    place->is_standing = 0;
}

dblock_status dblk_place_stand(struct dblk_place *place, struct dblk_waiter *waiter,
    const dblock_lock *lock, int is_fair, uint64_t wait_us, uint64_t *now_us,
    struct dblock_answer *answer, struct dblock_error *error)
{
    dblock_client *client = waiter->client;
    struct dblock_call call = { 0, dblk_waiter_fd(waiter) };
    uint64_t end_us = dblk_later(*now_us, wait_us);
    dblock_status status = DBLOCK_OK;

    if (place->link == NULL)
        place->link = borrow(client, *now_us);
    if (place->link == NULL) {
        status = dblk_link_open(client, DBLOCK_ROLE_LINE, dblk_later(end_us, client->settings.io_us),
            call.cancel_fd, &place->link, error);
        *now_us = dblk_now_us();
    }
    if (status != DBLOCK_OK)
        return status;
    call.deadline_us = dblk_later(end_us, client->settings.io_us);
    status = client->driver->line.stand(place->link->connection, &call, lock->strategy->id,
        &lock->subject, dblk_until(*now_us, end_us), is_fair, answer, error);
    *now_us = dblk_now_us();
    place->link->heard_us = *now_us;
    place->is_standing = status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES;
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_NO &&
        !atomic_exchange(&client->has_no_line, 1))
        dblk_trace(client, DBLOCK_TRACE_WAIT, DBLOCK_OK, lock->subject.name,
            "nothing can wake a waiter over this connection: it looks from time to time", 0,
            *now_us);
    drop_dead(place, client);
    return status;
}

dblock_status dblk_place_rest(struct dblk_place *place, struct dblk_waiter *waiter,
    const char *owner, uint64_t until_us, uint64_t *now_us, struct dblock_answer *answer,
    struct dblock_error *error)
{
    dblock_client *client = waiter->client;
    struct dblock_call call = { until_us, dblk_waiter_fd(waiter) };
    dblock_status status =
        client->driver->line.rest(place->link->connection, &call, owner, answer, error);

    *now_us = dblk_now_us();
    if (status != DBLOCK_OK || answer->outcome == DBLOCK_ANSWER_AGAIN)
        place->is_standing = 0;
    drop_dead(place, client);
    return status;
}

void dblk_place_leave(struct dblk_place *place, dblock_client *client, uint64_t now_us)
{
    struct dblk_link *link = place->link;

    if (link == NULL)
        return;
    if (place->is_standing)
        client->driver->line.leave(link->connection);
    drop_dead(place, client);
    if (place->link == NULL)
        return;
    place->link = NULL;
    place->is_standing = 0;
    link->heard_us = now_us;
    dblk_lock_client(client);
    if (client->n_idle_places < client->settings.connections_max &&
        !atomic_load(&client->is_closing)) {
        link->next = client->idle_places;
        client->idle_places = link;
        ++client->n_idle_places;
        link = NULL;
    }
    dblk_unlock_client(client);
    dblk_link_close(client, link, DBLOCK_CLOSE_POLITE);
}
