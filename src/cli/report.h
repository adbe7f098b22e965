/* SPDX-License-Identifier: MIT */
/* report.h - `dblock run --report FILE`: how it went, for machines. An exit status
 * alone cannot tell COMMAND's 75 from dblock's. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "new_file.h"
#include "take.h"

#include <stdbool.h>
#include <sys/types.h>

struct report {
    struct new_file file;
};

/* How a run went. */
struct outcome {
    dblock_status status; /* of the acquire */
    const struct take *take;
    int64_t token; /* 0 */
    bool has_child;
    pid_t child_pid;
    int child_status; /* as of waitpid(2); with has_child */
    bool is_lost;
    uint64_t held_ms; /* once it was held */
    bool has_error;
    struct dblock_error error;
    int exit_code;
    bool is_exit_of_child;
};

/* Makes the file that will be renamed, before anything is locked or run: a report
 * that cannot be written is noticed in time. Returns -1, or the exit status after
 * a message. */
int report_begin(struct report *report, const char *path);

/* Writes it, by rename: a reader sees all or nothing. */
void report_finish(struct report *report, const struct outcome *outcome);

#endif
