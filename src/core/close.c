/* SPDX-License-Identifier: MIT */
/* close.c - see close.h. Sessions go first: one statement frees all that they
 * hold. */
#include "core/close.h"

#include <string.h>

#include "core/borrowed.h"
#include "core/breaking.h"
#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/link.h"
#include "core/lock.h"
#include "core/place.h"
#include "core/session.h"

static struct dblk_link *find_link(dblock_client *client, uint64_t deadline_us)
{
    struct dblk_link *link = client->idle;
    struct dblock_error error;

    /* connecting anew costs time that a caller of close does not have to spare: once */
    if (client->keeper.link != NULL && dblk_link_is_quiet(client, client->keeper.link))
        return client->keeper.link;
    while (link != NULL && !dblk_link_is_quiet(client, link))
        link = link->next;
    if (link == NULL && dblk_now_us() < deadline_us) {
        dblk_link_close(client, client->keeper.link, DBLOCK_CLOSE_ABORT);
        client->keeper.link = NULL;
        if (dblk_link_open(
                client, DBLOCK_ROLE_KEEPER, deadline_us, -1, &link, &error) == DBLOCK_OK)
            client->keeper.link = link;
    }
    return link;
}

/* So many are dropped one by one, which wakes those who wait for them; more go with their session,
 * and are found at the next look (in DBLK_REST_LAST_US at most). */
enum { N_DROPPED = 32 };

/* 1: the database may still believe in it when its session has ended, or somebody is to be woken. */
static int needs_drop(const dblock_lock *lock, int wakes)
{
    return !lock->strategy->lives_in_connection &&
        (lock->session == NULL || lock->min_hold_us != 0 || wakes);
}

static void drop(dblock_client *client, dblock_lock *lock, const struct dblock_call *call)
{
    struct dblk_link *link = find_link(client, call->deadline_us);
    struct dblock_answer answer;
    struct dblock_error error;

    memset(&answer, 0, sizeof answer);
    if (link != NULL)
        (void)dblk_hold_steps(client, lock->strategy->id)
            ->drop(link->connection, call, &lock->subject, lock->owner,
                dblk_lock_keep_us(lock, dblk_now_us()), &answer, &error);
}

void dblk_close_drop(dblock_client *client, dblock_lock *lock)
{
    struct dblock_call call = { dblk_later(dblk_now_us(), client->settings.io_us), -1 };
    struct dblk_link *link = NULL;
    struct dblock_answer answer;
    struct dblock_error error;

    if (!needs_drop(lock, 0))
        return;
    memset(&answer, 0, sizeof answer);
    if (dblk_link_open(client, DBLOCK_ROLE_SHORT, call.deadline_us, -1, &link, &error) == DBLOCK_OK)
        (void)dblk_hold_steps(client, lock->strategy->id)
            ->drop(link->connection, &call, &lock->subject, lock->owner, 0, &answer, &error);
    dblk_link_close(client, link, DBLOCK_CLOSE_POLITE);
}

static void release_held(dblock_client *client, const struct dblock_call *call)
{
    dblock_lock *lock;
    int wakes;

    dblk_lock_client(client);
    wakes = dblk_place_is_possible(client) && client->held.n_locks <= N_DROPPED;
    while ((lock = client->held.first) != NULL) {
        dblk_lock_unhold(lock, DBLK_LOCK_RELEASED);
        ++client->stats.releases;
        if (!lock->is_import && needs_drop(lock, wakes)) {
            client->pinned = lock; /* whoever frees it meanwhile waits until we are done */
            dblk_unlock_client(client);
            if (dblk_now_us() < call->deadline_us)
                drop(client, lock, call);
            dblk_lock_client(client);
            client->pinned = NULL;
            (void)pthread_cond_broadcast(&client->changed);
        }
        dblk_lock_unregister(lock);
    }
    dblk_unlock_client(client);
}

static void give_back_orphans(dblock_client *client, const struct dblock_call *call)
{
    dblock_lock *lock;
    int wakes;

    dblk_lock_client(client);
    wakes = dblk_place_is_possible(client) && client->orphans.n_locks <= N_DROPPED;
    while ((lock = client->orphans.first) != NULL) {
        dblk_list_remove(&client->orphans, lock);
        lock->is_orphan = 0;
        dblk_lock_unregister(lock);
        dblk_unlock_client(client);
        if (needs_drop(lock, wakes) && dblk_now_us() < call->deadline_us)
            drop(client, lock, call);
        if (lock->is_freed)
            dblk_lock_destroy(lock);
        dblk_lock_client(client);
    }
    dblk_unlock_client(client);
}

