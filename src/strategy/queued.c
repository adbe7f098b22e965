/* SPDX-License-Identifier: MIT */
/* queued.c - acquiring a lock that lives in a connection (row, advisory).
 *
 * The first attempt never waits: an advisory try goes over the connection that
 * all tries share. Only then does a waiter stand in the server's queue, on a
 * connection of its own; or at once, where the name has been taken by others of late:
 * the attempt would be a round trip for nothing, or, where the server's queue lets it
 * pass, overtake those who wait.
 *
 * A lost answer needs no settling here: what the connection may have got goes
 * with the connection, and the loop has closed it. So it is "not reached". But
 * the server has to see that end first, and until it has, the next attempt may
 * find the name taken by nobody but the lost one. "Busy" would then be a guess:
 * it is asked again until the ghost must be gone.
 *
 * A lock with its token (DBLOCK_FENCED) may be had and not its token, as a guarded
 * transaction of an earlier holder stands on that. Then it has been given back, nobody
 * else queues for what is free, and it is asked for again after a pause. */
#include "strategy/queued.h"

#include "strategy/moves.h"

static struct dblk_step take(struct dblk_machine *machine, uint64_t wait_us)
{
    struct dblk_step step = dblk_move(machine, DBLK_STAGE_TAKE, DBLK_STEP_TAKE);

    step.wait_us = wait_us;
    return step;
}

static struct dblk_step wait_in_queue(struct dblk_machine *machine, uint64_t now_us)
{
    return take(machine, machine->terms.give_up_us == UINT64_MAX
            ? UINT64_MAX
            : machine->terms.give_up_us - now_us);
}

static struct dblk_step stand_in_line(struct dblk_machine *machine, const struct dblk_event *event)
{
    if (dblk_is_over(machine, event->now_us) && event->now_us < machine->ghost_us) {
        if (dblk_is_late(machine, event->now_us))
            return dblk_end(machine, DBLOCK_E_CONNECTION);
        return dblk_pause(machine, DBLK_STAGE_PAUSE,
            event->now_us +
                dblk_backoff(machine->n_pauses, event->random, DBLK_SETTLE_FIRST_US,
                    DBLK_SETTLE_LAST_US));
    }
    machine->n_again = 0;
    machine->n_pauses = 0;
    if (dblk_is_over(machine, event->now_us))
        return dblk_end(machine, DBLOCK_BUSY);
    return wait_in_queue(machine, event->now_us);
}

static struct dblk_step pinned(struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t until_us = event->now_us +
        dblk_backoff(machine->n_pauses, event->random, DBLK_LOOK_FIRST_US, DBLK_LOOK_LAST_US);

    if (dblk_is_over(machine, event->now_us))
        return stand_in_line(machine, event);
    machine->n_again = 0;
    return dblk_pause(machine, DBLK_STAGE_PAUSE,
        until_us < machine->terms.give_up_us ? until_us : machine->terms.give_up_us);
}

static struct dblk_step answered(struct dblk_machine *machine, const struct dblk_event *event)
{
    machine->outage_us = 0;
    if (machine->stage == DBLK_STAGE_SEED)
        return take(machine, 0);
    switch (event->outcome) {
    case DBLOCK_ANSWER_YES:
        return dblk_end(machine, DBLOCK_OK);
    case DBLOCK_ANSWER_BUSY:
        return stand_in_line(machine, event);
    case DBLOCK_ANSWER_PINNED:
        return pinned(machine, event);
    case DBLOCK_ANSWER_UNSEEDED:
        if (++machine->n_again <= DBLK_AGAIN_MAX)
            return dblk_move(machine, DBLK_STAGE_SEED, DBLK_STEP_SEED);
        return dblk_end(machine, DBLOCK_E_DATABASE);
    default: /* AGAIN */
        return dblk_repeat(machine, event);
    }
}

static struct dblk_step failed(struct dblk_machine *machine, const struct dblk_event *event)
{
    struct dblk_event certain = *event;

    if (certain.status == DBLOCK_E_UNCERTAIN) {
        certain.status = DBLOCK_E_CONNECTION;
        machine->ghost_us = event->now_us + DBLK_GHOST_US;
    }
    return dblk_failed(machine, &certain);
}

struct dblk_step dblk_queued_next(struct dblk_machine *machine, const struct dblk_event *event)
{
    switch (event->kind) {
    case DBLK_EVENT_STARTED:
        return machine->terms.is_contended && !dblk_is_over(machine, event->now_us)
            ? wait_in_queue(machine, event->now_us)
            : take(machine, 0);
    case DBLK_EVENT_PAUSED:
        return take(machine, 0);
    case DBLK_EVENT_ANSWERED:
        return answered(machine, event);
    case DBLK_EVENT_FAILED:
        return failed(machine, event);
    case DBLK_EVENT_CANCELLED:
        return dblk_end(machine, DBLOCK_CANCELLED);
    default: /* CLOSED */
        return dblk_end(machine, DBLOCK_E_CLOSED);
    }
}
