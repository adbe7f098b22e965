/* SPDX-License-Identifier: MIT */
/* trace.h - the application's trace callback; there is no other log. */
#ifndef DBLK_TRACE_H
#define DBLK_TRACE_H

#include "core/client.h"

void dblk_trace_tell(dblock_client *client, int kind, dblock_status status, const char *name,
    const char *detail, int64_t token, uint64_t begun_us) DBLOCK_COLD_;

/* The client's mutex not held. `begun_us`: when what is told began. Inline, as mostly nobody listens:
 * then not even the arguments are put together. */
static inline void dblk_trace(dblock_client *client, int kind, dblock_status status,
    const char *name, const char *detail, int64_t token, uint64_t begun_us)
{
    if (client->settings.on_trace != NULL)
        dblk_trace_tell(client, kind, status, name, detail, token, begun_us);
}

#endif
