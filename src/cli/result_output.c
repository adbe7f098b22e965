/* SPDX-License-Identifier: MIT */
/* result_output.c - see result_output.h. */
#include "result_output.h"

#include "exit_code.h"
#include "json_output.h"
#include "message.h"
#include "text.h"

static const char *outcome_text(dblock_status status)
{
    switch (status) {
    case DBLOCK_OK:
        return "done";
    case DBLOCK_PENDING:
        return "pending";
    case DBLOCK_LOST:
        return "lost";
    case DBLOCK_NOT_HELD:
        return "not_held";
    default:
        return NULL;
    }
}

int result_print(const struct arguments *arguments, const struct result *result,
    const char *not_held_text, const char *lost_text)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)] = "this lock";
    dblock_status status = result->status;

    if (status >= 0 && arguments->is_json) {
        json_t *document = json_document(arguments->command->name);
        int written;

        json_set_text(document, "name", result->name);
        json_set_text(document, "outcome", outcome_text(status));
        (void)json_object_set_new(
            document, "lock", result->lock != NULL ? json_grant(result->lock) : json_null());
        written = json_print(document, stdout);
        if (written != EXIT_CODE_DONE)
            return written;
    }
    if (result->name != NULL)
        (void)text_escape(result->name, name, sizeof name);
    if (status < 0)
        message_error(&result->error, NULL);
    else if (status == DBLOCK_LOST && lost_text != NULL)
        message_failure("\"%s\": %s", name, lost_text);
    else if (status == DBLOCK_NOT_HELD && not_held_text != NULL)
        message_warning("\"%s\": %s", name, not_held_text);
    else if (status == DBLOCK_PENDING)
        message_warning("\"%s\": ends as soon as the transaction that stands on it does", name);
    return exit_code_of(status);
}
