/* SPDX-License-Identifier: MIT */
/* scene_checks.c - what must be true at every moment, judged by the second account
 * of the truth that scene_server.c keeps.
 *
 * Four things are excused, each exactly and counted. A database whose clock is
 * set forward ends grants before their time, and no wall clock can prevent that;
 * one that is set back undoes the passing of a not_after and of an end that had
 * been answered with no, without anybody believing; a commit that takes long is
 * seen by no look, and not_after has been judged before it; and an administrator
 * who breaks a grant does so while its holder believes in it. */
#include "scene.h"

int scene_is_in_force(const struct scene *scene, const struct scene_attempt *attempt)
{
    const struct scene_session *session;

    if (!attempt->is_granted || attempt->is_over)
        return 0;
    if (attempt->true_session == SCENE_NOBODY)
        return attempt->expires_us > scene_server_us(scene);
    session = &scene->sessions[attempt->true_session];
    return session->is_there && session->expires_us > scene_server_us(scene);
}

struct basis { /* from when, and for how long, the server counted last */
    uint64_t at_us, ttl_us;
    int64_t offset_us;
};

static struct basis basis_of(const struct scene *scene, const struct scene_attempt *attempt)
{
    struct basis basis = { attempt->basis_us, attempt->basis_ttl_us, attempt->basis_offset_us };

    if (attempt->true_session != SCENE_NOBODY) {
        const struct scene_session *session = &scene->sessions[attempt->true_session];

        basis.at_us = session->basis_us;
        basis.ttl_us = session->ttl_us;
        basis.offset_us = session->basis_offset_us;
    }
    return basis;
}

/* Had the server's clock been set forward by more than remained of the grant, when somebody else
 * ended its session or took its name? */
static int was_cut_short(const struct scene *scene, const struct scene_attempt *attempt)
{
    struct basis basis = basis_of(scene, attempt);
    uint64_t end_us = basis.at_us + basis.ttl_us;
    uint64_t over_us = attempt->over_us;
    int64_t offset_us = attempt->over_offset_us;

    if (attempt->true_session != SCENE_NOBODY &&
        scene->sessions[attempt->true_session].over_us != 0) {
        over_us = scene->sessions[attempt->true_session].over_us;
        offset_us = scene->sessions[attempt->true_session].over_offset_us;
    }
    return over_us != 0 && end_us > over_us &&
        offset_us - basis.offset_us >= (int64_t)(end_us - over_us);
}

static void judge_two(struct scene *scene, uint32_t left, uint32_t right)
{
    const struct scene_attempt *older = &scene->attempts[left];
    const struct scene_attempt *newer = &scene->attempts[right];

    if (older->granted_true_us > newer->granted_true_us) {
        judge_two(scene, right, left);
        return;
    }
    if (older->is_broken)
        ++scene->counts.excused_broken;
    else if (was_cut_short(scene, older))
        ++scene->counts.excused_forward;
    else
        scene_violate(scene, "two believers: attempts %u (client %u) and %u (client %u) on \"%s\"",
            (unsigned)left, older->client, (unsigned)right, newer->client,
            scene_name(older->name));
}

static void judge_belief(struct scene *scene, uint32_t index)
{
    const struct scene_attempt *attempt = &scene->attempts[index];
    struct basis basis = basis_of(scene, attempt);

    if (scene_is_in_force(scene, attempt) || attempt->is_broken)
        return;
    /* Not in force any more: only a clock that was set forward may have done it, and that it was
     * set forward since may be hidden by its having been set back again. */
    if (scene->n_forward > 0 && basis.at_us + basis.ttl_us > scene->now_us)
        return;
    scene_violate(scene, "attempt %u (client %u) believes in \"%s\", which is not in force",
        (unsigned)index, attempt->client, scene_name(attempt->name));
}

void scene_check_belief(struct scene *scene)
{
    uint32_t believers[2][SCENE_NAMES_MAX];
    unsigned i, k;

    for (i = 0; i < SCENE_NAMES_MAX; ++i)
        believers[0][i] = believers[1][i] = SCENE_NOBODY;
    for (i = 0; i < scene->plan.n_clients; ++i) {
        const struct scene_client *client = &scene->clients[i];
        uint64_t now_us = scene_local_us(scene, i);

        for (k = 0; client->is_running && k < client->n_live; ++k) {
            uint32_t index = client->live[k];
            const struct scene_attempt *attempt = &scene->attempts[index];
            uint32_t *believer = &believers[scene_slot(attempt->strategy)][attempt->name];

            if (attempt->state != SCENE_HELD || now_us >= scene_attempt_deadline(scene, attempt))
                continue;
            judge_belief(scene, index);
            if (*believer != SCENE_NOBODY)
                judge_two(scene, *believer, index);
            *believer = index;
        }
    }
}

