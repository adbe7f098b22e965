/* SPDX-License-Identifier: MIT */
/* json_output.c - from the library's structs to JSON. Unknown is null and never
 * absent, so that a reader needs one way to look at a member. */
#include "json_output.h"

#include "exit_code.h"
#include "message.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *json_document(const char *kind)
{
    json_t *document = json_object();

    (void)json_object_set_new(document, "dblock", json_integer(1));
    (void)json_object_set_new(document, "kind", json_string(kind));
    return document;
}

static json_t *make_string(const char *text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    json_t *string = json_string(text);
    char *repaired;
    size_t used = 0;

    if (string != NULL)
        return string;
    repaired = malloc(3 * strlen(text) + 1);
    if (repaired == NULL)
        return NULL;
    while (*text != '\0') {
        size_t length = text_character_length(text);

        if (length == 0) {
            memcpy(repaired + used, replacement, 3);
            used += 3;
            text++;
        } else {
            memcpy(repaired + used, text, length);
            used += length;
            text += length;
        }
    }
    repaired[used] = '\0';
    string = json_string(repaired);
    free(repaired);
    return string;
}

void json_set_text(json_t *object, const char *key, const char *text)
{
    (void)json_object_set_new(
        object, key, text != NULL && text[0] != '\0' ? make_string(text) : json_null());
}

void json_set_number(json_t *object, const char *key, int64_t number)
{
    (void)json_object_set_new(object, key, number != 0 ? json_integer(number) : json_null());
}

void json_set_time(json_t *object, const char *key, int64_t us)
{
    char buffer[TIME_TEXT_SIZE];

    json_set_text(object, key, us != 0 ? text_time_rfc3339(us, buffer) : NULL);
}

json_t *json_grant(const struct dblock_grant *grant)
{
    json_t *object = json_object();

    json_set_text(object, "name", grant->name);
    json_set_text(object, "strategy", dblock_strategy_name(grant->strategy));
    json_set_text(object, "mode", grant->mode == DBLOCK_SHARED ? "shared" : "exclusive");
    json_set_number(object, "permits", grant->permits);
    json_set_number(object, "token", grant->token);
    json_set_text(object, "owner", grant->owner);
    json_set_text(object, "label", grant->label);
    json_set_text(object, "host", grant->host);
    json_set_number(object, "pid", grant->pid);
    json_set_number(object, "server_pid", grant->server_pid);
    (void)json_object_set_new(object, "heartbeat", json_boolean(grant->is_heartbeat));
    (void)json_object_set_new(object, "pinned", json_boolean(grant->is_pinned));
    (void)json_object_set_new(object, "waiters",
        grant->n_waiters == UINT32_MAX ? json_null() : json_integer(grant->n_waiters));
    json_set_time(object, "since", grant->since_us);
    json_set_time(object, "expires", grant->expires_us);
    (void)json_object_set_new(object, "remaining_ms",
        grant->remaining_ms > INT64_MAX ? json_null()
                                        : json_integer((json_int_t)grant->remaining_ms));
    return object;
}

json_t *json_error(const struct dblock_error *error)
{
    json_t *object;

    if (error == NULL)
        return json_null();
    object = json_object();
    json_set_text(object, "status", dblock_status_name(error->status));
    (void)json_object_set_new(object, "message", make_string(error->message));
    json_set_text(object, "hint", error->hint);
    json_set_text(object, "sqlstate", error->sqlstate);
    json_set_number(object, "native_code", error->native_code);
    (void)json_object_set_new(object, "transient", json_boolean(error->is_transient));
    return object;
}

int json_print(json_t *document, FILE *file)
{
    int result = EXIT_CODE_DONE;

    errno = 0;
    if (document == NULL || json_dumpf(document, file, JSON_REAL_PRECISION(6)) != 0 || fputc('\n', file) == EOF ||
        fflush(file) != 0) {
        message_failure("cannot write JSON: %s", errno != 0 ? strerror(errno) : "out of memory");
        result = EXIT_CODE_MACHINE;
    }
    json_decref(document);
    return result;
}
