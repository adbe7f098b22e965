/* SPDX-License-Identifier: MIT */
/* recorded.c - acquiring a lock that is a row naming its owner (lease, insert).
 *
 * What can go wrong, and what is done:
 *   someone holds it     stand in line; the first there rests until woken, no longer than the
 *                        grant lasts, and takes again. Where nothing can wake: pause instead
 *   a race nobody won    again soon, a bounded number of times
 *   my session is over   a new session, never the old one again
 *   the answer came late the grant is not believed: given back, taken anew
 *   the answer was lost  the owner id is never sent again; the name is read until it
 *                        names that id (granted) or the database's clock has passed
 *                        not_after (it can not be granted any more). Until then it is
 *                        neither yes nor no */
#include "strategy/recorded.h"

#include "strategy/moves.h"

/* The row is locked by somebody, so no release would wake: looked at again soon. */
static struct dblk_step look_again(struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t pause_us =
        dblk_backoff(machine->n_pauses, event->random, DBLK_LOOK_FIRST_US, DBLK_LOOK_LAST_US);

    if (dblk_is_over(machine, event->now_us))
        return dblk_take(machine);
    /* a moment past its end, when the database's clock has passed it too */
    if (event->remaining_us < pause_us)
        pause_us = event->remaining_us + 1000;
    if (pause_us > machine->terms.give_up_us - event->now_us)
        pause_us = machine->terms.give_up_us - event->now_us;
    return dblk_pause(machine, DBLK_STAGE_PAUSE, event->now_us + pause_us);
}

static uint64_t find_rest(const struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t rest_us = event->remaining_us < DBLK_REST_LAST_US ? event->remaining_us + 1000
                                                               : DBLK_REST_LAST_US;

    if (rest_us > machine->terms.give_up_us - event->now_us)
        rest_us = machine->terms.give_up_us - event->now_us;
    return event->now_us + rest_us;
}

static struct dblk_step stand(struct dblk_machine *machine, uint64_t now_us)
{
    struct dblk_step step = dblk_move(machine, DBLK_STAGE_STAND, DBLK_STEP_STAND);

    step.wait_us = machine->terms.give_up_us == UINT64_MAX ? UINT64_MAX
                                                           : machine->terms.give_up_us - now_us;
    return step;
}

/* Someone else has it, or stands on its row. */
static struct dblk_step wait_for_holder(
    struct dblk_machine *machine, const struct dblk_event *event)
{
    struct dblk_step step;

    machine->n_again = 0;
    if (dblk_is_over(machine, event->now_us))
        return dblk_end(machine, DBLOCK_BUSY);
    if (!machine->terms.has_line || event->outcome == DBLOCK_ANSWER_PINNED)
        return look_again(machine, event);
    machine->n_pauses = 0;
    if (!machine->is_first)
        return stand(machine, event->now_us);
    step = dblk_move(machine, DBLK_STAGE_REST, DBLK_STEP_REST);
    step.until_us = find_rest(machine, event);
    return step;
}

static struct dblk_step stood(struct dblk_machine *machine, const struct dblk_event *event)
{
    switch (event->outcome) {
    case DBLOCK_ANSWER_YES:
        machine->is_first = 1;
        return dblk_take(machine);
    case DBLOCK_ANSWER_NO:
        machine->terms.has_line = 0;
        return dblk_take(machine);
    default: /* AGAIN, or BUSY: the last try of a wait that is over goes past everybody, unless the
              * others are to come in order of arrival */
        machine->may_pass = event->outcome == DBLOCK_ANSWER_AGAIN || !machine->terms.is_fair;
        return dblk_take(machine);
    }
}

static struct dblk_step rested(struct dblk_machine *machine, const struct dblk_event *event)
{
    machine->is_first = event->outcome != DBLOCK_ANSWER_AGAIN;
    return dblk_take(machine);
}

/* The line is a comfort: whether the database can be reached is judged by the takes. */
static struct dblk_step failed_line(struct dblk_machine *machine, const struct dblk_event *event)
{
    machine->is_first = 0;
    if (event->status == DBLOCK_E_CLOSED || event->status == DBLOCK_E_UNSUPPORTED ||
        event->status == DBLOCK_E_MEMORY)
        return dblk_end(machine, event->status);
    return look_again(machine, event);
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
        return dblk_take(machine);
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
    machine->settle_us = dblk_settle_end(machine, event->now_us);
    return dblk_move(machine, DBLK_STAGE_LOOK, DBLK_STEP_LOOK);
}

static struct dblk_step answered(struct dblk_machine *machine, const struct dblk_event *event)
{
    switch (machine->stage) {
    case DBLK_STAGE_SESSION:
        return event->outcome == DBLOCK_ANSWER_YES ? dblk_attempt(machine)
                                                   : dblk_repeat(machine, event);
    case DBLK_STAGE_TAKE:
        return answered_take(machine, event);
    case DBLK_STAGE_LOOK:
        return answered_look(machine, event);
    case DBLK_STAGE_STAND:
        return stood(machine, event);
    case DBLK_STAGE_REST:
        return rested(machine, event);
    default: /* GIVE_BACK */
        if (event->outcome != DBLOCK_ANSWER_YES && event->outcome != DBLOCK_ANSWER_NO)
            return dblk_end_open(machine, DBLOCK_E_UNCERTAIN);
        if (dblk_is_over(machine, event->now_us))
            return dblk_end(machine, DBLOCK_BUSY);
        return dblk_take(machine);
    }
}

struct dblk_step dblk_recorded_next(struct dblk_machine *machine, const struct dblk_event *event)
{
    int is_settling = machine->stage == DBLK_STAGE_LOOK ||
        machine->stage == DBLK_STAGE_RECHECK || machine->stage == DBLK_STAGE_GIVE_BACK;

    switch (event->kind) {
    case DBLK_EVENT_STARTED: /* where others have had it of late, an attempt is for nothing */
        return machine->terms.is_contended && machine->terms.has_line &&
                !dblk_is_over(machine, event->now_us)
            ? stand(machine, event->now_us)
            : dblk_take(machine);
    case DBLK_EVENT_PAUSED:
        if (machine->stage == DBLK_STAGE_RECHECK)
            return dblk_move(machine, DBLK_STAGE_LOOK, DBLK_STEP_LOOK);
        return dblk_take(machine);
    case DBLK_EVENT_ANSWERED:
        return answered(machine, event);
    case DBLK_EVENT_FAILED:
        if (machine->stage == DBLK_STAGE_TAKE)
            return failed_take(machine, event);
        if (machine->stage == DBLK_STAGE_LOOK)
            return settle_on(machine, event);
        if (machine->stage == DBLK_STAGE_STAND || machine->stage == DBLK_STAGE_REST)
            return failed_line(machine, event);
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
