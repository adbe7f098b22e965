/* SPDX-License-Identifier: MIT */
/* close.h - the part of dblock_close() that talks to the database. */
#ifndef DBLK_CLOSE_H
#define DBLK_CLOSE_H

#include "core/client.h"

/* Releases all that is held or still to be given back, by `deadline_us`, and closes every
 * connection. The keeper has been stopped. */
void dblk_close_give_back(dblock_client *client, uint64_t deadline_us);

#endif
