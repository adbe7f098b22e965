/* SPDX-License-Identifier: MIT */
/* scene_acquire.c - the loop round a strategy's machine: performs its steps as
 * core/acquire.c and core/perform.c do, and feeds it what came of them. */
#include <string.h>

#include "scene.h"
#include "strategy/moves.h"

static struct scene_task *task_of(struct scene *scene, unsigned client, unsigned task)
{
    return &scene->clients[client].tasks[task];
}

/* The attempt is over, and was not granted as far as its caller knows. */
static void forget_attempt(struct scene *scene, struct scene_task *task)
{
    if (task->attempt == SCENE_NOBODY)
        return;
    scene_check_denied(scene, task->attempt);
    scene_attempt_gone(scene, task->attempt);
    task->attempt = SCENE_NOBODY;
}

static void end(struct scene *scene, unsigned client, unsigned index, const struct dblk_step *step)
{
    struct scene_task *task = task_of(scene, client, index);
    const struct scene_client *owner = &scene->clients[client];
    uint64_t now_us = scene_local_us(scene, client);
    uint64_t io_us = scene->plan.io_us;
    /* its clock may run 8 % faster than time, in which the pause was measured */
    uint64_t paused_us = (owner->paused_us - task->begun_paused_us) / 10 * 11;
    uint64_t end_us = dblk_later(task->give_up_us, paused_us);

    if (now_us > end_us && (now_us - end_us) * 1000 / io_us > scene->counts.slowest_end_us)
        scene->counts.slowest_end_us = (now_us - end_us) * 1000 / io_us;
    /* Begun just before the end of the wait, one after the other, each up to its own limit:
     * connecting and a session 2; connecting and a take 2; up to three stale connections before,
     * each refused within a limit, 3; settling 1 1/8 and its last look 1; giving back 1. And as
     * often as races are repeated whatever the time, a pause, connecting, a session and a take. */
    if (now_us > dblk_later(end_us, 10 * io_us + io_us / 8 + 1000 +
                     (DBLK_AGAIN_MAX + 1) * (DBLK_AGAIN_LAST_US + 3 * io_us)))
        scene_violate(scene, "client %u task %u: its acquire ended %llu us after its wait",
            client, index, (unsigned long long)(now_us - end_us));
    if (step->status == DBLOCK_E_UNCERTAIN && !step->is_open)
        scene_violate(scene, "an acquire ended uncertain, and left nothing to settle");
    if ((step->status == DBLOCK_OK || step->status == DBLOCK_BUSY) && step->is_open)
        scene_violate(scene, "an acquire was answered %d while its attempt is open", step->status);
    scene->counts.uncertain += step->status == DBLOCK_E_UNCERTAIN;
    if (step->status == DBLOCK_OK) {
        struct scene_attempt *attempt = &scene->attempts[task->attempt];

        attempt->deadline_us = dblk_belief_end(attempt->taken_us, attempt->ttl_us);
        if (scene->mistake == SCENE_DEADLINE_FROM_ANSWER)
            attempt->deadline_us = dblk_belief_end(now_us, attempt->ttl_us);
        if (scene->mistake == SCENE_NO_MARGIN)
            attempt->deadline_us = attempt->taken_us + attempt->ttl_us;
        scene_attempt_hold(scene, task->attempt, attempt->taken_us, attempt->token);
    } else if (step->is_open) {
        scene_attempt_orphan(
            scene, task->attempt, scene->attempts[task->attempt].not_after_us);
        task->attempt = SCENE_NOBODY;
    } else {
        forget_attempt(scene, task);
    }
    scene_note(scene, "acquire ends", client, index, task->attempt, step->status);
    scene_task_acquired(scene, client, index, step->status, step->is_open);
}

/* ------------------------------------------------------------------ sessions */

static void ask_begin(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    struct scene_request wish = { 0 };

    wish.kind = SCENE_BEGIN;
    wish.attempt = SCENE_NOBODY;
    wish.session = task->session;
    ++task->n_begins;
    scene_ask(
        scene, client, index, &wish, scene_local_us(scene, client) + scene->plan.io_us);
}

/* 1: there is one, or it is certain that there is none; `event` says which. */
static int ensure_session(
    struct scene *scene, unsigned client, unsigned index, struct dblk_event *event)
{
    struct scene_task *task = task_of(scene, client, index);
    uint32_t usable = scene_session_usable(scene, client, task->ttl_us);

