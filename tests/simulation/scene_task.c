/* SPDX-License-Identifier: MIT */
/* scene_task.c - a thread of an application: rests, acquires, holds, extends or
 * confirms now and then, releases. Calls that are not an acquire follow the
 * rules of the core's release.c and extend.c: a lost answer is asked for again,
 * within one I/O limit. */
#include "scene.h"

static struct scene_task *task_of(struct scene *scene, unsigned client, unsigned task)
{
    return &scene->clients[client].tasks[task];
}

static void rest(struct scene *scene, unsigned client, unsigned index, uint64_t most_us)
{
    struct scene_task *task = task_of(scene, client, index);

    task->doing = SCENE_RESTING;
    task->attempt = SCENE_NOBODY;
    scene_set_timer(scene, client, index,
        scene_local_us(scene, client) + 1 + scene_below(scene, most_us + 1));
}

static void begin(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    const struct scene_plan *plan = &scene->plan;
    uint64_t wait_us = 0;

    if (task->is_anchor) {
        task->name = SCENE_SHARED_MAX + client;
        task->strategy = DBLOCK_LEASE;
        task->is_heartbeat = 1;
        task->ttl_us = plan->ttl_us[client % 2];
        task->keep_us = 0;
        wait_us = DBLK_NEVER;
    } else {
        task->name = (unsigned)scene_below(scene, plan->n_names);
        task->strategy = scene_chance(scene, 600) ? DBLOCK_LEASE : DBLOCK_INSERT;
        task->is_heartbeat = scene_chance(scene, 500);
        task->ttl_us = plan->ttl_us[scene_below(scene, 2)];
        task->keep_us = scene_chance(scene, 50) ? 1 + scene_below(scene, plan->hold_us) : 0;
        if (scene_chance(scene, 300))
            wait_us = DBLK_NEVER;
        else if (scene_chance(scene, 600))
            wait_us = scene_below(scene, 4 * plan->ttl_us[0]);
    }
    scene_acquire_begin(scene, client, index, wait_us);
}

void scene_task_acquired(
    struct scene *scene, unsigned client, unsigned index, dblock_status status, int is_open)
{
    struct scene_task *task = task_of(scene, client, index);
    uint64_t now_us = scene_local_us(scene, client);

    (void)is_open;
    if (status != DBLOCK_OK) {
        rest(scene, client, index, scene->plan.hold_us);
        return;
    }
    task->doing = SCENE_HOLDING;
    task->hold_until_us = task->is_anchor
        ? DBLK_NEVER
        : now_us + 1 + scene_below(scene, scene->plan.hold_us);
    scene_set_timer(
        scene, client, index, task->is_anchor ? now_us + scene->plan.ttl_us[0] : now_us + 1 +
            scene_below(scene, task->hold_until_us - now_us));
}

/* --------------------------------------------- release, extend and confirm */

/* The database may do an extend at any time from its sending on, its answer being under way or
 * lost: from then on nothing is believed beyond the end that it sets. It may come even after a
 * later extend has been answered, and then its ttl counts from a moment after that one. */
static void extend_sent(struct scene *scene, unsigned client, struct scene_task *task)
{
    struct scene_attempt *attempt = &scene->attempts[task->attempt];

    if (task->n_tries == 0)
        task->least_before_us = attempt->least_us;
    if (scene->mistake != SCENE_EXTEND_FORGETS)
        attempt->least_us = dblk_sooner(attempt->least_us,
            dblk_belief_end(scene_local_us(scene, client), task->short_ttl_us));
}

static void ask_short(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    const struct scene_attempt *attempt = &scene->attempts[task->attempt];
    struct scene_request wish = { 0 };

    wish.kind = task->short_kind;
    wish.attempt = task->attempt;
    wish.ttl_us = task->short_ttl_us;
    if (wish.kind == SCENE_DROP && attempt->keep_us != 0)
        wish.keep_us = dblk_until(
            scene_local_us(scene, client), attempt->granted_us + attempt->keep_us);
    if (wish.kind == SCENE_EXTEND)
        extend_sent(scene, client, task);
    ++task->n_tries;
    scene_ask(scene, client, index, &wish, task->short_limit_us);
}

static void begin_short(
    struct scene *scene, unsigned client, unsigned index, enum scene_request_kind kind)
{
    struct scene_task *task = task_of(scene, client, index);
    struct scene_attempt *attempt = &scene->attempts[task->attempt];

    task->doing = SCENE_SHORT;
    task->short_kind = kind;
    task->short_limit_us = scene_local_us(scene, client) + scene->plan.io_us;
    task->n_tries = 0;
    task->was_uncertain = 0;
    if (kind == SCENE_DROP)
        attempt->state = SCENE_RELEASING; /* belief ends before anything is sent */
    if (kind == SCENE_EXTEND)
        task->short_ttl_us = 1 +
            scene_below(scene, 2 * (scene->plan.ttl_us[0] + scene->plan.ttl_us[1]));
    ask_short(scene, client, index);
}

static void released(struct scene *scene, unsigned client, unsigned index, dblock_status status,
    const struct scene_request *request)
{
    struct scene_task *task = task_of(scene, client, index);
    struct scene_attempt *attempt = &scene->attempts[task->attempt];
    uint32_t session = attempt->session;

    if (status == DBLOCK_OK && request->answer.outcome != DBLOCK_ANSWER_PINNED) {
        scene_attempt_gone(scene, task->attempt);
    } else {
        scene_attempt_orphan(scene, task->attempt, 0);
        if (status != DBLOCK_OK && session != SCENE_NOBODY &&
            scene->sessions[session].state == SCENE_SESSION_ALIVE)
            scene->sessions[session].read_back_us =
                dblk_sooner(scene->sessions[session].read_back_us, scene_local_us(scene, client));
    }
    rest(scene, client, index, scene->plan.hold_us / 2);
}

