/* SPDX-License-Identifier: MIT */
/* queued.h - what row and advisory share: both live in a connection, and the
 * server itself queues those who wait. */
#ifndef DBLK_QUEUED_H
#define DBLK_QUEUED_H

#include "strategy/strategy.h"

struct dblk_step dblk_queued_next(struct dblk_machine *machine, const struct dblk_event *event);

#endif
