/* SPDX-License-Identifier: MIT */
/* option_values.h - what the value of an option may be, and where it goes. Which
 * command has which options is in arguments.c. */
#ifndef CLI_OPTION_VALUES_H
#define CLI_OPTION_VALUES_H

#include "arguments.h"

/* Options without a letter; above all letters. */
enum {
    OPTION_JSON = 256,
    OPTION_AT_LEAST,
    OPTION_ID,
    OPTION_ON_LOST,
    OPTION_SIGNAL,
    OPTION_FOREGROUND,
    OPTION_REPORT,
    OPTION_EXPORT_URL,
    OPTION_HOST,
    OPTION_DRY_RUN,
    OPTION_SECONDS,
    OPTION_LEASES,
    OPTION_SVG
};

/* One option that getopt_long() has found to be allowed and complete: `value` is its letter, or
 * OPTION_*. Returns -1, or the exit status after a message. */
int option_apply(struct arguments *arguments, int value, char *text);

#endif
