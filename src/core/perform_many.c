/* SPDX-License-Identifier: MIT */
/* perform_many.c - the steps of an acquire of several names (many.h).
 *
 * A lost answer: the database took all of them or none, unless the driver cannot promise that; and
 * some may have been ended by others since. So each name is read. All are ours: granted. None is, and
 * none can be any more: not granted. Anything else is given back, and is then none. */
#include <string.h>

#include "core/driver_steps.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/many.h"
#include "core/perform_steps.h"
#include "core/session.h"
#include "core/trace.h"

int dblk_many_names_init(struct dblock_many *names, size_t n_names)
{
    struct dblock_subject *subjects = dblk_allocate(n_names *
        (sizeof *subjects + sizeof *names->owners + sizeof *names->tokens +
            sizeof *names->outcomes));

    memset(names, 0, sizeof *names);
    if (subjects == NULL)
        return -1;
    names->n_names = n_names;
    names->subjects = subjects;
    names->tokens = (int64_t *)(void *)(subjects + n_names);
    names->owners = (const unsigned char **)(void *)(names->tokens + n_names);
    names->outcomes = (int32_t *)(void *)(names->owners + n_names);
    return 0;
}

void dblk_many_names_fini(struct dblock_many *names)
{
    dblk_release(names->subjects);
}

void dblk_many_names_set(struct dblock_many *names, size_t i, const dblock_lock *lock)
{
    names->subjects[i] = lock->subject;
    names->owners[i] = lock->owner;
}

/* 1: the answer is final. */
static int is_decided(int32_t outcome)
{
    return outcome == DBLOCK_ANSWER_YES || outcome == DBLOCK_ANSWER_NO;
}

static int32_t find_worst(const struct dblock_many *names)
{
    int32_t worst = DBLOCK_ANSWER_YES;
    size_t i;

    for (i = 0; i < names->n_names; ++i)
        if (is_decided(worst) && names->outcomes[i] != DBLOCK_ANSWER_YES)
            worst = names->outcomes[i];
    return worst;
}

static dblock_status drop_each(const struct dblock_driver_hold *steps, struct dblk_link *link,
    const struct dblock_call *call, const struct dblock_many *names, struct dblock_answer *answer,
    struct dblock_error *error)
{
    dblock_status status = DBLOCK_OK;
    size_t i;

    for (i = 0; i < names->n_names && status == DBLOCK_OK; ++i) {
        if (is_decided(names->outcomes[i]))
            continue;
        memset(answer, 0, sizeof *answer);
        status = steps->drop(link->connection, call, &names->subjects[i], names->owners[i], 0,
            answer, error);
        if (status == DBLOCK_OK)
            names->outcomes[i] = answer->outcome;
    }
    return status;
}

dblock_status dblk_many_drop(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, int32_t strategy, const struct dblock_many *names,
    struct dblock_answer *answer, struct dblock_error *error)
{
    const struct dblock_driver_hold *steps = dblk_hold_steps(client, strategy);
    dblock_status status = steps->drop_many != NULL
        ? steps->drop_many(link->connection, call, names, answer, error)
        : drop_each(steps, link, call, names, answer, error);

    if (status == DBLOCK_OK && (steps->drop_many == NULL || answer->outcome == 0))
        answer->outcome = find_worst(names);
    return status;
}

/* All of them in the session of the first. */
static void share_session(struct dblk_many *many)
{
    dblock_client *client = many->attempt.client;
    struct dblk_session *session = many->locks[0]->session;
    size_t i;

    dblk_lock_client(client);
    for (i = 1; i < many->names.n_names; ++i)
        if (many->locks[i]->session != session) {
            dblk_session_unref(client, many->locks[i]->session);
            many->locks[i]->session = session;
            ++session->n_refs;
        }
    dblk_unlock_client(client);
}

static int renew_owners(struct dblk_many *many)
{
    int fault = 0;
    size_t i;

    for (i = 0; i < many->names.n_names && fault == 0; ++i) {
        many->attempt.lock = many->locks[i];
        fault = dblk_perform_renew_owner(&many->attempt);
    }
    return fault;
}

static void note_grants(struct dblk_many *many, struct dblk_event *event)
{
    size_t i;

    for (i = 0; i < many->names.n_names; ++i) {
        many->locks[i]->token = many->names.tokens[i];
        many->locks[i]->taken_us = many->attempt.sent_us;
        if (many->attempt.link_id != 0)
            many->locks[i]->link_id = many->attempt.link_id;
    }
    event->deadline_us = dblk_perform_deadline(many->locks[0], many->attempt.sent_us);
}

static dblock_status ask_for_many(void *context, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblk_many *many = context;

    return dblk_hold_steps(many->attempt.client, many->attempt.wish->strategy)
        ->take_many(connection, call, take, &many->names, &many->place, holder, answer, reterr);
}

