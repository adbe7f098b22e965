/* SPDX-License-Identifier: MIT */
/* release.h - the parts of a release: belief ends, the database is told, and what it said. */
#ifndef DBLK_RELEASE_H
#define DBLK_RELEASE_H

#include "core/lock.h"

/* HELD -> RELEASING, or what the call answers instead. */
dblock_status dblk_release_begin(dblock_lock *lock, uint64_t now_us, int *ret_is_handed);
/* What a drop's outcome means. */
dblock_status dblk_release_judge(const dblock_lock *lock, int32_t outcome, int was_uncertain);
/* RELEASING -> RELEASED; what is left to be done the keeper does. */
void dblk_release_end(dblock_lock *lock, dblock_status status);

#endif
