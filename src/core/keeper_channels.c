/* SPDX-License-Identifier: MIT */
/* keeper_channels.c - proving the connections that hold row and advisory locks. */
#include <string.h>

#include "core/channel.h"
#include "core/keeper_work.h"
#include "core/link.h"

enum { SUSPECT_AGAIN_US = 10000 };

static int is_due(const struct dblk_channel *channel, uint64_t now_us)
{
    return (channel->suspect_us != 0 && now_us >= channel->suspect_us) ||
        (channel->n_locks > 0 && now_us >= channel->next_ping_us);
}

int dblk_keeper_ping(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    struct dblk_channel *channel = client->channels;
    struct dblock_call call;
    struct dblock_answer answer;
    struct dblock_error error;
    uint64_t sent_us;
    dblock_status status;

    while (channel != NULL && !is_due(channel, now_us))
        channel = channel->next;
    if (channel == NULL)
        return 0;
    ++channel->n_refs;
    channel->next_ping_us = dblk_later(now_us, client->settings.ttl_us / 3);
    if (pthread_mutex_trylock(&channel->use) != 0) {
        /* Its owner is at work with it: look again a little later. He sees its state by that, but
         * not an end that comes right behind his answer; that is told once, and this answer, taken
         * for a proof, would put off the next ping. So the suspicion stays until it is looked into. */
        channel->next_ping_us = dblk_later(now_us, client->settings.ttl_us / 32 + 1000);
        if (channel->suspect_us != 0)
            channel->suspect_us = now_us + SUSPECT_AGAIN_US;
        dblk_channel_unref(channel);
        return 1;
    }
    channel->suspect_us = 0;
    dblk_unlock_client(client); /* in the list while `use` was taken: its link is there */

    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    call.deadline_us = dblk_sooner(limit_us, dblk_later(now_us, client->settings.ttl_us / 4));
    call.cancel_fd = client->stop_fd;
    sent_us = dblk_now_us();
    status = client->driver->connection.ping(channel->link->connection, &call, &answer, &error);
    (void)pthread_mutex_unlock(&channel->use);

    dblk_lock_client(client);
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES &&
        dblk_now_us() < atomic_load(&channel->deadline_us))
        dblk_channel_proved(client, channel, sent_us);
    else if (status == DBLOCK_OK) /* gone, or proved after its deadline: too late to be believed */
        dblk_channel_lose(client, channel, NULL);
    else if (!dblk_channel_is_alive(client, channel) ||
        dblk_now_us() >= atomic_load(&channel->deadline_us))
        dblk_channel_lose(client, channel, &error);
    else
        channel->next_ping_us = dblk_later(dblk_now_us(), client->settings.ttl_us / 32 + 1000);
    dblk_channel_unref(channel);
    return 1;
}
