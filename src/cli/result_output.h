/* SPDX-License-Identifier: MIT */
/* result_output.h - how extend, release and break ended: as JSON, as a message, as
 * an exit status. */
#ifndef CLI_RESULT_OUTPUT_H
#define CLI_RESULT_OUTPUT_H

#include "arguments.h"

#include <dblock/dblock.h>

struct result {
    dblock_status status;
    struct dblock_error error;       /* below zero */
    const char *name;                /* NULL not known */
    const struct dblock_grant *lock; /* NULL there is none (any more) */
};

/* Prints it (JSON only of what the database has answered, not of a failure) and returns the exit status. The texts say what NOT_HELD and LOST mean
 * in this command; NULL says nothing. */
int result_print(const struct arguments *arguments, const struct result *result,
    const char *not_held_text, const char *lost_text);

#endif
