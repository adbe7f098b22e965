/* SPDX-License-Identifier: MIT */
/* application.c - see application.h. */
#include "application.h"

#include <stdio.h>

#ifdef DBLOCK_TEST_HAS_PGSQL
extern const struct application application_pgsql;
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
extern const struct application application_mysql, application_cluster;
#endif
#ifdef DBLOCK_TEST_HAS_SQLITE
extern const struct application application_sqlite;
#endif

const struct application *const applications[] = {
#ifdef DBLOCK_TEST_HAS_PGSQL
    &application_pgsql,
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    &application_mysql, &application_cluster,
#endif
#ifdef DBLOCK_TEST_HAS_SQLITE
    &application_sqlite,
#endif
    NULL
};

int application_start(const struct application *application)
{
    const struct contract_database *database = application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    const char *why_not = database->start();
    dblock_status status;

    if (why_not != NULL) {
        (void)printf("skip: %s: %s\n", database->name, why_not);
        return 77;
    }
    if (database->schema != NULL)
        config.schema = database->schema();
    status = dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    dblock_close(client);
    if (status != DBLOCK_OK)
        (void)printf("not ok 1 - %s: %s\n", database->name, error.message);
    return status == DBLOCK_OK ? 0 : 1;
}

void application_fill(
    char *sql, size_t size, const char *format, const char *name, int64_t token)
{
    size_t length = 0;

    for (; *format != 0 && length + 1 < size; ++format)
        if (*format == '%')
            length += (size_t)snprintf(sql + length, size - length, "%s", name);
        else if (*format == '#')
            length += (size_t)snprintf(sql + length, size - length, "%lld", (long long)token);
        else
            sql[length++] = *format;
    sql[length < size ? length : size - 1] = 0;
}

int application_set_account(const struct application *application, void *connection)
{
    return application->run(connection, "CREATE TABLE IF NOT EXISTS account (id INTEGER NOT NULL"
                                        " PRIMARY KEY, balance BIGINT NOT NULL)") != 0 ||
        application->run(connection, "DELETE FROM account") != 0 ||
        application->run(connection, "INSERT INTO account (id, balance) VALUES (1, 100)") != 0;
}

int application_open_pair(const struct application *application, dblock_client *clients[2],
    void *connections[2], struct dblock_error *reterr)
{
    const struct contract_database *database = application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    int i;

    if (database->schema != NULL)
        config.schema = database->schema();
    for (i = 0; i < 2; ++i) {
        if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &clients[i],
                reterr) != DBLOCK_OK)
            return -1;
        connections[i] = application->open();
    }
    return application_set_account(application, connections[0]);
}

void application_close_connections(const struct application *application, void *const connections[2])
{
    int i;

    for (i = 0; i < 2; ++i)
        if (connections[i] != NULL)
            application->close(connections[i]);
}
