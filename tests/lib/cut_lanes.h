/* SPDX-License-Identifier: MIT */
/* cut_lanes.h - the cases of cut.h for all kinds of grants, side by side: most of the time they
 * wait. */
#ifndef DBLOCK_TEST_CUT_LANES_H
#define DBLOCK_TEST_CUT_LANES_H

#include "cut.h"

/* What main() returns. */
int cut_run_lanes(const struct cut_database *database);

#endif
