/* SPDX-License-Identifier: MIT */
/* trace.c - see trace.h. */
#include "core/trace.h"

#include <string.h>

void dblk_trace_tell(dblock_client *client, int kind, dblock_status status, const char *name,
    const char *detail, int64_t token, uint64_t begun_us)
{
    struct dblock_trace trace;

    memset(&trace, 0, sizeof trace);
    trace.struct_size = sizeof trace;
    trace.kind = kind;
    trace.status = status;
    trace.name = name;
    trace.detail = detail != NULL && detail[0] != 0 ? detail : NULL;
    trace.token = token;
    trace.duration_us = dblk_until(begun_us, dblk_now_us());
    dblk_callback_begin();
    client->settings.on_trace(&trace, client->settings.trace_context);
    dblk_callback_end();
}
