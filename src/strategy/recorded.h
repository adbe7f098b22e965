/* SPDX-License-Identifier: MIT */
/* recorded.h - what lease and insert share: both are a row that names an owner,
 * so both are taken, waited for and settled in the same way. */
#ifndef DBLK_RECORDED_H
#define DBLK_RECORDED_H

#include "strategy/strategy.h"

struct dblk_step dblk_recorded_next(struct dblk_machine *machine, const struct dblk_event *event);

#endif
