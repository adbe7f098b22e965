/* SPDX-License-Identifier: MIT */
/* hold.c - see hold.h. */
#include "core/hold.h"

#include <string.h>

#include "core/driver_steps.h"

void dblk_hold_request(struct dblk_hold_request *request, const dblock_lock *lock)
{
    memset(request, 0, sizeof *request);
    request->strategy = lock->strategy->id;
    request->subject = lock->subject;
    request->owner = lock->owner;
}

dblock_status dblk_hold_drop(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const struct dblk_hold_request *request = context;

    return dblk_hold_steps(client, request->strategy)->drop(link->connection, call, &request->subject,
        request->owner, request->time_us, answer, error);
}

dblock_status dblk_hold_extend(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const struct dblk_hold_request *request = context;

    return dblk_hold_steps(client, request->strategy)->extend(link->connection, call, &request->subject,
        request->owner, request->time_us, answer, error);
}

dblock_status dblk_hold_look(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const struct dblk_hold_request *request = context;

    memset(request->grant, 0, sizeof *request->grant);
    request->grant->struct_size = sizeof *request->grant;
    return dblk_hold_steps(client, request->strategy)->look(
        link->connection, call, &request->subject, request->grant, answer, error);
}
