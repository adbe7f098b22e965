/* SPDX-License-Identifier: MIT */
/* child_environment.h - the environment of COMMAND: ours, and what tells it about
 * the lock. */
#ifndef CLI_CHILD_ENVIRONMENT_H
#define CLI_CHILD_ENVIRONMENT_H

#include "database.h"

/* DBLOCK_NAME, DBLOCK_OWNER, DBLOCK_TOKEN (if `token` is not 0) and DBLOCK_GRANT (if
 * `grant` is not NULL) replace any such variables that dblock itself was given.
 * DBLOCK_URL is left as it was, left out if the URL was an option, or set if it is to
 * be exported. NULL if there is no memory. */
char **child_environment_new(const struct arguments *arguments, const struct database *database,
    const dblock_lock *lock, int64_t token, const char *grant);

void child_environment_free(char **environment);

#endif
