/* SPDX-License-Identifier: MIT */
/* pgsql_hosts.h - where a target's hosts are. libpq looks names up in a call that nobody can end, so
 * it is given the addresses as well. */
#ifndef DBLK_PGSQL_HOSTS_H
#define DBLK_PGSQL_HOSTS_H

#include "pgsql_target.h"

enum { PGSQL_HOSTS_OPTIONS = 3 }; /* that pgsql_hosts_add() adds at most */

/* Options of libpq; all NULL: as the target has them. */
struct pgsql_hosts {
    char *host;
    char *hostaddr;
    char *port;
};

/* OK, CANCELLED, E_CONNECTION, E_MEMORY. To be freed whatever the result. */
dblock_status pgsql_hosts_find(const struct dblock_target *target, const struct dblock_call *call,
    struct pgsql_hosts *ret_hosts, struct dblock_error *reterr);
/* Of two options of one name the later counts. */
void pgsql_hosts_add(
    const struct pgsql_hosts *hosts, const char **keywords, const char **values, size_t n);
void pgsql_hosts_free(struct pgsql_hosts *hosts);

#endif
