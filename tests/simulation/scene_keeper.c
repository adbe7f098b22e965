/* SPDX-License-Identifier: MIT */
/* scene_keeper.c - heartbeats, read-back and what callers left behind, in the
 * order and by the rules of the core's keeper: one piece of work at a time, over
 * one connection of its own. */
#include <string.h>

#include "scene.h"

static struct scene_keeper *keeper_of(struct scene *scene, unsigned client)
{
    return &scene->clients[client].keeper;
}

static void ask(struct scene *scene, unsigned client, enum scene_work work,
    enum scene_request_kind kind, uint32_t session, uint32_t attempt, uint64_t limit_us)
{
    struct scene_keeper *keeper = keeper_of(scene, client);
    struct scene_request wish = { 0 };

    keeper->work = work;
    keeper->session = session;
    keeper->attempt = attempt;
    wish.kind = kind;
    wish.session = session;
    wish.attempt = attempt;
    if (kind == SCENE_DROP && work == SCENE_WORK_ORPHAN) {
        const struct scene_attempt *orphan = &scene->attempts[attempt];

        if (orphan->keep_us != 0)
            wish.keep_us = dblk_until(
                scene_local_us(scene, client), orphan->granted_us + orphan->keep_us);
    }
    scene_ask(scene, client, SCENE_TASKS_MAX, &wish, limit_us);
}

/* When there is something to do; DBLK_NEVER: nothing. */
static uint64_t next_work(struct scene *scene, unsigned index)
{
    const struct scene_client *client = &scene->clients[index];
    uint64_t next_us = client->is_closing ? client->close_us : DBLK_NEVER;
    unsigned i;

    for (i = 0; i < client->n_sessions; ++i) {
        const struct scene_session *session = &scene->sessions[client->sessions[i]];

        if (session->state == SCENE_SESSION_ALIVE)
            next_us = dblk_sooner(next_us,
                dblk_sooner(dblk_sooner(session->beat.next_us, session->beat.deadline_us),
                    session->read_back_us));
        else if (session->state == SCENE_SESSION_LOST)
            next_us = dblk_sooner(next_us, session->retry_us);
    }
    for (i = 0; i < client->n_live; ++i) {
        const struct scene_attempt *attempt = &scene->attempts[client->live[i]];

        if (attempt->state == SCENE_ORPHAN)
            next_us = dblk_sooner(next_us, attempt->retry_us);
        else if (attempt->state == SCENE_HELD)
            next_us = dblk_sooner(next_us, scene_attempt_deadline(scene, attempt));
    }
    return next_us;
}

void scene_keeper_due(struct scene *scene, unsigned client)
{
    if (keeper_of(scene, client)->work == SCENE_WORK_NONE)
        scene_set_timer(scene, client, SCENE_TASKS_MAX, next_work(scene, client));
}

/* Its connection has gone: what was asked last may have been done or not. A new one is there: the
 * server may have crashed since others of this client were answered, also if it is the first. */
void scene_keeper_reconnected(struct scene *scene, unsigned index)
{
    const struct scene_client *client = &scene->clients[index];
    unsigned i;

    for (i = 0; i < client->n_sessions; ++i) {
        struct scene_session *session = &scene->sessions[client->sessions[i]];

        if (session->state == SCENE_SESSION_ALIVE)
            session->read_back_us =
                dblk_sooner(session->read_back_us, scene_local_us(scene, index));
    }
}

/* ------------------------------------------------------------------- choosing */

static int beat(struct scene *scene, unsigned index, uint64_t now_us, uint64_t limit_us)
{
    const struct scene_client *client = &scene->clients[index];
    unsigned i;

    for (i = client->n_sessions; i > 0; --i) {
        uint32_t which = client->sessions[i - 1];
        struct scene_session *session = &scene->sessions[which];
        int is_alive = session->state == SCENE_SESSION_ALIVE;

        if (is_alive ? now_us < session->beat.next_us && !client->is_closing
                     : session->state != SCENE_SESSION_LOST || now_us < session->retry_us)
            continue;
        if (is_alive && session->n_refs > 0 && !client->is_closing) {
            ask(scene, index, SCENE_WORK_RENEW, SCENE_RENEW, which, SCENE_NOBODY,
                dblk_sooner(limit_us, session->beat.deadline_us));
            return 1;
        }
        if (is_alive)
            scene_session_lose(scene, which, "lost: session given up");
        ask(scene, index, SCENE_WORK_END, SCENE_END_SESSION, which, SCENE_NOBODY, limit_us);
        return 1;
    }
    return 0;
}

