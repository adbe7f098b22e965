/* SPDX-License-Identifier: MIT */
/* hold.h - steps on a grant that is a row, as dblk_short() wants them. */
#ifndef DBLK_HOLD_H
#define DBLK_HOLD_H

#include "core/link.h"
#include "core/lock.h"

struct dblk_hold_request {
    int32_t strategy;
    struct dblock_subject subject;
    const unsigned char *owner;
    uint64_t time_us;           /* drop: keep; extend: ttl */
    struct dblock_grant *grant; /* look */
};

void dblk_hold_request(struct dblk_hold_request *request, const dblock_lock *lock);

dblock_status dblk_hold_drop(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error);
dblock_status dblk_hold_extend(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error);
dblock_status dblk_hold_look(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error);

#endif
