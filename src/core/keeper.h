/* SPDX-License-Identifier: MIT */
/* keeper.h - what goes on by itself in a client: two threads, of which one tells
 * the time (deadlines, callbacks) and never does I/O, and one works with the
 * database (heartbeats, pings, what callers left behind). So a network that
 * swallows packets cannot keep a holder from being told in time.
 *
 * The client's mutex is held for all of these unless said. */
#ifndef DBLK_KEEPER_H
#define DBLK_KEEPER_H

#include "core/client.h"

/* Both threads, so that nothing below can fail. 0 or an errno. */
int dblk_keeper_start(dblock_client *client);

/* The same for a call of the application, the mutex NOT held: OK or E_SYSTEM. */
dblock_status dblk_keeper_ensure(dblock_client *client, struct dblock_error *reterr);

/* Ends them and waits for them; the mutex NOT held. What is still to be given back stays. */
void dblk_keeper_stop(dblock_client *client);

/* A deadline has been set for then; cheap if one before it is known. */
void dblk_clock_due(dblock_client *client, uint64_t at_us);

/* Work will be due then; cheap likewise. */
void dblk_keeper_due(dblock_client *client, uint64_t at_us);

/* Notice when the other side hangs up this channel. */
void dblk_keeper_watch(dblock_client *client, struct dblk_channel *channel);

/* 1 on the thread that runs on_event. */
int dblk_is_clock(const dblock_client *client);

#endif
