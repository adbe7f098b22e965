/* SPDX-License-Identifier: MIT */
/* pgsql_error.c - SQLSTATE -> status as a table, and the messages. Texts are
 * copied here, at the point of failure, as libpq overwrites them. */
#include "pgsql_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct mapping {
    const char *sqlstate; /* a whole one, or a class of two characters */
    dblock_status status;
    int is_transient;
    enum { GOES_ON, IS_LEFT, HAS_ENDED } session;
};

/* IS_LEFT: a new session may do better, as it may be one of another server or see other columns;
 * but what this one holds is held. */

#define HINT_LOCKS \
    "raise max_locks_per_transaction of the server, whose table of locks is full; strategy lease" \
    " keeps no place in it"

/* The first that fits. */
static const struct mapping mappings[] = {
    { "40001", PGSQL_CONFLICT, 1, GOES_ON },     /* serialization_failure */
    { "40P01", PGSQL_CONFLICT, 1, GOES_ON },     /* deadlock_detected */
    { "55P03", PGSQL_CONFLICT, 1, GOES_ON },     /* lock_not_available: lock_timeout */
    { "42P01", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* undefined_table */
    { "42703", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* undefined_column */
    { "42883", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* undefined_function: columns of another type */
    { "42804", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* datatype_mismatch */
    { "42P10", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* no unique index for ON CONFLICT */
    { "42809", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* wrong_object_type */
    { "3F000", DBLOCK_E_SCHEMA, 0, GOES_ON },    /* invalid_schema_name */
    { "42501", DBLOCK_E_PERMISSION, 0, GOES_ON }, /* insufficient_privilege */
    { "25006", DBLOCK_E_READ_ONLY, 0, IS_LEFT }, /* read_only_sql_transaction: the wrong server */
    { "28", DBLOCK_E_LOGIN, 0, HAS_ENDED },      /* invalid authorization */
    { "3D000", DBLOCK_E_LOGIN, 0, HAS_ENDED },   /* no such database */
    { "08", DBLOCK_E_CONNECTION, 1, HAS_ENDED }, /* connection exceptions, also a pooler's */
    { "57P", DBLOCK_E_CONNECTION, 1, HAS_ENDED }, /* shutdown, crash, terminated, starting up */
    { "25P03", DBLOCK_E_CONNECTION, 1, HAS_ENDED }, /* idle_in_transaction_session_timeout */
    { "25P04", DBLOCK_E_CONNECTION, 1, HAS_ENDED }, /* transaction_timeout */
    { "26000", DBLOCK_E_CONNECTION, 1, HAS_ENDED }, /* prepared statement gone: DISCARD by a pooler */
    { "0A000", DBLOCK_E_SCHEMA, 0, IS_LEFT },    /* cached plan must not change: other columns */
    { "53300", DBLOCK_E_CONNECTION, 1, GOES_ON }, /* too_many_connections */
    { "53", DBLOCK_E_DATABASE, 1, GOES_ON },     /* out of memory, disk, locks */
    { "57014", DBLOCK_E_DATABASE, 1, GOES_ON },  /* query_canceled: statement_timeout */
    { "55006", DBLOCK_E_DATABASE, 1, GOES_ON },  /* object_in_use */
};

static const struct mapping *find_mapping(const char *sqlstate)
{
    size_t i;

    for (i = 0; i < sizeof mappings / sizeof mappings[0]; ++i)
        if (strncmp(sqlstate, mappings[i].sqlstate, strlen(mappings[i].sqlstate)) == 0)
            return &mappings[i];
    return NULL;
}

dblock_status pgsql_status_of(const char *sqlstate)
{
    const struct mapping *mapping = find_mapping(sqlstate);

    return mapping != NULL ? mapping->status : DBLOCK_E_DATABASE;
}

int pgsql_is_end_of_session(const struct dblock_connection *connection, const char *sqlstate)
{
    const struct mapping *mapping = find_mapping(sqlstate);
    int holds = connection->is_holding || connection->n_ids > 0;

    return mapping != NULL &&
        (mapping->session == HAS_ENDED || (mapping->session == IS_LEFT && !holds));
}

static const char *find_hint(const struct dblock_connection *connection, dblock_status status,
    char *buffer, size_t size)
{
    const char *schema = connection->target->schema_quoted;
    const char *user = PQuser(connection->pg);

    switch (status) {
    case DBLOCK_E_SCHEMA:
        return PGSQL_HINT_INIT;
    case DBLOCK_E_PERMISSION:
        (void)snprintf(buffer, size,
            "GRANT USAGE ON SCHEMA %s TO \"%s\"; GRANT SELECT, INSERT, UPDATE, DELETE ON"
            " dblock_session, dblock_lease, dblock_insert, dblock_row, dblock_token TO \"%s\";"
            " GRANT SELECT ON dblock_meta TO \"%s\"; GRANT USAGE, SELECT, UPDATE ON SEQUENCE"
            " dblock_token_base, dblock_token_count TO \"%s\" (tables of schema %s)",
            schema, user, user, user, user, schema);
        return buffer;
    case DBLOCK_E_READ_ONLY:
        return "connect to the primary, as a role whose transactions may write";
    default:
        return NULL;
    }
}

static void set_message(struct dblock_error *reterr, dblock_status status, const char *hint,
    const char *action, const char *name, const char *reason)
{
    size_t length = strcspn(reason, "\n");

    if (name != NULL)
        (void)dblock_error_set(
            reterr, status, hint, "cannot %s \"%s\": %.*s", action, name, (int)length, reason);
    else
        (void)dblock_error_set(
            reterr, status, hint, "cannot %s: %.*s", action, (int)length, reason);
}

/* Its memory may be short in other places as well; then it has no advice. */
static int is_about_locks(const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    return sqlstate != NULL && strcmp(sqlstate, "53200") == 0 &&
        PQresultErrorField(result, PG_DIAG_MESSAGE_HINT) != NULL;
}

dblock_status pgsql_server_error(const struct dblock_connection *connection, const char *action,
    const char *name, const PGresult *result, struct dblock_error *reterr)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *reason = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const struct mapping *mapping = find_mapping(sqlstate != NULL ? sqlstate : "");
    dblock_status status = mapping != NULL ? mapping->status : DBLOCK_E_DATABASE;
    char hint[512];

    if (status == PGSQL_CONFLICT)
        return status;
    set_message(reterr, status,
        is_about_locks(result) ? HINT_LOCKS : find_hint(connection, status, hint, sizeof hint),
        action, name, reason != NULL ? reason : PQresultErrorMessage(result));
    dblock_error_native(reterr, 0, sqlstate, mapping != NULL && mapping->is_transient);
    return status;
}

dblock_status pgsql_rights_error(const struct dblock_connection *connection, const char *action,
    struct dblock_error *reterr)
{
    char hint[512];

    set_message(reterr, DBLOCK_E_PERMISSION,
        find_hint(connection, DBLOCK_E_PERMISSION, hint, sizeof hint), action, NULL,
        "the role lacks a right on dblock's tables or sequences");
    dblock_error_native(reterr, 0, "42501", 0);
    return DBLOCK_E_PERMISSION;
}

dblock_status pgsql_connection_error(const struct dblock_connection *connection,
    const char *action, const char *name, dblock_status status, const char *reason,
    struct dblock_error *reterr)
{
    if (reason == NULL)
        reason = PQerrorMessage(connection->pg);
    set_message(reterr, status, NULL, action, name,
        reason[0] != 0 ? reason : "the connection to the server was lost");
    return status;
}

/* In a verbose message the SQLSTATE stands behind the severity, which may be in any language:
 * "...: FATAL:  28P01: password authentication failed ...". Returns the text behind it. */
static const char *find_sqlstate(const char *message, char sqlstate[6])
{
    const char *place = message;
    const char *found = NULL;

    while ((place = strstr(place, ":  ")) != NULL) {
        place += 3;
        if (strspn(place, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && place[5] == ':' &&
            place[6] == ' ') {
            memcpy(sqlstate, place, 5);
            sqlstate[5] = 0;
            found = place + 7;
        }
    }
    return found;
}

/* Only the text says so: no certificate, the wrong one, or one of the sides has no TLS. */
static int is_about_tls(const char *message)
{
    return strstr(message, "SSL") != NULL || strstr(message, "certificate") != NULL;
}

/* libpq tells one line for each address that it tried, and below some an indented question. What
 * matters is often in the last: all are told, in one line of ours. */
static void join_lines(char *target, size_t size, const char *lines)
{
    size_t used = 0;

    target[0] = 0;
    while (*lines != 0) {
        size_t length = strcspn(lines, "\n");

        if (length > 0 && *lines != '\t' && used < size)
            used += (size_t)snprintf(target + used, size - used, "%s%.*s", used > 0 ? "; " : "",
                (int)length, lines);
        lines += length + (lines[length] != 0);
    }
}

/* Only the text says so, in the words of the C library: this process has no descriptor left. */
static int is_about_descriptors(const char *message)
{
    static const int numbers[] = { EMFILE, ENFILE };
    char text[100];
    size_t i;

    for (i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
        if (strerror_r(numbers[i], text, sizeof text) == 0 && strstr(message, text) != NULL)
            return 1;
    return 0;
}

dblock_status pgsql_connect_error(PGconn *pg, struct dblock_error *reterr)
{
    const char *message = PQerrorMessage(pg);
    char sqlstate[6] = "";
    const char *reason = find_sqlstate(message, sqlstate);
    const struct mapping *mapping = find_mapping(sqlstate);
    dblock_status status = mapping != NULL ? mapping->status : DBLOCK_E_CONNECTION;
    char line[sizeof reterr->message];

    if (reason == NULL) {
        join_lines(line, sizeof line, message);
        reason = line;
    }
    if (PQconnectionNeedsPassword(pg) || (sqlstate[0] == 0 && is_about_tls(message)) ||
        status == DBLOCK_E_PERMISSION)
        status = DBLOCK_E_LOGIN;
    else if (sqlstate[0] == 0 && is_about_descriptors(message))
        status = DBLOCK_E_SYSTEM;
    else if (status != DBLOCK_E_LOGIN)
        status = DBLOCK_E_CONNECTION;
    set_message(reterr, status,
        status == DBLOCK_E_SYSTEM ? "raise the limit of open files (ulimit -n), or close some"
            : strcmp(sqlstate, "3D000") == 0 ? "CREATE DATABASE, or name another one in the URL"
            : strcmp(sqlstate, "53200") == 0 && strstr(message, "max_locks") != NULL ? HINT_LOCKS
            : strcmp(sqlstate, "53300") == 0
            ? "raise max_connections of the server; locks of strategy lease share a few connections"
            : status == DBLOCK_E_LOGIN ? "check user, password, database, sslmode and sslrootcert of the URL"
            : sqlstate[0] == 0 ? "check host and port of the URL, and that the server runs"
                               : NULL,
        "connect to PostgreSQL", NULL, reason[0] != 0 ? reason : "no answer");
    dblock_error_native(
        reterr, 0, sqlstate, status == DBLOCK_E_CONNECTION || status == DBLOCK_E_SYSTEM);
    return status;
}
