/* SPDX-License-Identifier: MIT */
/* scene_network.c - the way of a request: over a connection that may have gone,
 * through a network that loses and delays, into a server where it may be stuck,
 * and back. The asker waits until its limit, and what comes later finds that
 * nobody listens. */
#include <stdlib.h>
#include <string.h>

#include "scene.h"

struct scene_actor *scene_actor(struct scene *scene, unsigned client, unsigned actor)
{
    return actor < SCENE_TASKS_MAX ? &scene->clients[client].tasks[actor].actor
                                   : &scene->clients[client].keeper.actor;
}

static uint64_t one_way(struct scene *scene)
{
    const struct scene_plan *plan = &scene->plan;

    if (!scene->is_calm && scene_chance(scene, plan->n_slow))
        return scene_below(scene, plan->slow_us + 1);
    return plan->latency_us / 2 + scene_below(scene, plan->latency_us + 1);
}

static void post_request(struct scene *scene, enum scene_event_kind kind,
    const struct scene_request *request, uint64_t delay_us)
{
    struct scene_event event = { 0 };

    event.at_us = scene->now_us + delay_us;
    event.kind = kind;
    event.client = request->client;
    event.actor = request->actor;
    event.life = scene->clients[request->client].life;
    event.serial = request->serial;
    event.request = (uint32_t)(request - scene->requests);
    scene_post(scene, &event);
}

/* The client is told that its connection is broken; `request` then means whether it was sent. */
static void post_failure(
    struct scene *scene, const struct scene_request *request, int was_sent, uint64_t delay_us)
{
    struct scene_event event = { 0 };

    event.at_us = scene->now_us + delay_us;
    event.kind = SCENE_FAILS;
    event.client = request->client;
    event.actor = request->actor;
    event.life = scene->clients[request->client].life;
    event.serial = request->serial;
    event.request = (uint32_t)was_sent;
    scene_post(scene, &event);
}

static struct scene_request *new_request(struct scene *scene, const struct scene_request *wish)
{
    unsigned n_tried;

    for (n_tried = 0; n_tried < SCENE_REQUESTS_MAX; ++n_tried) {
        struct scene_request *request =
            &scene->requests[scene->next_request++ % SCENE_REQUESTS_MAX];

        if (request->is_used)
            continue;
        *request = *wish;
        request->is_used = 1;
        return request;
    }
    abort(); /* far more than can be under way */
}

/* A request leaves. Of what befalls it the client sees only: an answer, a broken connection, or
 * nothing until its limit. */
static void depart(struct scene *scene, const struct scene_request *wish)
{
    const struct scene_plan *plan = &scene->plan;
    struct scene_request *request = new_request(scene, wish);
    struct scene_actor *actor = scene_actor(scene, wish->client, wish->actor);

    request->serial = ++scene->serial;
    request->sent_us = scene_local_us(scene, wish->client);
    request->server_life = scene->server_life;
    if (request->kind == SCENE_TAKE) {
        struct scene_attempt *attempt = &scene->attempts[request->attempt];

        /* the end of the call by the database's clock, at the latest, as this end knows it */
        request->not_after_us = (int64_t)actor->limit_us + actor->link.offset_us;
        attempt->not_after_us = request->not_after_us;
        attempt->taken_us = request->sent_us;
    }
    actor->waiting = request->serial;
    scene_set_timer(scene, wish->client, wish->actor, actor->limit_us);
    if (request->kind != SCENE_OPEN && actor->link.is_cut) {
        /* writing to a dead connection: refused at once, or swallowed and refused later */
        post_failure(scene, request, scene_chance(scene, 500), one_way(scene));
        request->is_used = 0;
        return;
    }
    if (!scene->is_server_up) {
        post_failure(scene, request, 0, one_way(scene));
        request->is_used = 0;
        return;
    }
    if (scene->now_us < scene->blackout_until_us || scene_chance(scene, plan->n_lost)) {
        scene_note(scene, "request lost", wish->client, wish->actor, wish->attempt, wish->kind);
        request->is_used = 0;
        return;
    }
    if (scene_chance(scene, plan->n_cut)) {
        int gets_there = scene_chance(scene, 500);

        scene_note(scene, gets_there ? "cut behind the request" : "cut before the request",
            wish->client, wish->actor, wish->attempt, wish->kind);
        post_failure(scene, request, 1, one_way(scene));
        if (!gets_there) {
            request->is_used = 0;
            return;
        }
        request->serial = ++scene->serial; /* nobody waits for this one's answer */
    }
    post_request(scene, SCENE_ARRIVES, request, one_way(scene));
}

void scene_ask(struct scene *scene, unsigned client, unsigned actor,
    const struct scene_request *wish, uint64_t limit_us)
{
    struct scene_actor *whose = scene_actor(scene, client, actor);
    struct scene_request request = *wish;

    request.client = client;
    request.actor = actor;
    whose->limit_us = limit_us;
    if (wish->kind == SCENE_TAKE && whose->link.is_open)
        whose->limit_us = scene_local_us(scene, client) + scene->plan.statement_us;
    if (!whose->link.is_open) {
        whose->wish = request;
        memset(&request, 0, sizeof request);
        request.kind = SCENE_OPEN;
        request.client = client;
        request.actor = actor;
    }
    depart(scene, &request);
}

