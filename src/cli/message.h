/* SPDX-License-Identifier: MIT */
/* message.h - what dblock says on standard error, each in one line that begins
 * with "dblock: ". Standard output belongs to results and to COMMAND. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include <dblock/status.h>

#include <stdbool.h>

/* How much is said. -q: failures only; -v: what happens; -vv: each step of the library. */
enum message_level { MESSAGE_QUIET, MESSAGE_NORMAL, MESSAGE_VERBOSE, MESSAGE_TRACING };

void message_set_level(enum message_level level);

/* Another -v. */
void message_raise_level(void);

/* Is a person watching, or did one ask to hear more? For what cron must not mail. */
bool message_is_chatty(void);
bool message_is_verbose(void);
bool message_is_tracing(void);

/* A failure: always printed. */
__attribute__((format(printf, 1, 2))) void message_failure(const char *format, ...);

/* Worth knowing: not with -q. */
__attribute__((format(printf, 1, 2))) void message_warning(const char *format, ...);

/* Only if message_is_chatty(). */
__attribute__((format(printf, 1, 2))) void message_note(const char *format, ...);

/* Only with -v. */
__attribute__((format(printf, 1, 2))) void message_detail(const char *format, ...);

/* A failure of the library: its message, what that means for the user ("not
 * run"; NULL nothing), and the way out. */
void message_error(const struct dblock_error *error, const char *consequence);

/* Wrong usage of `command` (NULL: of dblock itself). Returns EXIT_CODE_USAGE. */
__attribute__((format(printf, 2, 3))) int message_usage(
    const char *command, const char *format, ...);

#endif
