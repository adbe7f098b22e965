/* SPDX-License-Identifier: MIT */
/* perform_recorded.c - the steps of a grant that is a row (lease, insert). */
#include <string.h>

#include "core/driver_steps.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/link.h"
#include "core/perform_steps.h"
#include "core/session.h"
#include "core/trace.h"

void dblk_perform_session(
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
        dblk_perform_limit(attempt, now_us, attempt->client->settings.io_us),
        dblk_waiter_short_fd(&attempt->waiter), &session, &attempt->error);
    if (status != DBLOCK_OK) {
        dblk_event_failed(attempt, status, 0, event);
        return;
    }
    if (lock->session == NULL) { /* its first one: nobody else knows the lock yet */
        lock->session = session;
    } else {
        dblk_lock_client(attempt->client);
        dblk_session_unref(attempt->client, lock->session);
        lock->session = session;
        dblk_unlock_client(attempt->client);
    }
    event->outcome = DBLOCK_ANSWER_YES;
}

uint64_t dblk_perform_deadline(const dblock_lock *lock, uint64_t sent_us)
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

void dblk_perform_ask(struct dblk_attempt *attempt, uint64_t now_us, int heeds_line,
    dblk_ask *ask, void *context, struct dblock_answer *answer, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    /* also for those who wait: whose grant is in the way says which bell to listen for */
    struct dblock_grant *holder =
        attempt->wish->busy != NULL || attempt->machine.is_first ? attempt->holder : NULL;
    struct dblock_call call;
    struct dblock_take take;
    struct dblk_link *link = NULL;
    int is_reused;
    int is_watched;
    dblock_status status;

    call.cancel_fd = dblk_waiter_short_fd(&attempt->waiter);
    call.deadline_us = dblk_perform_limit(attempt, now_us, client->settings.io_us);
    status =
        dblk_link_lend(client, &now_us, call.deadline_us, call.cancel_fd, &link, &attempt->error);
    if (status != DBLOCK_OK) {
        dblk_event_failed(attempt, status, 0, event);
        return;
    }
    is_reused = link->is_reused;
    attempt->link_id = link->id;
    memset(answer, 0, sizeof *answer);
    dblk_error_clear(&attempt->error);
    attempt->sent_us = now_us;
    call.deadline_us =
        dblk_perform_limit(attempt, attempt->sent_us, attempt->machine.terms.io_us);
    attempt->not_after_us = dblk_link_database_us(link, call.deadline_us);
    dblk_perform_fill_take(attempt, 0, heeds_line, &take);
    is_watched = dblk_link_begin(client, link, &call);
    status = ask(context, link->connection, &call, &take, holder, answer, &attempt->error);
    status = dblk_link_end(client, link, is_watched, status, DBLOCK_E_UNCERTAIN, &attempt->error);
    event->now_us = dblk_now_us();
    if (status == DBLOCK_OK)
        dblk_link_saw_clock(client, link, attempt->sent_us, event->now_us, answer->now_us);
    dblk_link_return(client, link);
    if (status != DBLOCK_OK) {
        dblk_event_failed(attempt, status, is_reused, event);
        return;
    }
    dblk_event_taken(attempt, answer, event);
    if (answer->outcome == DBLOCK_ANSWER_SESSION)
        lose_session(attempt);
}

static dblock_status ask_for_one(void *context, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const dblock_lock *lock = context;

    return dblk_hold_steps(lock->client, lock->strategy->id)
        ->take(connection, call, take, holder, answer, reterr);
}

void dblk_perform_take_recorded(
    struct dblk_attempt *attempt, uint64_t now_us, int heeds_line, struct dblk_event *event)
{
    dblock_lock *lock = attempt->lock;
    struct dblock_answer answer;

    if (dblk_perform_renew_owner(attempt) != 0) {
        dblk_event_failed(attempt, attempt->error.status, 0, event);
        return;
    }
    dblk_perform_ask(attempt, now_us, heeds_line, ask_for_one, lock, &answer, event);
    if (event->kind != DBLK_EVENT_ANSWERED || event->outcome != DBLOCK_ANSWER_YES)
        return;
    lock->token = answer.token;
    lock->link_id = attempt->link_id;
    lock->taken_us = attempt->sent_us;
    event->deadline_us = dblk_perform_deadline(lock, attempt->sent_us);
}

void dblk_perform_look(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
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
        dblk_event_failed(attempt, status, 0, event);
        return;
    }
    dblk_event_answered(&answer, event);
    event->is_mine = answer.outcome == DBLOCK_ANSWER_YES &&
        dblk_lock_is_of(lock, grant.owner);
    event->is_past = answer.now_us > attempt->not_after_us;
    if (answer.outcome == DBLOCK_ANSWER_YES && !event->is_mine && attempt->holder != NULL)
        *attempt->holder = grant;
    if (event->is_mine) {
        lock->token = grant.token;
        lock->taken_us = attempt->sent_us;
        event->deadline_us = dblk_perform_deadline(lock, attempt->sent_us);
    }
    dblk_trace(client, DBLOCK_TRACE_SETTLE, DBLOCK_OK, lock->subject.name,
        event->is_mine ? "a lost answer: granted"
            : event->is_past ? "a lost answer: not granted"
                             : "a lost answer: not known yet",
        lock->token, attempt->sent_us);
}

void dblk_perform_give_back(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event)
{
    dblock_client *client = attempt->client;
    dblock_lock *lock = attempt->lock;
    struct dblock_call call = {
        dblk_perform_limit(attempt, now_us, client->settings.io_us), -1
    };
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
        dblk_event_failed(attempt, status, 0, event);
    else
        dblk_event_answered(&answer, event);
}

void dblk_perform_stand(struct dblk_attempt *attempt, uint64_t wait_us, uint64_t now_us,
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
        dblk_event_failed(attempt, status, 0, event);
    else
        dblk_event_answered(&answer, event);
    if (attempt->wish->busy == NULL) { /* the takes of the first in line ask who holds it */
        memset(attempt->holder, 0, sizeof *attempt->holder);
        attempt->holder->struct_size = sizeof *attempt->holder;
    }
}

void dblk_perform_rest(struct dblk_attempt *attempt, uint64_t until_us, struct dblk_event *event)
{
    struct dblock_answer answer;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    status = dblk_place_rest(&attempt->place, &attempt->waiter, attempt->holder->owner, until_us,
        &event->now_us, &answer, &attempt->error);
    if (status != DBLOCK_OK)
        dblk_event_failed(attempt, status, 0, event);
    else
        dblk_event_answered(&answer, event);
}