void scene_arrive(struct scene *scene, struct scene_request *request)
{
    const struct scene_plan *plan = &scene->plan;
    int waits = request->kind != SCENE_OPEN && request->kind != SCENE_LOOK;

    if (request->server_life != scene->server_life) {
        request->is_used = 0;
        return;
    }
    if (request->kind == SCENE_TAKE) {
        const struct scene_attempt *attempt = &scene->attempts[request->attempt];
        int64_t last = scene->last_token[scene_slot(attempt->strategy)][attempt->name];
        int64_t now_us = scene_server_us(scene);

        request->early_token = last + 1 > now_us ? last + 1 : now_us;
    }
    if (waits && scene_chance(scene, plan->n_stuck)) {
        scene_note(scene, "stuck in the server", request->client, request->actor,
            request->attempt, request->kind);
        post_request(scene, SCENE_EXECUTES, request, scene_below(scene, plan->stuck_us + 1));
        return;
    }
    scene_execute(scene, request);
}

void scene_execute(struct scene *scene, struct scene_request *request)
{
    const struct scene_plan *plan = &scene->plan;

    if (request->server_life != scene->server_life) {
        request->is_used = 0;
        return;
    }
    if (!request->is_judged && scene_chance(scene, plan->n_lags) &&
        scene_would_grant(scene, request)) {
        const struct scene_attempt *attempt = &scene->attempts[request->attempt];

        scene_note(scene, "long in committing", request->client, request->actor,
            request->attempt, request->kind);
        request->is_judged = 1;
        scene->is_committing[scene_slot(attempt->strategy)][attempt->name] = 1;
        post_request(scene, SCENE_EXECUTES, request, scene_below(scene, plan->stuck_us + 1));
        return;
    }
    scene_serve(scene, request);
    if (scene->now_us < scene->blackout_until_us || scene_chance(scene, plan->n_answers_lost)) {
        scene_note(scene, "answer lost", request->client, request->actor, request->attempt,
            request->kind);
        request->is_used = 0;
        return;
    }
    post_request(scene, SCENE_ANSWERS, request, one_way(scene));
}

static void end_wait(struct scene *scene, unsigned client, unsigned actor)
{
    scene_actor(scene, client, actor)->waiting = 0;
    scene_stop_timer(scene, client, actor);
}

/* Lost with its connection, which is of no use any more. */
static void give_up(struct scene *scene, unsigned client, unsigned actor, int was_sent)
{
    struct scene_actor *whose = scene_actor(scene, client, actor);
    int was_open = whose->link.is_open;
    int is_reused = was_open && whose->link.n_uses > 0;

    end_wait(scene, client, actor);
    memset(&whose->link, 0, sizeof whose->link);
    if (actor == SCENE_TASKS_MAX && was_open)
        scene_keeper_reconnected(scene, client);
    scene_result(scene, client, actor,
        was_open && was_sent ? DBLOCK_E_UNCERTAIN : DBLOCK_E_CONNECTION, is_reused, NULL);
}

void scene_answer(struct scene *scene, struct scene_request *request)
{
    struct scene_actor *actor = scene_actor(scene, request->client, request->actor);
    struct scene_request answered = *request;
    int is_reused;

    request->is_used = 0;
    if (actor->waiting != answered.serial)
        return; /* too late: given up with its connection */
    end_wait(scene, answered.client, answered.actor);
    is_reused = actor->link.n_uses > 0;
    if (answered.status == DBLOCK_OK && answered.answer.now_us != 0)
        actor->link.offset_us =
            answered.answer.now_us - (int64_t)scene_local_us(scene, answered.client);
    if (answered.kind == SCENE_OPEN) {
        struct scene_request wish = actor->wish;

        actor->link.is_open = 1;
        actor->link.is_cut = 0;
        actor->link.n_uses = 0;
        if (answered.actor == SCENE_TASKS_MAX && scene->mistake != SCENE_FIRST_LINK_UNREAD)
            scene_keeper_reconnected(scene, answered.client);
        /* a take has its limit from its sending, all else one limit with the connecting */
        if (wish.kind == SCENE_TAKE)
            actor->limit_us = scene_local_us(scene, answered.client) + scene->plan.statement_us;
        if (actor->limit_us > scene_local_us(scene, answered.client))
            depart(scene, &wish);
        else
            scene_result(scene, answered.client, answered.actor, DBLOCK_E_CONNECTION, 0, NULL);
        return;
    }
    ++actor->link.n_uses;
    scene_result(scene, answered.client, answered.actor, answered.status, is_reused, &answered);
}

void scene_fail(struct scene *scene, const struct scene_event *event)
{
    if (scene_actor(scene, event->client, event->actor)->waiting == event->serial)
        give_up(scene, event->client, event->actor, event->request != 0);
}

int scene_time_out(struct scene *scene, unsigned client, unsigned actor)
{
    if (scene_actor(scene, client, actor)->waiting == 0)
        return 0;
    give_up(scene, client, actor, 1);
    return 1;
}

void scene_cut(struct scene *scene, unsigned client, unsigned actor)
{
    struct scene_actor *whose = scene_actor(scene, client, actor);
    struct scene_event event = { 0 };

    whose->link.is_cut = 1;
    if (whose->waiting == 0)
        return;
    event.at_us = scene->now_us + one_way(scene);
    event.kind = SCENE_FAILS;
    event.client = client;
    event.actor = actor;
    event.life = scene->clients[client].life;
    event.serial = whose->waiting;
    event.request = 1;
    scene_post(scene, &event);
}
