/* SPDX-License-Identifier: MIT */
/* waiter.c - see waiter.h. */
#include "core/waiter.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

void dblk_waiter_init(
    struct dblk_waiter *waiter, dblock_client *client, dblock_canceller *canceller)
{
    waiter->client = client;
    waiter->canceller = canceller;
    waiter->epoll_fd = -1;
}

/* The client keeps one for the next wait: to make it anew costs as much as the rest of what a
 * waiter does between the answer that he waited for and his return. */
void dblk_waiter_fini(struct dblk_waiter *waiter)
{
    int none = -1;

    if (waiter->epoll_fd < 0)
        return;
    if (epoll_ctl(waiter->epoll_fd, EPOLL_CTL_DEL, dblock_canceller_fd(waiter->canceller), NULL) !=
            0 ||
        !atomic_compare_exchange_strong(
            &waiter->client->spare_epoll_fd, &none, waiter->epoll_fd))
        (void)close(waiter->epoll_fd);
    waiter->epoll_fd = -1;
}

static int heed(int epoll_fd, int fd)
{
    struct epoll_event event;

    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Heeds the closing of the client, and `fd`. -1: it is not to be had. */
static int get_epoll(dblock_client *client, int fd)
{
    int epoll_fd = atomic_exchange(&client->spare_epoll_fd, -1);
    int is_ready = epoll_fd >= 0;

    if (!is_ready) {
        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        is_ready = epoll_fd >= 0 && heed(epoll_fd, client->stop_fd) == 0;
    }
    if (is_ready && heed(epoll_fd, fd) == 0)
        return epoll_fd;
    if (epoll_fd >= 0)
        (void)close(epoll_fd);
    return -1;
}

int dblk_waiter_fd(struct dblk_waiter *waiter)
{
    if (waiter->canceller == NULL)
        return waiter->client->stop_fd;
    if (waiter->epoll_fd < 0)
        waiter->epoll_fd = get_epoll(waiter->client, dblock_canceller_fd(waiter->canceller));
    /* without one more descriptor the canceller alone: close() then waits a little longer */
    return waiter->epoll_fd >= 0 ? waiter->epoll_fd : dblock_canceller_fd(waiter->canceller);
}

int dblk_waiter_short_fd(const struct dblk_waiter *waiter)
{
    return waiter->canceller != NULL ? dblock_canceller_fd(waiter->canceller)
                                     : waiter->client->stop_fd;
}

int dblk_waiter_verdict(const struct dblk_waiter *waiter)
{
    if (waiter->canceller != NULL && dblock_canceller_is_raised(waiter->canceller))
        return DBLK_EVENT_CANCELLED;
    return atomic_load(&waiter->client->is_closing) ? DBLK_EVENT_CLOSED : 0;
}

int dblk_waiter_pause(struct dblk_waiter *waiter, uint64_t until_us)
{
    struct pollfd descriptors[2] = { { waiter->client->stop_fd, POLLIN, 0 }, { -1, POLLIN, 0 } };
    int verdict = dblk_waiter_verdict(waiter);

    if (verdict != 0)
        return verdict;
    if (waiter->canceller != NULL)
        descriptors[1].fd = dblock_canceller_fd(waiter->canceller);
    (void)dblk_wait(descriptors, 2, until_us);
    verdict = dblk_waiter_verdict(waiter);
    return verdict != 0 ? verdict : DBLK_EVENT_PAUSED;
}
