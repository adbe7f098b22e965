/* SPDX-License-Identifier: MIT */
/* guardian.h - a process that ends COMMAND's process group if dblock dies without
 * a word (kill -9, the OOM killer). The kernel's parent-death signal reaches
 * COMMAND alone; its own children would run on without the lock. */
#ifndef CLI_GUARDIAN_H
#define CLI_GUARDIAN_H

#include <stdbool.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;   /* -1: there is none */
    int ends[2]; /* of a pipe: both ends die with dblock, and the guardian has the first */
};

#define GUARDIAN_NONE ((struct guardian){.pid = -1, .ends = {-1, -1}})

/* What it needs, before COMMAND is started. 0, or -1 with errno. */
int guardian_prepare(struct guardian *guardian);

/* False, with errno, if there can be no process now. */
bool guardian_start(struct guardian *guardian, pid_t group);

/* Ends it and collects it, if there is one; nothing is sent to the group. */
void guardian_stop(struct guardian *guardian);

#endif
