/* SPDX-License-Identifier: MIT */
/* contract_sim.c - the contract suite on the simulated database: all that can be
 * asked of a fixture, this one can. */
#include "contract_database.h"

#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

#define WORLD "contract"
#define SILENT "contract-silent"
#define DOWN "contract-down"
#define POOR "contract-poor"

static const char *start(void)
{
    sim_world_lock(WORLD)->is_installed = 1;
    sim_world_unlock(WORLD);
    sim_set_password(WORLD, "never-print-me");
    sim_set_silent(SILENT, 1);
    sim_set_down(DOWN, 1);
    sim_world_lock(POOR)->is_installed = 1;
    sim_world_unlock(POOR);
    sim_world_lock(POOR)->is_denied = 1;
    sim_world_unlock(POOR);
    return NULL;
}

static void stop(void)
{
    sim_forget(WORLD);
    sim_forget(SILENT);
    sim_forget(DOWN);
    sim_forget(POOR);
}

static const char *url(enum contract_url which)
{
    switch (which) {
    case CONTRACT_URL:
        return "sim:" WORLD "?password=never-print-me";
    case CONTRACT_URL_PASSWORD:
        return "sim:" WORLD "?password=wrong-word";
    case CONTRACT_URL_UNREACHABLE:
        return "sim:" DOWN;
    case CONTRACT_URL_SILENT:
        return "sim:" SILENT;
    case CONTRACT_URL_POOR:
        return "sim:" POOR;
    default:
        return "sim:";
    }
}

static void drop_tables(void)
{
    sim_world_lock(WORLD)->is_installed = 0;
    sim_world_unlock(WORLD);
}

static void set_read_only(int is_read_only)
{
    sim_world_lock(WORLD)->is_read_only = is_read_only;
    sim_world_unlock(WORLD);
}

static void set_down(int is_down)
{
    sim_set_down(WORLD, is_down);
}

static void cut(void)
{
    sim_cut(WORLD, NULL);
}

/* "" after each test: what is left of its faults goes as well. */
static void strand(const char *label)
{
    if (label[0] == 0) {
        sim_fault_clear(WORLD);
        sim_set_silent(WORLD, 0);
        sim_set_down(WORLD, 0);
    }
    sim_strand(WORLD, label);
}

static void step_clock(int64_t by_us)
{
    sim_clock_step(WORLD, by_us);
}

static void hurt(enum contract_hurt what)
{
    unsigned i;

    switch (what) {
    case CONTRACT_LOSE_TAKE_AND_LOOKS:
        /* more than can be asked in a second, as the pauses between them grow */
        for (i = 1; i <= 30; ++i)
            sim_fault_set(WORLD, SIM_STEP_LOOK, i, SIM_FAULT_REFUSE, 0);
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
        break;
    case CONTRACT_LOSE_TAKE:
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_LOSE, 0);
        break;
    case CONTRACT_LOSE_RELEASE:
        sim_fault_set(WORLD, SIM_STEP_DROP, 1, SIM_FAULT_LOSE, 0);
        break;
    case CONTRACT_DELAY_TAKE:
        sim_fault_set(WORLD, SIM_STEP_TAKE, 1, SIM_FAULT_DELAY, 500000);
        break;
    default:
        sim_fault_set(WORLD, SIM_STEP_RENEW, 1, SIM_FAULT_REFUSE, 0);
    }
}

static void set_silent(int is_silent)
{
    sim_set_silent(WORLD, is_silent);
}

static void delete_row(int strategy, const char *name)
{
    struct sim_world *world = sim_world_lock(WORLD);
    struct sim_row *row = sim_hold_row(world, strategy, name);

    /* as the databases do it: a row that goes leaves its token in the floor */
    if (row != NULL && row->token > world->floor)
        world->floor = row->token;
    sim_hold_delete(world, strategy, name);
    sim_world_unlock(WORLD);
}

static void delete_session(int strategy, const char *name)
{
    struct sim_world *world = sim_world_lock(WORLD);
    struct sim_row *row = sim_hold_row(world, strategy, name);
    struct dblock_answer answer;
    struct dblock_error error;

    if (row == NULL ||
        sim_session_end(world, sim_now_us_held(WORLD), row->session, &answer, &error) != DBLOCK_OK)
        abort();
    sim_world_unlock(WORLD);
}

static void plant(int strategy, const char *name, const char *like)
{
    static const unsigned char owner[DBLOCK_ID_SIZE] = "planted by hand";
    struct sim_world *world = sim_world_lock(WORLD);
    struct sim_row *row = sim_hold_row(world, strategy, like);
    unsigned char session[DBLOCK_ID_SIZE];

    if (row == NULL)
        abort();
    memcpy(session, row->session, sizeof session);
    sim_hold_plant(world, sim_now_us_held(WORLD), strategy, name, owner, session);
    sim_world_unlock(WORLD);
}

struct guard {
    int strategy;
    char name[256];
};

static int add_guard(int strategy, const char *name, int by)
{
    return strategy == DBLOCK_ROW || strategy == DBLOCK_ADVISORY
        ? sim_lock_guard(sim_world_lock(WORLD), strategy, name, by)
        : sim_hold_guard(sim_world_lock(WORLD), strategy, name, by);
}

static void *begin_guard(int strategy, const char *name)
{
    struct guard *guard = calloc(1, sizeof *guard);

    if (guard == NULL)
        abort();
    guard->strategy = strategy;
    dblock_text_copy(guard->name, sizeof guard->name, name);
    if (!add_guard(strategy, name, 1)) {
        free(guard);
        guard = NULL;
    }
    sim_world_unlock(WORLD);
    return guard;
}

static void end_guard(void *context)
{
    struct guard *guard = context;

    (void)add_guard(guard->strategy, guard->name, -1);
    sim_world_unlock(WORLD);
    free(guard);
}

static void age(const char *name)
{
    struct sim_world *world = sim_world_lock(WORLD);
    const int64_t two_hours_us = INT64_C(7200000000);
    struct sim_row *rows = world->rows.items;
    struct sim_lock *locks = world->locks.items;
    size_t i;

    for (i = 0; i < world->rows.n_items; ++i)
        if (!rows[i].has_owner && strcmp(rows[i].name, name) == 0)
            rows[i].free_us -= two_hours_us;
    for (i = 0; i < world->locks.n_items; ++i)
        if (locks[i].holder == 0 && strcmp(locks[i].name, name) == 0)
            locks[i].since_us -= two_hours_us;
    sim_world_unlock(WORLD);
}

static uint64_t n_takes(void)
{
    return sim_n_steps(WORLD, SIM_STEP_TAKE);
}

const struct contract_database contract_sim = {
    .name = "sim",
    .driver = sim_driver,
    .start = start,
    .stop = stop,
    .url = url,
    .secret = "never-print-me",
    .row_view = CONTRACT_VIEW_HOLDER,
    .advisory_view = CONTRACT_VIEW_HOLDER,
    .breaks_row = 1,
    .breaks_advisory = 1,
    .needs_tables_for_row = 1,
    .needs_tables_for_advisory = 1,
    .drop_tables = drop_tables,
    .set_read_only = set_read_only,
    .set_down = set_down,
    .cut = cut,
    .strand = strand,
    .step_clock = step_clock,
    .hurt = hurt,
    .set_silent = set_silent,
    .n_takes = n_takes,
    .delete_row = delete_row,
    .delete_session = delete_session,
    .plant = plant,
    .guard = begin_guard,
    .unguard = end_guard,
    .age = age,
};