void scene_check_denied(struct scene *scene, uint32_t index)
{
    struct scene_attempt *attempt = &scene->attempts[index];

    attempt->is_denied = 1;
    if (!scene_is_in_force(scene, attempt) || attempt->is_restored)
        return;
    /* A clock that was set back since brings back what had ended, and what had been answered "not
     * in force". Nobody believes in it, and it ends again. */
    if (scene->n_back > attempt->n_back)
        ++scene->counts.excused_back;
    else if (attempt->is_slow) /* seen by nobody when the look was made */
        ++scene->counts.excused_lag;
    else
        scene_violate(scene, "attempt %u: its caller is told no, and it is in force on \"%s\"",
            (unsigned)index, scene_name(attempt->name));
}

void scene_check_freed(struct scene *scene, unsigned client, unsigned life)
{
    unsigned slot, name;

    for (slot = 0; slot < 2; ++slot)
        for (name = 0; name < SCENE_NAMES_MAX; ++name) {
            uint32_t index = scene->holder[slot][name];
            const struct scene_attempt *attempt;

            if (index == SCENE_NOBODY)
                continue;
            attempt = &scene->attempts[index];
            if (attempt->client != client || attempt->life != life ||
                !scene_is_in_force(scene, attempt))
                continue;
            if (scene->server_offset_us >= basis_of(scene, attempt).offset_us)
                scene_violate(scene, "client %u died, and attempt %u still holds \"%s\"", client,
                    (unsigned)index, scene_name(name));
        }
}

/* ------------------------------------------------------------------- the calm */

static int is_everybody_served(const struct scene *scene)
{
    unsigned i, k;

    for (i = 0; i < scene->plan.n_clients; ++i)
        for (k = 0; k < scene->plan.n_tasks; ++k) {
            const struct scene_task *task = &scene->clients[i].tasks[k];

            if (!scene->clients[i].is_running ||
                (task->is_anchor ? task->doing != SCENE_HOLDING : task->doing != SCENE_RESTING))
                return 0;
        }
    return 1;
}

static void judge_rest(struct scene *scene)
{
    unsigned slot, name;

    for (slot = 0; slot < 2; ++slot)
        for (name = 0; name < SCENE_NAMES_MAX; ++name) {
            uint32_t index = scene->holder[slot][name];
            const struct scene_attempt *attempt;

            if (index == SCENE_NOBODY)
                continue;
            attempt = &scene->attempts[index];
            if (scene_is_in_force(scene, attempt) && attempt->state != SCENE_HELD)
                scene_violate(scene, "\"%s\" stays taken by attempt %u of client %u, which does "
                    "not know of it (state %d)", scene_name(name), (unsigned)index,
                    attempt->client, (int)attempt->state);
        }
}

int scene_check_calm(struct scene *scene)
{
    const struct scene_plan *plan = &scene->plan;
    uint64_t ttls_us = plan->ttl_us[0] + plan->ttl_us[1];
    int64_t back_us = scene->highest_offset_us - scene->server_offset_us;
    uint64_t n_tasks = plan->n_clients * plan->n_tasks;
    /* What is taken when the faults end is over: the longest pause of a client, then the longest
     * extend, on a clock that was set back; what is under way has come or been given up; what has
     * come too late has been read back, by SCENE_READ_EVERY heartbeats a third of a ttl apart. */
    uint64_t leftovers_us = 4 * ttls_us + (SCENE_READ_EVERY / 3 + 1) * ttls_us +
        (uint64_t)(back_us > 0 ? back_us : 0) + plan->slow_us + plan->stuck_us +
        12 * plan->io_us + 1000000;
    /* Then one waiter after the other: it sees within 0.2 s that the name is free, and holds. */
    uint64_t served_us = leftovers_us + n_tasks * (plan->hold_us * 12 / 10 + 250000);

    if (scene->rest_us == 0) {
        if (is_everybody_served(scene))
            scene->rest_us = scene->now_us;
        else if (scene->now_us > scene->calm_us + served_us)
            scene_violate(scene, "%llu us without a fault, and not everybody was served",
                (unsigned long long)served_us);
        return 0;
    }
    if (scene->now_us < scene->rest_us + leftovers_us)
        return 0;
    if (!is_everybody_served(scene))
        scene_violate(scene, "an anchor was lost although nothing went wrong");
    judge_rest(scene);
    return 1;
}
