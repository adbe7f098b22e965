/* SPDX-License-Identifier: MIT */
/* scene_queue.c - what is going to happen, as a heap: the earliest first, and of
 * two at one time the one that was posted first. */
#include <stdlib.h>

#include "scene.h"

static int is_before(const struct scene_event *left, const struct scene_event *right)
{
    if (left->at_us != right->at_us)
        return left->at_us < right->at_us;
    return left->order < right->order;
}

void scene_post(struct scene *scene, const struct scene_event *event)
{
    struct scene_event *events = scene->events;
    struct scene_event posted = *event;
    size_t place = scene->n_events++;

    if (place >= SCENE_EVENTS_MAX)
        abort(); /* each actor has a few at most */
    posted.order = ++scene->order;
    if (posted.at_us < scene->now_us)
        posted.at_us = scene->now_us;
    while (place > 0 && is_before(&posted, &events[(place - 1) / 2])) {
        events[place] = events[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    events[place] = posted;
}

int scene_pop(struct scene *scene, struct scene_event *ret_event)
{
    struct scene_event *events = scene->events;
    struct scene_event last;
    size_t place = 0;

    if (scene->n_events == 0)
        return 0;
    *ret_event = events[0];
    last = events[--scene->n_events];
    for (;;) {
        size_t child = 2 * place + 1;

        if (child >= scene->n_events)
            break;
        if (child + 1 < scene->n_events && is_before(&events[child + 1], &events[child]))
            ++child;
        if (!is_before(&events[child], &last))
            break;
        events[place] = events[child];
        place = child;
    }
    if (scene->n_events > 0)
        events[place] = last;
    return 1;
}

void scene_set_timer(struct scene *scene, unsigned client, unsigned actor, uint64_t local_us)
{
    struct scene_event event = { 0 };
    struct scene_actor *whose = scene_actor(scene, client, actor);

    whose->timer = ++scene->serial; /* an earlier timer is void by that */
    if (local_us == DBLK_NEVER)
        return;
    event.at_us = scene_true_us(scene, client, local_us);
    event.kind = SCENE_TIMER;
    event.client = client;
    event.actor = actor;
    event.life = scene->clients[client].life;
    event.serial = whose->timer;
    scene_post(scene, &event);
}

void scene_stop_timer(struct scene *scene, unsigned client, unsigned actor)
{
    scene_actor(scene, client, actor)->timer = 0;
}
