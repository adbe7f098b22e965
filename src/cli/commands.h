/* SPDX-License-Identifier: MIT */
/* commands.h - the commands, one a file. Each is given a command line that has been
 * read, does everything, prints everything, and returns the exit status. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "arguments.h"

int command_run(const struct arguments *arguments);
int command_acquire(const struct arguments *arguments);
int command_extend(const struct arguments *arguments);
int command_release(const struct arguments *arguments);
int command_show(const struct arguments *arguments);
int command_list(const struct arguments *arguments);
int command_break(const struct arguments *arguments);
int command_init(const struct arguments *arguments);
int command_schema(const struct arguments *arguments);
int command_bench(const struct arguments *arguments);
int command_doctor(const struct arguments *arguments);
int command_help(const struct arguments *arguments);

#endif
