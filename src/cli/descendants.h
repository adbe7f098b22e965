/* SPDX-License-Identifier: MIT */
/* descendants.h - the processes that came from COMMAND and have left its process
 * group. dblock is their subreaper: whose parent has died becomes dblock's child,
 * so that all of them come into reach, one generation after the other. */
#ifndef CLI_DESCENDANTS_H
#define CLI_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens the list of them: there may be no descriptor left when they are to be ended. 0, or -1 with
 * errno; a kernel without that list is no failure. */
int descendants_prepare(void);

/* Makes this process the subreaper. Before COMMAND and its guardian are started. */
void descendants_adopt(void);

/* Is there any child process but `except`? */
bool descendants_exist(pid_t except);

/* Kills every child process but `except`. */
void descendants_kill(pid_t except);

#endif
