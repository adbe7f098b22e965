/* SPDX-License-Identifier: MIT */
/* perform.c - see perform.h. */
#include "core/perform.h"

#include <errno.h>
#include <string.h>

#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/link.h"
#include "core/session.h"
#include "core/trace.h"

static void set_failed(struct dblk_attempt *attempt, dblock_status status, int is_reused,
    struct dblk_event *event)
{
    if (status > 0) { /* a wait that was ended */
        int verdict = dblk_waiter_verdict(&attempt->waiter);

        event->kind = verdict != 0 ? (enum dblk_event_kind)verdict : DBLK_EVENT_CANCELLED;
        return;
    }
    event->kind = DBLK_EVENT_FAILED;
    event->status = status;
    event->is_transient = attempt->error.is_transient != 0;
    event->is_reused = is_reused;
}

static void set_answered(const struct dblock_answer *answer, struct dblk_event *event)
{
    event->kind = DBLK_EVENT_ANSWERED;
    event->outcome = answer->outcome;
    event->remaining_us = answer->remaining_us;
}

static void ensure_session(
    struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_lock *lock = attempt->lock;
    struct dblk_session *session = NULL;
    dblock_status status;

    if (lock->session != NULL && now_us < atomic_load(&lock->session->deadline_us)) {
        event->outcome = DBLOCK_ANSWER_YES;
        return;
    }
    status = dblk_session_get(attempt->client, now_us, atomic_load(&lock->ttl_us),
        dblk_waiter_short_fd(&attempt->waiter), &session, &attempt->error);
    if (status != DBLOCK_OK) {
        set_failed(attempt, status, 0, event);
        return;
    }
    dblk_lock_client(attempt->client);
    dblk_session_unref(attempt->client, lock->session);
    lock->session = session;
    dblk_unlock_client(attempt->client);
    event->outcome = DBLOCK_ANSWER_YES;
}

/* A new owner id for each take: an id that was sent once may still be on its way. */
static int renew_owner(struct dblk_attempt *attempt)
{
    int fault;

    dblk_lock_client(attempt->client);
    dblk_lock_unregister(attempt->lock);
    fault = dblk_lock_register(attempt->lock);
    dblk_unlock_client(attempt->client);
    if (fault == ENOMEM)
        (void)dblock_error_set(&attempt->error, DBLOCK_E_MEMORY, NULL, "out of memory");
    else if (fault != 0)
        (void)dblock_error_set(&attempt->error, DBLOCK_E_SYSTEM, NULL,
            "no random bytes for an owner: %s", strerror(fault));
    return fault;
}

static void fill_take(const struct dblk_attempt *attempt, uint64_t wait_us, int heeds_line,
    struct dblock_take *take)
{
    const dblock_lock *lock = attempt->lock;

    take->subject = lock->subject;
    take->owner = lock->owner;
    take->session = lock->session != NULL ? lock->session->id : NULL;
    take->ttl_us = atomic_load(&lock->ttl_us);
    take->not_after_us = attempt->not_after_us;
    take->wait_us = wait_us;
    take->heeds_line = heeds_line;
    take->label = lock->label;
}

static uint64_t find_deadline(const dblock_lock *lock, uint64_t sent_us)
{
    return lock->session != NULL ? atomic_load(&lock->session->deadline_us)
                                 : dblk_belief_end(sent_us, atomic_load(&lock->ttl_us));
}

/* My session is over, says the database: its grants are lost, and the next take begins a new one. */
static void lose_session(struct dblk_attempt *attempt)
{
    dblk_lock_client(attempt->client);
    dblk_session_lose(
        attempt->client, attempt->lock->session, DBLOCK_CAUSE_SERVER, NULL);
    dblk_unlock_client(attempt->client);
}

