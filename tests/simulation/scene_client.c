/* SPDX-License-Identifier: MIT */
/* scene_client.c - a process: its attempts and grants, its sessions, its birth and
 * its deaths. The rules are those of the core's lock.c and session.c. */
#include <stdlib.h>
#include <string.h>

#include "scene.h"

/* ------------------------------------------------------------------ attempts */

static void make_id(struct scene *scene, uint32_t index, unsigned char id[DBLOCK_ID_SIZE])
{
    uint64_t rest = scene_random(scene);

    id[0] = (unsigned char)(index >> 24);
    id[1] = (unsigned char)(index >> 16);
    id[2] = (unsigned char)(index >> 8);
    id[3] = (unsigned char)index;
    memcpy(id + 4, &rest, sizeof rest);
    memset(id + 12, 0x5A, 4);
}

uint32_t scene_attempt_new(struct scene *scene, unsigned client, const struct scene_task *task)
{
    struct scene_client *owner = &scene->clients[client];
    uint32_t index = scene->n_attempts++;
    struct scene_attempt *attempt = &scene->attempts[index];

    if (index >= SCENE_ATTEMPTS_MAX || owner->n_live >= SCENE_LIVE_MAX)
        abort(); /* scene_play() ends a seed long before */
    memset(attempt, 0, sizeof *attempt);
    make_id(scene, index, attempt->owner);
    attempt->strategy = task->strategy;
    attempt->name = task->name;
    attempt->client = client;
    attempt->life = owner->life;
    attempt->n_back = scene->n_back;
    attempt->session = SCENE_NOBODY;
    attempt->true_session = SCENE_NOBODY;
    attempt->state = SCENE_TAKING;
    attempt->ttl_us = task->ttl_us;
    attempt->keep_us = task->keep_us;
    attempt->least_us = DBLK_NEVER;
    attempt->least_ttl_us = DBLK_NEVER;
    owner->live[owner->n_live++] = index;
    return index;
}

uint64_t scene_attempt_deadline(const struct scene *scene, const struct scene_attempt *attempt)
{
    if (attempt->session == SCENE_NOBODY)
        return dblk_sooner(attempt->deadline_us, attempt->least_us);
    if (scene->sessions[attempt->session].state != SCENE_SESSION_ALIVE)
        return 0;
    return dblk_sooner(scene->sessions[attempt->session].beat.deadline_us, attempt->least_us);
}

void scene_attempt_hold(struct scene *scene, uint32_t index, uint64_t sent_us, int64_t token)
{
    struct scene_attempt *attempt = &scene->attempts[index];

    attempt->state = SCENE_HELD;
    attempt->token = token;
    attempt->taken_us = sent_us;
    attempt->granted_us = scene_local_us(scene, attempt->client);
    scene_note(scene, "believes", attempt->client, 0, index,
        (int64_t)scene_attempt_deadline(scene, attempt));
    if (!attempt->is_granted || token != attempt->true_token)
        scene_violate(scene, "attempt %u is believed with token %lld; granted %d with %lld",
            (unsigned)index, (long long)token, attempt->is_granted,
            (long long)attempt->true_token);
    scene_check_belief(scene);
    scene_keeper_due(scene, attempt->client);
}

void scene_attempt_orphan(struct scene *scene, uint32_t index, int64_t not_after_us)
{
    struct scene_attempt *attempt = &scene->attempts[index];
    uint64_t now_us = scene_local_us(scene, attempt->client);

    attempt->state = SCENE_ORPHAN;
    attempt->not_after_us = not_after_us;
    attempt->retry_us = now_us;
    attempt->n_retries = 0;
    attempt->hopeless_us = now_us + 2 * attempt->ttl_us + 2 * scene->plan.io_us;
    scene_note(scene, "left to the keeper", attempt->client, 0, index, not_after_us);
    scene_keeper_due(scene, attempt->client);
}

