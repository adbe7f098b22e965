/* SPDX-License-Identifier: MIT */
/* keeper_work.c - the order of the keeper's work, deadlines, and its link. The
 * pieces themselves are in keeper_sessions.c, keeper_channels.c and
 * keeper_orphans.c. */
#include "core/keeper_work.h"

#include <string.h>

#include "core/borrowed.h"
#include "core/breaking.h"
#include "core/channel.h"
#include "core/link.h"
#include "core/lock.h"
#include "core/session.h"

enum { PURGE_EVERY_US = 60 * 1000000 };

/* EXPIRING when no more than expiring_us are left, RESTORED when there is more again. */
static uint64_t announce(dblock_lock *lock, uint64_t now_us, uint64_t deadline_us)
{
    uint64_t warn_us;

    if (lock->expiring_us == 0)
        return deadline_us;
    warn_us = dblk_until(lock->expiring_us, deadline_us); /* that much before it */
    if (now_us >= warn_us && !lock->is_announced) {
        lock->is_announced = 1;
        if (lock->session != NULL)
            lock->session->is_announced = 1;
        dblk_event_tell(lock, &lock->expiring, DBLOCK_EVENT_EXPIRING, DBLOCK_CAUSE_DEADLINE, NULL);
    } else if (now_us < warn_us && lock->is_announced) {
        lock->is_announced = 0;
        dblk_event_tell(lock, &lock->restored, DBLOCK_EVENT_RESTORED, DBLOCK_CAUSE_NONE, NULL);
    }
    return lock->is_announced ? deadline_us : warn_us;
}

uint64_t dblk_keeper_deadlines(dblock_client *client, uint64_t now_us)
{
    struct dblk_session *session = client->sessions;
    struct dblk_channel *channel;
    dblock_lock *lock;
    uint64_t next_us = DBLK_NEVER;
    uint64_t deadline_us;

    for (; session != NULL; session = session->next)
        if (session->state == DBLK_SESSION_ALIVE) {
            if (dblk_heartbeat_check(&session->beat, now_us) == DBLK_BEAT_LOST)
                dblk_session_lose(client, session, DBLOCK_CAUSE_DEADLINE, NULL);
            else
                next_us = dblk_sooner(next_us, session->beat.deadline_us);
        }
    for (channel = client->channels; channel != NULL;) {
        struct dblk_channel *next = channel->next;

        deadline_us = atomic_load(&channel->deadline_us);
        /* whatever it answers later: those who were told cannot be untold */
        if (channel->n_locks > 0 && deadline_us != 0 && now_us >= deadline_us)
            dblk_channel_lose(client, channel, NULL);
        channel = next;
    }
    for (lock = client->held.first; lock != NULL;) {
        dblock_lock *next = lock->next;

        if (!dblk_lock_expire(lock, now_us))
            next_us = dblk_sooner(next_us, announce(lock, now_us, dblk_lock_deadline(lock)));
        lock = next;
    }
    return next_us;
}

/* Until when other work may keep the next heartbeat waiting: an eighth of its ttl beyond its time,
 * and never less than a round trip over a bad line. */
static uint64_t find_patience(dblock_client *client, uint64_t now_us)
{
    struct dblk_session *session;
    uint64_t patience_us = DBLK_NEVER;

    for (session = client->sessions; session != NULL; session = session->next)
        if (session->state == DBLK_SESSION_ALIVE)
            patience_us = dblk_sooner(
                patience_us, dblk_later(session->beat.next_us, session->ttl_us / 8));
    return patience_us > now_us + 100000 ? patience_us : now_us + 100000;
}

int dblk_keeper_step(dblock_client *client)
{
    uint64_t now_us = dblk_now_us();
    uint64_t limit_us = dblk_later(now_us, client->settings.io_us);

    if (dblk_keeper_beat(client, now_us, limit_us) || dblk_channel_bury(client, 0))
        return 1;
    limit_us = dblk_sooner(limit_us, find_patience(client, now_us));
    return dblk_keeper_ping(client, now_us, limit_us) ||
        dblk_keeper_read_back(client, now_us, limit_us) ||
        dblk_keeper_give_back(client, now_us, limit_us) ||
        dblk_keeper_break(client, now_us, limit_us) ||
        dblk_keeper_purge(client, now_us, limit_us);
}

