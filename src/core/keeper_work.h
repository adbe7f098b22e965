/* SPDX-License-Identifier: MIT */
/* keeper_work.h - what the keeper does, one piece at a time. The client's mutex
 * is held at the call and at the return; pieces with I/O give it up between. */
#ifndef DBLK_KEEPER_WORK_H
#define DBLK_KEEPER_WORK_H

#include "core/client.h"

/* Loses and announces what is due at `now_us`, by the clock alone. When the next one is. */
uint64_t dblk_keeper_deadlines(dblock_client *client, uint64_t now_us);

/* Does the most urgent piece of work that is due, within one I/O limit. 0: there was none. */
int dblk_keeper_step(dblock_client *client);

/* When the next piece is due. */
uint64_t dblk_keeper_next(dblock_client *client);

/* The parts, each in its file: 1 if it did something. */
int dblk_keeper_beat(dblock_client *client, uint64_t now_us, uint64_t limit_us);
int dblk_keeper_read_back(dblock_client *client, uint64_t now_us, uint64_t limit_us);
int dblk_keeper_ping(dblock_client *client, uint64_t now_us, uint64_t limit_us);
int dblk_keeper_give_back(dblock_client *client, uint64_t now_us, uint64_t limit_us);
/* Row and advisory locks that live beside a connection of the application, which is not touched. */
int dblk_keeper_give_back_beside(dblock_client *client);
int dblk_keeper_break(dblock_client *client, uint64_t now_us, uint64_t limit_us);
int dblk_keeper_purge(dblock_client *client, uint64_t now_us, uint64_t limit_us);

/* The keeper's own link, connected if need be; the mutex not held. A new one means that answers
 * may have been lost: what sessions hold is read back. */
dblock_status dblk_keeper_link(dblock_client *client, uint64_t limit_us,
    struct dblk_link **ret_link, struct dblock_error *error);
/* After a failure: closes it if it is of no use any more. */
void dblk_keeper_check_link(dblock_client *client);

#endif
