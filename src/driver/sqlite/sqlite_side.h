/* SPDX-License-Identifier: MIT */
/* sqlite_side.h - the side file, PATH-dblock: a byte for each name, locked in the
 * kernel by whoever holds the name.
 *
 * Exclusion is the byte's lock and nothing else. It belongs to one open file
 * description, that is to one connection, and ends with it, also by kill -9. The
 * file's bytes only say who that is, for people. */
#ifndef DBLK_SQLITE_SIDE_H
#define DBLK_SQLITE_SIDE_H

#include <dblock/sys/driver.h>

struct sqlite_side;

/* In a forked child: closes the descriptor and nothing else. */
void sqlite_side_abandon(struct sqlite_side *side);
/* Closes the descriptor: all that it holds is free. Takes NULL. */
void sqlite_side_close(struct sqlite_side *side);

#endif
