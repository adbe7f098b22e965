/* SPDX-License-Identifier: MIT */
/* pgsql_fit.h - texts for people (labels, hosts) in a database whose encoding does not have all of
 * their characters. The server refuses such a text with all that was to be done; then it is done
 * again, with "?" for what is not ASCII, and so from then on. */
#ifndef DBLK_PGSQL_FIT_H
#define DBLK_PGSQL_FIT_H

#include "pgsql_connection.h"

enum { PGSQL_FIT_SIZE = 512 };

/* The text as this connection's database can have it; it may lie in `room`. */
const char *pgsql_fit(
    const struct dblock_connection *connection, const char *text, char room[PGSQL_FIT_SIZE]);
/* Did a step that had such texts fail for one of them, for the first time? It had no effect. */
int pgsql_fit_is_wanted(struct dblock_connection *connection, dblock_status status,
    const struct dblock_error *error);

#endif
