/* SPDX-License-Identifier: MIT */
/* contract_sqlite.c - the contract suite on a SQLite file in a folder of its own.
 * Each statement by hand is made over a connection that is closed after it. */
#define _DEFAULT_SOURCE /* mkdtemp, syscall */
#include "contract_database.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef DBLOCK_TEST_HAS_SQLITE

#include <linux/capability.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dblock/sqlite.h>

#include "contract_sql.h"

static char folder[512];
static char path[600];
static char file_url[620];

static void run(const char *statement)
{
    sqlite3 *connection = NULL;
    char *message = NULL;

    if (sqlite3_open(path, &connection) != SQLITE_OK ||
        sqlite3_busy_timeout(connection, 10000) != SQLITE_OK ||
        sqlite3_exec(connection, statement, NULL, NULL, &message) != SQLITE_OK) {
        (void)fprintf(stderr, "contract_sqlite: %s: %s\n", statement,
            message != NULL ? message : sqlite3_errmsg(connection));
        abort();
    }
    (void)sqlite3_close(connection);
}

static const struct contract_sql sql = { run, "x'", "'", "", "7200000000", NULL };

static const char *start(void)
{
    const char *parent = getenv("TMPDIR");

    (void)snprintf(folder, sizeof folder, "%s/dblock-contract-XXXXXX",
        parent != NULL && parent[0] != 0 ? parent : "/tmp");
    if (mkdtemp(folder) == NULL)
        return "no folder for the file can be made";
    (void)snprintf(path, sizeof path, "%s/lock.db", folder);
    (void)snprintf(file_url, sizeof file_url, "sqlite:%s", path);
    return NULL;
}

static void stop(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal", "-dblock" };
    char name[640];
    size_t i;

    for (i = 0; i < sizeof endings / sizeof endings[0]; ++i) {
        (void)snprintf(name, sizeof name, "%s%s", path, endings[i]);
        (void)unlink(name);
    }
    (void)rmdir(folder);
}

static const char *url(enum contract_url which)
{
    switch (which) {
    case CONTRACT_URL:
        return file_url;
    case CONTRACT_URL_MALFORMED:
        return "sqlite:";
    default: /* a file has no server, no passwords and no roles */
        return NULL;
    }
}

static void drop_tables(void)
{
    run("BEGIN IMMEDIATE; DROP TABLE IF EXISTS dblock_lease; DROP TABLE IF EXISTS dblock_insert;"
        "DROP TABLE IF EXISTS dblock_session; DROP TABLE IF EXISTS dblock_token;"
        "DROP TABLE IF EXISTS dblock_floor; DROP TABLE IF EXISTS dblock_meta; COMMIT");
}

/* root may write any file, unless it lays that right down. */
static void set_override(int may_override)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    const unsigned bit = 1u << CAP_DAC_OVERRIDE;

    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &header, data) != 0)
        abort();
    if (may_override)
        data[0].effective |= data[0].permitted & bit;
    else
        data[0].effective &= ~bit;
    if (syscall(SYS_capset, &header, data) != 0)
        abort();
}

static void set_read_only(int is_read_only)
{
    if (!is_read_only)
        set_override(1);
    if (chmod(path, is_read_only ? 0444 : 0644) != 0)
        abort();
    if (is_read_only)
        set_override(0);
}

static void delete_row(int strategy, const char *name)
{
    contract_sql_delete_row(&sql, strategy, name);
}

static void delete_session(int strategy, const char *name)
{
    contract_sql_delete_session(&sql, strategy, name);
}

static void plant(int strategy, const char *name, const char *like)
{
    contract_sql_plant(&sql, strategy, name, like);
}

static void damage_token(const char *name)
{
    contract_sql_damage_token(&sql, name);
}

static void age(const char *name)
{
    contract_sql_age(&sql, name);
}

const struct contract_database contract_sqlite = {
    .name = "sqlite",
    .driver = dblock_sqlite_driver,
    .start = start,
    .stop = stop,
    .url = url,
    .row_view = CONTRACT_VIEW_HOLDER,
    .advisory_view = CONTRACT_VIEW_HOLDER,
    .refuses_after_fork = 1,
    .drop_tables = drop_tables,
    .set_read_only = set_read_only,
    .delete_row = delete_row,
    .delete_session = delete_session,
    .plant = plant,
    .damage_token = damage_token,
    .age = age,
};

#else

static const char *start(void)
{
    return "built without the sqlite driver";
}

const struct contract_database contract_sqlite = { .name = "sqlite", .start = start };

#endif
