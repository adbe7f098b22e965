/* SPDX-License-Identifier: MIT */
/* channel.c - see channel.h.
 *
 * A connection that is closed by one side alone may live on at the other. So
 * the deadline here and the server's idle limit (set by the driver from the
 * same ttl) are two halves of one bound: the holder stops believing no later
 * than the server frees. */
#include "core/channel.h"

#include <string.h>

#include "core/borrowed.h"
#include "core/heartbeat.h"
#include "core/keeper.h"
#include "core/link.h"
#include "core/lock.h"

#define BORROWED_LONG_US (UINT64_C(3660) * 86400 * 1000000)

static struct dblk_channel *find_idle(dblock_client *client, int role)
{
    struct dblk_channel *channel;

    for (channel = client->channels; channel != NULL; channel = channel->next)
        if (channel->role == role && channel->is_idle)
            return channel;
    return NULL;
}

static DBLOCK_COLD_ dblock_status open_channel(dblock_client *client, int role, uint64_t deadline_us,
    int cancel_fd, struct dblk_channel **ret_channel, struct dblock_error *reterr)
{
    struct dblk_channel *channel = dblk_allocate(sizeof *channel);
    dblock_status status;

    if (channel == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    status = dblk_link_open(client, role, deadline_us, cancel_fd, &channel->link, reterr);
    if (status != DBLOCK_OK) {
        dblk_release(channel);
        return status;
    }
    channel->role = role;
    channel->is_borrowed = dblk_is_borrowed(client, role);
    (void)pthread_mutex_init(&channel->use, NULL);
    channel->n_refs = 2; /* the list and the caller */
    channel->n_locks = 1;
    channel->next_ping_us = DBLK_NEVER;
    dblk_lock_client(client);
    channel->id = ++client->next_channel_id;
    channel->next = client->channels;
    client->channels = channel;
    if (!channel->is_borrowed)
        dblk_keeper_watch(client, channel);
    dblk_unlock_client(client);
    *ret_channel = channel;
    return DBLOCK_OK;
}

/* An idle channel, unless the server closed it meanwhile. */
static struct dblk_channel *borrow(dblock_client *client, int role, uint64_t now_us)
{
    struct dblk_channel *channel;
    int is_good;

    dblk_lock_client(client);
    while ((channel = find_idle(client, role)) != NULL) {
        channel->is_idle = 0;
        ++channel->n_refs;
        ++channel->n_locks;
        dblk_unlock_client(client);
        /* the keeper, which may have been looking at it just now, may have found it dead */
        is_good = dblk_channel_use(channel) != NULL &&
            dblk_link_is_good(client, channel->link, now_us);
        dblk_channel_unuse(channel);
        if (is_good)
            return channel;
        dblk_lock_client(client);
        --channel->n_locks;
        dblk_channel_lose(client, channel, NULL);
        dblk_channel_unref(channel);
    }
    dblk_unlock_client(client);
    return NULL;
}

static struct dblk_channel *join_shared(dblock_client *client)
{
    struct dblk_channel *channel;

    dblk_lock_client(client);
    channel = client->shared;
    if (channel != NULL) {
        ++channel->n_refs;
        ++channel->n_locks;
    }
    dblk_unlock_client(client);
    return channel;
}

static DBLOCK_COLD_ void make_shared(dblock_client *client, struct dblk_channel *channel)
{
    dblk_lock_client(client);
    /* two first tries at once: the second one's channel stays that lock's own */
    if (client->shared == NULL) {
        client->shared = channel;
        ++channel->n_refs;
    }
    dblk_unlock_client(client);
}

dblock_status dblk_channel_get(dblock_client *client, int strategy, int is_waiting,
    uint64_t *now_us, uint64_t deadline_us, int cancel_fd, struct dblk_channel **ret_channel, struct dblock_error *reterr)
{
    int role = strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY;
    /* the server's session is one: two channels over it would not exclude each other */
    int is_one = dblk_is_borrowed(client, role) && !client->borrowing.has_own_locks;
    int is_shared = strategy == DBLOCK_ADVISORY && (!is_waiting || is_one);
    struct dblk_channel *channel = is_shared ? join_shared(client) : borrow(client, role, *now_us);
    dblock_status status = DBLOCK_OK;

    if (channel == NULL) {
        status = open_channel(client, role, deadline_us, cancel_fd, &channel, reterr);
        *now_us = dblk_now_us();
        if (status == DBLOCK_OK && is_shared)
            make_shared(client, channel);
    }
    if (status == DBLOCK_OK)
        *ret_channel = channel;
    return status;
}

static unsigned count_idle(dblock_client *client, int role)
{
    struct dblk_channel *channel;
    unsigned n_idle = 0;

    for (channel = client->channels; channel != NULL; channel = channel->next)
        n_idle += channel->role == role && channel->is_idle;
    return n_idle;
}

void dblk_channel_put(dblock_client *client, struct dblk_channel *channel)
{
    dblk_lock_client(client);
    dblk_channel_put_locked(client, channel);
    dblk_unlock_client(client);
}

void dblk_channel_put_locked(dblock_client *client, struct dblk_channel *channel)
{
    if (channel == NULL)
        return;
    --channel->n_locks;
    if (!channel->is_dead && !dblk_channel_is_alive(client, channel))
        dblk_channel_lose(client, channel, NULL);
    if (!channel->is_dead && channel->n_locks == 0) {
        channel->next_ping_us = DBLK_NEVER;
        atomic_store(&channel->deadline_us, 0); /* the next lock here is not to end with the last */
        if (channel == client->shared)
            ; /* stays for the next try */
        else if (count_idle(client, channel->role) < client->settings.connections_max &&
            !atomic_load(&client->is_closing))
            channel->is_idle = 1;
        else
            dblk_channel_lose(client, channel, NULL);
    }
    dblk_channel_unref(channel);
}

int dblk_channel_is_alive(const dblock_client *client, const struct dblk_channel *channel)
{
    return !channel->is_dead && dblk_link_is_alive(client, channel->link);
}

struct dblock_connection *dblk_channel_use(struct dblk_channel *channel)
{
    (void)pthread_mutex_lock(&channel->use);
    return channel->link != NULL ? channel->link->connection : NULL;
}

void dblk_channel_unuse(struct dblk_channel *channel)
{
    (void)pthread_mutex_unlock(&channel->use);
}

void dblk_channel_lose(
    dblock_client *client, struct dblk_channel *channel, const struct dblock_error *error)
{
    struct dblk_channel **link = &client->channels;
    struct dblock_lock *lock = client->held.first;

    if (channel->is_dead)
        return;
    channel->is_dead = 1;
    channel->is_idle = 0;
    atomic_store(&channel->deadline_us, 0);
    while (lock != NULL) {
        struct dblock_lock *next = lock->next;

        if (lock->channel == channel)
            dblk_lock_lose(lock, DBLOCK_CAUSE_CONNECTION, error);
        lock = next;
    }
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    if (client->shared == channel) {
        client->shared = NULL;
        --channel->n_refs;
    }
    /* the list's reference goes with it: closing may send, so the keeper does it */
    channel->next = client->buried;
    client->buried = channel;
    dblk_keeper_due(client, 0);
}

int dblk_channel_bury(dblock_client *client, int is_last)
{
    struct dblk_channel **place = &client->buried;
    struct dblk_channel *channel;
    struct dblk_link *link;

    for (; (channel = *place) != NULL; place = &channel->next)
        if (!is_last && !dblk_may_touch(client, channel))
            continue;
        else if (pthread_mutex_trylock(&channel->use) == 0)
            break;
        else if (is_last) {
            /* at work until its deadline at most; both mutexes in their order */
            ++channel->n_refs;
            dblk_unlock_client(client);
            (void)pthread_mutex_lock(&channel->use);
            dblk_lock_client(client);
            --channel->n_refs;
            break;
        }
    if (channel == NULL)
        return 0;
    for (place = &client->buried; *place != channel; place = &(*place)->next)
        ;
    *place = channel->next;
    link = channel->link;
    channel->link = NULL;
    (void)pthread_mutex_unlock(&channel->use);
    dblk_unlock_client(client);
    dblk_link_close(client, link, DBLOCK_CLOSE_ABORT);
    dblk_lock_client(client);
    dblk_channel_unref(channel);
    return 1;
}

void dblk_channel_unref(struct dblk_channel *channel)
{
    if (--channel->n_refs > 0)
        return;
    (void)pthread_mutex_destroy(&channel->use);
    dblk_release(channel);
}

void dblk_channel_proved(dblock_client *client, struct dblk_channel *channel, uint64_t sent_us)
{
    /* nothing proves the application's: what it holds is believed until a call finds out */
    uint64_t deadline_us = channel->is_borrowed
        ? dblk_later(sent_us, BORROWED_LONG_US)
        : dblk_belief_end(sent_us, client->settings.ttl_us);

    if (channel->is_dead)
        return;
    if (deadline_us > atomic_load(&channel->deadline_us))
        dblk_publish(&channel->deadline_us, deadline_us);
    if (channel->n_locks > 0 && !channel->is_borrowed) {
        channel->next_ping_us = dblk_later(sent_us, client->settings.ttl_us / 3);
        dblk_keeper_due(client, channel->next_ping_us);
    }
}

void dblk_channels_close(dblock_client *client, int how)
{
    struct dblk_channel *channel;

    if (how == DBLOCK_CLOSE_FORKED) {
        while ((channel = client->channels) != NULL) {
            client->channels = channel->next;
            dblk_link_close(client, channel->link, how);
            dblk_release(channel);
        }
        return;
    }
    dblk_lock_client(client);
    while (client->channels != NULL)
        dblk_channel_lose(client, client->channels, NULL);
    while (dblk_channel_bury(client, 1))
        continue;
    dblk_unlock_client(client);
}

static void free_list(dblock_client *client, struct dblk_channel *channel, int how)
{
    while (channel != NULL) {
        struct dblk_channel *next = channel->next;

        dblk_link_close(client, channel->link, how);
        if (how != DBLOCK_CLOSE_FORKED)
            (void)pthread_mutex_destroy(&channel->use);
        dblk_release(channel);
        channel = next;
    }
}

void dblk_channels_fini(dblock_client *client)
{
    int how = dblk_is_forked(client) ? DBLOCK_CLOSE_FORKED : DBLOCK_CLOSE_ABORT;

    free_list(client, client->channels, how);
    free_list(client, client->buried, how);
    client->channels = client->buried = NULL;
}