static void take_recorded(
    struct dblk_attempt *attempt, uint64_t now_us, int heeds_line, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    /* also for those who wait: whose grant is in the way says which bell to listen for */
    struct dblock_grant *holder =
        attempt->wish->busy != NULL || attempt->machine.is_first ? &attempt->holder : NULL;
    struct dblock_call call;
    struct dblock_answer answer;
    struct dblock_take take;
    struct dblk_link *link = NULL;
    uint64_t link_id;
    int is_reused;
    dblock_status status;

    if (renew_owner(attempt) != 0) {
        set_failed(attempt, attempt->error.status, 0, event);
        return;
    }
    call.cancel_fd = dblk_waiter_short_fd(&attempt->waiter);
    call.deadline_us = dblk_later(now_us, client->settings.io_us);
    status =
        dblk_link_lend(client, &now_us, call.deadline_us, call.cancel_fd, &link, &attempt->error);
    if (status != DBLOCK_OK) {
        set_failed(attempt, status, 0, event);
        return;
    }
    is_reused = link->is_reused;
    link_id = link->id;
    memset(&answer, 0, sizeof answer);
    attempt->sent_us = now_us;
    call.deadline_us = dblk_later(attempt->sent_us, attempt->machine.terms.io_us);
    attempt->not_after_us = dblk_link_database_us(link, call.deadline_us);
    fill_take(attempt, 0, heeds_line, &take);
    status = dblk_hold_steps(client, lock->strategy->id)
                 ->take(link->connection, &call, &take, holder, &answer, &attempt->error);
    event->now_us = dblk_now_us();
    if (status == DBLOCK_OK)
        dblk_link_saw_clock(client, link, attempt->sent_us, event->now_us, answer.now_us);
    dblk_link_return(client, link);
    if (status != DBLOCK_OK) {
        set_failed(attempt, status, is_reused, event);
        return;
    }
    set_answered(&answer, event);
    if (answer.outcome == DBLOCK_ANSWER_SESSION)
        lose_session(attempt);
    if (answer.outcome == DBLOCK_ANSWER_YES) {
        lock->token = answer.token;
        lock->link_id = link_id;
        lock->taken_us = attempt->sent_us;
        event->deadline_us = find_deadline(lock, attempt->sent_us);
    }
}

static void look(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    /* not far beyond the time in which it is of use */
    struct dblock_call call = { dblk_sooner(dblk_later(now_us, attempt->machine.terms.io_us),
                                    dblk_later(attempt->machine.settle_us, 10000)),
        dblk_waiter_short_fd(&attempt->waiter) };
    struct dblock_answer answer;
    struct dblock_error error; /* a look that fails does not hide why it was needed */
    struct dblk_link *link = NULL;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    dblk_error_clear(&error);
    status = dblk_link_lend(client, &now_us, call.deadline_us, call.cancel_fd, &link, &error);
    if (status == DBLOCK_OK) {
        status = dblk_hold_steps(client, lock->strategy->id)->look(
            link->connection, &call, &lock->subject, &grant, &answer, &error);
        if (status == DBLOCK_OK)
            dblk_link_saw_clock(client, link, now_us, dblk_now_us(), answer.now_us);
        dblk_link_return(client, link);
    }
    if (status != DBLOCK_OK) {
        set_failed(attempt, status, 0, event);
        return;
    }
    set_answered(&answer, event);
    event->is_mine = answer.outcome == DBLOCK_ANSWER_YES &&
        strcmp(grant.owner, lock->owner_text) == 0;
    event->is_past = answer.now_us > attempt->not_after_us;
    if (answer.outcome == DBLOCK_ANSWER_YES && !event->is_mine)
        attempt->holder = grant;
    if (event->is_mine) {
        lock->token = grant.token;
        lock->taken_us = attempt->sent_us;
        event->deadline_us = find_deadline(lock, attempt->sent_us);
    }
    dblk_trace(client, DBLOCK_TRACE_SETTLE, DBLOCK_OK, lock->subject.name,
        event->is_mine ? "a lost answer: granted"
            : event->is_past ? "a lost answer: not granted"
                             : "a lost answer: not known yet",
        lock->token, attempt->sent_us);
}

