/* SPDX-License-Identifier: MIT */
/* acquire.c - dblock_acquire() and dblock_with(): the loop that asks the
 * strategy for the next step until it has decided. */
#include <errno.h>
#include <string.h>

#include "core/borrowed.h"
#include "core/channel.h"
#include "core/close.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/keeper.h"
#include "core/link.h"
#include "core/name.h"
#include "core/perform.h"
#include "core/session.h"
#include "core/token.h"
#include "core/trace.h"

enum { PINNED_PAUSE_US = 100000 };

/* A wait that other threads of this client may share. In order of arrival over all machines each
 * has to stand in line itself. */
static int is_shared_wait(const struct dblk_attempt *attempt)
{
    return attempt->wish->wait_us > 0 && !attempt->wish->is_fair;
}

/* About to wait for somebody else's grant; while an answer is being settled nothing is shared. */
static int is_about_to_wait(const struct dblk_attempt *attempt, const struct dblk_step *step)
{
    return attempt->machine.stage == DBLK_STAGE_PAUSE || step->kind == DBLK_STEP_STAND ||
        step->wait_us > 0;
}

static enum dblk_event_kind find_verdict(
    const struct dblk_attempt *attempt, enum dblk_event_kind otherwise)
{
    int verdict = dblk_waiter_verdict(&attempt->waiter);

    return verdict != 0 ? (enum dblk_event_kind)verdict : otherwise;
}

static dblock_status loop(struct dblk_attempt *attempt, uint64_t begun_us, int *ret_is_open)
{
    struct dblk_event event = { DBLK_EVENT_STARTED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    struct dblk_step step = { DBLK_STEP_END, 0, 0, 0, DBLOCK_OK, 0 };
    enum dblk_turn turn = DBLK_TURN_ASK;

    event.now_us = begun_us;
    if (is_shared_wait(attempt))
        turn = dblk_queue_enter(
            &attempt->queued, attempt->machine.terms.give_up_us, &event.now_us);
    event.kind = find_verdict(attempt, DBLK_EVENT_STARTED);
    for (;;) {
        if (turn == DBLK_TURN_GRANTED && dblk_queue_accept(&attempt->queued, event.now_us))
            break;
        turn = DBLK_TURN_ASK; /* what it takes by itself from here on is not what was handed to it */
        step = dblk_machine_next(&attempt->machine, &event);
        if (step.kind == DBLK_STEP_END)
            break;
        if (is_shared_wait(attempt) && is_about_to_wait(attempt, &step)) {
            turn = dblk_queue_contend(
                &attempt->queued, attempt->machine.terms.give_up_us, &event.now_us);
            if (turn != DBLK_TURN_ASK) { /* after a wait: what was asked is old */
                event.kind = find_verdict(attempt, DBLK_EVENT_PAUSED);
                continue;
            }
        }
        dblk_attempt_count_waiter(attempt, &step, 1);
        dblk_perform(attempt, &step, &event);
        dblk_attempt_count_waiter(attempt, &step, -1);
    }
    dblk_place_leave(&attempt->place, attempt->client, event.now_us);
    *ret_is_open = step.is_open;
    attempt->lock->granted_us = event.now_us; /* if it is granted */
    return step.status;
}

/* The grant is there: from now on it is believed, and the keeper watches it. */
static dblock_status hold(struct dblk_attempt *attempt, uint64_t begun_us)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    dblock_status status = dblk_token_check(lock, lock->token, &attempt->error);

    if (status != DBLOCK_OK)
        return status;
    dblk_lock_client(client);
    if (atomic_load(&client->is_closing)) {
        dblk_unlock_client(client);
        return dblk_client_closed(&attempt->error);
    }
    if (lock->channel != NULL) {
        if (lock->n_handed == 0)
            dblk_channel_proved(client, lock->channel, lock->taken_us);
        dblk_publish(&lock->deadline_us, &lock->channel->deadline_us);
    } else if (lock->session != NULL) {
        dblk_publish(&lock->deadline_us, &lock->session->deadline_us);
        /* a reading that ended before this thread had woken knew nothing of it */
        if (lock->n_handed != 0 && lock->session->read_us > lock->handed_since_us &&
            lock->session->read_us != lock->read_us)
            dblk_session_read_back(client, lock->session, lock->granted_us);
    } else if (lock->n_handed == 0) {
        dblk_publish(&lock->own_deadline_us,
            dblk_belief_end(lock->taken_us, atomic_load(&lock->ttl_us)));
    }
    dblk_lock_hold(lock);
    ++client->stats.grants;
    client->stats.wait_us += lock->granted_us - begun_us;
    dblk_clock_due(client,
        dblk_lock_deadline(lock) > lock->expiring_us ? dblk_lock_deadline(lock) - lock->expiring_us
                                                     : 0);
    dblk_unlock_client(client);
    return DBLOCK_OK;
}

