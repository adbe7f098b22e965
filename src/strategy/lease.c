/* SPDX-License-Identifier: MIT */
/* lease.c - an owner column with a heartbeat: the row names the holder's
 * session, and the session's row is what is renewed. */
#include "strategy/recorded.h"

const struct dblk_strategy dblk_lease = {
    .id = DBLOCK_LEASE,
    .is_heartbeat_default = 1,
    .lives_in_connection = 0,
    .next = dblk_recorded_next,
};
