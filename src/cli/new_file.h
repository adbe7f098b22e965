/* SPDX-License-Identifier: MIT */
/* new_file.h - a file that is written as a whole or not at all: under another name
 * first, and then renamed. It is made before the work whose outcome it is to hold, so
 * that one that cannot be written is noticed in time. */
#ifndef CLI_NEW_FILE_H
#define CLI_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct new_file {
    const char *path; /* NULL: none is wanted */
    char temporary[4096];
    int descriptor; /* -1 */
};

/* `option` is the one that named it, `consequence` what does not happen without it ("not run").
 * Returns -1, or the exit status after a message. */
int new_file_begin(
    struct new_file *file, const char *path, const char *option, const char *consequence);

/* For writing; NULL after a message, and then there is no file any more. */
FILE *new_file_stream(struct new_file *file);

/* Closes the stream and gives the file its name, or takes it away if it is not good. False after a
 * message. */
bool new_file_finish(struct new_file *file, FILE *stream, bool is_good);

/* Takes the half-made file away. */
void new_file_abandon(struct new_file *file);

#endif
