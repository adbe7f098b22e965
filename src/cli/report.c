/* SPDX-License-Identifier: MIT */
/* report.c - the file of --report. */
#define _GNU_SOURCE /* mkostemp */
#include "report.h"

#include "exit_code.h"
#include "json_output.h"
#include "message.h"
#include "signal_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A device, a pipe or a socket that is there is written to, and so is what a symbolic link names: a
 * rename would put a file in the place of the link or the device, and root can do that to /dev. */
static bool is_special(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

int report_begin(struct report *report, const char *path)
{
    mode_t mask;
    int length;

    report->path = path;
    report->descriptor = -1;
    report->temporary[0] = 0;
    if (path == NULL)
        return -1;
    if (is_special(path)) {
        report->descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
        if (report->descriptor >= 0)
            return -1;
        message_failure("cannot open %s: %s; not run", path, strerror(errno));
        report->path = NULL;
        return EXIT_CODE_MACHINE;
    }
    length = snprintf(report->temporary, sizeof report->temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof report->temporary) {
        message_failure("--report: the path is too long");
        return EXIT_CODE_USAGE;
    }
    report->descriptor = mkostemp(report->temporary, O_CLOEXEC);
    if (report->descriptor < 0) {
        message_failure("cannot make %s: %s; not run", report->temporary, strerror(errno));
        report->path = NULL;
        return EXIT_CODE_MACHINE;
    }
    /* mkostemp() makes it for the owner alone; a report is as public as any file. */
    mask = umask(0);
    (void)umask(mask);
    (void)fchmod(report->descriptor, 0666 & ~mask);
    return -1;
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
    FILE *file;

    if (report->path == NULL)
        return;
    file = fdopen(report->descriptor, "w");
    if (file == NULL) {
        message_failure("cannot write %s: %s", report->path, strerror(errno));
        report_abandon(report);
        return;
    }
    report->descriptor = -1; /* it is the stream's now */
    if (json_print(outcome_json(outcome), file) != EXIT_CODE_DONE || fclose(file) != 0 ||
        (report->temporary[0] != 0 && rename(report->temporary, report->path) != 0)) {
        message_failure("cannot write %s: %s", report->path, strerror(errno));
        if (report->temporary[0] != 0)
            (void)unlink(report->temporary);
    }
    report->path = NULL;
}

void report_abandon(struct report *report)
{
    if (report->path == NULL)
        return;
    if (report->descriptor >= 0)
        (void)close(report->descriptor);
    if (report->temporary[0] != 0)
        (void)unlink(report->temporary);
    report->path = NULL;
}
