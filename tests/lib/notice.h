/* SPDX-License-Identifier: MIT */
/* notice.h - a lock that lives in a connection, and a network that goes silent: the holder knows
 * no later than its deadline, and the server frees the lock within the bound that dblock(7) states
 * (P6, P9). PITFALL(D8). */
#ifndef DBLOCK_TEST_NOTICE_H
#define DBLOCK_TEST_NOTICE_H

#include "cut_database.h"

/* What main() returns. `sees_silence`: the server ends an advisory session that is silent though
 * its TCP connection lives. */
int notice_run(const struct cut_database *database, int sees_silence);

#endif
