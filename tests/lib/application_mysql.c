/* SPDX-License-Identifier: MIT */
/* application_mysql.c - the application's own connection to MySQL or MariaDB. */
#include "application.h"

#ifdef DBLOCK_TEST_HAS_MYSQL

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/mysql.h>

#include "core/lock.h"
#include "driver/mysql/mysql_target.h"

extern const struct application application_mysql, application_cluster;

static int run(void *connection, const char *sql)
{
    int result = 0;
    const char *next;
    char statement[1000];

    for (next = strchr(sql, ';'); next != NULL && result == 0; next = strchr(sql, ';')) {
        (void)snprintf(statement, sizeof statement, "%.*s", (int)(next - sql), sql);
        result = mysql_query(connection, statement);
        sql = next + 1;
    }
    if (result == 0)
        result = mysql_query(connection, sql);
    if (result == 0)
        mysql_free_result(mysql_store_result(connection));
    return result;
}

static MYSQL *try_to_open(void)
{
    char user[64], word[64], host[64], database[64];
    MYSQL *connection = mysql_init(NULL);
    unsigned port;

    if (sscanf(contract_mysql.url(CONTRACT_URL), "mysql://%63[^:]:%63[^@]@%63[^:]:%u/%63s", user,
            word, host, &port, database) == 5 &&
        mysql_real_connect(connection, host, user, word, database, port, NULL, 0) != NULL)
        return connection;
    (void)fprintf(stderr, "application_mysql: %s\n", mysql_error(connection));
    mysql_close(connection);
    return NULL;
}

static void *open_connection(void)
{
    MYSQL *connection = NULL;
    int i;

    for (i = 0; i < APPLICATION_CONNECTS && connection == NULL; ++i)
        connection = try_to_open();
    if (connection == NULL)
        abort();
    return connection;
}

static void close_connection(void *connection)
{
    mysql_close(connection);
}

static int64_t number(void *connection, const char *sql)
{
    int64_t value = -1;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    if (mysql_query(connection, sql) != 0 || (rows = mysql_store_result(connection)) == NULL)
        return -1;
    row = mysql_fetch_row(rows);
    if (row != NULL && row[0] != NULL)
        value = strtoll(row[0], NULL, 10);
    mysql_free_result(rows);
    return value;
}

static dblock_status acquire_in(dblock_client *client, void *connection, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *error)
{
    return dblock_mysql_acquire_in(client, connection, name, options, ret_lock, error);
}

static dblock_status guard(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_mysql_guard(lock, connection, error);
}

static dblock_status release_in(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_mysql_release_in(lock, connection, error);
}

static dblock_status watch(dblock_lock *lock, void *connection, struct dblock_error *error)
{
    return dblock_mysql_watch(lock, connection, error);
}

static dblock_status open_on(void *connection, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *error)
{
    return dblock_mysql_open_on(connection, config, ret_client, error);
}

const struct application application_mysql = { .database = &contract_mysql,
    .begin = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;BEGIN",
    .begin_snapshot = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;BEGIN",
    .plain_guard = "SELECT 1 FROM dblock_lease AS l WHERE l.name = '%' AND l.token = #"
                   " AND l.owner IS NOT NULL AND IF(l.session IS NULL, l.expires_at >"
                   " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),"
                   " EXISTS (SELECT 1 FROM dblock_session AS s WHERE s.id = l.session AND"
                   " s.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))"
                   " LOCK IN SHARE MODE",
    .plain_row_guard = "SELECT 1 FROM dblock_token WHERE strategy = 3 AND name = '%'"
                       " AND token = # LOCK IN SHARE MODE",
    .joins = 1u << DBLOCK_ROW,
    .open = open_connection,
    .close = close_connection,
    .run = run,
    .number = number,
    .guard = guard,
    .open_on = open_on,
    .acquire_in = acquire_in,
    .release_in = release_in,
    .watch = watch,
    .unwatch = dblock_mysql_unwatch,
    .pause = "SELECT SLEEP(# / 1000)" };

/* As where several nodes are written to: what the guard does there works on one as well. */
static dblock_status guard_in_cluster(
    dblock_lock *lock, void *connection, struct dblock_error *error)
{
    if (lock != NULL)
        atomic_store(&lock->client->target->is_multi_writer, 1);
    return dblock_mysql_guard(lock, connection, error);
}

const struct application application_cluster = { .database = &contract_mysql,
    .title = "as in a cluster",
    .begin = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;BEGIN",
    .begin_snapshot = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;BEGIN",
    .plain_guard = "UPDATE dblock_lease SET guards = guards + 1 WHERE name = '%' AND token = #"
                   " AND owner IS NOT NULL AND (session IS NOT NULL OR expires_at >"
                   " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))",
    .is_guard_a_change = 1,
    .open = open_connection,
    .close = close_connection,
    .run = run,
    .number = number,
    .guard = guard_in_cluster,
    .release_in = release_in,
    .watch = watch,
    .unwatch = dblock_mysql_unwatch,
    .pause = "SELECT SLEEP(# / 1000)" };

#endif
