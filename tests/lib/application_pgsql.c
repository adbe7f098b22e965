/* SPDX-License-Identifier: MIT */
/* application_pgsql.c - the application's own connection to PostgreSQL. */
#include "application.h"

#ifdef DBLOCK_TEST_HAS_PGSQL

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include <dblock/pgsql.h>

extern const struct application application_pgsql;

static int run(void *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : -1;
}

static PGconn *try_to_open(void)
{
    PGconn *connection = PQconnectdb(contract_pgsql.url(CONTRACT_URL));
    char sql[128];

    (void)snprintf(sql, sizeof sql,
        "SET client_min_messages = warning; SET search_path = %s", contract_pgsql.schema());
    if (PQstatus(connection) == CONNECTION_OK && run(connection, sql) == 0)
        return connection;
    (void)fprintf(stderr, "application_pgsql: %s", PQerrorMessage(connection));
    PQfinish(connection);
    return NULL;
}

static void *open_connection(void)
{
    PGconn *connection = NULL;
    int i;

    for (i = 0; i < APPLICATION_CONNECTS && connection == NULL; ++i)
        connection = try_to_open();
    if (connection == NULL)
        abort();
    return connection;
}

static void close_connection(void *connection)
{
    PQfinish(connection);
}

static int64_t number(void *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    int64_t value = -1;

    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return value;
}

static dblock_status guard(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_pgsql_guard(lock, connection, error);
}

static dblock_status release_in(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_pgsql_release_in(lock, connection, error);
}

static dblock_status watch(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_pgsql_watch(lock, connection, error);
}

static dblock_status acquire_in(dblock_client *client, void *connection, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *error)
{
    return dblock_pgsql_acquire_in(client, connection, name, options, ret_lock, error);
}

static dblock_status open_on(void *connection, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *error)
{
    return dblock_pgsql_open_on(connection, config, ret_client, error);
}

const struct application application_pgsql = { .database = &contract_pgsql,
    .begin = "BEGIN ISOLATION LEVEL READ COMMITTED",
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ",
    .has_function = 1,
    .joins = 1u << DBLOCK_ROW | 1u << DBLOCK_ADVISORY,
    .savepoint_frees = 1,
    .open = open_connection,
    .close = close_connection,
    .run = run,
    .number = number,
    .guard = guard,
    .release_in = release_in,
    .watch = watch,
    .unwatch = dblock_pgsql_unwatch,
    .pause = "SELECT 0 FROM pg_sleep(# / 1000.0)",
    .acquire_in = acquire_in,
    .open_on = open_on };

#endif
