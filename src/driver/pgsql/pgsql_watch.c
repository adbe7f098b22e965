/* SPDX-License-Identifier: MIT */
/* pgsql_watch.c - what runs on a connection of the application is cancelled when a lock is lost.
 * The request names the session by a secret, so it can hit no other one, whatever became of
 * the connection meanwhile. */
#include <dblock/pgsql.h>

#include "pgsql_cancel.h"

#include <stdlib.h>

static void send_cancel(void *context, const struct dblock_call *call)
{
    (void)pgsql_cancel_send(context, call);
}

static void free_cancel(void *context)
{
    pgsql_cancel_fini(context);
    free(context);
}

dblock_status dblock_pgsql_watch(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr)
{
    struct dblock_watch way = { send_cancel, free_cancel, NULL };
    struct dblock_target *target;
    dblock_status status = dblock_watch_check(lock, dblock_pgsql_driver(), &target, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "connection: NULL");
    if (PQstatus(connection) != CONNECTION_OK)
        return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "connect anew",
            "cannot watch \"%s\": the connection is broken", dblock_lock_name(lock));
    way.context = malloc(sizeof(struct pgsql_cancel));
    if (way.context == NULL || !pgsql_cancel_init(way.context, connection)) {
        free(way.context);
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "cannot watch \"%s\": out of memory",
            dblock_lock_name(lock));
    }
    return dblock_watch_begin(lock, &way, reterr);
}

void dblock_pgsql_unwatch(dblock_lock *lock)
{
    dblock_watch_end(lock);
}
