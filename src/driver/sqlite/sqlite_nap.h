/* SPDX-License-Identifier: MIT */
/* sqlite_nap.h - a wait on a bell that ends with a deadline or a cancel: a loop of
 * naps, each of them short enough for what its caller has to look after. */
#ifndef DBLK_SQLITE_NAP_H
#define DBLK_SQLITE_NAP_H

#include "sqlite_helper.h"

struct sqlite_nap {
    uint64_t until_us; /* CLOCK_BOOTTIME */
    int cancel_fd;
    uint64_t begun_us;
    int is_long; /* it has lasted for a while: the cancel is watched from now on */
};

struct sqlite_nap sqlite_nap_begin(uint64_t until_us, int cancel_fd);
/* Sleeps until the bell has another count than `heard`, or for up to `longest_us`; not when it becomes
 * a long one just now. 0: look round and go on; EAGAIN: the time is over; ECANCELED; or another errno. */
int sqlite_nap(struct sqlite_nap *nap, struct sqlite_helper **helper, struct sqlite_bell bell,
    uint32_t heard, uint64_t longest_us);
/* To be asked first: the cancel changes the bell too. */
int sqlite_nap_is_cancelled(const struct sqlite_nap *nap, const struct sqlite_helper *helper);
void sqlite_nap_end(struct sqlite_nap *nap, struct sqlite_helper *helper);

#endif
