/* SPDX-License-Identifier: MIT */
/* pgsql_application.h - statements on a connection that the application owns. Nothing of it
 * is kept: no handle, no prepared statement, no setting. */
#ifndef DBLK_PGSQL_APPLICATION_H
#define DBLK_PGSQL_APPLICATION_H

#include <dblock/sys/driver.h>
#include <libpq-fe.h>

#include "pgsql_target.h"
#include "pgsql_value.h"

/* What is done there, for whom, and within what limit. */
struct pgsql_application {
    struct dblock_target *target;
    PGconn *pg;
    const char *action; /* "guard" */
    const char *name;   /* of the lock */
    const char *rights; /* what the role needs, as GRANT statements */
    uint64_t limit_us;
};

/* Is it alive, blocking, in no pipeline, without an answer that nobody has read, and in a
 * transaction? DBLOCK_OK, ROLLED_BACK (the transaction has failed), E_ARGUMENT, E_CONNECTION. */
dblock_status pgsql_application_check(
    PGconn *pg, const char *action, const char *name, struct dblock_error *reterr);

/* One statement and its only result, which the caller clears; answers within the limit. Replaces
 * the unnamed prepared statement, as each PQexec() does.
 * ROLLED_BACK: the server has ended the connection, or doomed the transaction, by what only a new
 * try can mend; STALE_SNAPSHOT if that is a snapshot too old. */
dblock_status pgsql_application_ask(const struct pgsql_application *application, const char *text,
    const struct pgsql_parameters *parameters, PGresult **ret_result, struct dblock_error *reterr);

/* Some statements in one text, and the result of the last, as text. When `cancel_fd` (-1 none)
 * becomes readable what runs is cancelled, and its result is waited for. */
dblock_status pgsql_application_run(const struct pgsql_application *application, const char *text,
    int cancel_fd, PGresult **ret_result, struct dblock_error *reterr);

#endif
