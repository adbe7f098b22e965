/* SPDX-License-Identifier: MIT */
/* token.c - drawing tokens of row and advisory locks, and of grants that went from
 * thread to thread.
 *
 * A token must be committed before it is handed out, and a holder whose lock is
 * gone must not get a larger one than the holder after it. An advisory lock
 * draws on its own connection: if that answers, it holds. A row lock cannot (its
 * transaction is open until the release), so it draws on the control connection
 * and then asks its own whether the transaction still stands; only then is the
 * number handed out. A number drawn in vain is merely skipped.
 *
 * The token of row and advisory is also what a guarded transaction pins (guard.c): who
 * draws the next one meets that, is not kept waiting, and has no token until it ends. */
#include "core/token.h"

#include <poll.h>
#include <string.h>

#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/link.h"
#include "core/lock.h"

#define TOKEN_MAX ((INT64_C(1) << 53) - 1) /* what a double can count to */

dblock_status dblk_token_check(
    const dblock_lock *lock, int64_t token, struct dblock_error *error)
{
    if (token <= TOKEN_MAX)
        return DBLOCK_OK;
    return dblock_error_set(error, DBLOCK_E_DATABASE,
        "delete the row of the name from dblock_lease, dblock_insert or dblock_token",
        "the token of lock \"%s\" in the database is damaged: %lld is not below 2^53",
        lock->subject.name, (long long)token);
}

dblock_status dblk_control_ask(dblock_client *client, dblk_control_step *step,
    const struct dblock_subject *subject, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *error)
{
    dblock_status status = DBLOCK_OK;
    int n_tries;

    (void)pthread_mutex_lock(&client->control_use);
    for (n_tries = 0; n_tries < 3; ++n_tries) {
        int is_reused = client->control != NULL;

        if (client->control != NULL && !dblk_link_is_quiet(client, client->control)) {
            dblk_link_close(client, client->control, DBLOCK_CLOSE_ABORT);
            client->control = NULL;
            is_reused = 0;
        }
        if (client->control == NULL)
            status = dblk_link_open(client, DBLOCK_ROLE_CONTROL, call->deadline_us, client->stop_fd,
                &client->control, error);
        if (status == DBLOCK_OK)
            status = step(client->control->connection, call, subject, answer, error);
        if (client->control != NULL &&
            !client->driver->connection.is_alive(client->control->connection)) {
            dblk_link_close(client, client->control, DBLOCK_CLOSE_ABORT);
            client->control = NULL;
        }
        if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_AGAIN)
            continue;
        /* a draw whose answer was lost skipped a number: no harm in another */
        if ((status != DBLOCK_E_CONNECTION && status != DBLOCK_E_UNCERTAIN) || !is_reused)
            break;
    }
    (void)pthread_mutex_unlock(&client->control_use);
    return status;
}

enum {
    AGAIN_MAX = 20,
    PINNED_MAX = 3, /* a statement of ours on the row (a purge) looks like a guard, for a moment */
    AGAIN_US = 2000
};

/* Pauses before the next attempt; 0: what was answered stands. */
static int is_asked_again(
    const dblock_client *client, const struct dblock_answer *drawn, unsigned *n_tries)
{
    struct pollfd stop = { client->stop_fd, POLLIN, 0 };
    unsigned most = drawn->outcome == DBLOCK_ANSWER_AGAIN ? AGAIN_MAX
        : drawn->outcome == DBLOCK_ANSWER_PINNED          ? PINNED_MAX
                                                          : 0;

    if (++*n_tries >= most)
        return 0;
    (void)dblk_wait(&stop, 1, dblk_later(dblk_now_us(), AGAIN_US));
    return 1;
}

static dblock_status draw_on_control(dblock_client *client, const struct dblock_subject *subject,
    uint64_t deadline_us, struct dblock_answer *drawn, struct dblock_error *error)
{
    struct dblock_call call = { deadline_us, client->stop_fd };
    unsigned n_tries = 0;
    dblock_status status;

    do {
        memset(drawn, 0, sizeof *drawn);
        dblk_error_clear(error);
        status = dblk_control_ask(
            client, client->driver->row.draw, subject, &call, drawn, error);
    } while (status == DBLOCK_OK && is_asked_again(client, drawn, &n_tries));
    return status;
}

