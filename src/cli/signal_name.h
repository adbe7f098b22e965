/* SPDX-License-Identifier: MIT */
/* signal_name.h - signals by the names that kill(1) knows. */
#ifndef CLI_SIGNAL_NAME_H
#define CLI_SIGNAL_NAME_H

#define SIGNAL_TEXT_SIZE 16

/* "TERM", "SIGTERM", "term" or "15"; 0 if there is no such signal. */
int signal_from_name(const char *name);

/* "SIGTERM"; "signal 42" for one without a name. Returns `buffer`. */
const char *signal_text(int number, char buffer[SIGNAL_TEXT_SIZE]);

#endif
