/* SPDX-License-Identifier: MIT */
/* perform.h - does one step of an acquire through the driver and turns the
 * answer into the event that the strategy wants to hear. */
#ifndef DBLK_PERFORM_H
#define DBLK_PERFORM_H

#include "core/attempt.h"

/* Nobody holds the name, and a guarded transaction keeps it all the same: for options.busy. */
void dblk_perform_tell_pinned(struct dblk_attempt *attempt);

/* The step must not be END. `*ret_event` is the last event: its time is the time now. */
void dblk_perform(
    struct dblk_attempt *attempt, const struct dblk_step *step, struct dblk_event *ret_event);

#endif