static void give_back(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblock_call call = { dblk_later(now_us, client->settings.io_us), -1 };
    struct dblock_answer answer;
    struct dblk_link *link = NULL;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    lock->token = 0;
    status = dblk_link_lend(
        client, &now_us, call.deadline_us, client->stop_fd, &link, &attempt->error);
    if (status == DBLOCK_OK) {
        status = dblk_hold_steps(client, lock->strategy->id)
                     ->drop(link->connection, &call, &lock->subject, lock->owner, 0, &answer,
                         &attempt->error);
        dblk_link_return(client, link);
    }
    if (status != DBLOCK_OK)
        set_failed(attempt, status, 0, event);
    else
        set_answered(&answer, event);
}

static void seed(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    struct dblock_call call = { dblk_later(now_us, client->settings.io_us),
        dblk_waiter_short_fd(&attempt->waiter) };
    struct dblock_answer answer;
    struct dblk_link *link = NULL;
    int is_reused = 0;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    status =
        dblk_link_lend(client, &now_us, call.deadline_us, call.cancel_fd, &link, &attempt->error);
    if (status == DBLOCK_OK) {
        is_reused = link->is_reused;
        status = client->driver->row.seed(
            link->connection, &call, &attempt->lock->subject, &answer, &attempt->error);
        dblk_link_return(client, link);
    }
    if (status != DBLOCK_OK)
        set_failed(attempt, status, is_reused, event);
    else
        set_answered(&answer, event);
}

static void stand_in_line(struct dblk_attempt *attempt, uint64_t wait_us, uint64_t now_us,
    struct dblk_event *event)
{
    struct dblock_answer answer;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    event->now_us = now_us;
    status = dblk_place_stand(&attempt->place, &attempt->waiter, attempt->lock,
        attempt->wish->is_fair, wait_us, &event->now_us, &answer, &attempt->error);
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_NO && attempt->wish->is_fair)
        status = dblk_place_refuse(attempt->lock->subject.name, &attempt->error);
    if (status != DBLOCK_OK)
        set_failed(attempt, status, 0, event);
    else
        set_answered(&answer, event);
    if (attempt->wish->busy == NULL) { /* the takes of the first in line ask who holds it */
        memset(&attempt->holder, 0, sizeof attempt->holder);
        attempt->holder.struct_size = sizeof attempt->holder;
    }
}

static void rest_in_line(struct dblk_attempt *attempt, uint64_t until_us, struct dblk_event *event)
{
    struct dblock_answer answer;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    status = dblk_place_rest(&attempt->place, &attempt->waiter, attempt->holder.owner, until_us,
        &event->now_us, &answer, &attempt->error);
    if (status != DBLOCK_OK)
        set_failed(attempt, status, 0, event);
    else
        set_answered(&answer, event);
}

/* A grant that came after a long wait, or was seen late, says little: the server may have ended
 * the connection again since (an idle limit, while this process stood still). So it is asked. */
static dblock_status prove_late(
    struct dblk_attempt *attempt, struct dblock_connection *connection, uint64_t *now_us)
{
    dblock_client *client = attempt->client;
    struct dblock_call call;
    struct dblock_answer answer;
    dblock_status status;

