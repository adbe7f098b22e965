/* SPDX-License-Identifier: MIT */
/* seat.c - see seat.h. */
#include "core/seat.h"

#include <unistd.h>

#include "core/event.h"

enum { N_SPARE = 16 }; /* more than these are closed: a crowd is rare, and descriptors are few */

static void close_seat(struct dblk_seat *seat)
{
    (void)close(seat->fd);
    dblk_release(seat);
}

struct dblk_seat *dblk_seat_take(dblock_client *client)
{
    struct dblk_seat *seat = client->seats;

    if (seat != NULL) {
        client->seats = seat->next;
        --client->n_seats;
        seat->next = NULL;
        dblk_signal_fd_lower(seat->fd);
        return seat;
    }
    seat = dblk_allocate(sizeof *seat);
    if (seat == NULL)
        return NULL;
    atomic_init(&seat->n_calls, 0);
    if (dblk_signal_fd_new(&seat->fd) == 0)
        return seat;
    dblk_release(seat);
    return NULL;
}

void dblk_seat_put(dblock_client *client, struct dblk_seat *seat)
{
    if (client->n_seats >= N_SPARE && atomic_load(&seat->n_calls) == 0) {
        close_seat(seat);
        return;
    }
    seat->next = client->seats;
    client->seats = seat;
    ++client->n_seats;
}

void dblk_seat_promise(struct dblk_seat *seat)
{
    atomic_fetch_add(&seat->n_calls, 1);
}

void dblk_seat_call(struct dblk_seat *seat)
{
    dblk_signal_fd_raise(seat->fd);
    atomic_fetch_sub(&seat->n_calls, 1);
}

void dblk_seats_fini(dblock_client *client)
{
    while (client->seats != NULL) {
        struct dblk_seat *seat = client->seats;

        client->seats = seat->next;
        close_seat(seat);
    }
}
