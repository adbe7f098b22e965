/* SPDX-License-Identifier: MIT */
/* perform_connection.c - the steps of a lock that lives in a connection (row,
 * advisory). */
#include <string.h>

#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/link.h"
#include "core/perform_steps.h"
#include "core/token.h"

static DBLOCK_COLD_ dblock_status lost_meanwhile(struct dblk_attempt *attempt)
{
    return dblock_error_set(
        &attempt->error, DBLOCK_E_CONNECTION, NULL, "the connection was lost meanwhile");
}

/* The channel in use for both. One that is used again may be found stale. */
static int is_reused_channel(const struct dblk_channel *channel)
{
    return channel->link == NULL || channel->link->is_reused;
}

static void note_use(struct dblk_channel *channel, dblock_status status, uint64_t now_us)
{
    if (channel->link == NULL)
        return;
    channel->link->is_reused = 1;
    if (status == DBLOCK_OK)
        channel->link->heard_us = now_us;
}

/* Over a connection for row locks, most often the one that the take has just been answered by: who
 * locks rows alone needs no other. */
void dblk_perform_seed(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    struct dblock_call call = { 0, dblk_waiter_short_fd(&attempt->waiter) };
    struct dblk_channel *channel = NULL;
    struct dblock_connection *connection;
    struct dblock_answer answer;
    int is_reused;
    int is_watched;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    if (dblk_waiter_verdict(&attempt->waiter) != 0) { /* nobody is going to lock that row */
        dblk_event_failed(attempt, DBLOCK_CANCELLED, 0, event);
        return;
    }
    status = dblk_channel_get(client, DBLOCK_ROW, 0, &now_us, attempt->end_us, call.cancel_fd,
        &channel, &attempt->error);
    if (status != DBLOCK_OK) {
        dblk_event_failed(attempt, status, 0, event);
        return;
    }
    call.deadline_us = dblk_perform_limit(attempt, now_us, client->settings.io_us);
    connection = dblk_channel_use(channel);
    is_reused = is_reused_channel(channel);
    is_watched = connection != NULL && dblk_link_begin(client, channel->link, &call);
    status = connection == NULL
        ? lost_meanwhile(attempt)
        : client->driver->row.seed(
              connection, &call, &attempt->lock->subject, &answer, &attempt->error);
    if (is_watched)
        status = dblk_link_end(
            client, channel->link, is_watched, status, DBLOCK_E_CONNECTION, &attempt->error);
    event->now_us = dblk_now_us();
    note_use(channel, status, event->now_us);
    dblk_channel_unuse(channel);
    dblk_channel_put(client, channel);
    if (status != DBLOCK_OK)
        dblk_event_failed(attempt, status, is_reused, event);
    else
        dblk_event_answered(&answer, event);
}

/* A grant that came after a long wait, or was seen late, says little: the server may have ended
 * the connection again since (an idle limit, while this process stood still). So it is asked, if
 * by the age of the request the keeper would have asked already: until then a grant is believed
 * from its request on, as one that came at once. */
static DBLOCK_COLD_ dblock_status prove_late(
    struct dblk_attempt *attempt, struct dblock_connection *connection, uint64_t *now_us)
{
    dblock_client *client = attempt->client;
    struct dblock_call call;
    struct dblock_answer answer;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    call.deadline_us = dblk_perform_limit(attempt, *now_us, client->settings.io_us);
    call.cancel_fd = -1;
    attempt->sent_us = *now_us; /* of the request that the grant is believed by */
    status = dblk_connection_steps(client, attempt->lock->strategy->id)->prove(
        connection, &call, &attempt->lock->subject, &answer, &attempt->error);
    *now_us = dblk_now_us();
    if (status == DBLOCK_OK && answer.outcome != DBLOCK_ANSWER_YES)
        status = dblock_error_set(&attempt->error, DBLOCK_E_CONNECTION, NULL,
            "lock \"%s\" was granted and lost again", attempt->lock->subject.name);
    return status;
}

/* What was taken, and nobody has been told of. */
static DBLOCK_COLD_ void give_back(struct dblk_attempt *attempt, struct dblk_channel *channel)
{
    dblock_client *client = attempt->client;
    const dblock_lock *lock = attempt->lock;
    struct dblock_connection *connection = dblk_channel_use(channel);
    struct dblock_call call = { dblk_later(dblk_now_us(), client->settings.io_us), -1 };
    struct dblock_answer answer;
    struct dblock_error error;
    int is_watched;
    dblock_status status = DBLOCK_OK;

    memset(&answer, 0, sizeof answer);
    dblk_error_clear(&error);
    if (connection != NULL) {
        is_watched = dblk_link_begin(client, channel->link, &call);
        status = dblk_connection_steps(client, lock->strategy->id)->drop(
            connection, &call, &lock->subject, &answer, &error);
        status = dblk_link_end(
            client, channel->link, is_watched, status, DBLOCK_E_UNCERTAIN, &error);
    }
    dblk_channel_unuse(channel);
    if (status == DBLOCK_OK)
        return;
    dblk_lock_client(client); /* its end gives back what it may still hold */
    dblk_channel_lose(client, channel, &error);
    dblk_unlock_client(client);
}