static int read_back(struct scene *scene, unsigned index, uint64_t now_us, uint64_t limit_us)
{
    const struct scene_client *client = &scene->clients[index];
    unsigned i;

    for (i = 0; i < client->n_sessions; ++i) {
        struct scene_session *session = &scene->sessions[client->sessions[i]];

        if (session->state != SCENE_SESSION_ALIVE || now_us < session->read_back_us)
            continue;
        session->read_back_us = DBLK_NEVER;
        ask(scene, index, SCENE_WORK_READ, SCENE_HOLDS, scene->clients[index].sessions[i],
            SCENE_NOBODY, limit_us);
        return 1;
    }
    return 0;
}

static int give_back(struct scene *scene, unsigned index, uint64_t now_us, uint64_t limit_us)
{
    const struct scene_client *client = &scene->clients[index];
    unsigned i;

    for (i = 0; i < client->n_live; ++i) {
        struct scene_attempt *attempt = &scene->attempts[client->live[i]];

        if (attempt->state != SCENE_ORPHAN || now_us < attempt->retry_us)
            continue;
        attempt->retry_us = DBLK_NEVER;
        ask(scene, index, SCENE_WORK_ORPHAN, SCENE_DROP, SCENE_NOBODY, client->live[i], limit_us);
        return 1;
    }
    return 0;
}

void scene_keeper_step(struct scene *scene, unsigned client)
{
    uint64_t now_us = scene_local_us(scene, client);
    uint64_t limit_us = now_us + scene->plan.io_us;

    if (keeper_of(scene, client)->work != SCENE_WORK_NONE)
        return;
    if (scene->clients[client].is_closing && now_us >= scene->clients[client].close_us) {
        scene_client_die(scene, client);
        return;
    }
    if (!beat(scene, client, now_us, limit_us) && !read_back(scene, client, now_us, limit_us) &&
        !give_back(scene, client, now_us, limit_us))
        scene_keeper_due(scene, client);
}

/* -------------------------------------------------------------------- results */

static void judge_renewal(
    struct scene *scene, unsigned client, dblock_status status, const struct scene_request *request)
{
    struct scene_keeper *keeper = keeper_of(scene, client);
    struct scene_session *session = &scene->sessions[keeper->session];
    uint64_t now_us = scene_local_us(scene, client);
    enum dblk_heartbeat_verdict verdict;

    if (session->state != SCENE_SESSION_ALIVE)
        return;
    if (status != DBLOCK_OK || request->answer.outcome == DBLOCK_ANSWER_AGAIN) {
        if (dblk_heartbeat_failed(&session->beat, now_us, scene_random(scene)) == DBLK_BEAT_LOST)
            scene_session_lose(scene, keeper->session, "lost: no heartbeat got through");
        return;
    }
    verdict = dblk_heartbeat_answered(&session->beat,
        scene->mistake == SCENE_DEADLINE_FROM_ANSWER ? now_us : request->sent_us, now_us,
        request->answer.outcome == DBLOCK_ANSWER_YES, request->answer.changed);
    if (verdict == DBLK_BEAT_LOST) {
        scene_session_lose(scene, keeper->session, "lost: heartbeat refused");
        return;
    }
    /* Also without a reason: a clock that was set back lets a take through that had been judged to
     * come too late, and a row may be altered by hand. */
    if (verdict == DBLK_BEAT_READ ||
        (++session->n_beats % SCENE_READ_EVERY == 0 && scene->mistake != SCENE_NO_REGULAR_READ &&
            scene->mistake != SCENE_FIRST_LINK_UNREAD))
        session->read_back_us = now_us;
    if (request->answer.server_start_us != keeper->server_start_us) {
        if (keeper->server_start_us != 0)
            session->read_back_us = now_us;
        keeper->server_start_us = request->answer.server_start_us;
    }
    scene_check_belief(scene);
}

static void judge_end(
    struct scene *scene, unsigned client, dblock_status status, const struct scene_request *request)
{
    struct scene_keeper *keeper = keeper_of(scene, client);
    struct scene_session *session = &scene->sessions[keeper->session];
    uint64_t now_us = scene_local_us(scene, client);

    if ((status != DBLOCK_OK || request->answer.outcome == DBLOCK_ANSWER_AGAIN) &&
        now_us < session->give_up_us) {
        session->retry_us = now_us + 500000;
        return;
    }
    session->state = SCENE_SESSION_ENDED;
    ++session->n_refs;
    scene_session_unref(scene, keeper->session);
}

