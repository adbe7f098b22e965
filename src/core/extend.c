/* SPDX-License-Identifier: MIT */
/* extend.c - more time for a grant, and asking whether it stands: dblock_extend,
 * dblock_confirm, dblock_lock_detach. */
#include <string.h>

#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/hold.h"
#include "core/keeper.h"
#include "core/queue.h"
#include "core/session.h"

/* NOT_HELD or LOST for a grant that is over; OK for one in force. */
static dblock_status read_state(const dblock_lock *lock)
{
    return atomic_load(&lock->state) == DBLK_LOCK_HELD ? DBLOCK_OK : dblk_lock_gone(lock);
}

static dblock_status check_state(dblock_lock *lock)
{
    dblock_status status;

    dblk_lock_client(lock->client);
    (void)dblk_lock_expire(lock, dblk_now_us());
    status = read_state(lock);
    dblk_unlock_client(lock->client);
    return status;
}

static dblock_status lose(dblock_lock *lock, int cause)
{
    dblk_lock_client(lock->client);
    dblk_lock_lose(lock, cause, NULL);
    dblk_unlock_client(lock->client);
    return check_state(lock) == DBLOCK_NOT_HELD ? DBLOCK_NOT_HELD : DBLOCK_LOST;
}

static dblock_status confirm_row(dblock_lock *lock, struct dblock_error *error)
{
    struct dblk_hold_request request;
    struct dblk_short_result result;
    struct dblock_grant grant;
    unsigned round;
    dblock_status status;

    dblk_hold_request(&request, lock);
    request.grant = &grant;
    dblk_lock_client(lock->client);
    round = lock->extend_round;
    dblk_unlock_client(lock->client);
    status = dblk_short(lock->client, 0, 0, dblk_hold_look, &request, &result, error);
    if (status != DBLOCK_OK)
        return status;
    if (result.answer.outcome == DBLOCK_ANSWER_YES && dblk_lock_is_of(lock, grant.owner)) {
        dblk_lock_client(lock->client);
        lock->is_given_back = 0; /* that transaction was rolled back */
        if (!dblk_lock_expire(lock, dblk_now_us()) && lock->session == NULL && round == lock->extend_round &&
            dblk_now_us() >= lock->least_until_us) {
            atomic_store(&lock->own_deadline_us,
                dblk_belief_end(result.sent_us, result.answer.remaining_us));
            dblk_clock_due(lock->client, 0);
        }
        dblk_unlock_client(lock->client);
        return check_state(lock);
    }
    return lose(lock, DBLOCK_CAUSE_SERVER);
}

static dblock_status confirm_connection(
    dblock_lock *lock, struct dblk_channel *channel, struct dblock_error *error)
{
    dblock_client *client = lock->client;
    const struct dblock_driver_session_lock *locks =
        dblk_connection_steps(client, lock->strategy->id);
    struct dblock_call call;
    struct dblock_connection *connection;
    struct dblock_answer answer;
    uint64_t sent_us;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    call.deadline_us = dblk_later(dblk_now_us(), client->settings.io_us); /* the keeper may be at it */
    call.cancel_fd = client->stop_fd;
    connection = dblk_channel_use(channel);
    sent_us = dblk_now_us();
    status = DBLOCK_OK;
    if (connection != NULL)
        status = locks->prove(connection, &call, &lock->subject, &answer, error);
    dblk_channel_unuse(channel);
    dblk_lock_client(client);
    if (dblk_lock_expire(lock, dblk_now_us()))
        status = DBLOCK_OK;
    else if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES)
        dblk_channel_proved(client, channel, sent_us);
    else if (status == DBLOCK_OK)
        dblk_lock_lose(lock, DBLOCK_CAUSE_CONNECTION, NULL);
    else if (!dblk_channel_is_alive(client, channel)) {
        dblk_channel_lose(client, channel, error);
        status = DBLOCK_OK;
    }
    dblk_unlock_client(client);
    return status == DBLOCK_OK ? check_state(lock) : status;
}