    event->kind = DBLK_EVENT_ANSWERED;
    event->outcome = DBLOCK_ANSWER_YES;
    if (usable != SCENE_NOBODY && scene->sessions[usable].state == SCENE_SESSION_ALIVE) {
        task->in_use = usable;
        return 1;
    }
    if (usable != SCENE_NOBODY) { /* another task is at it */
        if (!task->is_waiting_for_session)
            scene_set_timer(
                scene, client, index, scene_local_us(scene, client) + scene->plan.io_us);
        task->is_waiting_for_session = 1;
        return 0;
    }
    scene_stop_timer(scene, client, index);
    task->is_waiting_for_session = 0;
    task->session = scene_session_new(scene, client, task->ttl_us);
    task->n_begins = 0;
    ask_begin(scene, client, index);
    return 0;
}

/* A session is there, or its beginning failed: those who wait for it look again. */
void scene_session_begun(struct scene *scene, unsigned client)
{
    unsigned i;

    for (i = 0; i < scene->plan.n_tasks; ++i) {
        struct scene_task *task = task_of(scene, client, i);
        struct dblk_event event = { 0 };

        if (!task->is_waiting_for_session || !ensure_session(scene, client, i, &event))
            continue;
        task->is_waiting_for_session = 0;
        scene_stop_timer(scene, client, i);
        scene_acquire_event(scene, client, i, &event);
    }
}

static void session_result(struct scene *scene, unsigned client, unsigned index,
    dblock_status status, int is_reused, const struct scene_request *request)
{
    struct scene_task *task = task_of(scene, client, index);
    uint32_t begun = task->session;
    struct scene_session *session = &scene->sessions[begun];
    struct dblk_event event = { 0 };

    if (status == DBLOCK_E_CONNECTION && is_reused && task->n_begins < 3) {
        ask_begin(scene, client, index);
        return;
    }
    task->session = SCENE_NOBODY;
    if (status == DBLOCK_OK) {
        dblk_heartbeat_start(&session->beat,
            scene->mistake == SCENE_DEADLINE_FROM_ANSWER ? scene_local_us(scene, client)
                                                         : request->sent_us,
            session->ttl_us);
        session->state = SCENE_SESSION_ALIVE;
        task->in_use = begun;
        scene_keeper_due(scene, client);
        event.kind = DBLK_EVENT_ANSWERED;
        event.outcome = DBLOCK_ANSWER_YES;
    } else {
        /* whether the row is there does not matter: nobody uses it, and it expires */
        session->state = SCENE_SESSION_ENDED;
        event.kind = DBLK_EVENT_FAILED;
        event.status = DBLOCK_E_CONNECTION;
        event.is_transient = 1;
    }
    scene_session_unref(scene, begun);
    scene_acquire_event(scene, client, index, &event);
    scene_session_begun(scene, client);
}

/* --------------------------------------------------------- take, look, drop */

static void ask_take(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    struct scene_request wish = { 0 };
    struct scene_attempt *attempt;

    forget_attempt(scene, task); /* the one before */
    task->attempt = scene_attempt_new(scene, client, task);
    attempt = &scene->attempts[task->attempt];
    if (task->is_heartbeat) {
        attempt->session = task->in_use;
        ++scene->sessions[attempt->session].n_refs;
    }
    wish.kind = SCENE_TAKE;
    wish.attempt = task->attempt;
    scene_ask(
        scene, client, index, &wish, scene_local_us(scene, client) + scene->plan.io_us);
}

static void ask_about(
    struct scene *scene, unsigned client, unsigned index, enum scene_request_kind kind)
{
    struct scene_request wish = { 0 };

    wish.kind = kind;
    wish.attempt = task_of(scene, client, index)->attempt;
    if (kind == SCENE_LOOK && scene->mistake == SCENE_REASK_IS_TAKE) {
        wish.kind = SCENE_TAKE;
        wish.is_again = 1;
    }
    scene_ask(
        scene, client, index, &wish, scene_local_us(scene, client) + scene->plan.io_us);
}

static uint64_t find_deadline(const struct scene *scene, const struct scene_attempt *attempt)
{
    if (attempt->session != SCENE_NOBODY)
        return scene_attempt_deadline(scene, attempt);
    if (scene->mistake == SCENE_DEADLINE_FROM_ANSWER)
        return DBLK_NEVER;
    return dblk_belief_end(attempt->taken_us, attempt->ttl_us);
}

