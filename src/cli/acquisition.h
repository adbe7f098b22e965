/* SPDX-License-Identifier: MIT */
/* acquisition.h - what `acquire` got, in one piece without pointers: with -P it
 * travels from the process that keeps the lock to the one that prints. */
#ifndef CLI_ACQUISITION_H
#define CLI_ACQUISITION_H

#include "database.h"
#include "take.h"

#include <stdbool.h>

#define GRANT_TEXT_SIZE (DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX)

struct acquisition {
    int result;           /* -1, or the exit status of what went wrong before the acquire */
    dblock_status status; /* of the acquire, and of the export after it */
    int signal;           /* that ended the wait; 0 none */
    bool is_held_by_parent;
    struct dblock_grant lock;   /* OK, with --json */
    struct dblock_grant holder; /* BUSY */
    struct dblock_error error;  /* below zero */
    char grant[GRANT_TEXT_SIZE];
};

/* Opens the database, takes the lock, exports it. After signals_begin(). *ret_lock is NULL unless the
 * status is DBLOCK_OK. The caller closes the database. */
void acquisition_make(const struct arguments *arguments, bool is_heartbeat,
    struct database *ret_database, dblock_lock **ret_lock, struct acquisition *ret_acquisition);

#endif
