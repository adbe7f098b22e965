/* SPDX-License-Identifier: MIT */
/* schema.c - making the tables, and proving that they are there:
 * dblock_schema_install() and dblock_ping(). */
#include <string.h>

#include "core/borrowed.h"
#include "core/error.h"
#include "core/link.h"

dblock_status dblock_schema_install(dblock_client *client, struct dblock_error *reterr)
{
    struct dblock_call call;
    struct dblock_error error;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    memset(&error, 0, sizeof error);
    /* DDL waits for those who are at work with the tables: several I/O limits */
    call.deadline_us = dblk_later(dblk_now_us(), 6 * client->settings.io_us);
    call.cancel_fd = client->stop_fd;
    if (dblk_has_keeper(client))
        status = client->driver->install(
            dblk_is_borrowing(client) ? client->keeper_target : client->target, &call, &error);
    else
        status = dblock_error_set(&error, DBLOCK_E_UNSUPPORTED,
            "run: dblock init, or open a client by URL for it",
            "cannot make tables over a connection of the application");
    if (status > 0)
        status = dblk_client_closed(&error);
    if (status < 0)
        dblk_error_tell(reterr, &error);
    dblk_client_leave(client);
    return status;
}

static dblock_status verify(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    (void)context;
    return client->driver->connection.verify(link->connection, call, answer, error);
}

dblock_status dblock_ping(dblock_client *client, struct dblock_error *reterr)
{
    struct dblk_short_result result;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    status = dblk_short(client, 0, 0, verify, NULL, &result, reterr);
    dblk_client_leave(client);
    return status;
}
