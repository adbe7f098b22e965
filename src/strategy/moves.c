/* SPDX-License-Identifier: MIT */
/* moves.c - what follows an attempt that decided nothing, or failed, for an acquire
 * that may still wait. */
#include "strategy/moves.h"

struct dblk_step dblk_failed(struct dblk_machine *machine, const struct dblk_event *event)
{
    uint64_t outage_end_us;
    uint64_t pause_us;

    /* A connection that had been idle was closed behind our back (restart, idle limit, fail-over):
     * the first thing that is done on it finds out. That says nothing about the database. One that
     * only fell silent has used up the time of the call. */
    if (event->status == DBLOCK_E_CONNECTION && event->is_reused &&
        machine->n_reused < DBLK_REUSED_MAX && !dblk_is_late(machine, event->now_us)) {
        ++machine->n_reused;
        return dblk_take(machine);
    }
    if (!event->is_transient || event->status != DBLOCK_E_CONNECTION ||
        machine->terms.outage_us == 0)
        return dblk_end(machine, event->status);
    if (machine->outage_us == 0) {
        machine->outage_us = event->now_us;
        machine->n_pauses = 0;
    }
    outage_end_us = machine->terms.outage_us > UINT64_MAX - machine->outage_us
        ? UINT64_MAX
        : machine->outage_us + machine->terms.outage_us;
    if (dblk_is_over(machine, event->now_us) || event->now_us >= outage_end_us)
        return dblk_end(machine, event->status);
    pause_us = dblk_backoff(
        machine->n_pauses, event->random, DBLK_OUTAGE_FIRST_US, DBLK_OUTAGE_LAST_US);
    if (pause_us > outage_end_us - event->now_us)
        pause_us = outage_end_us - event->now_us;
    if (pause_us > machine->terms.give_up_us - event->now_us)
        pause_us = machine->terms.give_up_us - event->now_us;
    return dblk_pause(machine, DBLK_STAGE_PAUSE, event->now_us + pause_us);
}

struct dblk_step dblk_repeat(struct dblk_machine *machine, const struct dblk_event *event)
{
    if (++machine->n_again > DBLK_AGAIN_MAX || dblk_is_late(machine, event->now_us)) {
        machine->n_again = 0;
        if (dblk_is_over(machine, event->now_us))
            return dblk_end(machine, event->status < 0 ? event->status : DBLOCK_BUSY);
    }
    return dblk_pause(machine, DBLK_STAGE_PAUSE,
        event->now_us +
            dblk_backoff(
                machine->n_again, event->random, DBLK_AGAIN_FIRST_US, DBLK_AGAIN_LAST_US));
}
