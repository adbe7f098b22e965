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

/* The columns of the tables, in the order of 0001_create.sql, and one more. */
enum { NAME, SESSION, OWNER, TOKEN, SINCE, EXPIRES, LABEL, HOST, PID, N_COLUMNS };
enum { SESSION_EXPIRES = N_COLUMNS, N_FIELDS };

static void read_fields(
    const PGresult *result, int row, int column, struct pgsql_field fields[N_FIELDS])
{
    struct pgsql_field record = pgsql_get_field(result, row, column);
    struct pgsql_field parts[2];

    pgsql_field_split(&record, parts, 2);
    pgsql_field_split(&parts[0], fields, N_COLUMNS);
    fields[SESSION_EXPIRES] = parts[1];
}

static int64_t find_end(const struct pgsql_field *fields)
{
    return pgsql_field_time(&fields[fields[SESSION].bytes != NULL ? SESSION_EXPIRES : EXPIRES]);
}

int64_t pgsql_grant_expires(const PGresult *result, int row, int column)
{
    struct pgsql_field fields[N_FIELDS];

    read_fields(result, row, column, fields);
    return find_end(fields);
}

void pgsql_grant_row(struct dblock_grant *grant, int32_t strategy, const PGresult *result, int row,
    int column, int64_t now_us, int is_in_force)
{
    struct pgsql_field fields[N_FIELDS];

    clear(grant, strategy, now_us);
    read_fields(result, row, column, fields);
    pgsql_field_text(&fields[NAME], grant->name, sizeof grant->name);
    grant->token = pgsql_field_int64(&fields[TOKEN]);
    grant->since_us = pgsql_field_time(&fields[SINCE]);
    if (!is_in_force)
        return;
    grant->is_heartbeat = fields[SESSION].bytes != NULL;
    pgsql_field_id_text(&fields[OWNER], grant->owner);
    grant->expires_us = find_end(fields);
    grant->remaining_ms = pgsql_remaining(grant->expires_us, now_us) / 1000;
    pgsql_field_text(&fields[LABEL], grant->label, sizeof grant->label);
    pgsql_field_text(&fields[HOST], grant->host, sizeof grant->host);
    grant->pid = pgsql_field_int64(&fields[PID]);
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