void scene_attempt_gone(struct scene *scene, uint32_t index)
{
    struct scene_attempt *attempt = &scene->attempts[index];
    struct scene_client *client = &scene->clients[attempt->client];
    unsigned i;

    attempt->state = SCENE_GONE;
    for (i = 0; i < client->n_live; ++i)
        if (client->live[i] == index)
            client->live[i--] = client->live[--client->n_live];
    if (attempt->session != SCENE_NOBODY)
        scene_session_unref(scene, attempt->session);
}

void scene_attempt_lose(struct scene *scene, uint32_t index, const char *why)
{
    if (scene->attempts[index].state != SCENE_HELD)
        return;
    scene_note(scene, why, scene->attempts[index].client, 0, index, 0);
    ++scene->counts.lost;
    scene_attempt_gone(scene, index);
}

/* ------------------------------------------------------------------ sessions */

uint32_t scene_session_usable(struct scene *scene, unsigned client, uint64_t ttl_us)
{
    const struct scene_client *owner = &scene->clients[client];
    unsigned i;

    for (i = owner->n_sessions; i > 0; --i) {
        const struct scene_session *session = &scene->sessions[owner->sessions[i - 1]];

        if (session->ttl_us == ttl_us &&
            (session->state == SCENE_SESSION_BEGINNING ||
                (session->state == SCENE_SESSION_ALIVE &&
                    scene_local_us(scene, client) < session->beat.deadline_us)))
            return owner->sessions[i - 1];
    }
    return SCENE_NOBODY;
}

uint32_t scene_session_new(struct scene *scene, unsigned client, uint64_t ttl_us)
{
    struct scene_client *owner = &scene->clients[client];
    uint32_t index = scene->n_sessions++;
    struct scene_session *session = &scene->sessions[index];

    if (index >= SCENE_SESSIONS_MAX ||
        owner->n_sessions >= sizeof owner->sessions / sizeof owner->sessions[0])
        abort();
    memset(session, 0, sizeof *session);
    make_id(scene, index, session->id);
    session->id[15] = 0xA5; /* not an owner's */
    session->client = client;
    session->ttl_us = ttl_us;
    session->state = SCENE_SESSION_BEGINNING;
    session->n_refs = 1;
    session->read_back_us = DBLK_NEVER;
    owner->sessions[owner->n_sessions++] = index;
    return index;
}

void scene_session_unref(struct scene *scene, uint32_t index)
{
    struct scene_session *session = &scene->sessions[index];
    struct scene_client *client = &scene->clients[session->client];
    unsigned i;

    if (--session->n_refs > 0 || session->state != SCENE_SESSION_ENDED)
        return;
    for (i = 0; i < client->n_sessions; ++i)
        if (client->sessions[i] == index)
            client->sessions[i--] = client->sessions[--client->n_sessions];
}

void scene_session_lose(struct scene *scene, uint32_t index, const char *why)
{
    struct scene_session *session = &scene->sessions[index];
    struct scene_client *client = &scene->clients[session->client];
    uint64_t now_us = scene_local_us(scene, session->client);
    unsigned i;

    if (session->state != SCENE_SESSION_ALIVE)
        return;
    session->state = SCENE_SESSION_LOST;
    session->give_up_us = now_us + session->ttl_us + scene->plan.io_us;
    session->retry_us = now_us;
    session->read_back_us = DBLK_NEVER;
    for (i = client->n_live; i > 0; --i)
        if (scene->attempts[client->live[i - 1]].session == index)
            scene_attempt_lose(scene, client->live[i - 1], why);
    scene_keeper_due(scene, session->client);
}

/* -------------------------------------------------------------- the process */

