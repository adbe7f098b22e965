/* SPDX-License-Identifier: MIT */
/* grant_text.c - a grant as a sentence for messages and as a line of a list. */
#include "grant_text.h"

#include "duration.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

int grant_is_held(const struct dblock_grant *grant)
{
    return grant->owner[0] != '\0' || grant->server_pid != 0 || grant->remaining_ms != 0;
}

/* Appends; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void append(
    char *buffer, size_t size, const char *format, ...)
{
    size_t used = strlen(buffer);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(buffer + used, size - used, format, list);
    va_end(list);
}

static void append_holder(const struct dblock_grant *grant, char *buffer, size_t size)
{
    char host[ESCAPED_SIZE(256)];

    if (grant->host[0] != '\0')
        append(buffer, size, "%s", text_escape(grant->host, host, sizeof host));
    if (grant->pid != 0)
        append(buffer, size, "%spid %" PRId64, grant->host[0] != '\0' ? " " : "", grant->pid);
    if (grant->host[0] == '\0' && grant->pid == 0) {
        if (grant->server_pid != 0)
            append(buffer, size, "session %" PRId64 " of the server", grant->server_pid);
        else
            append(buffer, size, "somebody");
    }
}

/* "renewed, 21 s left", "21 s left", "until its connection ends" */
static void append_end(const struct dblock_grant *grant, char *buffer, size_t size)
{
    char left[DURATION_TEXT_SIZE];

    if (grant->remaining_ms == DBLOCK_FOREVER)
        append(buffer, size, "until its connection ends");
    else
        append(buffer, size, "%s%s left", grant->is_heartbeat ? "renewed, " : "",
            duration_text(grant->remaining_ms, left));
}

const char *grant_sentence(const struct dblock_grant *grant, char buffer[GRANT_SENTENCE_SIZE])
{
    const size_t size = GRANT_SENTENCE_SIZE;
    char time[TIME_TEXT_SIZE];
    char label[QUOTED_SIZE(128)];

    buffer[0] = '\0';
    append_holder(grant, buffer, size);
    if (grant->since_us != 0)
        append(buffer, size, " since %s", text_time_local(grant->since_us, grant->now_us, time));
    append(buffer, size, " (%s, ", dblock_strategy_name(grant->strategy));
    append_end(grant, buffer, size);
    if (grant->is_pinned)
        append(buffer, size, ", in a guarded transaction");
    if (grant->label[0] != '\0')
        append(buffer, size, ", %s", text_quote(grant->label, label, sizeof label));
    append(buffer, size, ")");
    return buffer;
}

void grant_print_line(const struct dblock_grant *grant, FILE *file)
{
    char name[QUOTED_SIZE(DBLOCK_NAME_MAX)];
    char label[QUOTED_SIZE(128)];
    char time[TIME_TEXT_SIZE];
    char age[DURATION_TEXT_SIZE];
    char text[GRANT_SENTENCE_SIZE] = "";

    (void)fprintf(file, "%s  %s", text_word(grant->name, name, sizeof name),
        dblock_strategy_name(grant->strategy));
    if (!grant_is_held(grant)) {
        (void)fprintf(file, "  not held");
    } else {
        append_holder(grant, text, sizeof text);
        (void)fprintf(file, "  %s", text);
        if (grant->since_us != 0) {
            (void)fprintf(
                file, "  since %s", text_time_local(grant->since_us, grant->now_us, time));
            if (grant->now_us >= grant->since_us)
                (void)fprintf(file, " (%s)",
                    duration_text((uint64_t)(grant->now_us - grant->since_us) / 1000, age));
        }
        text[0] = '\0';
        append_end(grant, text, sizeof text);
        (void)fprintf(file, "  %s", text);
        if (grant->mode == DBLOCK_SHARED)
            (void)fprintf(file, "  shared");
        if (grant->is_pinned)
            (void)fprintf(file, "  in a guarded transaction");
    }
    if (grant->token != 0)
        (void)fprintf(file, "  token %" PRId64, grant->token);
    if (grant->n_waiters != 0 && grant->n_waiters != UINT32_MAX)
        (void)fprintf(file, "  %" PRIu32 " waiting", grant->n_waiters);
    if (grant->label[0] != '\0')
        (void)fprintf(file, "  %s", text_quote(grant->label, label, sizeof label));
    (void)fputc('\n', file);
}