void dblk_perform_tell_pinned(struct dblk_attempt *attempt)
{
    struct dblock_grant *holder = attempt->holder;

    if (attempt->wish->busy == NULL)
        return;
    memset(holder, 0, sizeof *holder);
    holder->struct_size = sizeof *holder;
    holder->strategy = attempt->lock->strategy->id;
    holder->n_waiters = UINT32_MAX;
    holder->remaining_ms = DBLOCK_FOREVER;
    holder->is_pinned = 1;
    dblock_text_copy(holder->name, sizeof holder->name, attempt->lock->subject.name);
}

/* With DBLOCK_FENCED a grant without a token is none. OK: `*answer` is what the take has come to,
 * and unless that is YES the lock has been given back. */
static DBLOCK_COLD_ dblock_status fence(struct dblk_attempt *attempt,
    struct dblk_channel *channel, uint64_t *now_us, struct dblock_answer *answer)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    dblock_status status = dblk_token_draw(client, lock, channel,
        dblk_perform_limit(attempt, *now_us, client->settings.io_us), answer, &attempt->error);

    *now_us = dblk_now_us();
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES)
        status = dblk_token_check(lock, answer->token, &attempt->error);
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
        dblk_lock_client(client);
        lock->token = answer->token;
        dblk_unlock_client(client);
        return DBLOCK_OK;
    }
    give_back(attempt, channel);
    if (status != DBLOCK_OK && atomic_load(&client->is_closing))
        return DBLOCK_CANCELLED; /* by the end of the client, as the waiter tells */
    if (status > 0)
        status = dblock_error_set(&attempt->error, DBLOCK_E_CONNECTION, "try again",
            "lock \"%s\" was lost while its token was drawn", lock->subject.name);
    if (answer->outcome == DBLOCK_ANSWER_PINNED)
        dblk_perform_tell_pinned(attempt);
    answer->remaining_us = DBLOCK_NO_END;
    return status;
}

void dblk_perform_take_connection(
    struct dblk_attempt *attempt, uint64_t now_us, uint64_t wait_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblk_channel *channel = NULL;
    struct dblock_connection *connection;
    struct dblock_call call;
    struct dblock_answer answer;
    struct dblock_take take;
    int is_reused;
    int is_watched;
    dblock_status status;

    dblk_error_clear(&attempt->error);
    call.cancel_fd =
        wait_us > 0 ? dblk_waiter_fd(&attempt->waiter) : dblk_waiter_short_fd(&attempt->waiter);
    if (dblk_perform_renew_owner(attempt) != 0) {
        dblk_event_failed(attempt, attempt->error.status, 0, event);
        return;
    }
    status = dblk_channel_get(client, lock->strategy->id, wait_us > 0, &now_us, attempt->end_us,
        call.cancel_fd, &channel, &attempt->error);
    if (status != DBLOCK_OK) {
        /* that it has to be waited for was a guess: as after a stale connection, it is asked for */
        dblk_event_failed(attempt, status,
            attempt->machine.terms.is_contended && lock->strategy->id == DBLOCK_ADVISORY, event);
        return;
    }
    memset(&answer, 0, sizeof answer);
    connection = dblk_channel_use(channel);
    is_reused = is_reused_channel(channel);
    attempt->sent_us = now_us;
    call.deadline_us = dblk_perform_limit(
        attempt, dblk_later(attempt->sent_us, wait_us), client->settings.io_us);
    attempt->not_after_us = INT64_MAX; /* it lives in the connection: nothing comes later */
    dblk_perform_fill_take(attempt, wait_us, 0, &take);
    is_watched = connection != NULL && wait_us == 0 && dblk_link_begin(client, channel->link, &call);
    status = connection == NULL
        ? lost_meanwhile(attempt)
        : dblk_connection_steps(client, attempt->lock->strategy->id)->take(
              connection, &call, &take, attempt->wish->busy != NULL ? attempt->holder : NULL,
              &answer, &attempt->error);
    if (is_watched)
        status = dblk_link_end(
            client, channel->link, is_watched, status, DBLOCK_E_UNCERTAIN, &attempt->error);
    event->now_us = dblk_now_us();
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES &&
        event->now_us - attempt->sent_us > client->settings.ttl_us / 3)
        status = prove_late(attempt, connection, &event->now_us);
    note_use(channel, status, event->now_us);
    dblk_channel_unuse(channel);
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES && attempt->wish->is_fenced) {
        status = fence(attempt, channel, &event->now_us, &answer);
        is_reused = 0;
    }
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES) {
        lock->channel = channel;
        lock->taken_us = attempt->sent_us;
        dblk_event_answered(&answer, event);
        return;
    }
    dblk_channel_put(client, channel);
    if (status != DBLOCK_OK)
        dblk_event_failed(attempt, status, is_reused, event);
    else
        dblk_event_taken(attempt, &answer, event);
}
