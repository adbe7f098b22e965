/* SPDX-License-Identifier: MIT */
/* pgsql_application.h - statements on a connection that the application owns. Nothing of it
 * is kept: no handle, no prepared statement, no setting. */
#ifndef DBLK_PGSQL_APPLICATION_H
#define DBLK_PGSQL_APPLICATION_H

#include <dblock/sys/driver.h>
#include <libpq-fe.h>

#include "pgsql_value.h"

/* Is it alive, blocking, in no pipeline, without an answer that nobody has read, and in a
 * transaction? DBLOCK_OK, ROLLED_BACK (the transaction has failed), E_ARGUMENT, E_CONNECTION. */
dblock_status pgsql_application_check(
    PGconn *pg, const char *action, const char *name, struct dblock_error *reterr);

/* One statement and its only result, which the caller clears; answers within the limit. Replaces
 * the unnamed prepared statement, as each PQexec() does.
 * ROLLED_BACK: the server has ended the connection, or doomed the transaction, by what only a new
 * try can mend; `*ret_is_stale` if that is a snapshot too old. */
dblock_status pgsql_application_ask(PGconn *pg, const char *text,
    const struct pgsql_parameters *parameters, uint64_t limit_us, const char *action,
    const char *name, PGresult **ret_result, int *ret_is_stale, struct dblock_error *reterr);

#endif
