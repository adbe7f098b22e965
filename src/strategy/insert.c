/* SPDX-License-Identifier: MIT */
/* insert.c - a unique key with an expiry: the row is there while the name is
 * held. With a heartbeat it names a session, as a lease does. */
#include "strategy/recorded.h"

const struct dblk_strategy dblk_insert = {
    .id = DBLOCK_INSERT,
    .is_heartbeat_default = 0,
    .lives_in_connection = 0,
    .next = dblk_recorded_next,
};
