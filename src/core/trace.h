/* SPDX-License-Identifier: MIT */
/* trace.h - the application's trace callback; there is no other log. */
#ifndef DBLK_TRACE_H
#define DBLK_TRACE_H

#include "core/client.h"

/* The client's mutex not held. `begun_us`: when what is told began. */
void dblk_trace(dblock_client *client, int kind, dblock_status status, const char *name,
    const char *detail, int64_t token, uint64_t begun_us);

#endif