/* Given to the keeper: granted although nobody wants it any more, or perhaps granted yet. */
static DBLOCK_COLD_ void abandon(struct dblk_attempt *attempt, int64_t not_after_us)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblk_channel *channel = lock->channel;
    int is_closing;

    dblk_lock_client(client);
    atomic_store(&lock->state, DBLK_LOCK_RELEASED);
    dblk_names_remove(&client->names, lock);
    dblk_queue_wake(lock);
    if (channel != NULL && channel->n_locks == 1)
        dblk_channel_lose(client, channel, NULL);
    lock->is_freed = 1;
    is_closing = atomic_load(&client->is_closing);
    if (!is_closing && (channel == NULL || !channel->is_dead)) {
        dblk_lock_orphan(lock, not_after_us);
        lock = NULL;
    } else {
        dblk_lock_unregister(lock);
    }
    dblk_unlock_client(client);
    if (lock == NULL)
        return;
    if (is_closing) /* there is no keeper any more */
        dblk_close_drop(client, lock);
    dblk_lock_destroy(lock);
}

static DBLOCK_COLD_ void discard(dblock_lock *lock)
{
    dblk_lock_client(lock->client);
    dblk_lock_unregister(lock);
    dblk_unlock_client(lock->client);
    dblk_lock_destroy(lock);
}

/* A grant with DBLOCK_FENCED that another thread of this client has handed over: it has that one's
 * token. It is held while it waits for the end of a guarded transaction. */
static DBLOCK_COLD_ dblock_status fence(struct dblk_attempt *attempt)
{
    const uint64_t give_up_us = attempt->machine.terms.give_up_us;
    int64_t token;
    dblock_status status;

    dblk_waiter_init(&attempt->waiter, attempt->client, attempt->wish->canceller);
    while ((status = dblk_token_get(
                attempt->lock, attempt->end_us, &token, &attempt->error)) == DBLOCK_PENDING) {
        uint64_t now_us = dblk_now_us();
        uint64_t until_us = dblk_sooner(dblk_later(now_us, PINNED_PAUSE_US), give_up_us);

        dblk_perform_tell_pinned(attempt);
        status = DBLOCK_BUSY;
        if (now_us >= give_up_us)
            break;
        status = DBLOCK_CANCELLED;
        if (dblk_waiter_pause(&attempt->waiter, until_us) != DBLK_EVENT_PAUSED)
            break;
    }
    dblk_waiter_fini(&attempt->waiter);
    if (status > 0 && atomic_load(&attempt->client->is_closing))
        status = dblk_client_closed(&attempt->error);
    else if (status == DBLOCK_LOST || status == DBLOCK_NOT_HELD) /* again, while it was drawn */
        status = dblock_error_set(&attempt->error, DBLOCK_E_CONNECTION, "try again",
            "lock \"%s\" was lost while its token was drawn", attempt->lock->subject.name);
    return status;
}

static void explain(struct dblk_attempt *attempt, dblock_status status)
{
    struct dblock_error *error = &attempt->error;
    const char *name = attempt->lock->subject.name;

    if (status == DBLOCK_E_CLOSED)
        (void)dblk_client_closed(error);
    else if (status == DBLOCK_E_UNCERTAIN)
        (void)dblock_error_set(error, status,
            "the keeper finds out and gives the lock back; try again",
            "it is not known whether lock \"%s\" was granted: the connection was lost, and the "
            "database could not be asked in time", name);
    else if (error->status == DBLOCK_OK)
        (void)dblock_error_set(error, status, NULL, "cannot acquire lock \"%s\": %s", name,
            dblock_status_text(status));
    else
        error->status = status;
}

/* Row and advisory stand in the server's own queue. */
static DBLOCK_COLD_ dblock_status check_line(const dblock_client *client,
    const struct dblk_wish *wish, const char *name, struct dblock_error *reterr)
{
    if (dblk_strategy_of(wish->strategy)->lives_in_connection || dblk_place_is_possible(client))
        return DBLOCK_OK;
    return dblk_place_refuse(name, reterr);
}

static dblock_status check(dblock_client *client, const char *name,
    const struct dblock_options *options, struct dblk_wish *ret_wish, struct dblock_error *reterr)
{
    dblock_status status = dblk_name_check(name, reterr);

    if (status == DBLOCK_OK)
        status = dblk_wish_resolve(&client->settings, options, ret_wish, reterr);
    if (status == DBLOCK_OK && dblk_is_borrowing(client))
        status = dblk_borrowed_check_wish(client, ret_wish, name, reterr);
    if (status == DBLOCK_OK && ret_wish->is_fair && ret_wish->wait_us > 0)
        status = check_line(client, ret_wish, name, reterr);
    if (status == DBLOCK_OK)
        status = dblk_keeper_ensure(client, reterr);
    return status;
}

/* Not granted, or granted and of no use. `is_open`: the database may have a grant all the same. */
static DBLOCK_COLD_ dblock_status finish(struct dblk_attempt *attempt, dblock_status status,
    int is_open, uint64_t begun_us, struct dblock_error *reterr)
{
    dblk_attempt_count(attempt, status, begun_us);
    if (status < 0)
        explain(attempt, status);
    status = dblk_attempt_tell(attempt, status, reterr);
    dblk_client_ref(attempt->client);
    if (is_open)
        abandon(attempt, attempt->not_after_us);
    else
        discard(attempt->lock);
    return status;
}

