/* SPDX-License-Identifier: MIT */
/* sqlite.c - see minimal.h: on SQLite, in a file that is in WAL mode already. The log stays at the
 * end, as the driver leaves it in a file with no other tables, and so the table is named like them. */
#include "bench/minimal/minimal.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static const char create[] =
    "CREATE TABLE IF NOT EXISTS dblock_bench (name BLOB PRIMARY KEY, owner BLOB,"
    " expires_at REAL NOT NULL) WITHOUT ROWID";
static const char lease_take[] =
    "INSERT INTO dblock_bench VALUES ('x', 'me', julianday('now', '30 seconds'))"
    " ON CONFLICT (name) DO UPDATE SET owner = 'me', expires_at = excluded.expires_at"
    " WHERE dblock_bench.expires_at <= julianday('now')";
static const char lease_drop[] =
    "UPDATE dblock_bench SET expires_at = 0 WHERE name = 'x' AND owner = 'me'";

static int ask(sqlite3 *sqlite, const char *statement)
{
    if (sqlite3_exec(sqlite, statement, NULL, NULL, NULL) != SQLITE_OK)
        return minimal_fail(statement, sqlite3_errmsg(sqlite));
    return 0;
}

/* A row is changed, or the lock is not ours. */
static int change(sqlite3 *sqlite, const char *statement)
{
    if (ask(sqlite, statement) != 0)
        return 1;
    return sqlite3_changes(sqlite) == 1 ? 0 : minimal_fail(statement, "no row was changed");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "lease";
    const char *url = getenv("DBLOCK_URL");
    sqlite3 *sqlite = NULL;
    int result;

    if (url == NULL || strncmp(url, "sqlite:", 7) != 0)
        return minimal_fail("DBLOCK_URL", "must name a file");
    if (sqlite3_open(url + 7, &sqlite) != SQLITE_OK) {
        result = minimal_fail(url, sqlite3_errmsg(sqlite));
    } else if (strcmp(what, "init") == 0) {
        result = ask(sqlite, create);
    } else {
        (void)sqlite3_busy_timeout(sqlite, 5000);
        (void)sqlite3_db_config(sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
        result = ask(sqlite, "PRAGMA synchronous = NORMAL");
        if (result == 0)
            result = change(sqlite, lease_take);
        if (result == 0)
            result = minimal_run();
        if (result == 0)
            result = change(sqlite, lease_drop);
    }
    (void)sqlite3_close(sqlite);
    return result;
}