static void take(
    struct dblk_many *many, uint64_t now_us, int heeds_line, struct dblk_event *event)
{
    struct dblk_attempt *attempt = &many->attempt;
    struct dblock_answer answer;

    if (renew_owners(many) != 0) {
        dblk_event_failed(attempt, attempt->error.status, 0, event);
        return;
    }
    attempt->lock = many->locks[0];
    many->place = 0;
    memset(many->names.outcomes, 0, many->names.n_names * sizeof *many->names.outcomes);
    dblk_perform_ask(attempt, now_us, heeds_line, ask_for_many, many, &answer, event);
    attempt->lock = many->locks[many->place];
    if (event->kind != DBLK_EVENT_ANSWERED)
        return;
    if (event->outcome == DBLOCK_ANSWER_YES)
        note_grants(many, event);
    else if (event->outcome == DBLOCK_ANSWER_BUSY || event->outcome == DBLOCK_ANSWER_PINNED)
        many->names.outcomes[many->place] = DBLOCK_ANSWER_BUSY;
}

/* Who owns them? YES: somebody else has one, NO: nobody else has any. `outcomes`: what a drop need
 * not ask for. */
static dblock_status look_at_each(struct dblk_many *many, struct dblk_link *link,
    const struct dblock_call *call, size_t *ret_n_mine, int *ret_is_past,
    struct dblock_answer *answer, struct dblock_error *error)
{
    struct dblk_attempt *attempt = &many->attempt;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    int32_t outcome = DBLOCK_ANSWER_NO;
    dblock_status status;
    size_t i;

    *ret_n_mine = 0;
    *ret_is_past = 1;
    for (i = 0; i < many->names.n_names; ++i) {
        const dblock_lock *lock = many->locks[i];

        memset(answer, 0, sizeof *answer);
        status = dblk_hold_steps(attempt->client, attempt->wish->strategy)
                     ->look(link->connection, call, &lock->subject, &grant, answer, error);
        if (status != DBLOCK_OK)
            return status;
        if (!is_decided(answer->outcome)) { /* nor is it for those that were not looked at */
            *ret_is_past = 0;
            return DBLOCK_OK;
        }
        many->names.outcomes[i] = 0;
        if (answer->outcome == DBLOCK_ANSWER_YES && dblk_lock_is_of(lock, grant.owner)) {
            ++*ret_n_mine;
            many->names.tokens[i] = grant.token;
            continue;
        }
        if (answer->now_us <= attempt->not_after_us)
            *ret_is_past = 0;
        else
            many->names.outcomes[i] = DBLOCK_ANSWER_NO; /* nothing to drop */
        if (answer->outcome == DBLOCK_ANSWER_YES) {
            *attempt->holder = grant;
            outcome = DBLOCK_ANSWER_YES;
        }
    }
    answer->outcome = outcome;
    return DBLOCK_OK;
}

/* Those that are ours, as others are not. What the look said of others stands. */
static dblock_status give_back_part(struct dblk_many *many, struct dblk_link *link,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *error)
{
    int32_t outcome = answer->outcome;
    dblock_status status;

    memset(answer, 0, sizeof *answer);
    status = dblk_many_drop(many->attempt.client, link, call, many->attempt.wish->strategy,
        &many->names, answer, error);
    if (status == DBLOCK_OK && is_decided(answer->outcome))
        answer->outcome = outcome;
    return status;
}

static void look(struct dblk_many *many, uint64_t now_us, struct dblk_event *event)
{
    struct dblk_attempt *attempt = &many->attempt;
    dblock_client *client = attempt->client;
    struct dblock_call call = { dblk_sooner(dblk_later(now_us, attempt->machine.terms.io_us),
                                    dblk_later(attempt->machine.settle_us, 10000)),
        dblk_waiter_short_fd(&attempt->waiter) };
    struct dblock_answer answer;
    struct dblock_error error; /* a look that fails does not hide why it was needed */
    struct dblk_link *link = NULL;
    size_t n_mine = 0;
    int is_past = 0;
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    dblk_error_clear(&error);
    status = dblk_link_lend(client, &now_us, call.deadline_us, call.cancel_fd, &link, &error);
    if (status == DBLOCK_OK) {
        status = look_at_each(many, link, &call, &n_mine, &is_past, &answer, &error);
        if (status == DBLOCK_OK)
            dblk_link_saw_clock(client, link, now_us, dblk_now_us(), answer.now_us);
        if (status == DBLOCK_OK && is_past && n_mine > 0 && n_mine < many->names.n_names) {
            status = give_back_part(many, link, &call, &answer, &error);
            n_mine = 0;
        }
        dblk_link_return(client, link);
    }
    if (status != DBLOCK_OK) {
        dblk_event_failed(attempt, status, 0, event);
        return;
    }
    dblk_event_answered(&answer, event);
    event->is_mine = n_mine == many->names.n_names;
    event->is_past = is_past && n_mine == 0;
    if (event->is_mine)
        note_grants(many, event);
    dblk_trace(client, DBLOCK_TRACE_SETTLE, DBLOCK_OK, attempt->lock->subject.name,
        event->is_mine ? "a lost answer for several names: granted"
            : event->is_past ? "a lost answer for several names: not granted"
                             : "a lost answer for several names: not known yet",
        0, attempt->sent_us);
}

