/* SPDX-License-Identifier: MIT */
/* report.c - the file of --report. */
#include "report.h"

#include "exit_code.h"
#include "json_output.h"
#include "signal_name.h"

#include <stdio.h>
#include <sys/wait.h>

int report_begin(struct report *report, const char *path)
{
    return new_file_begin(&report->file, path, "--report", "not run");
}

static const char *outcome_text(const struct outcome *outcome)
{
    switch (outcome->status) {
    case DBLOCK_OK:
        if (outcome->is_lost)
            return "lost";
        return outcome->has_child ? "ran" : "failed";
    case DBLOCK_BUSY:
        return "busy";
    case DBLOCK_CANCELLED:
        return "cancelled";
    default:
        return "failed";
    }
}

static json_t *child_json(const struct outcome *outcome)
{
    json_t *child;
    char buffer[SIGNAL_TEXT_SIZE];
    int status = outcome->child_status;

    if (!outcome->has_child)
        return json_null();
    child = json_object();
    (void)json_object_set_new(child, "pid", json_integer(outcome->child_pid));
    (void)json_object_set_new(
        child, "status", WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null());
    json_set_text(
        child, "signal", WIFSIGNALED(status) ? signal_text(WTERMSIG(status), buffer) : NULL);
    return child;
}

static json_t *outcome_json(const struct outcome *outcome)
{
    json_t *document = json_document("run");
    bool was_held = outcome->status == DBLOCK_OK;

    json_set_text(document, "name", outcome->take->arguments->operand);
    json_set_text(document, "outcome", outcome_text(outcome));
    (void)json_object_set_new(document, "exit", json_integer(outcome->exit_code));
    json_set_text(document, "exit_from", outcome->is_exit_of_child ? "child" : "dblock");
    (void)json_object_set_new(document, "child", child_json(outcome));
    (void)json_object_set_new(
        document, "waited_ms", json_integer((json_int_t)outcome->take->waited_ms));
    (void)json_object_set_new(
        document, "held_ms", was_held ? json_integer((json_int_t)outcome->held_ms) : json_null());
    json_set_number(document, "token", outcome->token);
    (void)json_object_set_new(document, "holder",
        outcome->status == DBLOCK_BUSY ? json_grant(&outcome->take->holder) : json_null());
    (void)json_object_set_new(
        document, "error", json_error(outcome->has_error ? &outcome->error : NULL));
    return document;
}

void report_finish(struct report *report, const struct outcome *outcome)
{
    FILE *stream = report->file.path != NULL ? new_file_stream(&report->file) : NULL;

    if (stream != NULL)
        (void)new_file_finish(&report->file, stream,
            json_print(outcome_json(outcome), stream) == EXIT_CODE_DONE);
}
