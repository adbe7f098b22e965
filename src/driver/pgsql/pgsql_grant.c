/* SPDX-License-Identifier: MIT */
/* pgsql_grant.c - see pgsql_grant.h. */
#include "pgsql_grant.h"

#include <stdlib.h>

uint64_t pgsql_remaining(int64_t then_us, int64_t now_us)
{
    return then_us > now_us ? (uint64_t)then_us - (uint64_t)now_us : 0;
}

static void clear(struct dblock_grant *grant, int32_t strategy, int64_t now_us)
{
    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    grant->strategy = strategy;
    grant->mode = DBLOCK_EXCLUSIVE;
    grant->n_waiters = UINT32_MAX;
    grant->now_us = now_us;
}

int64_t pgsql_grant_expires(const PGresult *result, int row, int column)
{
    int is_heartbeat = !PQgetisnull(result, row, column + 1);

    return pgsql_get_time(result, row, column + (is_heartbeat ? 9 : 5));
}

void pgsql_grant_row(struct dblock_grant *grant, int32_t strategy, const PGresult *result, int row,
    int column, int64_t now_us, int is_in_force)
{
    clear(grant, strategy, now_us);
    pgsql_get_text(result, row, column, grant->name, sizeof grant->name);
    grant->token = pgsql_get_int64(result, row, column + 3);
    grant->since_us = pgsql_get_time(result, row, column + 4);
    if (!is_in_force)
        return;
    grant->is_heartbeat = !PQgetisnull(result, row, column + 1);
    pgsql_get_id_text(result, row, column + 2, grant->owner);
    grant->expires_us = pgsql_grant_expires(result, row, column);
    grant->remaining_ms = pgsql_remaining(grant->expires_us, now_us) / 1000;
    pgsql_get_text(result, row, column + 6, grant->label, sizeof grant->label);
    pgsql_get_text(result, row, column + 7, grant->host, sizeof grant->host);
    grant->pid = pgsql_get_int64(result, row, column + 8);
}

/* "dblock HOST PID ROLE" (name_application() in pgsql_connection.c). */
static void read_application(struct dblock_grant *grant, const char *application)
{
    static const char prefix[] = "dblock ";
    size_t size;

    if (strncmp(application, prefix, sizeof prefix - 1) != 0) {
        dblock_text_copy(grant->label, sizeof grant->label, application);
        return;
    }
    application += sizeof prefix - 1;
    size = strcspn(application, " ");
    if (size >= sizeof grant->host)
        size = sizeof grant->host - 1;
    memcpy(grant->host, application, size);
    grant->host[size] = 0;
    if (application[size] == ' ')
        grant->pid = strtoll(application + size, NULL, 10);
}

void pgsql_grant_holder(struct dblock_grant *grant, int32_t strategy, const char *name,
    const PGresult *result, int row, int column, int64_t now_us)
{
    char application[256];

    clear(grant, strategy, now_us);
    if (name != NULL)
        dblock_text_copy(grant->name, sizeof grant->name, name);
    if (PQgetisnull(result, row, column))
        return;
    grant->remaining_ms = DBLOCK_FOREVER;
    grant->server_pid = pgsql_get_int32(result, row, column);
    pgsql_get_text(result, row, column + 1, application, sizeof application);
    read_application(grant, application);
    if (strategy == DBLOCK_ROW)
        grant->since_us = pgsql_get_time(result, row, column + 2);
    grant->token = pgsql_get_int64(result, row, column + 3);
}
