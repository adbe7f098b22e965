/* SPDX-License-Identifier: MIT */
/* local_file.h - the database that is called "local": a SQLite file for this user
 * on this machine alone. */
#ifndef CLI_LOCAL_FILE_H
#define CLI_LOCAL_FILE_H

#include <dblock/dblock.h>

/* Where it lives; makes its folder. Malloced. Returns -1, or the exit status
 * after a message. */
int local_file_url(char **ret_url);

/* Makes the tables if the file is new. */
int local_file_prepare(const char *url, dblock_client *client);

#endif