static void answered(struct scene *scene, unsigned client, struct scene_task *task,
    const struct scene_request *request, struct dblk_event *event)
{
    struct scene_attempt *attempt = &scene->attempts[task->attempt];

    event->kind = DBLK_EVENT_ANSWERED;
    event->outcome = request->answer.outcome;
    event->remaining_us = request->answer.remaining_us;
    if (request->kind == SCENE_TAKE && request->answer.outcome == DBLOCK_ANSWER_SESSION &&
        attempt->session != SCENE_NOBODY)
        scene_session_lose(scene, attempt->session, "lost: the database ended the session");
    if (request->kind == SCENE_LOOK) {
        event->is_mine = request->owner == task->attempt;
        event->is_past = request->answer.now_us > attempt->not_after_us;
        scene->counts.settled_yes += event->is_mine != 0;
        scene->counts.settled_no += !event->is_mine && event->is_past;
    }
    if (request->kind == SCENE_TAKE && request->is_again) {
        /* the mistake: what was to be a read */
        event->is_mine = request->answer.outcome == DBLOCK_ANSWER_YES;
        event->is_past = !event->is_mine;
    }
    if (event->is_mine ||
        (request->kind == SCENE_TAKE && request->answer.outcome == DBLOCK_ANSWER_YES)) {
        attempt->token = request->answer.token;
        event->deadline_us = find_deadline(scene, attempt);
    }
    (void)client;
}

/* What two of the mistakes make of a take whose answer was lost. */
static void guess(struct scene *scene, struct scene_task *task, struct dblk_event *event)
{
    const struct scene_attempt *attempt = &scene->attempts[task->attempt];

    if (event->status != DBLOCK_E_UNCERTAIN || task->step.kind != DBLK_STEP_TAKE)
        return;
    if (scene->mistake == SCENE_NO_WITHOUT_LOOK) {
        event->kind = DBLK_EVENT_ANSWERED;
        event->outcome = DBLOCK_ANSWER_AGAIN;
    } else if (scene->mistake == SCENE_YES_WITHOUT_LOOK) {
        event->kind = DBLK_EVENT_ANSWERED;
        event->outcome = DBLOCK_ANSWER_YES;
        event->deadline_us = find_deadline(scene, attempt);
    }
}

void scene_acquire_result(struct scene *scene, unsigned client, unsigned index,
    dblock_status status, int is_reused, const struct scene_request *request)
{
    struct scene_task *task = task_of(scene, client, index);
    struct dblk_event event = { 0 };

    if (task->step.kind == DBLK_STEP_SESSION) {
        session_result(scene, client, index, status, is_reused, request);
        return;
    }
    if (status == DBLOCK_OK) {
        answered(scene, client, task, request, &event);
    } else {
        event.kind = DBLK_EVENT_FAILED;
        event.status = status;
        event.is_transient = 1;
        event.is_reused = is_reused && task->step.kind == DBLK_STEP_TAKE;
        guess(scene, task, &event);
    }
    scene_acquire_event(scene, client, index, &event);
}

/* ------------------------------------------------------------------ the line */

/* Of a line nothing is modelled but that it may say anything at any time: exclusion must not depend
 * on it. */
static uint64_t line_end(struct scene *scene, unsigned client, const struct dblk_step *step)
{
    uint64_t now_us = scene_local_us(scene, client);
    uint64_t limit_us = step->kind == DBLK_STEP_REST ? step->until_us
                                                     : dblk_later(now_us, step->wait_us);

    return dblk_sooner(limit_us, now_us + 1 + scene_below(scene, 2 * scene->plan.io_us));
}

static void line_says(struct scene *scene, const struct dblk_step *step, struct dblk_event *event)
{
    static const int32_t stood[] = { DBLOCK_ANSWER_YES, DBLOCK_ANSWER_YES, DBLOCK_ANSWER_YES,
        DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_BUSY, DBLOCK_ANSWER_NO };
    static const int32_t rested[] = { DBLOCK_ANSWER_YES, DBLOCK_ANSWER_YES, DBLOCK_ANSWER_NO,
        DBLOCK_ANSWER_NO, DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_YES };
    uint64_t chosen = scene_below(scene, 6);

    event->kind = DBLK_EVENT_ANSWERED;
    event->outcome = step->kind == DBLK_STEP_STAND ? stood[chosen] : rested[chosen];
    if (scene_chance(scene, 30)) {
        event->kind = DBLK_EVENT_FAILED;
        event->status = DBLOCK_E_CONNECTION;
        event->is_transient = 1;
    }
}

