/* SPDX-License-Identifier: MIT */
/* borrowed.c - a program with one connection and no thread beside it: the lock goes over the
 * program's own connection, and comes back with the transaction that it protects.
 *     borrowed sqlite:/tmp/app.db      (cc borrowed.c -ldblock -ldblock-sqlite -lsqlite3) */
#include <dblock/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int run(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    fprintf(stderr, "borrowed: %s\n", sqlite3_errmsg(database));
    return 1;
}

/* Nothing renews the lock: it is short, or is extended between two pieces of the work. */
static dblock_status count_once(dblock_client *client, sqlite3 *database, struct dblock_error *error)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    dblock_status status;

    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    options.ttl_ms = 5000;
    options.wait_ms = 1000;
    status = dblock_acquire(client, "counter", &options, &lock, error);
    if (status != DBLOCK_OK)
        return status;
    (void)run(database, "BEGIN IMMEDIATE; UPDATE counter SET value = value + 1");
    status = dblock_sqlite_release_in(lock, database, sqlite3_sourceid(), error);
    if (run(database, status == DBLOCK_OK ? "COMMIT" : "ROLLBACK"))
        status = DBLOCK_LOST;
    dblock_lock_free(lock); /* after the end of the transaction, whichever it was */
    return status;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:borrowed.db";
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_status status = DBLOCK_E_DATABASE;
    sqlite3 *database = NULL;

    error.message[0] = 0;
    if (sqlite3_open(url + strlen("sqlite:"), &database) == SQLITE_OK &&
        run(database, "CREATE TABLE IF NOT EXISTS counter (value);"
            " INSERT INTO counter VALUES (0)") == 0)
        status = dblock_sqlite_open_on(database, sqlite3_sourceid(), NULL, &client, &error);
    if (status == DBLOCK_OK)
        status = count_once(client, database, &error);
    if (status != DBLOCK_OK)
        printf("not now: %s\n", status < 0 ? error.message : dblock_status_text(status));
    dblock_close(client); /* before the connection, which it leaves as it was */
    (void)sqlite3_close(database);
    return status != DBLOCK_OK;
}
