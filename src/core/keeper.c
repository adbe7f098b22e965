/* SPDX-License-Identifier: MIT */
/* keeper.c - the two threads of a client, and waking them. What they do is in
 * keeper_work.c and the files beside it. */
#define _GNU_SOURCE /* EPOLLRDHUP */

#include "core/keeper.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/borrowed.h"
#include "core/channel.h"
#include "core/keeper_work.h"
#include "core/link.h"
#include "core/lock.h"

#define WAKE_ID UINT64_C(0) /* of the wake descriptor in the epoll set; channels count from 1 */

int dblk_is_clock(const dblock_client *client)
{
    return client->keeper.is_running &&
        pthread_equal(client->keeper.clock_thread, pthread_self());
}

void dblk_clock_due(dblock_client *client, uint64_t at_us)
{
    if (at_us >= client->keeper.clock_us)
        return;
    client->keeper.clock_us = 0;
    dblk_signal_fd_raise(client->keeper.wake_fd);
}

void dblk_keeper_due(dblock_client *client, uint64_t at_us)
{
    if (at_us >= client->keeper.work_us)
        return;
    client->keeper.work_us = 0;
    (void)pthread_cond_signal(&client->keeper.work);
}

void dblk_keeper_watch(dblock_client *client, struct dblk_channel *channel)
{
    struct epoll_event event;
    int fd = client->driver->connection.fd(channel->link->connection);

    /* Only the hang-up: readable it is at each of its answers. A channel that cannot be watched is
     * found out by the next ping. */
    memset(&event, 0, sizeof event);
    event.events = EPOLLRDHUP | EPOLLONESHOT;
    event.data.u64 = channel->id;
    if (fd >= 0)
        (void)epoll_ctl(client->keeper.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void mark_suspect(dblock_client *client, uint64_t id)
{
    struct dblk_channel *channel;

    for (channel = client->channels; channel != NULL; channel = channel->next)
        if (channel->id == id) {
            channel->suspect_us = dblk_now_us();
            dblk_keeper_due(client, 0);
        }
}

/* The mutex is given up meanwhile. */
static void rest_clock(dblock_client *client, uint64_t until_us)
{
    struct pollfd descriptor = { client->keeper.epoll_fd, POLLIN, 0 };
    struct epoll_event events[16];
    int n_events;
    int i;

    client->keeper.clock_us = until_us;
    dblk_unlock_client(client);
    (void)dblk_wait(&descriptor, 1, until_us);
    dblk_lock_client(client);
    n_events = epoll_wait(client->keeper.epoll_fd, events, 16, 0);
    for (i = 0; i < n_events; ++i)
        if (events[i].data.u64 == WAKE_ID)
            dblk_signal_fd_lower(client->keeper.wake_fd);
        else
            mark_suspect(client, events[i].data.u64);
    client->keeper.clock_us = 0;
}

static void *run_clock(void *context)
{
    dblock_client *client = context;

    dblk_lock_client(client);
    while (!client->keeper.is_stopping) {
        uint64_t next_us = dblk_keeper_deadlines(client, dblk_now_us());

        if (!dblk_event_call(client))
            rest_clock(client, next_us);
    }
    while (dblk_event_call(client)) /* each grant that was lost is told */
        continue;
    dblk_unlock_client(client);
    return NULL;
}

static void rest_work(dblock_client *client, uint64_t until_us)
{
    client->keeper.work_us = until_us;
    dblk_wait_condition(&client->keeper.work, &client->mutex, until_us);
    client->keeper.work_us = 0;
}

static void *run_work(void *context)
{
    dblock_client *client = context;

    dblk_lock_client(client);
    while (!client->keeper.is_stopping)
        if (!dblk_keeper_step(client))
            rest_work(client, dblk_keeper_next(client));
    dblk_unlock_client(client);
    return NULL;
}

int dblk_keeper_start(dblock_client *client)
{
    struct dblk_keeper *keeper = &client->keeper;
    sigset_t all, before;
    int fault;

    if (keeper->is_running || atomic_load(&client->is_closing))
        return 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    fault = pthread_create(&keeper->clock_thread, NULL, run_clock, client);
    if (fault == 0 && dblk_has_keeper(client)) {
        fault = pthread_create(&keeper->work_thread, NULL, run_work, client);
        if (fault != 0) {
            keeper->is_stopping = 1;
            dblk_signal_fd_raise(keeper->wake_fd);
            dblk_unlock_client(client);
            (void)pthread_join(keeper->clock_thread, NULL);
            dblk_lock_client(client);
            keeper->is_stopping = 0;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    keeper->is_running = fault == 0;
    return fault;
}

dblock_status dblk_keeper_ensure(dblock_client *client, struct dblock_error *reterr)
{
    dblock_status status;
    int fault;

    if (atomic_load_explicit(&client->keeper.is_running, memory_order_relaxed))
        return DBLOCK_OK; /* it runs until the close, which refuses this call by itself */
    dblk_lock_client(client);
    fault = dblk_keeper_start(client);
    dblk_unlock_client(client);
    if (fault == 0)
        return DBLOCK_OK;
    status = dblock_error_set(reterr, DBLOCK_E_SYSTEM, "raise the limit of processes or of memory",
        "cannot start the keeper's threads: %s", strerror(fault));
    dblock_error_native(reterr, fault, NULL, 1);
    return status;
}

void dblk_keeper_stop(dblock_client *client)
{
    struct dblk_keeper *keeper = &client->keeper;

    dblk_lock_client(client);
    if (!keeper->is_running) {
        dblk_unlock_client(client);
        return;
    }
    keeper->is_stopping = 1;
    dblk_signal_fd_raise(keeper->wake_fd);
    (void)pthread_cond_signal(&keeper->work);
    dblk_unlock_client(client);
    if (dblk_has_keeper(client))
        (void)pthread_join(keeper->work_thread, NULL);
    (void)pthread_join(keeper->clock_thread, NULL);
    dblk_lock_client(client);
    keeper->is_running = 0;
    dblk_unlock_client(client);
}
