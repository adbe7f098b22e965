/* SPDX-License-Identifier: MIT */
/* take.h - taking a lock for `run` and `acquire`: one acquire, or two if somebody
 * wants to hear who is in the way before the waiting begins. */
#ifndef CLI_TAKE_H
#define CLI_TAKE_H

#include "arguments.h"

#include <dblock/dblock.h>

#include <stdbool.h>

struct take {
    /* In. `options.wait_ms`, `busy` and what follows from the arguments are set
     * by take_lock(); heartbeat and expiring_ms are the caller's. */
    const struct arguments *arguments;
    dblock_client *client;
    struct dblock_options options;

    /* Out. */
    dblock_lock *lock;          /* on DBLOCK_OK */
    struct dblock_grant holder; /* on DBLOCK_BUSY */
    struct dblock_error error;  /* below zero */
    bool is_held_by_parent;     /* BUSY: by the `dblock run` that this one runs in */
    uint64_t waited_ms;
};

/* What the options of both commands say together. Returns -1, or the exit status after a message. */
int take_check(const struct arguments *arguments);

void take_init(struct take *take, const struct arguments *arguments);

/* The client's settings that follow from the arguments. */
void take_configure(const struct arguments *arguments, struct dblock_config *config);

dblock_status take_lock(struct take *take);

/* Says why the lock was not got, ending in `consequence`, and returns the exit
 * status. Not for CANCELLED. */
int take_explain(const struct take *take, dblock_status status, const char *consequence);

#endif