/* Not drawn, although the lock is held. */
static dblock_status explain(
    const struct dblock_subject *subject, int32_t outcome, struct dblock_error *error)
{
    int is_pinned = outcome == DBLOCK_ANSWER_PINNED;

    if (is_pinned)
        (void)dblock_error_set(error, DBLOCK_E_DATABASE, "try again when it has ended",
            "a guarded transaction stands on lock \"%s\"", subject->name);
    else if (outcome != DBLOCK_ANSWER_AGAIN || error->status == DBLOCK_OK)
        (void)dblock_error_set(error, DBLOCK_E_DATABASE, "try again",
            "cannot draw a token for lock \"%s\"", subject->name);
    error->is_transient = 1;
    return is_pinned ? DBLOCK_PENDING : DBLOCK_E_DATABASE;
}

dblock_status dblk_token_status(dblock_status status)
{
    return status == DBLOCK_PENDING ? DBLOCK_E_DATABASE : status;
}

dblock_status dblk_token_draw_on_control(dblock_client *client,
    const struct dblock_subject *subject, uint64_t deadline_us, int64_t *ret_token,
    struct dblock_error *error)
{
    struct dblock_answer drawn;
    dblock_status status = draw_on_control(client, subject, deadline_us, &drawn, error);

    *ret_token = drawn.token;
    return status == DBLOCK_OK && drawn.outcome != DBLOCK_ANSWER_YES
        ? explain(subject, drawn.outcome, error)
        : status;
}

static dblock_status draw_row(dblock_client *client, const dblock_lock *lock,
    struct dblk_channel *channel, uint64_t deadline_us, struct dblock_answer *drawn,
    struct dblock_error *error)
{
    struct dblock_call call = { deadline_us, client->stop_fd };
    struct dblock_answer proof;
    struct dblock_connection *connection;
    uint64_t sent_us;
    dblock_status status;

    memset(&proof, 0, sizeof proof);
    status = draw_on_control(client, &lock->subject, deadline_us, drawn, error);
    if (status != DBLOCK_OK || drawn->outcome != DBLOCK_ANSWER_YES)
        return status;
    connection = dblk_channel_use(channel);
    sent_us = dblk_now_us();
    if (connection != NULL)
        status = client->driver->row.prove(connection, &call, &lock->subject, &proof, error);
    dblk_channel_unuse(channel);
    dblk_lock_client(client);
    if (status == DBLOCK_OK && proof.outcome == DBLOCK_ANSWER_YES) {
        dblk_channel_proved(client, channel, sent_us);
    } else if (status == DBLOCK_OK || !dblk_channel_is_alive(client, channel)) {
        dblk_channel_lose(client, channel, status < 0 ? error : NULL);
        status = DBLOCK_LOST;
    }
    dblk_unlock_client(client);
    return status;
}

static dblock_status draw_advisory(dblock_client *client, const dblock_lock *lock,
    struct dblk_channel *channel, uint64_t deadline_us, struct dblock_answer *drawn,
    struct dblock_error *error)
{
    struct dblock_call call = { deadline_us, client->stop_fd };
    struct dblock_connection *connection;
    uint64_t sent_us;
    unsigned n_tries = 0;
    dblock_status status;

    do {
        memset(drawn, 0, sizeof *drawn);
        dblk_error_clear(error);
        status = DBLOCK_OK;
        drawn->outcome = DBLOCK_ANSWER_NO;
        connection = dblk_channel_use(channel);
        sent_us = dblk_now_us();
        if (connection != NULL)
            status = client->driver->advisory.draw(
                connection, &call, &lock->subject, drawn, error);
        dblk_channel_unuse(channel);
    } while (status == DBLOCK_OK && is_asked_again(client, drawn, &n_tries));
    dblk_lock_client(client);
    if (!dblk_channel_is_alive(client, channel) ||
        (status == DBLOCK_OK && drawn->outcome == DBLOCK_ANSWER_NO)) {
        dblk_channel_lose(client, channel, status < 0 ? error : NULL);
        status = DBLOCK_LOST;
    } else if (status == DBLOCK_OK) {
        dblk_channel_proved(client, channel, sent_us);
    }
    dblk_unlock_client(client);
    return status;
}

dblock_status dblk_token_draw(dblock_client *client, const dblock_lock *lock,
    struct dblk_channel *channel, uint64_t deadline_us, struct dblock_answer *drawn,
    struct dblock_error *error)
{
    return lock->strategy->id == DBLOCK_ROW
        ? draw_row(client, lock, channel, deadline_us, drawn, error)
        : draw_advisory(client, lock, channel, deadline_us, drawn, error);
}