static void extend_ended(struct scene *scene, struct scene_task *task, dblock_status status,
    const struct scene_request *request)
{
    struct scene_attempt *attempt = &scene->attempts[task->attempt];
    uint32_t session = attempt->session;
    int is_done = status == DBLOCK_OK && request->answer.outcome == DBLOCK_ANSWER_YES;

    if (status == DBLOCK_OK && request->answer.outcome == DBLOCK_ANSWER_NO) {
        scene_attempt_lose(scene, task->attempt, "lost: could not be extended");
        return;
    }
    if (!is_done && !task->was_uncertain)
        attempt->least_us = task->least_before_us; /* certainly not done */
    if (task->was_uncertain && scene->mistake != SCENE_EXTEND_FORGETS)
        attempt->least_ttl_us = dblk_sooner(attempt->least_ttl_us, task->short_ttl_us);
    if (!is_done)
        return;
    attempt->session = SCENE_NOBODY;
    attempt->ttl_us = task->short_ttl_us;
    attempt->deadline_us = dblk_belief_end(
        request->sent_us, dblk_sooner(task->short_ttl_us, attempt->least_ttl_us));
    attempt->least_us = DBLK_NEVER;
    if (session != SCENE_NOBODY)
        scene_session_unref(scene, session);
    scene_check_belief(scene);
}

static void confirmed(
    struct scene *scene, struct scene_task *task, const struct scene_request *request)
{
    struct scene_attempt *attempt = &scene->attempts[task->attempt];

    if (request->owner != task->attempt) {
        scene_attempt_lose(scene, task->attempt, "lost: not confirmed");
        return;
    }
    if (attempt->session == SCENE_NOBODY)
        attempt->deadline_us = dblk_belief_end(request->sent_us,
            dblk_sooner(request->answer.remaining_us, attempt->least_ttl_us));
    scene_check_belief(scene);
}

static void hold_on(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    uint64_t now_us = scene_local_us(scene, client);

    if (scene->attempts[task->attempt].state != SCENE_HELD) {
        rest(scene, client, index, scene->plan.hold_us);
        return;
    }
    task->doing = SCENE_HOLDING;
    if (task->is_anchor)
        scene_set_timer(scene, client, index, now_us + scene->plan.ttl_us[0]);
    else
        scene_set_timer(scene, client, index,
            now_us + 1 + scene_below(scene, dblk_until(now_us, task->hold_until_us) + 1));
}

void scene_task_result(struct scene *scene, unsigned client, unsigned index,
    dblock_status status, int is_reused, const struct scene_request *request)
{
    struct scene_task *task = task_of(scene, client, index);
    struct scene_attempt *attempt = &scene->attempts[task->attempt];

    if (status == DBLOCK_OK && request->answer.outcome == DBLOCK_ANSWER_AGAIN) {
        status = DBLOCK_E_DATABASE;
        is_reused = 1; /* asked again, as over a connection that had gone stale */
    }
    task->was_uncertain |= status == DBLOCK_E_UNCERTAIN;
    if (status != DBLOCK_OK && scene_local_us(scene, client) < task->short_limit_us &&
        task->n_tries < 4 && (is_reused || status == DBLOCK_E_UNCERTAIN)) {
        ask_short(scene, client, index);
        return;
    }
    if (task->short_kind == SCENE_DROP) {
        released(scene, client, index, status, request);
        return;
    }
    if (attempt->state == SCENE_HELD && task->short_kind == SCENE_EXTEND)
        extend_ended(scene, task, status, request);
    else if (attempt->state == SCENE_HELD && status == DBLOCK_OK)
        confirmed(scene, task, request);
    hold_on(scene, client, index);
}

/* ------------------------------------------------------------------- timers */

/* The object is freed without a release. */
static void abandon(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);

    scene_attempt_orphan(scene, task->attempt, 0);
    rest(scene, client, index, scene->plan.hold_us);
}

void scene_task_timer(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);
    uint64_t now_us = scene_local_us(scene, client);

    switch (task->doing) {
    case SCENE_RESTING:
        if (scene->clients[client].is_closing || (scene->is_calm && !task->is_anchor))
            return;
        begin(scene, client, index);
        return;
    case SCENE_ACQUIRING:
        scene_acquire_timer(scene, client, index);
        return;
    case SCENE_HOLDING:
        if (scene->attempts[task->attempt].state != SCENE_HELD)
            rest(scene, client, index, scene->plan.hold_us / 4);
        else if (task->is_anchor)
            hold_on(scene, client, index);
        else if (now_us < task->hold_until_us && scene_chance(scene, 500))
            begin_short(scene, client, index, scene_chance(scene, 600) ? SCENE_EXTEND : SCENE_LOOK);
        else if (scene_chance(scene, 50))
            abandon(scene, client, index);
        else
            begin_short(scene, client, index, SCENE_DROP);
        return;
    default:
        return;
    }
}

void scene_task_close(struct scene *scene, unsigned client, unsigned index)
{
    struct scene_task *task = task_of(scene, client, index);

    if (task->doing == SCENE_ACQUIRING && task->actor.waiting == 0)
        scene_acquire_timer(scene, client, index);
    else if (task->doing == SCENE_HOLDING && scene->attempts[task->attempt].state == SCENE_HELD)
        scene_attempt_orphan(scene, task->attempt, 0);
}
