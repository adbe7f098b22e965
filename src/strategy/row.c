/* SPDX-License-Identifier: MIT */
/* row.c - SELECT ... FOR UPDATE on a seeded row, held by an open transaction. */
#include "strategy/queued.h"

const struct dblk_strategy dblk_row = {
    .id = DBLOCK_ROW,
    .is_heartbeat_default = 0,
    .lives_in_connection = 1,
    .next = dblk_queued_next,
};
