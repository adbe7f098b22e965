/* SPDX-License-Identifier: MIT */
/* supervise.h - COMMAND runs and the lock is held: what happens until one of the
 * two is over. */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "arguments.h"
#include "terminal.h"

#include <dblock/dblock.h>

#include <stdbool.h>
#include <sys/types.h>

struct supervision {
    /* In. */
    const struct arguments *arguments;
    dblock_client *client;
    uint64_t kill_after_ms; /* between the first signal and KILL */
    pid_t child;
    struct terminal *terminal;

    /* Out. */
    int child_status; /* as of waitpid(2) */
    bool is_lost;     /* the lock, while COMMAND ran; or COMMAND was told to end, as it was
                       * about to be lost */
};

/* Returns once COMMAND has ended, and, after a lost lock, whatever came from it. */
void supervise(struct supervision *supervision);

#endif
