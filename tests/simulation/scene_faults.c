/* SPDX-License-Identifier: MIT */
/* scene_faults.c - the plan of a seed, and what goes wrong in it. Sizes are drawn
 * relative to each other, so that answers come later than the I/O limit in one
 * seed, and later than the ttl in another. */
#include "scene.h"

static uint64_t between(struct scene *scene, uint64_t least, uint64_t most)
{
    return least + scene_below(scene, most - least + 1);
}

void scene_plan_choose(struct scene *scene, unsigned n_clients)
{
    struct scene_plan *plan = &scene->plan;
    uint64_t longer_us;

    plan->n_clients = n_clients != 0 ? n_clients : (unsigned)between(scene, 2, 6);
    plan->n_tasks = (unsigned)between(scene, 2, 4);
    plan->n_names = (unsigned)between(scene, 1, SCENE_SHARED_MAX);
    plan->faults = (unsigned)scene_random(scene) & SCENE_FAULTS;
    if (scene_chance(scene, 50))
        plan->faults = 0;
    plan->faults = (plan->faults | scene->with) & ~scene->without;
    plan->ttl_us[0] = between(scene, 100000, 4000000);
    plan->ttl_us[1] = between(scene, plan->ttl_us[0] / 2, 2 * plan->ttl_us[0]);
    longer_us = plan->ttl_us[0] > plan->ttl_us[1] ? plan->ttl_us[0] : plan->ttl_us[1];
    plan->io_us = plan->ttl_us[0] / 8 * between(scene, 1, 16);
    plan->statement_us = plan->io_us / 2;
    plan->hold_us = between(scene, 1000, longer_us);
    plan->latency_us = between(scene, 50, plan->ttl_us[0] / 100);
    plan->slow_us = between(scene, plan->io_us / 2, plan->io_us + 2 * longer_us);
    plan->stuck_us = between(scene, plan->io_us / 2, plan->io_us + 2 * longer_us);
    plan->fault_every_us = between(scene, plan->ttl_us[0] / 8, 4 * plan->ttl_us[0]);
    if (plan->faults & SCENE_FAULT_NETWORK) {
        plan->n_lost = (unsigned)scene_below(scene, 40);
        plan->n_answers_lost = (unsigned)scene_below(scene, 40);
        plan->n_slow = (unsigned)scene_below(scene, 60);
        plan->n_cut = (unsigned)scene_below(scene, 20);
    }
    if (plan->faults & SCENE_FAULT_STUCK)
        plan->n_stuck = (unsigned)scene_below(scene, 40);
    if (plan->faults & SCENE_FAULT_CONFLICT)
        plan->n_conflicts = (unsigned)scene_below(scene, 40);
    if (plan->faults & SCENE_FAULT_LAG)
        plan->n_lags = (unsigned)scene_below(scene, 100);
}

/* ------------------------------------------------------------------- mishaps */

static void cut_all(struct scene *scene)
{
    unsigned i, k;

    for (i = 0; i < scene->plan.n_clients; ++i) {
        for (k = 0; k < scene->plan.n_tasks; ++k)
            scene_cut(scene, i, k);
        scene_cut(scene, i, SCENE_TASKS_MAX);
    }
}

static void disturb_network(struct scene *scene, unsigned client)
{
    if (scene_chance(scene, 300)) {
        scene->blackout_until_us = scene->now_us + scene_below(scene, 2 * scene->plan.io_us);
        scene_note(scene, "nothing gets through", client, 0, SCENE_NOBODY,
            (int64_t)scene->blackout_until_us);
        return;
    }
    scene_cut(scene, client,
        scene_chance(scene, 500) ? SCENE_TASKS_MAX
                                 : (unsigned)scene_below(scene, scene->plan.n_tasks));
}

static void restart(struct scene *scene)
{
    struct scene_event event = { 0 };

    if (!scene->is_server_up)
        return;
    scene_note(scene, "the server goes down", 0, 0, SCENE_NOBODY, 0);
    scene_server_restart(scene);
    cut_all(scene);
    event.kind = SCENE_SERVER_UP;
    event.at_us = scene->now_us + scene_below(scene, scene->plan.ttl_us[0]);
    scene_post(scene, &event);
}

static void pause_client(struct scene *scene, unsigned client)
{
    uint64_t pause_us =
        scene_below(scene, 2 * (scene->plan.ttl_us[0] + scene->plan.ttl_us[1])) + 1;

    if (scene->clients[client].paused_until_us > scene->now_us)
        return;
    scene->clients[client].paused_until_us = scene->now_us + pause_us;
    scene->clients[client].paused_us += pause_us;
    scene_note(scene, "stands still", client, 0, SCENE_NOBODY, (int64_t)pause_us);
}

