/* SPDX-License-Identifier: MIT */
/* layout.h - where code lies. Between two steps of a pair the database's process has emptied the
 * caches of this core, so each line of code that a pair runs is fetched anew: that is most of what
 * it costs above the client library. Data was measured too, and costs nothing that shows. */
#ifndef DBLK_LAYOUT_H
#define DBLK_LAYOUT_H

/* Not in its caller: what seldom runs would lie between what always does. */
#define DBLK_APART __attribute__((noinline))

#endif
