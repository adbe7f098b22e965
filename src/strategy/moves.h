/* SPDX-License-Identifier: MIT */
/* moves.h - the single moves of which the machines are made: each sets the
 * stage and gives the step that goes with it. */
#ifndef DBLK_MOVES_H
#define DBLK_MOVES_H

#include "strategy/backoff.h"
#include "strategy/strategy.h"

enum {
    DBLK_AGAIN_MAX = 24,          /* attempts in a row that get neither yes nor busy */
    DBLK_REUSED_MAX = 3,          /* stale connections that one acquire may meet */
    DBLK_LOOK_FIRST_US = 3000,    /* first pause while someone else holds the name */
    DBLK_LOOK_LAST_US = 500000,   /* longest one */
    DBLK_REST_LAST_US = 5000000,  /* what a wake-up that was lost costs at most */
    DBLK_AGAIN_FIRST_US = 500,    /* after a race that nobody won */
    DBLK_AGAIN_LAST_US = 20000,
    DBLK_GHOST_US = 1000000,      /* how long a server may take to see that a connection has ended */
    DBLK_OUTAGE_FIRST_US = 20000, /* while the database cannot be reached */
    DBLK_OUTAGE_LAST_US = 1000000,
    DBLK_SETTLE_FIRST_US = 2000, /* between two looks at a lost answer */
    DBLK_SETTLE_LAST_US = 100000
};

static inline struct dblk_step dblk_move(
    struct dblk_machine *machine, enum dblk_stage stage, enum dblk_step_kind kind)
{
    struct dblk_step step = { kind, 0, 0, 0, DBLOCK_OK, 0 };

    machine->stage = stage;
    return step;
}

static inline struct dblk_step dblk_end(struct dblk_machine *machine, dblock_status status)
{
    struct dblk_step step = dblk_move(machine, DBLK_STAGE_END, DBLK_STEP_END);

    step.status = status;
    return step;
}

/* One attempt. Whoever can wait lets those pass who came before him; a try heeds nobody. */
static inline struct dblk_step dblk_attempt(struct dblk_machine *machine)
{
    struct dblk_step step = dblk_move(machine, DBLK_STAGE_TAKE, DBLK_STEP_TAKE);

    step.heeds_line = machine->terms.has_line && !machine->is_first && !machine->may_pass;
    machine->may_pass = 0;
    return step;
}

/* The same, with a session if the grant is to have one. */
static inline struct dblk_step dblk_take(struct dblk_machine *machine)
{
    return machine->terms.needs_session
        ? dblk_move(machine, DBLK_STAGE_SESSION, DBLK_STEP_SESSION)
        : dblk_attempt(machine);
}

/* Ends although the last attempt is not settled. */
static inline struct dblk_step dblk_end_open(struct dblk_machine *machine, dblock_status status)
{
    struct dblk_step step = dblk_end(machine, status);

    step.is_open = 1;
    return step;
}

static inline struct dblk_step dblk_pause(
    struct dblk_machine *machine, enum dblk_stage stage, uint64_t until_us)
{
    struct dblk_step step = dblk_move(machine, stage, DBLK_STEP_PAUSE);

    ++machine->n_pauses;
    step.until_us = until_us;
    return step;
}

static inline int dblk_is_over(const struct dblk_machine *machine, uint64_t now_us)
{
    return now_us >= machine->terms.give_up_us;
}

/* The wait is over, and what a call may take beyond it as well. */
static inline int dblk_is_late(const struct dblk_machine *machine, uint64_t now_us)
{
    return now_us >= machine->terms.give_up_us &&
        now_us - machine->terms.give_up_us >= machine->terms.io_us;
}

/* Until when a lost answer is settled: a little longer than not_after, which is one limit of a
 * statement after its sending. What was sent late must not make the call longer than it may be: the
 * wait, one statement and one settling. */
static inline uint64_t dblk_settle_end(const struct dblk_machine *machine, uint64_t now_us)
{
    uint64_t settling_us = machine->terms.io_us + machine->terms.io_us / 8;
    uint64_t call_us = machine->terms.io_us + settling_us;

    if (machine->terms.give_up_us > UINT64_MAX - call_us ||
        now_us + settling_us <= machine->terms.give_up_us + call_us)
        return now_us + settling_us;
    return machine->terms.give_up_us + call_us;
}

/* Nobody has it, and we did not get it: again soon. Also a try repeats this: "busy" would name no
 * holder. */
struct dblk_step dblk_repeat(struct dblk_machine *machine, const struct dblk_event *event);

/* What follows a failed step, the same for every strategy: a stale connection is tried again, an
 * outage is waited out as long as the terms allow, all else ends the acquire. */
struct dblk_step dblk_failed(struct dblk_machine *machine, const struct dblk_event *event);

#endif
