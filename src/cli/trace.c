/* SPDX-License-Identifier: MIT */
/* trace.c - the library's trace as lines on standard error: -v and -vv. */
#include "trace.h"

#include "duration.h"
#include "message.h"
#include "text.h"
#include "url.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

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

static void print_all(const struct dblock_trace *trace, void *context)
{
    const char *kind = kind_text(trace->kind);
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)] = "";
    char token[40] = "";

    (void)context;
    if (kind == NULL) /* of a later library */
        return;
    if (trace->name != NULL)
        (void)text_escape(trace->name, name, sizeof name);
    if (trace->token != 0)
        (void)snprintf(token, sizeof token, ", token %" PRId64, trace->token);
    message_detail("%s%s%s%s: %s%s%s%s (%" PRIu64 ".%03" PRIu64 " ms)", kind,
        name[0] != '\0' ? " \"" : "", name, name[0] != '\0' ? "\"" : "",
        trace->status == DBLOCK_OK ? "done" : dblock_status_text(trace->status),
        trace->detail != NULL ? ", " : "", trace->detail != NULL ? trace->detail : "", token,
        trace->duration_us / 1000, trace->duration_us % 1000);
}

/* Some things are done again and again: they are news when they end in another way than before.
 * Threads of the library meet here. */
static bool is_news(atomic_int *last, const struct dblock_trace *trace, int *ret_before)
{
    *ret_before = atomic_exchange(last, trace->status);
    return *ret_before != trace->status;
}

static const char *detail_of(const struct dblock_trace *trace)
{
    return trace->detail != NULL ? trace->detail : dblock_status_text(trace->status);
}

/* The first failure is said by who meets it. */
static void print_connection(const struct dblock_trace *trace, const struct database *database)
{
    static atomic_int last = 1; /* not asked yet: no status that a connection has */
    char *where;
    int before;

    if (!is_news(&last, trace, &before) || (trace->status != DBLOCK_OK && before != DBLOCK_OK))
        return;
    if (trace->status != DBLOCK_OK) {
        message_detail("not connected any more: %s", detail_of(trace));
        return;
    }
    where = url_for_people(database->url);
    message_detail("connected to %s",
        where != NULL ? where : dblock_driver_scheme(database->driver));
    free(where);
}

static void print_heartbeat(const struct dblock_trace *trace)
{
    static atomic_int last = DBLOCK_OK;
    int before;

    if (!is_news(&last, trace, &before))
        return;
    if (trace->status == DBLOCK_OK)
        message_detail("heartbeats get through again");
    else
        message_detail("a heartbeat failed: %s", detail_of(trace));
}

static void print_grant(const struct dblock_trace *trace, const char *name)
{
    char text[DURATION_TEXT_SIZE];
    char delay[DURATION_TEXT_SIZE + 8] = "";
    char token[40] = "";

    if (trace->duration_us >= 1000)
        (void)snprintf(
            delay, sizeof delay, " after %s", duration_text(trace->duration_us / 1000, text));
    if (trace->token != 0)
        (void)snprintf(token, sizeof token, ", token %" PRId64, trace->token);
    message_detail("\"%s\" is granted%s%s", name, delay, token);
}

/* One line for each thing that a person wants to know. Who holds a lock that is waited for, and
 * that one was lost, is said by those who learn of it: take.c, supervise.c. */
static void print_events(const struct dblock_trace *trace, void *context)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)] = "";

    if (trace->name != NULL)
        (void)text_escape(trace->name, name, sizeof name);
    switch (trace->kind) {
    case DBLOCK_TRACE_CONNECT:
        print_connection(trace, context);
        break;
    case DBLOCK_TRACE_RENEW:
        print_heartbeat(trace);
        break;
    case DBLOCK_TRACE_GRANT:
        print_grant(trace, name);
        break;
    case DBLOCK_TRACE_RELEASE:
        if (trace->status == DBLOCK_OK)
            message_detail("\"%s\" is released", name);
        break; /* anything else is a message of its own */
    case DBLOCK_TRACE_CLOCK:
        message_detail("%s", detail_of(trace));
        break;
    default:
        break;
    }
}

void trace_configure(struct dblock_config *config, const struct database *database)
{
    if (!message_is_verbose())
        return;
    config->on_trace = message_is_tracing() ? print_all : print_events;
    config->trace_context = (void *)(uintptr_t)database; /* only read there */
}