static dblock_status draw_live(dblock_lock *lock, struct dblk_channel *channel,
    uint64_t deadline_us, int64_t *ret_token, struct dblock_error *error)
{
    struct dblock_answer drawn;
    dblock_status status =
        dblk_token_draw(lock->client, lock, channel, deadline_us, &drawn, error);

    *ret_token = drawn.token;
    return status == DBLOCK_OK && drawn.outcome != DBLOCK_ANSWER_YES
        ? explain(&lock->subject, drawn.outcome, error)
        : status;
}

static dblock_status draw_hold(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const dblock_lock *lock = context;

    return dblk_hold_steps(client, lock->strategy->id)
        ->draw(link->connection, call, &lock->subject, lock->owner, answer, error);
}

/* A grant that came from another thread of this client: its row has the token of that one. */
static dblock_status draw_recorded(dblock_lock *lock, int64_t *ret_token, struct dblock_error *error)
{
    struct dblk_short_result result;
    dblock_status status = dblk_short(lock->client, 0, 0, draw_hold, lock, &result, error);

    if (status != DBLOCK_OK)
        return status;
    *ret_token = result.answer.token;
    if (result.answer.outcome == DBLOCK_ANSWER_YES)
        return DBLOCK_OK;
    if (result.answer.outcome == DBLOCK_ANSWER_PINNED)
        return explain(&lock->subject, result.answer.outcome, error);
    dblk_lock_client(lock->client);
    dblk_lock_lose(lock, DBLOCK_CAUSE_SERVER, NULL);
    dblk_unlock_client(lock->client);
    return DBLOCK_LOST;
}

dblock_status dblk_token_get(dblock_lock *lock, uint64_t deadline_us, int64_t *ret_token,
    struct dblock_error *error)
{
    dblock_client *client = lock->client;
    struct dblk_channel *channel = NULL;
    dblock_status status;
    int64_t token;
    int is_held, is_joined, is_drawn;

    dblk_lock_client(client);
    is_joined = dblk_lock_is_joined(lock);
    is_held = is_joined || atomic_load(&lock->state) == DBLK_LOCK_HELD;
    token = is_held ? lock->token : 0;
    is_drawn = token == 0 && is_held && !is_joined;
    if (is_drawn)
        ++lock->n_drawing; /* nor is it handed over: the next holder's number is to be the later one */
    if (is_drawn && lock->strategy->lives_in_connection) {
        channel = lock->channel;
        ++channel->n_refs; /* a release on another thread must not take it away meanwhile */
        ++channel->n_locks;
    }
    dblk_unlock_client(client);
    if (token != 0) {
        *ret_token = token;
        return DBLOCK_OK;
    }
    if (is_joined)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "acquire it with DBLOCK_FENCED",
            "lock \"%s\" has no token: it was joined to a transaction without one",
            lock->subject.name);
    if (!is_held)
        return dblk_lock_gone(lock);
    status = channel == NULL ? draw_recorded(lock, &token, error)
                             : draw_live(lock, channel, deadline_us, &token, error);
    if (status == DBLOCK_OK)
        status = dblk_token_check(lock, token, error);
    if (status == DBLOCK_CANCELLED) /* by stop_fd: nothing else ends it */
        status = dblk_client_closed(error);
    dblk_lock_client(client);
    --lock->n_drawing;
    if ((status == DBLOCK_OK || status == DBLOCK_LOST) &&
        atomic_load(&lock->state) != DBLK_LOCK_HELD)
        status = dblk_lock_gone(lock); /* and whoever released it reads what it has */
    if (status == DBLOCK_OK) {
        /* two threads at once: both numbers are good, the first one stays */
        if (lock->token == 0)
            lock->token = token;
        *ret_token = lock->token;
    }
    dblk_channel_put_locked(client, channel);
    dblk_unlock_client(client);
    return status;
}

dblock_status dblock_lock_token(dblock_lock *lock, int64_t *ret_token, struct dblock_error *reterr)
{
    struct dblock_error error;
    int64_t token = 0;
    dblock_status status = dblk_lock_enter(lock, reterr);

    if (status != DBLOCK_OK)
        return status;
    memset(&error, 0, sizeof error);
    if (ret_token == NULL)
        status = dblock_error_set(&error, DBLOCK_E_ARGUMENT, NULL, "ret_token: NULL");
    else
        status = dblk_token_status(dblk_token_get(
            lock, dblk_later(dblk_now_us(), lock->client->settings.io_us), &token, &error));
    if (status == DBLOCK_OK)
        *ret_token = token;
    else if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}
