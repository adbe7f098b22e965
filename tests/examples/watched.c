/* SPDX-License-Identifier: MIT */
/* watched.c - a statement that would run for hours ends when its lock is lost, instead of
 * working on beside the next holder.
 *
 *     watched sqlite:/tmp/app.db        (cc watched.c -ldblock -ldblock-sqlite -lsqlite3) */
#include <dblock/sqlite.h>
#include <sqlite3.h>

#include <stdio.h>
#include <string.h>

#define HOURS                                                                                      \
    "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000000000000)"     \
    " SELECT SUM(i) FROM c"

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:watched.db";
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status = DBLOCK_E_DATABASE;
    sqlite3 *database = NULL;
    int code = SQLITE_OK;

    options.ttl_ms = 1000;
    if (sqlite3_open(url + strlen("sqlite:"), &database) == SQLITE_OK)
        status = dblock_open(dblock_sqlite_driver(), url, NULL, &client, &error);
    else
        (void)snprintf(error.message, sizeof error.message, "%s", sqlite3_errmsg(database));
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, "report", &options, &lock, &error);
    if (status == DBLOCK_OK)
        status = dblock_sqlite_watch(lock, database, sqlite3_sourceid(), &error);
    /* somebody takes it away; the next heartbeat finds that out, while the statement runs */
    if (status == DBLOCK_OK)
        status = dblock_break(client, "report", DBLOCK_LEASE, 0, &error);
    if (status == DBLOCK_OK) {
        code = sqlite3_exec(database, HOURS, NULL, NULL, NULL);
        dblock_sqlite_unwatch(lock); /* from here on nothing is interrupted */
        printf("%s, the lock is %s\n", sqlite3_errmsg(database),
            dblock_lock_is_held(lock) ? "held" : "lost");
    } else {
        fprintf(stderr, "watched: %s\n", status < 0 ? error.message : dblock_status_text(status));
    }
    dblock_lock_free(lock); /* before the connection is closed: it unwatches too */
    dblock_close(client);
    (void)sqlite3_close(database);
    return code != SQLITE_INTERRUPT;
}
