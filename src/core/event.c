/* SPDX-License-Identifier: MIT */
/* event.c - see event.h. */
#include "core/event.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/keeper.h"
#include "core/lock.h"

int dblk_signal_fd_new(int *ret_fd)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return errno;
    *ret_fd = fd;
    return 0;
}

void dblk_signal_fd_raise(int fd)
{
    const uint64_t one = 1;
    int saved = errno;

    /* EAGAIN: the counter is full, so it is readable already */
    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        (void)0;
    errno = saved;
}

void dblk_signal_fd_lower(int fd)
{
    uint64_t count;
    int saved = errno;

    if (fd >= 0 && read(fd, &count, sizeof count) < 0)
        (void)0;
    errno = saved;
}

static void append(struct dblk_event_node **first, struct dblk_event_node **last,
    struct dblk_event_node *node)
{
    node->next = NULL;
    if (*last != NULL)
        (*last)->next = node;
    else
        *first = node;
    *last = node;
}

static void take_out(struct dblk_event_node **first, struct dblk_event_node **last,
    struct dblk_event_node *node)
{
    struct dblk_event_node *before = NULL;
    struct dblk_event_node *each = *first;

    while (each != NULL && each != node) {
        before = each;
        each = each->next;
    }
    if (each == NULL)
        return;
    if (before != NULL)
        before->next = node->next;
    else
        *first = node->next;
    if (*last == node)
        *last = before;
    node->next = NULL;
}

static void forget_node(dblock_client *client, struct dblk_event_node *node)
{
    if (node->kind != 0) {
        take_out(&client->notices_first, &client->notices_last, node);
        take_out(&client->events.first, &client->events.last, node);
        if (client->events.first == NULL)
            dblk_signal_fd_lower(client->events.fd);
    }
    node->kind = 0;
    dblk_release(node->error);
    node->error = NULL;
}

void dblk_event_tell(struct dblock_lock *lock, struct dblk_event_node *node, int32_t kind,
    int32_t cause, const struct dblock_error *error)
{
    dblock_client *client = lock->client;

    if (node->kind != 0) /* nobody has read it yet: what has come since is not to stand behind it */
        forget_node(client, node);
    node->lock = lock;
    node->kind = kind;
    node->cause = cause;
    node->deadline_us = dblk_lock_deadline(lock);
    if (error != NULL && error->status != DBLOCK_OK) {
        node->error = dblk_allocate(sizeof *node->error);
        if (node->error != NULL)
            *node->error = *error;
    }
    if (lock->on_event != NULL) {
        append(&client->notices_first, &client->notices_last, node);
        dblk_clock_due(client, 0);
        return;
    }
    if (client->events.first == NULL)
        dblk_signal_fd_raise(client->events.fd);
    append(&client->events.first, &client->events.last, node);
}

void dblk_event_forget(struct dblock_lock *lock)
{
    if (lock->lost.lock == NULL && lock->expiring.lock == NULL)
        return; /* nothing was ever told: RESTORED comes after EXPIRING only */
    forget_node(lock->client, &lock->lost);
    forget_node(lock->client, &lock->expiring);
    forget_node(lock->client, &lock->restored);
}

/* Copies what the node says and empties it, so that it may be queued again. */
static void unpack(struct dblk_event_node *node, struct dblock_event *event)
{
    memset(event, 0, sizeof *event);
    event->struct_size = sizeof *event;
    event->kind = node->kind;
    event->cause = node->cause;
    event->lock = node->lock;
    event->context = node->lock->context;
    if (node->kind == DBLOCK_EVENT_EXPIRING)
        event->remaining_ms = dblk_until(dblk_now_us(), node->deadline_us) / 1000;
    if (node->error != NULL)
        event->error = *node->error;
    dblk_release(node->error);
    node->error = NULL;
    node->kind = 0;
}

int dblk_event_call(dblock_client *client)
{
    struct dblk_event_node *node = client->notices_first;
    struct dblock_event event;
    dblock_event_fn on_event;

    if (node == NULL)
        return 0;
    take_out(&client->notices_first, &client->notices_last, node);
    unpack(node, &event);
    on_event = event.lock->on_event;
    client->pinned = event.lock;
    dblk_unlock_client(client);
    dblk_callback_begin();
    on_event(&event, event.context);
    dblk_callback_end();
    dblk_lock_client(client);
    client->pinned = NULL;
    (void)pthread_cond_broadcast(&client->changed);
    return 1;
}

dblock_status dblock_client_fd(dblock_client *client, int *ret_fd, struct dblock_error *reterr)
{
    dblock_status status = dblk_client_enter(client, reterr);
    int fault = 0;

    if (status != DBLOCK_OK)
        return status;
    if (ret_fd == NULL) {
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_fd: NULL");
        goto done;
    }
    dblk_lock_client(client);
    if (client->events.fd < 0) {
        fault = dblk_signal_fd_new(&client->events.fd);
        if (fault == 0 && client->events.first != NULL)
            dblk_signal_fd_raise(client->events.fd);
    }
    if (fault == 0)
        *ret_fd = client->events.fd;
    dblk_unlock_client(client);
    if (fault != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_SYSTEM, "raise the limit of open files",
            "cannot make a descriptor for events: %s", strerror(fault));
        dblock_error_native(reterr, fault, NULL, 1);
    }
done:
    dblk_client_leave(client);
    return status;
}

dblock_status dblock_client_next_event(dblock_client *client, struct dblock_event *ret_event)
{
    struct dblk_event_node *node;
    struct dblock_event event;
    size_t given_size;

    if (client == NULL || ret_event == NULL)
        return DBLOCK_E_ARGUMENT;
    if (dblk_is_forked(client))
        return DBLOCK_E_FORKED;
    memcpy(&given_size, ret_event, sizeof given_size);
    /* before the event is taken out of the queue */
    if (!dblk_struct_size_is_good(given_size))
        return DBLOCK_E_ARGUMENT;
    dblk_lock_client(client);
    node = client->events.first;
    if (node != NULL) {
        take_out(&client->events.first, &client->events.last, node);
        unpack(node, &event);
        if (client->events.first == NULL)
            dblk_signal_fd_lower(client->events.fd);
    }
    dblk_unlock_client(client);
    if (node == NULL)
        return DBLOCK_EMPTY;
    return dblk_struct_write(ret_event, &event, sizeof event, "ret_event", NULL);
}
