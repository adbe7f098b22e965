/* SPDX-License-Identifier: MIT */
/* release.c - dblock_release(). Belief ends first: from the moment the release
 * is sent another process may hold the lock, whatever the answer will be. */
#include <string.h>

#include "core/borrowed.h"
#include "core/channel.h"
#include "core/close.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/hold.h"
#include "core/keeper.h"
#include "core/layout.h"
#include "core/queue.h"
#include "core/release.h"
#include "core/seat.h"
#include "core/session.h"
#include "core/trace.h"
#include "core/watch.h"

dblock_status dblk_release_judge(const dblock_lock *lock, int32_t outcome, int was_uncertain)
{
    switch (outcome) {
    case DBLOCK_ANSWER_YES:
        return DBLOCK_OK;
    case DBLOCK_ANSWER_PINNED:
        return DBLOCK_PENDING;
    default:
        return was_uncertain      ? DBLOCK_OK
            : lock->is_given_back ? DBLOCK_NOT_HELD
                                  : DBLOCK_LOST;
    }
}

/* A lease or insert row. A lost answer is asked for again: a drop compares the owner, so "not in
 * force" after an uncertain one is most likely its own work. */
static DBLK_APART dblock_status release_row(dblock_client *client, dblock_lock *lock, uint64_t now_us,
    struct dblock_error *error)
{
    struct dblk_hold_request request;
    struct dblk_short_result result;
    dblock_status status;

    dblk_hold_request(&request, lock);
    request.time_us = dblk_lock_keep_us(lock, now_us);
    status = dblk_short(client, now_us, lock->link_id, dblk_hold_drop, &request, &result, error);
    if (status != DBLOCK_OK)
        return status;
    return dblk_release_judge(lock, result.answer.outcome, result.was_uncertain);
}

/* The server has said something unasked, most likely that it has ended the connection: sent now,
 * the release would be one of those whose answer never comes. OK: the lock is there. */
static DBLOCK_COLD_ dblock_status prove_first(
    const struct dblock_driver_session_lock *locks, struct dblock_connection *connection,
    const struct dblock_call *call, const dblock_lock *lock, struct dblock_error *error)
{
    struct dblock_answer answer;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    status = locks->prove(connection, call, &lock->subject, &answer, error);
    if (status == DBLOCK_OK && answer.outcome != DBLOCK_ANSWER_YES)
        status = DBLOCK_LOST;
    return status == DBLOCK_E_UNCERTAIN ? DBLOCK_E_CONNECTION : status; /* nothing was sent */
}

/* Its connection is not to be trusted any more; closing it ends what it may still hold. */
static DBLOCK_COLD_ dblock_status lose_connection(dblock_client *client,
    struct dblk_channel *channel, uint64_t deadline_us, dblock_status status,
    struct dblock_error *error)
{
    int is_late = dblk_now_us() >= deadline_us;
    int is_gone;

    dblk_lock_client(client);
    is_gone = !dblk_channel_is_alive(client, channel);
    dblk_channel_lose(client, channel, error);
    dblk_unlock_client(client);
    if (!is_gone || status != DBLOCK_E_CONNECTION)
        return status;
    /* Nothing was sent. Gone before: the lock ended with it, and not by this release. Given up as no
     * answer came in time: the server may have it until it sees the end. */
    return is_late ? (error->status = DBLOCK_E_UNCERTAIN) : DBLOCK_LOST;
}

static dblock_status release_connection(
    dblock_client *client, dblock_lock *lock, uint64_t now_us, struct dblock_error *error)
{
    struct dblk_channel *channel = lock->channel;
    const struct dblock_driver_session_lock *locks =
        dblk_connection_steps(client, lock->strategy->id);
    struct dblock_call call;
    struct dblock_connection *connection;
    struct dblock_answer answer;
    dblock_status status = DBLOCK_OK;

    memset(&answer, 0, sizeof answer);
    connection = dblk_channel_use(channel);
    call.deadline_us = dblk_later(now_us, client->settings.io_us);
    call.cancel_fd = -1;
    if (connection != NULL && !dblk_link_is_good(client, channel->link, now_us))
        status = prove_first(locks, connection, &call, lock, error);
    if (connection != NULL && status == DBLOCK_OK) { /* else it has died: the outcome is not YES */
        int is_watched = dblk_link_begin(client, channel->link, &call);

        status = locks->drop(connection, &call, &lock->subject, &answer, error);
        status = dblk_link_end(
            client, channel->link, is_watched, status, DBLOCK_E_UNCERTAIN, error);
        if (status == DBLOCK_OK)
            channel->link->heard_us = now_us; /* a little later, in truth */
    }
    dblk_channel_unuse(channel);
    if (status == DBLOCK_OK)
        return answer.outcome == DBLOCK_ANSWER_YES ? DBLOCK_OK : DBLOCK_LOST;
    return status == DBLOCK_LOST ? status : lose_connection(client, channel, call.deadline_us, status, error);
}

