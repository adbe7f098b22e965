/* SPDX-License-Identifier: MIT */
/* driver_steps.h - which of a driver's tables serves a strategy. */
#ifndef DBLK_DRIVER_STEPS_H
#define DBLK_DRIVER_STEPS_H

#include "core/client.h"

/* lease or insert */
static inline const struct dblock_driver_hold *dblk_hold_steps(
    const dblock_client *client, int32_t strategy)
{
    return strategy == DBLOCK_INSERT ? &client->driver->insert : &client->driver->lease;
}

/* row or advisory */
static inline const struct dblock_driver_session_lock *dblk_connection_steps(
    const dblock_client *client, int32_t strategy)
{
    return strategy == DBLOCK_ROW ? &client->driver->row : &client->driver->advisory;
}

#endif
