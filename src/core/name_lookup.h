/* SPDX-License-Identifier: MIT */
/* name_lookup.h - the addresses of a host, within the limits of a call.
 *
 * getaddrinfo() goes on for as long as name servers are silent, and nobody can end it. So it runs on
 * a thread that nobody waits for any longer than he wants; what it works on is its own. A name is
 * looked up once at a time in the process, however many ask for it. */
#ifndef DBLK_NAME_LOOKUP_H
#define DBLK_NAME_LOOKUP_H

/* So many threads may be left behind by name servers that do not answer. */
#define DBLK_LOOKUPS_MAX 4

/* Of tests: lookups that have not come to an end. */
unsigned dblk_lookups_running(void);

#endif