static dblock_status confirm(dblock_lock *lock, struct dblock_error *error)
{
    struct dblk_channel *channel = NULL;
    dblock_status status = dblk_lock_is_joined(lock) ? dblk_lock_refuse_joined(lock, error)
                                                     : check_state(lock);

    if (status != DBLOCK_OK)
        return status;
    if (!lock->strategy->lives_in_connection)
        return confirm_row(lock, error);
    dblk_lock_client(lock->client);
    if (lock->channel != NULL) {
        channel = lock->channel;
        ++channel->n_refs;
        ++channel->n_locks;
    }
    dblk_unlock_client(lock->client);
    if (channel == NULL)
        return check_state(lock);
    status = confirm_connection(lock, channel, error);
    if (status == DBLOCK_CANCELLED) /* by stop_fd: nothing else ends it */
        status = dblk_client_closed(error);
    dblk_channel_put(lock->client, channel);
    return status;
}

/* An extend to a shorter time may take effect the moment it is sent, whatever becomes of its answer:
 * belief is cut to that before. What was believed until then comes back through `before`, and the
 * number of this extend through `round`. From here on a release does not hand the grant over: whoever
 * was given it would believe in the time that it had before. */
static dblock_status begin_extend(dblock_lock *lock, uint64_t ttl_us,
    const _Atomic uint64_t **before, uint64_t *own_before_us, unsigned *round)
{
    uint64_t now_us = dblk_now_us();
    dblock_status status;

    dblk_lock_client(lock->client);
    (void)dblk_lock_expire(lock, now_us);
    status = read_state(lock);
    if (status != DBLOCK_OK) {
        dblk_unlock_client(lock->client);
        return status;
    }
    *before = atomic_load(&lock->deadline_us);
    *own_before_us = atomic_load(&lock->own_deadline_us);
    atomic_store(&lock->own_deadline_us,
        dblk_sooner(dblk_lock_deadline(lock), dblk_belief_end(now_us, ttl_us)));
    atomic_store(&lock->deadline_us, &lock->own_deadline_us);
    ++lock->n_extending;
    *round = ++lock->extend_round;
    dblk_clock_due(lock->client, dblk_lock_deadline(lock));
    dblk_unlock_client(lock->client);
    return DBLOCK_OK;
}

static void end_extend(dblock_lock *lock, dblock_status status, uint64_t ttl_us,
    const struct dblk_short_result *result)
{
    dblock_client *client = lock->client;
    uint64_t now_us = dblk_now_us();

    --lock->n_extending;
    if (status == DBLOCK_E_UNCERTAIN || result->was_uncertain) {
        /* it may be carried out later than one that is sent after it */
        if (lock->least_ttl_us == 0 || now_us >= lock->least_until_us ||
            ttl_us < lock->least_ttl_us)
            lock->least_ttl_us = ttl_us;
        lock->least_until_us = dblk_later(now_us, 2 * client->settings.io_us);
    }
    if (status != DBLOCK_OK || dblk_lock_expire(lock, now_us) ||
        atomic_load(&lock->state) != DBLK_LOCK_HELD)
        return;
    if (lock->least_ttl_us != 0 && now_us < lock->least_until_us &&
        lock->least_ttl_us < ttl_us)
        atomic_store(
            &lock->own_deadline_us, dblk_belief_end(result->sent_us, lock->least_ttl_us));
    else
        atomic_store(&lock->own_deadline_us, dblk_belief_end(result->sent_us, ttl_us));
    atomic_store(&lock->ttl_us, ttl_us);
    dblk_session_unref(client, lock->session);
    lock->session = NULL;
    lock->is_remote_heartbeat = 0;
    lock->is_announced = 0;
    dblk_clock_due(client, 0);
}

