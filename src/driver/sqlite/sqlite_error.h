/* SPDX-License-Identifier: MIT */
/* sqlite_error.h - result codes of SQLite as our statuses. */
#ifndef DBLK_SQLITE_ERROR_H
#define DBLK_SQLITE_ERROR_H

#include "sqlite_connection.h"

/* Fills `*reterr` from the handle's last error, `code` being its extended result code; marks the
 * connection broken where it is. Returns SQLITE_STEP_AGAIN (or DBLOCK_CANCELLED) for a lock that
 * was not to be had; then `*reterr` says so, unless the step did not wait for it. */
dblock_status sqlite_error(
    struct dblock_connection *connection, int code, struct dblock_error *reterr);

/* An errno of a call on `path`. */
dblock_status sqlite_system_error(
    int number, const char *attempt, const char *path, struct dblock_error *reterr);

/* The table by itself, for tests: the status of a code; the text decides for SQLITE_ERROR. */
dblock_status sqlite_status_of(int code, const char *text);

#define SQLITE_HINT_INIT "run: dblock init"

#endif
