/* SPDX-License-Identifier: MIT */
/* exit_code.h - the exit status of every command; help/exit.txt says the same to
 * people. */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include <dblock/status.h>

enum {
    EXIT_CODE_DONE = 0,
    EXIT_CODE_NO = 1,
    EXIT_CODE_USAGE = 64,
    EXIT_CODE_DATABASE = 69,
    EXIT_CODE_BUG = 70,
    EXIT_CODE_MACHINE = 71,
    EXIT_CODE_UNCERTAIN = 74,
    EXIT_CODE_BUSY = 75,
    EXIT_CODE_LOST = 76,
    EXIT_CODE_REFUSED = 77,
    EXIT_CODE_CONFIGURATION = 78,
    EXIT_CODE_CANNOT_RUN = 126,
    EXIT_CODE_NOT_FOUND = 127,
    EXIT_CODE_SIGNAL = 128 /* plus its number */
};

/* CANCELLED has no number of its own: the caller knows the signal. */
int exit_code_of(dblock_status status);

#endif