/* The grant is timed from now on. The new deadline counts from before the request. */
static dblock_status set_end(dblock_lock *lock, uint64_t ttl_us, struct dblock_error *error)
{
    dblock_client *client = lock->client;
    const _Atomic uint64_t *before;
    struct dblk_hold_request request;
    struct dblk_short_result result;
    uint64_t own_before_us;
    unsigned round;
    dblock_status status = begin_extend(lock, ttl_us, &before, &own_before_us, &round);

    if (status != DBLOCK_OK)
        return status;
    dblk_hold_request(&request, lock);
    request.time_us = ttl_us;
    memset(&result, 0, sizeof result);
    status = dblk_short(client, 0, 0, dblk_hold_extend, &request, &result, error);
    if (status == DBLOCK_OK && result.answer.outcome == DBLOCK_ANSWER_PINNED) {
        status = dblock_error_set(error, DBLOCK_E_DATABASE, "try again when it has ended",
            "a guarded transaction stands on lock \"%s\"", lock->subject.name);
        error->is_transient = 1;
    }
    if (status == DBLOCK_OK && result.answer.outcome != DBLOCK_ANSWER_YES)
        status = lose(lock, DBLOCK_CAUSE_SERVER);
    dblk_lock_client(client);
    end_extend(lock, status, ttl_us, &result);
    /* certainly without effect, and no other extend has begun since: as it was */
    if (status < 0 && status != DBLOCK_E_UNCERTAIN && lock->n_extending == 0 && round == lock->extend_round &&
        atomic_load(&lock->state) == DBLK_LOCK_HELD) {
        atomic_store(&lock->own_deadline_us, own_before_us);
        atomic_store(&lock->deadline_us, before);
        dblk_clock_due(client, 0);
    }
    if (status == DBLOCK_OK)
        status = read_state(lock);
    dblk_unlock_client(client);
    return status;
}

static dblock_status check_ttl(
    uint64_t ttl_ms, const char *what, struct dblock_error *error)
{
    if (ttl_ms >= DBLK_TTL_MIN_MS && ttl_ms <= DBLK_TEN_YEARS_MS)
        return DBLOCK_OK;
    return dblock_error_set(error, DBLOCK_E_ARGUMENT, NULL,
        "%s: ttl_ms is below %u or above ten years", what, DBLK_TTL_MIN_MS);
}

static dblock_status extend(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *error)
{
    int is_timed;
    dblock_status status;

    if (dblk_lock_is_joined(lock))
        return dblk_lock_refuse_joined(lock, error);
    dblk_lock_client(lock->client); /* a release on another thread takes the session away */
    is_timed = !lock->strategy->lives_in_connection && lock->session == NULL &&
        !lock->is_remote_heartbeat;
    dblk_unlock_client(lock->client);
    if (!is_timed && ttl_ms == 0)
        return confirm(lock, error);
    if (!is_timed)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
            "pass 0 to ask whether it stands; dblock_lock_detach() makes a lease or insert timed",
            "lock \"%s\" has no end of its own: it is kept by its %s", lock->subject.name,
            lock->strategy->lives_in_connection ? "connection" : "heartbeat");
    if (ttl_ms == 0)
        return set_end(lock, lock->asked_ttl_us, error);
    status = check_ttl(ttl_ms, "dblock_extend", error);
    return status == DBLOCK_OK ? set_end(lock, dblk_ms(ttl_ms), error) : status;
}

static dblock_status detach(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *error)
{
    dblock_status status;

    if (dblk_lock_is_joined(lock))
        return dblk_lock_refuse_joined(lock, error);
    if (lock->strategy->lives_in_connection)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "a %s lock ends with its connection", dblock_strategy_name(lock->strategy->id));
    status = check_ttl(ttl_ms, "dblock_lock_detach", error);
    if (status == DBLOCK_OK)
        status = set_end(lock, dblk_ms(ttl_ms), error);
    if (status == DBLOCK_OK) {
        dblk_lock_client(lock->client);
        lock->is_import = 1;
        dblk_names_remove(&lock->client->names, lock); /* whoever waits for it asks the database */
        dblk_queue_wake(lock);
        dblk_unlock_client(lock->client);
    }
    return status;
}

typedef dblock_status (*act_fn)(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *error);

static dblock_status act_confirm(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *error)
{
    (void)ttl_ms;
    return confirm(lock, error);
}

static dblock_status enter_and(
    act_fn act, dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *reterr)
{
    struct dblock_error error;
    dblock_status status;

    memset(&error, 0, sizeof error);
    status = dblk_lock_enter(lock, &error);
    if (status == DBLOCK_E_CLOSED) /* close has released it */
        return DBLOCK_NOT_HELD;
    if (status == DBLOCK_OK)
        status = act(lock, ttl_ms, &error);
    if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}

dblock_status dblock_extend(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *reterr)
{
    return enter_and(extend, lock, ttl_ms, reterr);
}

dblock_status dblock_confirm(dblock_lock *lock, struct dblock_error *reterr)
{
    return enter_and(act_confirm, lock, 0, reterr);
}

dblock_status dblock_lock_detach(dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *reterr)
{
    return enter_and(detach, lock, ttl_ms, reterr);
}