static void set_clock(struct scene *scene, int is_forward)
{
    int64_t step_us = 1 +
        (int64_t)scene_below(scene, scene->plan.ttl_us[0] + scene->plan.ttl_us[1]);

    scene->server_offset_us += is_forward ? step_us : -step_us;
    scene->n_forward += is_forward != 0;
    scene->n_back += !is_forward;
    if (scene->server_offset_us > scene->highest_offset_us)
        scene->highest_offset_us = scene->server_offset_us;
    scene_note(scene, "the server's clock is set", 0, 0, SCENE_NOBODY,
        is_forward ? step_us : -step_us);
}

static void pin(struct scene *scene, unsigned name, int32_t strategy)
{
    struct scene_event event = { 0 };
    uint32_t holder = scene->holder[scene_slot(strategy)][name];

    /* a guard is of a lock object, and that there is only once its grant is believed */
    if (holder == SCENE_NOBODY || scene->attempts[holder].state != SCENE_HELD ||
        !scene_is_in_force(scene, &scene->attempts[holder]))
        return;
    if (!sim_hold_guard(&scene->world, strategy, scene_name(name), 1))
        return;
    scene_note(scene, "pinned", 0, 0, SCENE_NOBODY, name);
    event.kind = SCENE_UNPINS;
    event.at_us = scene->now_us + scene_below(scene, scene->plan.ttl_us[0]);
    event.client = name;
    event.actor = (unsigned)strategy;
    event.life = scene->server_life;
    scene_post(scene, &event);
}

static void leave(struct scene *scene, unsigned client)
{
    struct scene_task *task;
    unsigned index = (unsigned)scene_below(scene, scene->plan.n_tasks);

    if (scene_chance(scene, 200)) {
        scene_client_close(scene, client);
        return;
    }
    task = &scene->clients[client].tasks[index];
    if (task->doing != SCENE_ACQUIRING || task->is_anchor)
        return;
    task->is_cancelled = 1;
    scene_note(scene, "cancelled", client, index, task->attempt, 0);
    if (task->actor.waiting == 0)
        scene_acquire_timer(scene, client, index);
}

void scene_mishap(struct scene *scene)
{
    unsigned kind = 1u << scene_below(scene, 13);
    unsigned client = (unsigned)scene_below(scene, scene->plan.n_clients);
    unsigned name = (unsigned)scene_below(scene, scene->plan.n_names);
    int32_t strategy = scene_chance(scene, 600) ? DBLOCK_LEASE : DBLOCK_INSERT;
    struct scene_event next = { 0 };

    next.kind = SCENE_MISHAP;
    next.at_us = scene->now_us + 1 + scene_below(scene, 2 * scene->plan.fault_every_us);
    scene_post(scene, &next);
    if ((scene->plan.faults & kind) == 0 || !scene->clients[client].is_running)
        return;
    /* a process that stands still does nothing by itself */
    if (kind == SCENE_FAULT_CLOSE && scene->clients[client].paused_until_us > scene->now_us)
        return;
    switch (kind) {
    case SCENE_FAULT_NETWORK:
        disturb_network(scene, client);
        return;
    case SCENE_FAULT_CRASH:
        scene_client_die(scene, client);
        return;
    case SCENE_FAULT_PAUSE:
        pause_client(scene, client);
        return;
    case SCENE_FAULT_RESTART:
        restart(scene);
        return;
    case SCENE_FAULT_BACK:
    case SCENE_FAULT_FORWARD:
        set_clock(scene, kind == SCENE_FAULT_FORWARD);
        return;
    case SCENE_FAULT_GUARD:
        pin(scene, name, strategy);
        return;
    case SCENE_FAULT_BREAK:
        if (scene_chance(scene, 300))
            scene_break(scene, name, strategy);
        return;
    case SCENE_FAULT_CLOSE:
        leave(scene, client);
        return;
    default:
        return;
    }
}

void scene_faults_end(struct scene *scene)
{
    struct scene_plan *plan = &scene->plan;

    scene_note(scene, "nothing goes wrong any more", 0, 0, SCENE_NOBODY, 0);
    scene->is_calm = 1;
    scene->calm_us = scene->now_us;
    scene->blackout_until_us = 0;
    scene->is_server_up = 1;
    plan->faults = 0;
    plan->n_lost = plan->n_answers_lost = plan->n_slow = plan->n_stuck = plan->n_cut = 0;
    plan->n_conflicts = plan->n_lags = 0;
}