/* Gives back the next surplus grant; 0: there is none left. */
static int sweep(struct scene *scene, unsigned client)
{
    struct scene_keeper *keeper = keeper_of(scene, client);

    if (keeper->n_surplus == 0)
        return 0;
    ++scene->counts.swept;
    scene_note(scene, "sweeps", client, SCENE_TASKS_MAX, keeper->surplus[keeper->n_surplus - 1], 0);
    ask(scene, client, SCENE_WORK_SWEEP, SCENE_DROP, keeper->session,
        keeper->surplus[keeper->n_surplus - 1], scene_local_us(scene, client) + scene->plan.io_us);
    --keeper->n_surplus;
    return 1;
}

static void judge_reading(struct scene *scene, unsigned index, const struct scene_request *request)
{
    struct scene_client *client = &scene->clients[index];
    struct scene_keeper *keeper = &client->keeper;
    unsigned i;

    for (i = 0; i < request->n_held; ++i) {
        struct scene_attempt *attempt = &scene->attempts[request->held[i]];

        attempt->read_round = request->serial;
        if (attempt->state == SCENE_GONE && scene->mistake != SCENE_NO_SWEEP)
            keeper->surplus[keeper->n_surplus++] = request->held[i];
    }
    for (i = client->n_live; i > 0; --i) {
        const struct scene_attempt *attempt = &scene->attempts[client->live[i - 1]];

        if (attempt->state == SCENE_HELD && attempt->session == keeper->session &&
            attempt->read_round != request->serial && attempt->granted_us < request->sent_us)
            scene_attempt_lose(scene, client->live[i - 1], "lost: not read back");
    }
}

static void judge_orphan(
    struct scene *scene, unsigned client, dblock_status status, const struct scene_request *request)
{
    struct scene_keeper *keeper = keeper_of(scene, client);
    struct scene_attempt *attempt = &scene->attempts[keeper->attempt];
    uint64_t now_us = scene_local_us(scene, client);
    uint64_t retry_us;
    int is_over = 0;

    if (status == DBLOCK_OK)
        is_over = request->answer.outcome == DBLOCK_ANSWER_YES ||
            (request->answer.outcome == DBLOCK_ANSWER_NO &&
                (attempt->not_after_us == 0 ||
                    request->answer.now_us > attempt->not_after_us));
    if (attempt->session == SCENE_NOBODY)
        is_over |= now_us >= attempt->hopeless_us;
    else
        is_over |= scene->sessions[attempt->session].state == SCENE_SESSION_ENDED &&
            attempt->not_after_us == 0;
    if (is_over) {
        scene_attempt_gone(scene, keeper->attempt);
        return;
    }
    retry_us = 5000 + 5000 * (uint64_t)(attempt->n_retries < 49 ? ++attempt->n_retries : 49);
    attempt->retry_us = now_us + retry_us / 2 + scene_below(scene, retry_us / 2);
}

static void read_again(struct scene *scene, unsigned client)
{
    struct scene_session *session = &scene->sessions[keeper_of(scene, client)->session];

    if (session->state == SCENE_SESSION_ALIVE)
        session->read_back_us = dblk_sooner(
            session->read_back_us, scene_local_us(scene, client) + session->ttl_us / 16);
}

void scene_keeper_result(struct scene *scene, unsigned client, dblock_status status,
    const struct scene_request *request)
{
    struct scene_keeper *keeper = keeper_of(scene, client);
    enum scene_work work = keeper->work;
    /* "again" tells nothing: neither what is held nor that something was given back */
    int is_answered = status == DBLOCK_OK &&
        (request->answer.outcome == DBLOCK_ANSWER_YES ||
            request->answer.outcome == DBLOCK_ANSWER_NO);

    keeper->work = SCENE_WORK_NONE;
    if (work == SCENE_WORK_RENEW) {
        judge_renewal(scene, client, status, request);
    } else if (work == SCENE_WORK_END) {
        judge_end(scene, client, status, request);
    } else if (work == SCENE_WORK_ORPHAN) {
        judge_orphan(scene, client, status, request);
    } else { /* READ, and the SWEEP that follows it */
        keeper->is_open = work == SCENE_WORK_SWEEP && keeper->is_open;
        if (work == SCENE_WORK_READ)
            keeper->n_surplus = 0;
        if (work == SCENE_WORK_READ && is_answered)
            judge_reading(scene, client, request);
        keeper->is_open |= !is_answered;
        if (sweep(scene, client))
            return;
        if (keeper->is_open)
            read_again(scene, client);
    }
    scene_keeper_step(scene, client);
}
