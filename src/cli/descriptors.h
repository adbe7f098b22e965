/* SPDX-License-Identifier: MIT */
/* descriptors.h - closing what a long-lived process has inherited and must not keep
 * open: pipes for whose end somebody waits, connections, locks of others. */
#ifndef CLI_DESCRIPTORS_H
#define CLI_DESCRIPTORS_H

/* Closes everything from `first` on but the two (-1: none). Async-signal-safe. */
void descriptors_close(int first, int kept, int also_kept);

#endif
