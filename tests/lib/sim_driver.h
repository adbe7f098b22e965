/* SPDX-License-Identifier: MIT */
/* sim_driver.h - a database in memory that fills the whole table of
 * dblock/sys/driver.h, for clients of one process; and the ways to hurt it.
 *
 *     dblock_open(sim_driver(), "sim:NAME", ...)
 *
 * Clients that name the same world share it. `sim:NAME?password=WORD` gives a
 * password, which counts once the world has one. A world has its own clock,
 * which starts at the real time. Any thread may call anything here. */
#ifndef DBLOCK_TEST_SIM_DRIVER_H
#define DBLOCK_TEST_SIM_DRIVER_H

#include "sim_world.h"

const dblock_driver *sim_driver(void);

/* What a client can ask of the database: a fault or a count is about one kind. */
enum sim_step {
    SIM_STEP_ANY = 0,
    SIM_STEP_OPEN,
    SIM_STEP_PING,
    SIM_STEP_VERIFY,
    SIM_STEP_INSTALL,
    SIM_STEP_BEGIN, /* of a session */
    SIM_STEP_RENEW,
    SIM_STEP_END, /* of a session */
    SIM_STEP_HOLDS,
    SIM_STEP_TAKE,
    SIM_STEP_DROP,
    SIM_STEP_EXTEND,
    SIM_STEP_LOOK,
    SIM_STEP_SEED,
    SIM_STEP_PROVE,
    SIM_STEP_DRAW,
    SIM_STEP_LIST,
    SIM_STEP_BREAK,
    SIM_STEP_PURGE,
    SIM_STEP_STAND, /* in the line of a name */
    SIM_STEP_REST,
    SIM_N_STEPS
};

enum sim_fault {
    SIM_FAULT_REFUSE = 1, /* no effect, E_CONNECTION, and the connection is gone */
    SIM_FAULT_LOSE,       /* full effect, E_UNCERTAIN, and the connection is gone */
    SIM_FAULT_DELAY,      /* the step takes `delay_us` longer; E_UNCERTAIN if that is too long,
                           * with the effect coming at the deadline */
    SIM_FAULT_ANSWER,     /* no effect, and the answer of sim_answer_set() */
    SIM_FAULT_FAIL        /* no effect, and the status of sim_fail_set(); the connection stays */
};

/* Happens once, at the nth such step from now, 1 being the next. */
void sim_fault_set(
    const char *world, enum sim_step step, unsigned nth, enum sim_fault fault, uint64_t delay_us);
void sim_answer_set(const char *world, enum sim_step step, unsigned nth, int32_t outcome);
void sim_fail_set(const char *world, enum sim_step step, unsigned nth, dblock_status status);
void sim_fault_clear(const char *world);
uint64_t sim_n_steps(const char *world, enum sim_step step);

int64_t sim_now_us(const char *world);
void sim_clock_step(const char *world, int64_t by_us);

/* The server ends the connections of clients with that label, NULL those of all. */
void sim_cut(const char *world, const char *label);
/* As if the machine of clients with that label had died: their connections end, and none of
 * their steps gets through any more. */
void sim_strand(const char *world, const char *label);
/* Down: connections end and are refused. Silent: steps and connecting hang to their deadline. */
void sim_set_down(const char *world, int is_down);
void sim_set_silent(const char *world, int is_silent);
void sim_set_password(const char *world, const char *password);
/* A crash and a restart of the server: connections end, rows stay. */
void sim_restart(const char *world);

/* The state itself, between these two calls; made if it is not there yet. */
struct sim_world *sim_world_lock(const char *world);
void sim_world_unlock(const char *world);
int64_t sim_now_us_held(const char *world); /* the clock, between these two calls */

/* Frees the world. No client of it may be open. */
void sim_forget(const char *world);
/* A client of the world in `url`, with tables. 0, or -1 and `reterr` says why. */
int sim_open(const dblock_driver *driver, const char *url, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr);

#endif
