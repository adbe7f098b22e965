/* SPDX-License-Identifier: MIT */
/* terminal.h - lending the terminal to COMMAND's process group, as a shell does:
 * only the foreground group may read from it, and is meant by control-C. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int descriptor; /* -1: there is none */
    bool is_lent;
};

void terminal_open(struct terminal *terminal);

/* Is it this process group's now? */
bool terminal_is_ours(const struct terminal *terminal);

/* Is it that group's? */
bool terminal_is_with(const struct terminal *terminal, pid_t group);

/* Should COMMAND have it from the start? If it is ours, and not shared with the
 * other members of a pipeline, a pager say, who would be stopped by it. */
bool terminal_is_to_be_lent(const struct terminal *terminal);

/* Lends it to a group, or takes back what was lent and not passed on. */
void terminal_lend(struct terminal *terminal, pid_t group);
void terminal_take_back(struct terminal *terminal, pid_t group);

#endif
