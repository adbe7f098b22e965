/* SPDX-License-Identifier: MIT */
/* guard_world.c - see guard_world.h. */
#include "guard_world.h"

#include <stdio.h>

enum { DATABASES_MAX = 4, CASES_MAX = 600 };

void expect_at(
    struct world *world, dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s, %s: line %d: %s instead of %s: %s\n", world->application->database->name,
        world->kind->name, line, dblock_status_name(actual), dblock_status_name(expected),
        actual < 0 ? world->error.message : "");
    _fail(__FILE__, line);
}

int is_live(const struct world *world)
{
    return world->kind->strategy == DBLOCK_ROW || world->kind->strategy == DBLOCK_ADVISORY;
}

int can_break(const struct world *world)
{
    const struct contract_database *database = world->application->database;

    return !is_live(world) ||
        (world->kind->strategy == DBLOCK_ROW ? database->breaks_row : database->breaks_advisory);
}

struct dblock_options options_of(const struct world *world, uint64_t ttl_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = world->kind->strategy;
    options.heartbeat = world->kind->heartbeat;
    options.ttl_ms = is_live(world) ? 0 : ttl_ms;
    options.flags = is_live(world) ? DBLOCK_FENCED : 0;
    return options;
}

dblock_status take(struct world *world, int who, uint64_t ttl_ms, uint64_t wait_ms)
{
    struct dblock_options options = options_of(world, ttl_ms);

    options.wait_ms = wait_ms;
    return dblock_acquire(
        world->clients[who], world->name, &options, &world->locks[who], &world->error);
}

dblock_status release(struct world *world, int who)
{
    dblock_status status = dblock_release(world->locks[who], &world->error);

    dblock_lock_free(world->locks[who]);
    world->locks[who] = NULL;
    return status;
}

void run(struct world *world, int who, const char *sql)
{
    if (world->application->run(world->connections[who], sql) != 0) {
        print_error("%s: %s\n", world->application->database->name, sql);
        fail();
    }
}

int64_t number(struct world *world, int who, const char *sql)
{
    return world->application->number(world->connections[who], sql);
}

dblock_status guard(struct world *world, int who)
{
    return world->application->guard(
        world->locks[who], world->connections[who], &world->error);
}

dblock_status release_in(struct world *world, int who)
{
    return world->application->release_in(
        world->locks[who], world->connections[who], &world->error);
}

/* ----------------------------------------------------------------------- running */

struct run {
    struct world world;
    const struct guard_case *test;
    char title[160];
};

static int begin_world(void **state)
{
    static unsigned n_worlds;
    struct world *world = &((struct run *)*state)->world;

    (void)snprintf(world->name, sizeof world->name, "guard-%u", ++n_worlds);
    return application_open_pair(
        world->application, world->clients, world->connections, &world->error);
}

static void run_one(void **state)
{
    struct run *run_state = *state;

    run_state->test->run(&run_state->world);
}

static int end_world(void **state)
{
    struct world *world = &((struct run *)*state)->world;
    int i;

    application_close_connections(world->application, world->connections);
    for (i = 0; i < 2; ++i) {
        dblock_lock_free(world->locks[i]);
        dblock_close(world->clients[i]);
    }
    return 0;
}

/* Where several nodes are written to, locks that live in a connection exclude nobody. */
static int is_possible(const struct application *application, const struct kind *kind)
{
    return !application->is_guard_a_change ||
        (kind->strategy != DBLOCK_ROW && kind->strategy != DBLOCK_ADVISORY);
}

int guard_run(const char *title, const struct kind *kinds, const struct guard_case *tests)
{
    static struct run runs[CASES_MAX];
    static struct CMUnitTest cases[CASES_MAX];
    const struct application *started[DATABASES_MAX];
    size_t n_started = 0, n_runs = 0, i, d, k;
    int n_failed;

    for (i = 0; applications[i] != NULL; ++i) {
        int why_not = n_started > 0 && started[n_started - 1]->database == applications[i]->database
            ? 0
            : application_start(applications[i]);

        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (k = 0; kinds[k].name != NULL; ++k)
            for (i = 0; tests[i].name != NULL && is_possible(started[d], &kinds[k]); ++i) {
                struct run *run_state = &runs[n_runs];

                run_state->world.application = started[d];
                run_state->world.kind = &kinds[k];
                run_state->test = &tests[i];
                (void)snprintf(run_state->title, sizeof run_state->title, "%s, %s: %s",
                    started[d]->title != NULL ? started[d]->title : started[d]->database->name,
                    kinds[k].name, tests[i].name);
                cases[n_runs++] = (struct CMUnitTest){ run_state->title, run_one, begin_world,
                    end_world, run_state };
            }
    n_failed = _cmocka_run_group_tests(title, cases, n_runs, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        if (d + 1 == n_started || started[d + 1]->database != started[d]->database)
            started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
