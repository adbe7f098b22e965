/* SPDX-License-Identifier: MIT */
/* sqlite_grant.h - rows of lease and insert as grants, and the judgement whether
 * one is in force. */
#ifndef DBLK_SQLITE_GRANT_H
#define DBLK_SQLITE_GRANT_H

#include "sqlite_connection.h"

enum { /* columns of a grant, from the first one on */
    GRANT_NAME,
    GRANT_SESSION,
    GRANT_OWNER,
    GRANT_TOKEN,
    GRANT_SINCE,
    GRANT_EXPIRES,
    GRANT_LABEL,
    GRANT_HOST,
    GRANT_PID,
    GRANT_SESSION_EXPIRES
};

enum {
    GRANT_FREE,    /* nobody's: given back, its own time over, or its session is gone */
    GRANT_EXPIRED, /* its session is there and has expired: to be ended before it is taken */
    GRANT_HELD
};

/* By the clock `now_us`; of HELD `*ret_end_us` is when it ends if nothing more happens. */
int sqlite_grant_judge(
    sqlite3_stmt *statement, int first_column, int64_t now_us, int64_t *ret_end_us);

/* Of what is not in force only name and token. */
void sqlite_grant_fill(sqlite3_stmt *statement, int first_column, int strategy, int64_t now_us,
    struct dblock_grant *grant);
/* The owner too, as the row names it, in force or not. */
void sqlite_grant_fill_owner(sqlite3_stmt *statement, int first_column, struct dblock_grant *grant);

#endif