/* ------------------------------------------------------------------ the loop */

/* 1: `event` tells what came of it already. */
static int perform(struct scene *scene, unsigned client, unsigned index, struct dblk_event *event)
{
    struct scene_task *task = task_of(scene, client, index);

    memset(event, 0, sizeof *event);
    /* A wait can be ended wherever the core looks at the canceller: before it pauses, and before
     * it sends; not while a grant is being given back. */
    if (task->step.kind != DBLK_STEP_GIVE_BACK &&
        (task->is_cancelled || scene->clients[client].is_closing)) {
        event->kind = task->is_cancelled ? DBLK_EVENT_CANCELLED : DBLK_EVENT_CLOSED;
        return 1;
    }
    switch (task->step.kind) {
    case DBLK_STEP_SESSION:
        return ensure_session(scene, client, index, event);
    case DBLK_STEP_TAKE:
        ask_take(scene, client, index);
        return 0;
    case DBLK_STEP_LOOK:
        ask_about(scene, client, index, SCENE_LOOK);
        return 0;
    case DBLK_STEP_GIVE_BACK:
        ++scene->counts.given_back;
        ask_about(scene, client, index, SCENE_DROP);
        return 0;
    case DBLK_STEP_STAND:
    case DBLK_STEP_REST:
        scene_set_timer(scene, client, index, line_end(scene, client, &task->step));
        return 0;
    case DBLK_STEP_PAUSE:
        /* some pauses are cut short by a wake-up */
        scene_set_timer(scene, client, index,
            scene_chance(scene, 100) ? scene_local_us(scene, client) + 1 : task->step.until_us);
        return 0;
    default:
        scene_violate(scene, "a machine asked for step %d", (int)task->step.kind);
        return 0;
    }
}

void scene_acquire_event(
    struct scene *scene, unsigned client, unsigned index, struct dblk_event *event)
{
    struct scene_task *task = task_of(scene, client, index);

    do {
        event->now_us = scene_local_us(scene, client);
        event->random = scene_random(scene);
        task->step = dblk_machine_next(&task->machine, event);
        if (task->step.kind == DBLK_STEP_END) {
            end(scene, client, index, &task->step);
            return;
        }
    } while (scene->violation[0] == 0 && perform(scene, client, index, event));
}

void scene_acquire_begin(struct scene *scene, unsigned client, unsigned index, uint64_t wait_us)
{
    struct scene_task *task = task_of(scene, client, index);
    struct dblk_event event = { 0 };
    struct dblk_terms terms = { 0 };

    task->doing = SCENE_ACQUIRING;
    task->is_cancelled = 0;
    task->is_waiting_for_session = 0;
    task->attempt = SCENE_NOBODY;
    task->begun_us = scene_local_us(scene, client);
    task->begun_paused_us = scene->clients[client].paused_us;
    task->give_up_us = dblk_later(task->begun_us, wait_us);
    terms.give_up_us = task->give_up_us;
    terms.io_us = scene->plan.statement_us;
    terms.outage_us =
        scene_below(scene, 2) ? DBLK_NEVER : scene_below(scene, 5) * scene->plan.io_us;
    terms.needs_session = task->is_heartbeat;
    terms.has_line = wait_us > 0 && scene_below(scene, 2) != 0;
    terms.is_contended = wait_us > 0 && scene_below(scene, 3) == 0;
    dblk_machine_start(&task->machine, dblk_strategy_of(task->strategy), &terms);
    event.kind = DBLK_EVENT_STARTED;
    scene_acquire_event(scene, client, index, &event);
}

void scene_acquire_timer(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    struct dblk_event event = { 0 };

    if (task->is_cancelled || scene->clients[client].is_closing) {
        event.kind = task->is_cancelled ? DBLK_EVENT_CANCELLED : DBLK_EVENT_CLOSED;
    } else if (task->is_waiting_for_session) {
        event.kind = DBLK_EVENT_FAILED;
        event.status = DBLOCK_E_CONNECTION;
        event.is_transient = 1;
    } else if (task->step.kind == DBLK_STEP_STAND || task->step.kind == DBLK_STEP_REST) {
        line_says(scene, &task->step, &event);
    } else {
        event.kind = DBLK_EVENT_PAUSED;
    }
    task->is_waiting_for_session = 0;
    scene_acquire_event(scene, client, index, &event);
}
