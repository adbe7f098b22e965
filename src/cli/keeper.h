/* SPDX-License-Identifier: MIT */
/* keeper.h - `dblock acquire -P PID`: a process in the background that holds and
 * renews the lock for as long as PID lives. */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include "acquisition.h"

#include <sys/types.h>

/* Starts the keeper, waits until it has the lock or not, and says what it reported.
 * *ret_keeper is the process if it holds the lock; it releases when it gets TERM. */
void keeper_start(
    const struct arguments *arguments, struct acquisition *ret_acquisition, pid_t *ret_keeper);

#endif