dblock_status dblk_release_begin(dblock_lock *lock, uint64_t now_us, int *ret_is_handed)
{
    dblock_client *client = lock->client;
    struct dblk_seat *called = NULL;
    dblock_status status = DBLOCK_OK;

    dblk_lock_client(client);
    switch (atomic_load(&lock->state)) {
    case DBLK_LOCK_HELD:
        if (client->queues != NULL)
            called = dblk_queue_hand_over(lock, now_us);
        *ret_is_handed = called != NULL;
        dblk_lock_unhold(lock, DBLK_LOCK_RELEASING);
        dblk_event_forget(lock);
        if (*ret_is_handed) {
            dblk_publish(&lock->state, DBLK_LOCK_RELEASED);
            dblk_lock_settle(lock);
        } else {
            ++client->n_releasing;
        }
        ++client->stats.releases;
        client->stats.hold_us += dblk_until(lock->granted_us, now_us);
        break;
    case DBLK_LOCK_JOINED: /* its transaction frees it */
        dblk_publish(&lock->state, DBLK_LOCK_RELEASED);
        if (lock->fd >= 0)
            dblk_signal_fd_raise(lock->fd);
        ++client->stats.releases;
        status = DBLOCK_PENDING;
        break;
    case DBLK_LOCK_LOST:
        status = dblk_lock_gone(lock);
        atomic_store(&lock->state, DBLK_LOCK_RELEASED);
        break;
    default:
        status = DBLOCK_NOT_HELD;
        break;
    }
    dblk_unlock_client(client);
    if (called != NULL)
        dblk_seat_call(called);
    return status;
}

void dblk_release_end(dblock_lock *lock, dblock_status status)
{
    dblock_client *client = lock->client;
    struct dblk_channel *channel = lock->channel;
    int is_left = channel == NULL && (status == DBLOCK_PENDING || status < 0);

    dblk_lock_client(client);
    if (is_left && atomic_load(&client->is_closing)) { /* no keeper will go on with it */
        dblk_unlock_client(client);
        dblk_close_drop(client, lock);
        dblk_lock_client(client);
        is_left = 0;
    }
    dblk_publish(&lock->deadline_us, &lock->own_deadline_us);
    dblk_publish(&lock->own_deadline_us, 0);
    dblk_publish(&lock->state, DBLK_LOCK_RELEASED);
    if (status == DBLOCK_LOST)
        atomic_store(&lock->cause,
            channel != NULL ? DBLOCK_CAUSE_CONNECTION : DBLOCK_CAUSE_SERVER);
    lock->channel = NULL;
    if (client->queues != NULL)
        dblk_queue_wake(lock);
    if (is_left) {
        dblk_lock_orphan(lock, 0); /* the keeper goes on; no second call is needed */
        if (status < 0)
            dblk_session_read_back(client, lock->session, dblk_now_us());
    } else {
        dblk_lock_unregister(lock);
        dblk_session_unref(client, lock->session);
        lock->session = NULL;
    }
    dblk_channel_put_locked(client, channel);
    dblk_lock_settle(lock);
    if (--client->n_releasing == 0 && atomic_load(&client->is_closing))
        (void)pthread_cond_broadcast(&client->changed);
    dblk_unlock_client(client);
}

dblock_status dblock_release(dblock_lock *lock, struct dblock_error *reterr)
{
    dblock_client *client;
    struct dblock_error error;
    uint64_t begun_us;
    int is_handed = 0;
    dblock_status status = dblk_lock_enter(lock, &error);

    if (status == DBLOCK_E_CLOSED) /* close has released it: for its holder, the second time */
        return DBLOCK_NOT_HELD;
    if (status != DBLOCK_OK)
        goto done;
    client = lock->client;
    if (dblk_is_borrowing(client))
        status = dblk_borrowed_check_release(lock, &error);
    if (status != DBLOCK_OK)
        goto done;
    dblk_watch_end(lock);
    begun_us = dblk_now_us();
    status = dblk_release_begin(lock, begun_us, &is_handed);
    if (status == DBLOCK_OK && !is_handed) {
        dblk_error_clear(&error);
        status = lock->channel != NULL ? release_connection(client, lock, begun_us, &error)
                                       : release_row(client, lock, begun_us, &error);
        dblk_release_end(lock, status);
    }
    if (status != DBLOCK_NOT_HELD)
        dblk_trace(client, DBLOCK_TRACE_RELEASE, status, lock->subject.name,
            is_handed ? "to another thread of this client" : status < 0 ? error.message : NULL,
            lock->token, begun_us);
done:
    if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}
