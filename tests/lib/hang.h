/* SPDX-License-Identifier: MIT */
/* hang.h - calls while the network swallows, delays or half-closes, or the server stands still:
 * each ends in time, and what it answered is right (P7, P8). The calls are cases of cut.h, all at
 * once, each with a client of its own. */
#ifndef DBLOCK_TEST_HANG_H
#define DBLOCK_TEST_HANG_H

#include "cut.h"

/* What main() returns. */
int hang_run(const struct cut_database *database);

#endif
