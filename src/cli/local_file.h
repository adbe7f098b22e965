/* SPDX-License-Identifier: MIT */
/* local_file.h - the database that is called "local": a SQLite file for this user
 * on this machine alone. */
#ifndef CLI_LOCAL_FILE_H
#define CLI_LOCAL_FILE_H

#include <dblock/dblock.h>

#include <stdbool.h>

/* Where it lives. Malloced. This and the others return -1, or the exit status after a message. */
int local_file_url(char **ret_url);

bool local_file_is_missing(const char *url);

/* Where the file is missing: its folders (`url` is changed and restored), then the file itself.
 * `consequence` is added to a message; NULL. */
int local_file_make_folders(char *url, const char *consequence);
int local_file_make_tables(dblock_client *client, const char *consequence);

#endif
