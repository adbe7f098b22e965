/* SPDX-License-Identifier: MIT */
/* scene.c - one seed from its beginning to its end: events in the order of time,
 * a check after each, clocks, chance, and the notes that a failure prints. */
#include "scene.h"

#include <stdio.h>
#include <string.h>

const char *const scene_mistake_names[SCENE_MISTAKES] = { "none", "deadline-from-answer",
    "no-margin", "not-after-ignored", "renewal-revives", "reask-is-take", "token-before-wait",
    "no-without-look", "yes-without-look", "drop-by-name", "no-sweep", "own-session-unchecked",
    "extend-forgets", "first-link-unread", "no-regular-read" };

/* ------------------------------------------------------------ chance and time */

uint64_t scene_random(struct scene *scene)
{
    uint64_t word = scene->random += UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */

    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

uint64_t scene_below(struct scene *scene, uint64_t limit)
{
    return scene_random(scene) % limit;
}

int scene_chance(struct scene *scene, unsigned per_thousand)
{
    return per_thousand != 0 && scene_random(scene) % 1000 < per_thousand;
}

uint64_t scene_local_us(const struct scene *scene, unsigned client)
{
    const struct scene_client *whose = &scene->clients[client];

    return whose->clock_base_us +
        scene->now_us * (uint64_t)(1000000 + whose->clock_ppm) / 1000000;
}

uint64_t scene_true_us(const struct scene *scene, unsigned client, uint64_t local_us)
{
    const struct scene_client *whose = &scene->clients[client];
    uint64_t rate = (uint64_t)(1000000 + whose->clock_ppm);

    if (local_us <= scene_local_us(scene, client))
        return scene->now_us;
    local_us -= whose->clock_base_us;
    if (local_us > UINT64_MAX / 2000000)
        return UINT64_MAX / 4;
    return (local_us * 1000000 + rate - 1) / rate;
}

int64_t scene_server_us(const struct scene *scene)
{
    return (int64_t)scene->now_us + scene->server_offset_us;
}

const char *scene_name(unsigned name)
{
    static const char *const names[SCENE_NAMES_MAX] = { "a", "b", "c", "d", "anchor-0", "anchor-1",
        "anchor-2", "anchor-3", "anchor-4", "anchor-5", "anchor-6", "anchor-7" };

    return names[name];
}

/* ---------------------------------------------------------------------- notes */

static void print_note(const struct scene_note *note)
{
    printf("%9llu.%06llu step %llu  client %u", (unsigned long long)(note->at_us / 1000000),
        (unsigned long long)(note->at_us % 1000000), (unsigned long long)note->step,
        note->client);
    if (note->actor == SCENE_TASKS_MAX)
        printf(" keeper");
    else
        printf(" task %u", note->actor);
    if (note->attempt != SCENE_NOBODY)
        printf("  attempt %u", (unsigned)note->attempt);
    printf("  %s %lld\n", note->what, (long long)note->number);
}

void scene_note(struct scene *scene, const char *what, unsigned client, unsigned actor,
    uint32_t attempt, int64_t number)
{
    struct scene_note *note = &scene->notes[scene->n_notes++ % SCENE_NOTES_MAX];

    note->at_us = scene->now_us;
    note->step = scene->counts.steps;
    note->what = what;
    note->client = client;
    note->actor = actor;
    note->attempt = attempt;
    note->number = number;
    if (scene->is_tracing)
        print_note(note);
}

void scene_print_notes(const struct scene *scene)
{
    uint64_t first = scene->n_notes > SCENE_NOTES_MAX ? scene->n_notes - SCENE_NOTES_MAX : 0;

    for (; first < scene->n_notes; ++first)
        print_note(&scene->notes[first % SCENE_NOTES_MAX]);
}

void scene_violate(struct scene *scene, const char *format, ...)
{
    va_list arguments;

    if (scene->violation[0] != 0)
        return; /* the first one is the cause */
    va_start(arguments, format);
    (void)vsnprintf(scene->violation, sizeof scene->violation, format, arguments);
    va_end(arguments);
}

/* ----------------------------------------------------------------- one event */

static const char *const event_names[] = { "", "arrives", "executes", "answers", "fails", "timer",
    "starts", "must be free", "mishap", "unpins", "the server is up" };

static void print_event(const struct scene *scene, const struct scene_event *event)
{
    const struct scene_request *request = &scene->requests[event->request % SCENE_REQUESTS_MAX];

    printf("%9llu.%06llu            %s %u/%u", (unsigned long long)(scene->now_us / 1000000),
        (unsigned long long)(scene->now_us % 1000000), event_names[event->kind], event->client,
        event->actor);
    if (event->kind == SCENE_ARRIVES || event->kind == SCENE_EXECUTES)
        printf("  request %d", (int)request->kind);
    else if (event->kind == SCENE_ANSWERS)
        printf("  request %d: %d", (int)request->kind, (int)request->answer.outcome);
    putchar('\n');
}

/* 1: it concerns a process that is there, and runs. */
static int concerns(struct scene *scene, const struct scene_event *event)
{
    const struct scene_client *client = &scene->clients[event->client];

    if (!client->is_running || event->life != client->life)
        return 0;
    if (client->paused_until_us > scene->now_us) {
        struct scene_event later = *event;

        later.at_us = client->paused_until_us;
        scene_post(scene, &later);
        return 0;
    }
    scene_client_clock(scene, event->client);
    return 1;
}

static void ring(struct scene *scene, const struct scene_event *event)
{
    struct scene_actor *actor = scene_actor(scene, event->client, event->actor);

    if (actor->timer != event->serial)
        return;
    actor->timer = 0;
    if (scene_time_out(scene, event->client, event->actor))
        return;
    if (event->actor == SCENE_TASKS_MAX)
        scene_keeper_step(scene, event->client);
    else
        scene_task_timer(scene, event->client, event->actor);
}

static void handle(struct scene *scene, const struct scene_event *event)
{
    struct scene_request *request = &scene->requests[event->request % SCENE_REQUESTS_MAX];

    switch (event->kind) {
    case SCENE_ARRIVES:
        scene_arrive(scene, request);
        return;
    case SCENE_EXECUTES:
        scene_execute(scene, request);
        return;
    case SCENE_ANSWERS:
        if (concerns(scene, event))
            scene_answer(scene, request);
        else if (event->life != scene->clients[event->client].life)
            request->is_used = 0;
        return;
    case SCENE_FAILS:
        if (concerns(scene, event))
            scene_fail(scene, event);
        return;
    case SCENE_TIMER:
        if (concerns(scene, event))
            ring(scene, event);
        return;
    case SCENE_STARTS:
        scene_client_start(scene, event->client);
        return;
    case SCENE_FREED:
        scene_check_freed(scene, event->client, event->life);
        return;
    case SCENE_MISHAP:
        if (!scene->is_calm)
            scene_mishap(scene);
        return;
    case SCENE_UNPINS:
        if (event->life == scene->server_life)
            (void)sim_hold_guard(
                &scene->world, (int32_t)event->actor, scene_name(event->client), -1);
        return;
    default: /* SERVER_UP */
        scene->is_server_up = 1;
        scene->world.start_us = scene_server_us(scene);
        return;
    }
}

static void step(struct scene *scene)
{
    struct scene_event event;

    if (!scene_pop(scene, &event)) {
        scene_violate(scene, "nothing is left to happen");
        return;
    }
    scene->now_us = event.at_us;
    ++scene->counts.steps;
    if (scene->is_tracing)
        print_event(scene, &event);
    handle(scene, &event);
    scene_check_belief(scene);
}

/* ------------------------------------------------------------------- one seed */

static void begin(struct scene *scene, uint64_t seed, unsigned n_clients)
{
    struct scene_event mishap = { 0 };
    unsigned i, k;

    scene->seed = seed;
    scene->random = seed * UINT64_C(0xD1342543DE82EF95) + 1;
    scene->now_us = 1000000;
    scene->is_calm = 0;
    scene->calm_us = scene->rest_us = 0;
    scene->server_offset_us = INT64_C(1700000000000000);
    scene->highest_offset_us = scene->server_offset_us;
    scene->n_forward = scene->n_back = 0;
    scene->is_server_up = 1;
    scene->server_life = 0;
    scene->blackout_until_us = 0;
    scene->order = scene->serial = 0;
    scene->n_events = 0;
    scene->next_request = 0;
    scene->n_attempts = scene->n_sessions = 0;
    scene->n_lazy = 0;
    scene->n_notes = 0;
    scene->violation[0] = 0;
    memset(&scene->plan, 0, sizeof scene->plan);
    memset(scene->requests, 0, sizeof scene->requests);
    memset(scene->clients, 0, sizeof scene->clients);
    for (i = 0; i < SCENE_NAMES_MAX; ++i)
        for (k = 0; k < 2; ++k) {
            scene->holder[k][i] = SCENE_NOBODY;
            scene->last_token[k][i] = 0;
            scene->is_committing[k][i] = 0;
        }
    sim_world_init(&scene->world, scene_server_us(scene));
    scene->world.is_installed = 1;
    scene_plan_choose(scene, n_clients);
    for (i = 0; i < scene->plan.n_clients; ++i) {
        scene->clients[i].clock_base_us = 1 + scene_below(scene, 100000000);
        if (scene->plan.faults & SCENE_FAULT_DRIFT)
            scene->clients[i].clock_ppm = (int64_t)scene_below(scene, 160001) - 80000;
        scene_client_start(scene, i);
    }
    mishap.kind = SCENE_MISHAP;
    mishap.at_us = scene->now_us + scene->plan.fault_every_us;
    scene_post(scene, &mishap);
}

int scene_play(struct scene *scene, uint64_t seed, uint64_t n_steps, unsigned n_clients,
    enum scene_mistake mistake, int is_tracing)
{
    uint64_t end = scene->counts.steps + n_steps;

    scene->mistake = mistake;
    scene->is_tracing = is_tracing;
    begin(scene, seed, n_clients);
    while (scene->violation[0] == 0 && scene->counts.steps < end &&
        scene->n_attempts < SCENE_ATTEMPTS_MAX / 2 && scene->n_sessions < SCENE_SESSIONS_MAX / 2)
        step(scene);
    if (scene->violation[0] == 0)
        scene_faults_end(scene);
    while (scene->violation[0] == 0 && !scene_check_calm(scene)) {
        step(scene);
        if (scene->n_attempts > SCENE_ATTEMPTS_MAX - 64 ||
            scene->n_sessions > SCENE_SESSIONS_MAX - 64)
            scene_violate(scene, "the calm does not end");
    }
    ++scene->counts.seeds;
    sim_world_fini(&scene->world);
    return scene->violation[0] == 0 ? 0 : -1;
}