void scene_client_clock(struct scene *scene, unsigned index)
{
    struct scene_client *client = &scene->clients[index];
    uint64_t now_us = scene_local_us(scene, index);
    unsigned i;

    for (i = client->n_sessions; i > 0; --i) {
        struct scene_session *session = &scene->sessions[client->sessions[i - 1]];

        if (session->state == SCENE_SESSION_ALIVE &&
            dblk_heartbeat_check(&session->beat, now_us) == DBLK_BEAT_LOST)
            scene_session_lose(scene, client->sessions[i - 1], "lost: session's deadline");
    }
    for (i = client->n_live; i > 0; --i) {
        const struct scene_attempt *attempt = &scene->attempts[client->live[i - 1]];

        if (attempt->state != SCENE_HELD || now_us < scene_attempt_deadline(scene, attempt))
            continue;
        /* By an extend that may never come, while its session lives on: the row may name that
         * session still, and would for ever. */
        if (attempt->session != SCENE_NOBODY)
            scene_attempt_orphan(scene, client->live[i - 1], 0);
        else
            scene_attempt_lose(scene, client->live[i - 1], "lost: deadline");
    }
}

void scene_client_start(struct scene *scene, unsigned index)
{
    struct scene_client *client = &scene->clients[index];
    unsigned i;

    client->is_running = 1;
    client->is_closing = 0;
    client->n_sessions = 0;
    client->n_live = 0;
    memset(client->tasks, 0, sizeof client->tasks);
    memset(&client->keeper, 0, sizeof client->keeper);
    scene_note(scene, "starts", index, 0, SCENE_NOBODY, client->clock_ppm);
    for (i = 0; i < scene->plan.n_tasks; ++i) {
        client->tasks[i].doing = SCENE_RESTING;
        client->tasks[i].attempt = SCENE_NOBODY;
        client->tasks[i].session = SCENE_NOBODY;
        client->tasks[i].is_anchor = i == 0;
        scene_set_timer(scene, index, i,
            scene_local_us(scene, index) + scene_below(scene, scene->plan.hold_us));
    }
}

void scene_client_die(struct scene *scene, unsigned index)
{
    struct scene_client *client = &scene->clients[index];
    struct scene_event event = { 0 };
    unsigned i;

    if (!client->is_running)
        return;
    scene_note(scene, "dies", index, 0, SCENE_NOBODY, 0);
    event.kind = SCENE_FREED;
    event.client = index;
    event.life = client->life;
    /* A request that is under way when its sender dies may still arrive, wait in the server and
     * then begin a ttl, which may be the longest that an extend asks for. */
    event.at_us = scene->now_us + scene->plan.slow_us + scene->plan.stuck_us +
        2 * (scene->plan.ttl_us[0] + scene->plan.ttl_us[1]) + 1;
    scene_post(scene, &event);
    for (i = 0; i < client->n_live; ++i)
        scene->attempts[client->live[i]].state = SCENE_GONE;
    for (i = 0; i < client->n_sessions; ++i)
        scene->sessions[client->sessions[i]].state = SCENE_SESSION_ENDED;
    client->is_running = 0;
    client->paused_until_us = 0;
    client->crashed_us = scene->now_us;
    ++client->life;
    memset(&event, 0, sizeof event);
    event.kind = SCENE_STARTS;
    event.client = index;
    event.life = client->life;
    event.at_us = scene->now_us + scene_below(scene, 2 * scene->plan.ttl_us[0]);
    scene_post(scene, &event);
}

void scene_client_close(struct scene *scene, unsigned index)
{
    struct scene_client *client = &scene->clients[index];
    unsigned i;

    if (!client->is_running || client->is_closing)
        return;
    client->is_closing = 1;
    client->close_us = scene_local_us(scene, index) + scene->plan.io_us;
    scene_note(scene, "closes", index, 0, SCENE_NOBODY, 0);
    for (i = 0; i < scene->plan.n_tasks; ++i)
        scene_task_close(scene, index, i);
    scene_keeper_due(scene, index);
}

void scene_result(struct scene *scene, unsigned client, unsigned actor, dblock_status status,
    int is_reused, const struct scene_request *request)
{
    if (actor == SCENE_TASKS_MAX)
        scene_keeper_result(scene, client, status, request);
    else if (scene->clients[client].tasks[actor].doing == SCENE_ACQUIRING)
        scene_acquire_result(scene, client, actor, status, is_reused, request);
    else
        scene_task_result(scene, client, actor, status, is_reused, request);
}
