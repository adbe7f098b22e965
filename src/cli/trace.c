/* SPDX-License-Identifier: MIT */
/* trace.c - the library's trace as lines on standard error. */
#include "trace.h"

#include "message.h"
#include "text.h"

#include <inttypes.h>

static const char *kind_text(int kind)
{
    switch (kind) {
    case DBLOCK_TRACE_ATTEMPT:
        return "attempt";
    case DBLOCK_TRACE_GRANT:
        return "grant";
    case DBLOCK_TRACE_WAIT:
        return "wait";
    case DBLOCK_TRACE_RENEW:
        return "renew";
    case DBLOCK_TRACE_LOST:
        return "lost";
    case DBLOCK_TRACE_RELEASE:
        return "release";
    case DBLOCK_TRACE_CONNECT:
        return "connect";
    case DBLOCK_TRACE_CLOCK:
        return "clock";
    case DBLOCK_TRACE_SETTLE:
        return "settle";
    default:
        return NULL;
    }
}

static void print_trace(const struct dblock_trace *trace, void *context)
{
    const char *kind = kind_text(trace->kind);
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)] = "";

    (void)context;
    if (kind == NULL) /* of a later library */
        return;
    if (trace->name != NULL)
        (void)text_escape(trace->name, name, sizeof name);
    message_detail("%s%s%s%s: %s%s%s (%" PRIu64 ".%03" PRIu64 " ms)", kind,
        name[0] != '\0' ? " \"" : "", name, name[0] != '\0' ? "\"" : "",
        trace->status == DBLOCK_OK ? "done" : dblock_status_text(trace->status),
        trace->detail != NULL ? ", " : "", trace->detail != NULL ? trace->detail : "",
        trace->duration_us / 1000, trace->duration_us % 1000);
}

void trace_configure(struct dblock_config *config)
{
    if (message_is_verbose())
        config->on_trace = print_trace;
}
