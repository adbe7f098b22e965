/* SPDX-License-Identifier: MIT */
/* layout.h - where code and locals lie. Between two steps of a pair the database's process has
 * emptied the caches of this core, so each line of code and stack that a pair touches is fetched
 * anew: that is most of what a pair costs above the client library (tests/bench/pairs). */
#ifndef DBLK_LAYOUT_H
#define DBLK_LAYOUT_H

/* Not in its caller: the locals of what seldom runs would lie between those of what always does. */
#define DBLK_APART __attribute__((noinline))

#endif
