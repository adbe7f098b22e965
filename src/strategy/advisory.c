/* SPDX-License-Identifier: MIT */
/* advisory.c - the server's own named lock, held by a connection. */
#include "strategy/queued.h"

const struct dblk_strategy dblk_advisory = {
    .id = DBLOCK_ADVISORY,
    .is_heartbeat_default = 0,
    .lives_in_connection = 1,
    .next = dblk_queued_next,
};
