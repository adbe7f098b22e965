/* SPDX-License-Identifier: MIT */
/* child.h - COMMAND: found before the lock is taken, started under it. What is
 * done with it while it runs is in supervise.c. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "terminal.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_plan {
    char *path;             /* of the program; malloced */
    char **words;           /* its argv */
    char **words_for_shell; /* if the program turns out to be a text without "#!"; malloced */
    char *shell_words[4];   /* holds `words` for -c */
};

/* Finds the program of `words`, or the shell for `shell_text`. Returns -1, or 126,
 * 127 or 71 after a message. */
int child_find(char **words, char *shell_text, struct child_plan *ret_plan);

void child_plan_clear(struct child_plan *plan);

/* Starts it in a process group of its own, or in ours with `is_foreground`; the
 * group is its process number. The terminal is lent to it if there is cause to. It
 * gets KILL when dblock dies. Returns the process, or -1 with errno. */
pid_t child_start(const struct child_plan *plan, char **environment, bool is_foreground,
    struct terminal *terminal);

#endif
