/* SPDX-License-Identifier: MIT */
/* recorded.c - acquiring a lock that is a row naming its owner (lease, insert).
 *
 * What can go wrong, and what is done:
 *   someone holds it     pause, no longer than its grant lasts, and take again
 *   a race nobody won    again soon, a bounded number of times
 *   my session is over   a new session, never the old one again
 *   the answer came late the grant is not believed: given back, taken anew
 *   the answer was lost  the owner id is never sent again; the name is read until it
 *                        names that id (granted) or the database's clock has passed
 *                        not_after (it can not be granted any more). Until then it is
 *                        neither yes nor no */
#include "strategy/recorded.h"

#include "strategy/moves.h"

static struct dblk_step take(struct dblk_machine *machine)
{
    return machine->terms.needs_session
        ? dblk_move(machine, DBLK_STAGE_SESSION, DBLK_STEP_SESSION)
        : dblk_move(machine, DBLK_STAGE_TAKE, DBLK_STEP_TAKE);
}

/* Someone else has it, or stands on its row. */
static struct dblk_step wait_for_holder(
    struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t pause_us;

    machine->n_again = 0;
    if (dblk_is_over(machine, event->now_us))
        return dblk_end(machine, DBLOCK_BUSY);
    pause_us =
        dblk_backoff(machine->n_pauses, event->random, DBLK_LOOK_FIRST_US, DBLK_LOOK_LAST_US);
    /* a moment past its end, when the database's clock has passed it too */
    if (event->remaining_us < pause_us)
        pause_us = event->remaining_us + 1000;
    if (pause_us > machine->terms.give_up_us - event->now_us)
        pause_us = machine->terms.give_up_us - event->now_us;
    return dblk_pause(machine, DBLK_STAGE_PAUSE, event->now_us + pause_us);
}

static struct dblk_step believe(struct dblk_machine *machine, const struct dblk_event *event)
{
    if (event->now_us < event->deadline_us)
        return dblk_end(machine, DBLOCK_OK);
    return dblk_move(machine, DBLK_STAGE_GIVE_BACK, DBLK_STEP_GIVE_BACK);
}

static struct dblk_step answered_take(struct dblk_machine *machine, const struct dblk_event *event)
{
    machine->outage_us = 0;
    switch (event->outcome) {
    case DBLOCK_ANSWER_YES:
        return believe(machine, event);
    case DBLOCK_ANSWER_BUSY:
    case DBLOCK_ANSWER_PINNED:
        return wait_for_holder(machine, event);
    default: /* AGAIN, SESSION, LATE */
        return dblk_repeat(machine, event);
    }
}

/* The attempt is known not to have been granted. */
static struct dblk_step settled_no(struct dblk_machine *machine, const struct dblk_event *event)
{
    machine->n_pauses = 0;
    if (!dblk_is_over(machine, event->now_us))
        return take(machine);
    if (event->outcome == DBLOCK_ANSWER_YES) /* the look found somebody else */
        return dblk_end(machine, DBLOCK_BUSY);
    return dblk_end(machine, DBLOCK_E_CONNECTION);
}

static struct dblk_step settle_on(struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t pause_us;

    if (event->now_us >= machine->settle_us)
        return dblk_end_open(machine, DBLOCK_E_UNCERTAIN);
    pause_us =
        dblk_backoff(machine->n_pauses, event->random, DBLK_SETTLE_FIRST_US, DBLK_SETTLE_LAST_US);
    if (pause_us > machine->settle_us - event->now_us)
        pause_us = machine->settle_us - event->now_us;
    return dblk_pause(machine, DBLK_STAGE_RECHECK, event->now_us + pause_us);
}

static struct dblk_step answered_look(struct dblk_machine *machine, const struct dblk_event *event)
{
    if (event->outcome != DBLOCK_ANSWER_YES && event->outcome != DBLOCK_ANSWER_NO)
        return settle_on(machine, event); /* the database did not say */
    if (event->is_mine)
        return believe(machine, event);
    if (event->is_past)
        return settled_no(machine, event);
    return settle_on(machine, event);
}

static struct dblk_step failed_take(struct dblk_machine *machine, const struct dblk_event *event)
{
    if (event->status != DBLOCK_E_UNCERTAIN)
        return dblk_failed(machine, event);
    machine->failure = event->status;
    machine->n_pauses = 0;
    /* a little longer than not_after, which is one I/O limit after the sending */
    machine->settle_us = event->now_us + machine->terms.io_us + machine->terms.io_us / 8;
    return dblk_move(machine, DBLK_STAGE_LOOK, DBLK_STEP_LOOK);
}

static struct dblk_step answered(struct dblk_machine *machine, const struct dblk_event *event)
{
    switch (machine->stage) {
    case DBLK_STAGE_SESSION:
        if (event->outcome == DBLOCK_ANSWER_YES)
            return dblk_move(machine, DBLK_STAGE_TAKE, DBLK_STEP_TAKE);
        return dblk_repeat(machine, event);
    case DBLK_STAGE_TAKE:
        return answered_take(machine, event);
    case DBLK_STAGE_LOOK:
        return answered_look(machine, event);
    default: /* GIVE_BACK */
        if (event->outcome != DBLOCK_ANSWER_YES && event->outcome != DBLOCK_ANSWER_NO)
            return dblk_end_open(machine, DBLOCK_E_UNCERTAIN);
        if (dblk_is_over(machine, event->now_us))
            return dblk_end(machine, DBLOCK_BUSY);
        return take(machine);
    }
}

struct dblk_step dblk_recorded_next(struct dblk_machine *machine, const struct dblk_event *event)
{
    int is_settling = machine->stage == DBLK_STAGE_LOOK ||
        machine->stage == DBLK_STAGE_RECHECK || machine->stage == DBLK_STAGE_GIVE_BACK;

    switch (event->kind) {
    case DBLK_EVENT_STARTED:
        return take(machine);
    case DBLK_EVENT_PAUSED:
        if (machine->stage == DBLK_STAGE_RECHECK)
            return dblk_move(machine, DBLK_STAGE_LOOK, DBLK_STEP_LOOK);
        return take(machine);
    case DBLK_EVENT_ANSWERED:
        return answered(machine, event);
    case DBLK_EVENT_FAILED:
        if (machine->stage == DBLK_STAGE_TAKE)
            return failed_take(machine, event);
        if (machine->stage == DBLK_STAGE_LOOK)
            return settle_on(machine, event);
        if (machine->stage == DBLK_STAGE_GIVE_BACK) /* granted, and perhaps in force yet */
            return dblk_end_open(machine,
                event->status == DBLOCK_E_CLOSED ? DBLOCK_E_CLOSED : DBLOCK_E_UNCERTAIN);
        return dblk_failed(machine, event);
    case DBLK_EVENT_CANCELLED:
        return is_settling ? dblk_end_open(machine, DBLOCK_CANCELLED)
                           : dblk_end(machine, DBLOCK_CANCELLED);
    default: /* CLOSED */
        return is_settling ? dblk_end_open(machine, DBLOCK_E_CLOSED)
                           : dblk_end(machine, DBLOCK_E_CLOSED);
    }
}
