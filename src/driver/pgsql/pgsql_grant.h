/* SPDX-License-Identifier: MIT */
/* pgsql_grant.h - rows of the server as struct dblock_grant. */
#ifndef DBLK_PGSQL_GRANT_H
#define DBLK_PGSQL_GRANT_H

#include "pgsql_value.h"

/* A record of a whole lease or insert row and its session's expires_at. */
void pgsql_grant_row(struct dblock_grant *grant, int32_t strategy, const PGresult *result, int row,
    int column, int64_t now_us, int is_in_force);
/* When that grant ends, as the row says: microseconds since 1970; 0: its session is gone. */
int64_t pgsql_grant_expires(const PGresult *result, int row, int column);

/* Four columns about a session of the server, from `column` on: server_pid, application_name,
 * since, token. `name` NULL: leave what is there. */
void pgsql_grant_holder(struct dblock_grant *grant, int32_t strategy, const char *name,
    const PGresult *result, int row, int column, int64_t now_us);

/* From now until then, 0 if that is past. */
uint64_t pgsql_remaining(int64_t then_us, int64_t now_us);

#endif
