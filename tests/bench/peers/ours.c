/* SPDX-License-Identifier: MIT */
/* ours.c - pairs through dblock's public interface, on a client that stays open. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dblock/version.h>

#include "peers.h"

#ifdef DBLOCK_TEST_HAS_SQLITE
#include <dblock/sqlite.h>
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
#include <dblock/pgsql.h>
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
#include <dblock/mysql.h>
#endif

struct ours {
    dblock_client *client;
    struct dblock_options options;
    char name[64];
};

static int complain(const char *what, dblock_status status, const struct dblock_error *error)
{
    (void)fprintf(stderr, "peers: dblock: %s: %s: %s\n", what, dblock_status_name(status),
        status < 0 ? error->message : dblock_status_text(status));
    return -1;
}

static int pair(void *context)
{
    struct ours *ours = context;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status = dblock_acquire(ours->client, ours->name, &ours->options, &lock, &error);

    if (status != DBLOCK_OK)
        return complain("acquire", status, &error);
    status = dblock_release(lock, &error);
    dblock_lock_free(lock);
    return status == DBLOCK_OK ? 0 : complain("release", status, &error);
}

static int find_strategy(const char *name)
{
    int strategy = DBLOCK_LEASE;

    while (strcmp(dblock_strategy_name(strategy), name) != 0)
        if (++strategy > DBLOCK_ADVISORY)
            return 0;
    return strategy;
}

static void *open_client(const dblock_driver *driver, const char *url, const char *strategy)
{
    const struct dblock_options defaults = DBLOCK_OPTIONS_INIT;
    struct ours *ours = calloc(1, sizeof *ours);
    struct dblock_error error;
    dblock_status status;

    if (ours == NULL || url == NULL)
        return NULL;
    ours->options = defaults;
    ours->options.strategy = find_strategy(strategy);
    (void)snprintf(
        ours->name, sizeof ours->name, "bench-peers-%ld-%s", (long)getpid(), strategy);
    status = dblock_open(driver, url, NULL, &ours->client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(ours->client, &error);
    if (status == DBLOCK_OK)
        return ours;
    (void)complain("cannot open a client", status, &error);
    return NULL;
}

static void about(void *context, char *ret_text, size_t size)
{
    (void)context;
    (void)snprintf(ret_text, size, "dblock %s", DBLOCK_VERSION_TEXT);
}

#ifdef DBLOCK_TEST_HAS_SQLITE
static void *open_sqlite(const char *strategy)
{
    char url[600];

    (void)snprintf(url, sizeof url, "sqlite:%s/peers.db", getenv("TMPDIR"));
    return open_client(dblock_sqlite_driver(), url, strategy);
}

const struct side side_our_sqlite = { open_sqlite, pair, about };
#endif

#ifdef DBLOCK_TEST_HAS_PGSQL
static void *open_pgsql(const char *strategy)
{
    return open_client(dblock_pgsql_driver(), getenv("DBLOCK_TEST_PGSQL_TCP"), strategy);
}

const struct side side_our_pgsql = { open_pgsql, pair, about };
#endif

#ifdef DBLOCK_TEST_HAS_MYSQL
static void *open_mysql(const char *strategy)
{
    return open_client(dblock_mysql_driver(), getenv("DBLOCK_TEST_MYSQL"), strategy);
}

const struct side side_our_mysql = { open_mysql, pair, about };
#endif
