/* SPDX-License-Identifier: MIT */
/* question.h - asking the person at the terminal. */
#ifndef CLI_QUESTION_H
#define CLI_QUESTION_H

#include "arguments.h"

/* Asks on standard error, and reads a line from standard input. Returns -1 for y or yes, or for -y
 * without asking; else the exit status: EXIT_CODE_NO, or after a message that there is no terminal
 * to ask on. `wake_fd` (-1: none) ends the question when it becomes readable, as a no. */
int question_ask(const struct arguments *arguments, int wake_fd, const char *text);

#endif