uint64_t dblk_keeper_next(dblock_client *client)
{
    struct dblk_session *session = client->sessions;
    struct dblk_channel *channel;
    dblock_lock *lock = client->orphans.first;
    uint64_t next_us = DBLK_NEVER;
    int has_sessions = session != NULL;

    next_us = dblk_breaking_next(client);
    for (channel = client->buried; channel != NULL; channel = channel->next)
        if (dblk_may_touch(client, channel)) /* somebody is at work with it: soon */
            next_us = dblk_sooner(next_us, dblk_now_us() + 5000);

    for (; session != NULL; session = session->next)
        if (session->state == DBLK_SESSION_ALIVE)
            next_us = dblk_sooner(
                next_us, dblk_sooner(session->beat.next_us, session->read_back_us));
        else if (session->state == DBLK_SESSION_LOST)
            next_us = dblk_sooner(next_us, session->retry_us);
    for (channel = client->channels; channel != NULL; channel = channel->next) {
        if (channel->suspect_us != 0)
            next_us = dblk_sooner(next_us, channel->suspect_us);
        if (channel->n_locks > 0)
            next_us = dblk_sooner(next_us, channel->next_ping_us);
    }
    for (; lock != NULL; lock = lock->next)
        if (dblk_may_touch(client, lock->channel))
            next_us = dblk_sooner(next_us, lock->retry_us);
    if (has_sessions)
        next_us = dblk_sooner(next_us, client->keeper.purge_us);
    return next_us;
}

static void read_back_all(dblock_client *client)
{
    struct dblk_session *session;

    dblk_lock_client(client);
    for (session = client->sessions; session != NULL; session = session->next)
        dblk_session_read_back(client, session, dblk_now_us());
    dblk_unlock_client(client);
}

/* What it was asked last may have been done or not: the next one begins with a read-back. */
static void drop_link(dblock_client *client)
{
    dblk_link_close(client, client->keeper.link, DBLOCK_CLOSE_ABORT);
    client->keeper.link = NULL;
    dblk_lock_client(client);
    ++client->stats.reconnects;
    dblk_unlock_client(client);
}

dblock_status dblk_keeper_link(dblock_client *client, uint64_t limit_us,
    struct dblk_link **ret_link, struct dblock_error *error)
{
    dblock_status status = DBLOCK_OK;

    if (client->keeper.link != NULL && !dblk_link_is_quiet(client, client->keeper.link))
        drop_link(client);
    if (client->keeper.link == NULL) {
        status = dblk_link_open(
            client, DBLOCK_ROLE_KEEPER, limit_us, client->stop_fd, &client->keeper.link, error);
        /* also the first one: the server may have crashed since the callers' own connections */
        if (status == DBLOCK_OK)
            read_back_all(client);
    }
    if (status == DBLOCK_OK)
        *ret_link = client->keeper.link;
    return status;
}

void dblk_keeper_check_link(dblock_client *client)
{
    if (client->keeper.link != NULL &&
        !client->driver->connection.is_alive(client->keeper.link->connection))
        drop_link(client);
}

int dblk_keeper_break(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    struct dblk_link *link = NULL;
    struct dblock_error error;
    dblock_status status;

    if (now_us < dblk_breaking_next(client))
        return 0;
    dblk_unlock_client(client);
    status = dblk_keeper_link(client, limit_us, &link, &error);
    dblk_lock_client(client);
    if (status == DBLOCK_OK) {
        (void)dblk_breaking_try(client, link, dblk_now_us(), limit_us);
        dblk_unlock_client(client);
        dblk_keeper_check_link(client);
        dblk_lock_client(client);
        return 1;
    }
    client->breakings->retry_us = dblk_now_us() + 200000;
    return 1;
}

int dblk_keeper_purge(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    struct dblock_call call = { limit_us, client->stop_fd };
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblk_link *link = NULL;
    dblock_status status;
    int is_more;

    if (client->keeper.purge_us == 0) /* clients of one fleet start together: spread them */
        client->keeper.purge_us =
            now_us + PURGE_EVERY_US / 2 + dblk_random_u64() % PURGE_EVERY_US;
    if (client->sessions == NULL || now_us < client->keeper.purge_us)
        return 0;
    dblk_unlock_client(client);
    memset(&answer, 0, sizeof answer);
    status = dblk_keeper_link(client, limit_us, &link, &error);
    if (status == DBLOCK_OK)
        status = client->driver->observe.purge(link->connection, &call, &answer, &error);
    if (status != DBLOCK_OK)
        dblk_keeper_check_link(client);
    /* AGAIN: it waits for nobody, and somebody was there; on a busy file that is most of the time */
    is_more = status == DBLOCK_OK &&
        (answer.n_rows > 0 || answer.outcome == DBLOCK_ANSWER_AGAIN);
    dblk_lock_client(client);
    client->keeper.purge_us =
        dblk_now_us() + (is_more ? 100000 : PURGE_EVERY_US / 2 + dblk_random_u64() % PURGE_EVERY_US);
    return 1;
}