    if (*now_us - attempt->sent_us <= client->settings.ttl_us / 8)
        return DBLOCK_OK;
    memset(&answer, 0, sizeof answer);
    call.deadline_us = dblk_later(*now_us, client->settings.io_us);
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

static void take_in_connection(
    struct dblk_attempt *attempt, uint64_t now_us, uint64_t wait_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblock_grant *holder = attempt->wish->busy != NULL ? &attempt->holder : NULL;
    struct dblk_channel *channel = NULL;
    struct dblock_connection *connection;
    struct dblock_call call;
    struct dblock_answer answer;
    struct dblock_take take;
    int is_reused;
    dblock_status status;

    call.cancel_fd =
        wait_us > 0 ? dblk_waiter_fd(&attempt->waiter) : dblk_waiter_short_fd(&attempt->waiter);
    if (renew_owner(attempt) != 0) {
        set_failed(attempt, attempt->error.status, 0, event);
        return;
    }
    status = dblk_channel_get(client, lock->strategy->id, wait_us > 0, &now_us, call.cancel_fd,
        &channel, &attempt->error);
    if (status != DBLOCK_OK) {
        set_failed(attempt, status, 0, event);
        return;
    }
    memset(&answer, 0, sizeof answer);
    connection = dblk_channel_use(channel);
    is_reused = channel->link == NULL || channel->link->is_reused;
    attempt->sent_us = now_us;
    call.deadline_us =
        dblk_later(dblk_later(attempt->sent_us, wait_us), client->settings.io_us);
    attempt->not_after_us = INT64_MAX; /* it lives in the connection: nothing comes later */
    fill_take(attempt, wait_us, 0, &take);
    status = connection == NULL
        ? dblock_error_set(
              &attempt->error, DBLOCK_E_CONNECTION, NULL, "the connection was lost meanwhile")
        : dblk_connection_steps(client, attempt->lock->strategy->id)->take(
              connection, &call, &take, holder, &answer, &attempt->error);
    event->now_us = dblk_now_us();
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES)
        status = prove_late(attempt, connection, &event->now_us);
    if (channel->link != NULL) {
        channel->link->is_reused = 1; /* the next use may find it stale */
        if (status == DBLOCK_OK)
            channel->link->heard_us = event->now_us;
    }
    dblk_channel_unuse(channel);
    if (status == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES) {
        lock->channel = channel;
        lock->taken_us = attempt->sent_us;
        set_answered(&answer, event);
        return;
    }
    dblk_channel_put(client, channel);
    if (status != DBLOCK_OK)
        set_failed(attempt, status, is_reused, event);
    else
        set_answered(&answer, event);
}

static void trace_wait(const struct dblk_attempt *attempt, uint64_t begun_us)
{
    dblk_trace(attempt->client, DBLOCK_TRACE_WAIT, DBLOCK_OK, attempt->lock->subject.name, NULL,
        0, begun_us);
}

void dblk_perform(
    struct dblk_attempt *attempt, const struct dblk_step *step, struct dblk_event *ret_event)
{
    uint64_t begun_us = ret_event->now_us;

    memset(ret_event, 0, sizeof *ret_event);
    ret_event->kind = DBLK_EVENT_ANSWERED;
    switch (step->kind) {
    case DBLK_STEP_SESSION:
        ensure_session(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_SEED:
        seed(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_TAKE:
        if (attempt->lock->strategy->lives_in_connection)
            take_in_connection(attempt, begun_us, step->wait_us, ret_event);
        else
            take_recorded(attempt, begun_us, step->heeds_line, ret_event);
        dblk_trace(attempt->client, DBLOCK_TRACE_ATTEMPT,
            ret_event->kind == DBLK_EVENT_FAILED ? ret_event->status
                : ret_event->kind == DBLK_EVENT_ANSWERED &&
                    ret_event->outcome == DBLOCK_ANSWER_YES
                ? DBLOCK_OK
                : DBLOCK_BUSY,
            attempt->lock->subject.name,
            ret_event->kind == DBLK_EVENT_FAILED ? attempt->error.message : NULL,
            attempt->lock->token, begun_us);
        break;
    case DBLK_STEP_LOOK:
        look(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_GIVE_BACK:
        give_back(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_STAND:
        stand_in_line(attempt, step->wait_us, begun_us, ret_event);
        trace_wait(attempt, begun_us);
        break;
    case DBLK_STEP_REST:
        rest_in_line(attempt, step->until_us, ret_event);
        trace_wait(attempt, begun_us);
        break;
    case DBLK_STEP_PAUSE:
        ret_event->kind =
            (enum dblk_event_kind)dblk_waiter_pause(&attempt->waiter, step->until_us);
        trace_wait(attempt, begun_us);
        break;
    default:
        break;
    }
    if (ret_event->now_us == 0)
        ret_event->now_us = dblk_now_us();
    /* jitter only where something has to be waited for: an uncontended take draws none */
    if (ret_event->kind != DBLK_EVENT_ANSWERED || ret_event->outcome != DBLOCK_ANSWER_YES)
        ret_event->random = dblk_random_u64();
}
