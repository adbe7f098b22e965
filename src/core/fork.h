/* SPDX-License-Identifier: MIT */
/* fork.h - which process is this? Asked at the begin of every public call. */
#ifndef DBLK_FORK_H
#define DBLK_FORK_H

#include <stdint.h>

/* A number that differs between a process and those it was forked from, and stays the same within
 * one: what was made under another number belongs to a parent. Any thread, any time. */
uint64_t dblk_fork_generation(void);

#endif