static void give_back(struct dblk_many *many, uint64_t now_us, struct dblk_event *event)
{
    struct dblk_attempt *attempt = &many->attempt;
    dblock_client *client = attempt->client;
    struct dblock_call call = {
        dblk_perform_limit(attempt, now_us, client->settings.io_us), -1
    };
    struct dblock_answer answer;
    struct dblk_link *link = NULL;
    dblock_status status;
    size_t i;

    memset(&answer, 0, sizeof answer);
    for (i = 0; i < many->names.n_names; ++i) {
        many->locks[i]->token = 0;
        many->names.outcomes[i] = 0;
    }
    status = dblk_link_lend(
        client, &now_us, call.deadline_us, client->stop_fd, &link, &attempt->error);
    if (status == DBLOCK_OK) {
        status = dblk_many_drop(client, link, &call, attempt->wish->strategy, &many->names, &answer,
            &attempt->error);
        dblk_link_return(client, link);
    }
    if (status != DBLOCK_OK)
        dblk_event_failed(attempt, status, 0, event);
    else
        dblk_event_answered(&answer, event);
}

static void stand(
    struct dblk_many *many, uint64_t wait_us, uint64_t now_us, struct dblk_event *event)
{
    many->attempt.lock = many->locks[many->place];
    many->stands_for = many->attempt.lock;
    dblk_perform_stand(&many->attempt, wait_us, now_us, event);
}

/* The first in the line of a name that is not what he waits for now: gives that place to the next,
 * who may have the name, and stands in the line of the other. */
static void rest(
    struct dblk_many *many, uint64_t until_us, uint64_t now_us, struct dblk_event *event)
{
    struct dblk_attempt *attempt = &many->attempt;

    if (many->stands_for == many->locks[many->place]) {
        dblk_perform_rest(attempt, until_us, event);
        return;
    }
    dblk_place_leave(&attempt->place, attempt->client, now_us);
    stand(many, dblk_until(now_us, until_us), now_us, event);
    if (event->kind == DBLK_EVENT_ANSWERED && event->outcome != DBLOCK_ANSWER_YES)
        event->outcome = DBLOCK_ANSWER_AGAIN; /* has no place */
}

void dblk_many_perform(
    struct dblk_many *many, const struct dblk_step *step, struct dblk_event *ret_event)
{
    struct dblk_attempt *attempt = &many->attempt;
    uint64_t begun_us = ret_event->now_us;

    memset(ret_event, 0, sizeof *ret_event);
    ret_event->kind = DBLK_EVENT_ANSWERED;
    switch (step->kind) {
    case DBLK_STEP_SESSION:
        attempt->lock = many->locks[0];
        dblk_perform_session(attempt, begun_us, ret_event);
        if (ret_event->kind == DBLK_EVENT_ANSWERED)
            share_session(many);
        break;
    case DBLK_STEP_TAKE:
        take(many, begun_us, step->heeds_line, ret_event);
        dblk_trace(attempt->client, DBLOCK_TRACE_ATTEMPT,
            ret_event->kind == DBLK_EVENT_FAILED ? ret_event->status
                : ret_event->kind == DBLK_EVENT_ANSWERED &&
                    ret_event->outcome == DBLOCK_ANSWER_YES
                ? DBLOCK_OK
                : DBLOCK_BUSY,
            attempt->lock->subject.name,
            ret_event->kind == DBLK_EVENT_FAILED ? attempt->error.message : NULL, 0, begun_us);
        break;
    case DBLK_STEP_LOOK:
        look(many, begun_us, ret_event);
        break;
    case DBLK_STEP_GIVE_BACK:
        give_back(many, begun_us, ret_event);
        break;
    case DBLK_STEP_STAND:
        stand(many, step->wait_us, begun_us, ret_event);
        break;
    case DBLK_STEP_REST:
        rest(many, step->until_us, begun_us, ret_event);
        break;
    default: /* PAUSE */
        ret_event->kind =
            (enum dblk_event_kind)dblk_waiter_pause(&attempt->waiter, step->until_us);
        break;
    }
    if (ret_event->now_us == 0)
        ret_event->now_us = dblk_now_us();
    if (ret_event->kind != DBLK_EVENT_ANSWERED || ret_event->outcome != DBLOCK_ANSWER_YES)
        ret_event->random = dblk_random_u64();
}