/* Granted and held, and the token that was asked for with it cannot be had. */
static DBLOCK_COLD_ dblock_status let_go(
    struct dblk_attempt *attempt, dblock_status status, struct dblock_error *reterr)
{
    status = dblk_attempt_tell(attempt, status, reterr);
    dblk_client_ref(attempt->client);
    dblock_lock_free(attempt->lock);
    return status;
}

/* Whoever waits for a row wants to know whose it is: that one rings his bell. */
static int wants_holder(const struct dblk_wish *wish)
{
    return wish->busy != NULL ||
        (wish->wait_us > 0 && !dblk_strategy_of(wish->strategy)->lives_in_connection);
}

/* OK: the reference on the client that the caller has taken is the lock's from then on. Whoever
 * gives the lock away takes one more: so a pair counts twice, and not six times. */
static dblock_status acquire(dblock_client *client, const char *name,
    const struct dblk_wish *wish, uint64_t begun_us, dblock_lock **ret_lock,
    struct dblock_error *reterr)
{
    const struct dblk_strategy *strategy = dblk_strategy_of(wish->strategy);
    struct dblk_attempt attempt;
    struct dblock_grant holder;
    struct dblk_terms terms;
    unsigned n_given_back;
    int is_open = 0;
    dblock_status status;

    attempt.client = client;
    attempt.wish = wish;
    attempt.holder = NULL;
    if (wants_holder(wish)) {
        memset(&holder, 0, sizeof holder);
        holder.struct_size = sizeof holder;
        attempt.holder = &holder;
    }
    attempt.sent_us = 0;
    attempt.not_after_us = 0;
    memset(&attempt.place, 0, sizeof attempt.place);
    attempt.queued = (struct dblk_queued){ &attempt, NULL, NULL, 0, NULL };
    dblk_error_clear(&attempt.error);
    attempt.lock = dblk_lock_new(client, name, wish);
    if (attempt.lock == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    dblk_attempt_set_terms(&attempt, begun_us, &terms);
    attempt.end_us = dblk_later(terms.give_up_us, client->settings.io_us);
    dblk_waiter_init(&attempt.waiter, client, wish->canceller);
    dblk_machine_start(&attempt.machine, strategy, &terms);
    n_given_back = atomic_load(&client->n_given_back);
    status = loop(&attempt, begun_us, &is_open);
    if (status == DBLOCK_BUSY && wish->wait_us == 0 &&
        dblk_orphans_await(attempt.lock, n_given_back, attempt.end_us)) {
        dblk_machine_start(&attempt.machine, strategy, &terms);
        status = loop(&attempt, dblk_now_us(), &is_open);
    }
    dblk_waiter_fini(&attempt.waiter);
    if (status == DBLOCK_OK) {
        status = hold(&attempt, begun_us);
        if (status != DBLOCK_OK)
            is_open = 1;
    }
    if (dblk_queued_is_used(&attempt.queued))
        dblk_queue_leave(&attempt.queued, status == DBLOCK_OK);
    if (status != DBLOCK_OK)
        return finish(&attempt, status, is_open, begun_us, reterr);
    if (wish->is_fenced && attempt.lock->token == 0)
        status = fence(&attempt);
    if (status != DBLOCK_OK)
        return let_go(&attempt, status, reterr);
    dblk_trace(client, DBLOCK_TRACE_GRANT, status, name, NULL, attempt.lock->token, begun_us);
    *ret_lock = attempt.lock;
    return DBLOCK_OK;
}

dblock_status dblock_acquire(dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *reterr)
{
    struct dblk_wish wish;
    uint64_t begun_us = dblk_now_us();
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (ret_lock == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_lock: NULL");
    if (status == DBLOCK_OK)
        status = check(client, name, options, &wish, reterr);
    if (status == DBLOCK_OK)
        status = acquire(client, name, &wish, begun_us, ret_lock, reterr);
    if (status != DBLOCK_OK)
        dblk_client_leave(client);
    return status;
}

dblock_status dblock_with(dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_work_fn fn, void *context, int *ret_result,
    struct dblock_error *reterr)
{
    dblock_lock *lock = NULL;
    dblock_status status;
    int result;

    if (fn == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "fn: NULL");
    status = dblock_acquire(client, name, options, &lock, reterr);
    if (status != DBLOCK_OK)
        return status;
    result = fn(lock, context);
    if (ret_result != NULL)
        *ret_result = result;
    if (!dblock_lock_is_held(lock))
        status = DBLOCK_LOST;
    /* the work was protected to its end; a release that fails is the keeper's matter */
    if (dblock_release(lock, NULL) == DBLOCK_LOST)
        status = DBLOCK_LOST;
    dblock_lock_free(lock);
    return status;
}
