/* SPDX-License-Identifier: MIT */
/* supervise.h - COMMAND runs and the lock is held: what happens until one of the
 * two is over. */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "arguments.h"
#include "guardian.h"
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

    /* Of supervise_prepare(). */
    int events_fd; /* readable when there is something to hear of the lock */
    struct guardian guardian;

    /* Out. */
    int child_status; /* as of waitpid(2) */
    bool is_lost;     /* the lock, while COMMAND ran; or COMMAND was told to end, as it was
                       * about to be lost */
    bool is_out_of_reach; /* the database, by what was heard of the lock last */
};

/* Gets what the supervision needs of the machine, by `arguments` and `client`, before there is a
 * lock: who could not hear of its loss, or not end all of COMMAND, starts nothing. Returns -1, or
 * the exit status after a message. */
int supervise_prepare(struct supervision *supervision);

/* Returns once COMMAND has ended, and, after a lost lock, whatever came from it. */
void supervise(struct supervision *supervision);

#endif
