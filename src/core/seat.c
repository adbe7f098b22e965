/* SPDX-License-Identifier: MIT */
/* seat.c - see seat.h. */
#include "core/seat.h"

#include <unistd.h>

#include "core/event.h"

enum { N_SPARE = 16 }; /* more than these are closed: a crowd is rare, and descriptors are few */

static void close_seat(struct dblk_seat *seat)
{
    if (seat->fd >= 0)
        (void)close(seat->fd);
    (void)pthread_cond_destroy(&seat->called);
    dblk_release(seat);
}

static struct dblk_seat *make_seat(void)
{
    struct dblk_seat *seat = dblk_allocate(sizeof *seat);

    if (seat == NULL)
        return NULL;
    seat->fd = -1;
    atomic_init(&seat->is_polled, 0);
    atomic_init(&seat->n_calls, 0);
    if (dblk_condition_init(&seat->called) == 0)
        return seat;
    dblk_release(seat);
    return NULL;
}

static struct dblk_seat *take_any(dblock_client *client)
{
    struct dblk_seat *seat = client->seats;

    if (seat == NULL)
        return make_seat();
    client->seats = seat->next;
    --client->n_seats;
    seat->next = NULL;
    return seat;
}

struct dblk_seat *dblk_seat_take(dblock_client *client, int has_canceller)
{
    struct dblk_seat *seat = take_any(client);

    if (seat == NULL)
        return NULL;
    if (has_canceller && seat->fd < 0 && dblk_signal_fd_new(&seat->fd) != 0) {
        dblk_seat_put(client, seat);
        return NULL;
    }
    atomic_store(&seat->is_polled, has_canceller);
    dblk_seat_clear(seat);
    return seat;
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

void dblk_seat_clear(struct dblk_seat *seat)
{
    if (atomic_load(&seat->is_polled))
        dblk_signal_fd_lower(seat->fd);
}

void dblk_seat_rest(dblock_client *client, struct dblk_seat *seat,
    const dblock_canceller *canceller, uint64_t until_us)
{
    struct pollfd descriptors[3] = { { seat->fd, POLLIN, 0 }, { client->stop_fd, POLLIN, 0 },
        { -1, POLLIN, 0 } };

    if (!atomic_load(&seat->is_polled)) {
        dblk_wait_condition(&seat->called, &client->mutex, until_us);
        return;
    }
    descriptors[2].fd = dblock_canceller_fd(canceller);
    dblk_unlock_client(client);
    (void)dblk_wait(descriptors, 3, until_us);
    dblk_lock_client(client);
}

void dblk_seat_rouse(struct dblk_seat *seat)
{
    (void)pthread_cond_signal(&seat->called);
}

void dblk_seat_promise(struct dblk_seat *seat)
{
    atomic_fetch_add(&seat->n_calls, 1);
}

void dblk_seat_call(struct dblk_seat *seat)
{
    if (atomic_load(&seat->is_polled))
        dblk_signal_fd_raise(seat->fd);
    else
        (void)pthread_cond_signal(&seat->called);
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