/* Whoever is just giving something back would hear that it was not there any more (LOST), once its
 * session has ended. Half of the time at most: a release may wait for a server that does not answer. */
static void await_releases(dblock_client *client, uint64_t deadline_us)
{
    uint64_t until_us = dblk_now_us();

    until_us += dblk_until(until_us, deadline_us) / 2;
    dblk_lock_client(client);
    while (client->n_releasing > 0 && dblk_now_us() < until_us)
        dblk_client_wait(client, until_us);
    dblk_unlock_client(client);
}

static struct dblk_session *find_session(dblock_client *client)
{
    struct dblk_session *session = client->sessions;

    while (session != NULL && session->state != DBLK_SESSION_ALIVE &&
        session->state != DBLK_SESSION_LOST)
        session = session->next;
    return session;
}

static void end_sessions(dblock_client *client, const struct dblock_call *call)
{
    struct dblk_session *session;

    dblk_lock_client(client);
    while ((session = find_session(client)) != NULL) {
        struct dblk_link *link;
        struct dblock_answer answer;
        struct dblock_error error;

        atomic_store(&session->deadline_us, 0);
        session->state = DBLK_SESSION_ENDED;
        ++session->n_refs;
        dblk_unlock_client(client);
        memset(&answer, 0, sizeof answer);
        link = dblk_now_us() < call->deadline_us ? find_link(client, call->deadline_us) : NULL;
        if (link != NULL)
            (void)client->driver->session.end(
                link->connection, call, session->id, &answer, &error);
        dblk_lock_client(client);
        dblk_session_unref(client, session);
    }
    dblk_unlock_client(client);
}

/* Breaks that were promised: as long as the limit allows. */
static void finish_breaks(dblock_client *client, const struct dblock_call *call)
{
    struct dblk_link *link;
    uint64_t pause_us;

    dblk_lock_client(client);
    while (client->breakings != NULL && dblk_now_us() < call->deadline_us) {
        dblk_unlock_client(client);
        link = find_link(client, call->deadline_us);
        dblk_lock_client(client);
        if (link == NULL)
            break;
        if (!dblk_breaking_try(client, link, dblk_now_us(), call->deadline_us)) {
            pause_us = dblk_sooner(dblk_breaking_next(client), call->deadline_us);
            dblk_unlock_client(client);
            (void)dblk_wait(NULL, 0, pause_us);
            dblk_lock_client(client);
        }
    }
    dblk_breaking_forget(client);
    dblk_unlock_client(client);
}

/* A client that lives shorter than the keeper's first purge (a command in a crontab) does one now
 * and then, so that a fleet of such leaves no rows behind for ever. */
static void purge_sometimes(dblock_client *client, const struct dblock_call *call)
{
    struct dblk_link *link = client->idle;
    struct dblock_answer answer;
    struct dblock_error error;

    if (dblk_is_borrowing(client) || client->stats.grants == 0 || dblk_random_u64() % 32 != 0)
        return;
    memset(&answer, 0, sizeof answer);
    if (link != NULL && dblk_link_is_quiet(client, link))
        (void)client->driver->observe.purge(link->connection, call, &answer, &error);
}

static void close_idle(dblock_client *client, struct dblk_link **first, unsigned *n_links)
{
    struct dblk_link *link;

    dblk_lock_client(client);
    while ((link = *first) != NULL) {
        *first = link->next;
        --*n_links;
        dblk_unlock_client(client);
        dblk_link_close(client, link, DBLOCK_CLOSE_POLITE);
        dblk_lock_client(client);
    }
    dblk_unlock_client(client);
}

void dblk_close_give_back(dblock_client *client, uint64_t deadline_us)
{
    struct dblock_call call = { deadline_us, -1 };

    release_held(client, &call);
    give_back_orphans(client, &call);
    finish_breaks(client, &call);
    await_releases(client, deadline_us);
    end_sessions(client, &call);
    purge_sometimes(client, &call);
    dblk_channels_close(client, DBLOCK_CLOSE_POLITE);
    dblk_link_close(client, client->keeper.link, DBLOCK_CLOSE_POLITE);
    client->keeper.link = NULL;
    (void)pthread_mutex_lock(&client->control_use);
    dblk_link_close(client, client->control, DBLOCK_CLOSE_POLITE);
    client->control = NULL;
    (void)pthread_mutex_unlock(&client->control_use);
    close_idle(client, &client->idle, &client->n_short);
    close_idle(client, &client->idle_places, &client->n_idle_places);
}
