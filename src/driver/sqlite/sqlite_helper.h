/* SPDX-License-Identifier: MIT */
/* sqlite_helper.h - what a sleeping thread cannot see for itself, told by two threads of
 * the connection that ring the bell it sleeps on.
 *
 * One blocks on a byte of the side file (F_OFD_SETLKW): the kernel's own word that a
 * holder is gone, also by kill -9. The other waits for the descriptor of the cancel.
 * Neither is needed in a wait of a millisecond or two, nor made for one. They are kept
 * for the next wait; a blocked one that is not wanted any more is ended (a signal would
 * need a handler). */
#ifndef DBLK_SQLITE_HELPER_H
#define DBLK_SQLITE_HELPER_H

#include "sqlite_bell.h"

struct sqlite_helper;

/* Runs in a thread that may be ended in its waits, and holds nothing then that has to be undone
 * there. 0, or an errno. */
typedef int (*sqlite_block_fn)(void *context);

/* Takes NULL: `*helper` is made then. 0, or an errno. */
int sqlite_helper_block(
    struct sqlite_helper **helper, sqlite_block_fn fn, void *context, struct sqlite_bell bell);
/* 1: through, and `*ret_result` says how. */
int sqlite_helper_is_through(const struct sqlite_helper *helper, int *ret_result);
/* 0: not begun, through, or given up. */
int sqlite_helper_is_blocked(const struct sqlite_helper *helper);
/* It is on its way and ends by itself, or is ended: nothing of it happens later. Takes NULL. */
void sqlite_helper_settle(struct sqlite_helper *helper);
/* It is ended, if it was not through. Takes NULL. */
void sqlite_helper_give_up(struct sqlite_helper *helper);

/* From now on the bell is rung once when the descriptor has become readable, until the next watch
 * begins, or ends; the end costs no system call. 0, or an errno. */
int sqlite_helper_watch(struct sqlite_helper **helper, int cancel_fd, struct sqlite_bell bell);
int sqlite_helper_is_cancelled(const struct sqlite_helper *helper);
void sqlite_helper_unwatch(struct sqlite_helper *helper);

void sqlite_helper_free(struct sqlite_helper *helper); /* takes NULL */

#endif
