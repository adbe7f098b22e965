/* SPDX-License-Identifier: MIT */
/* joined.c - one order, two requests: each locks the order in its own transaction, and COMMIT
 * is what lets the next one in. Nobody has to remember to unlock.
 *     joined sqlite:/tmp/app.db        (cc joined.c -ldblock -ldblock-sqlite -lsqlite3) */
#include <dblock/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* In a transaction: 0 if the order is locked, and as long as that is open. */
static int lock_order(dblock_client *client, sqlite3 *database)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_status status;

    options.strategy = DBLOCK_ROW;
    options.wait_ms = 200;
    status = dblock_sqlite_acquire_in(
        client, database, sqlite3_sourceid(), "order-4711", &options, NULL, &error);
    if (status != DBLOCK_OK)
        printf("not now: %s\n", status < 0 ? error.message : dblock_status_text(status));
    return status != DBLOCK_OK;
}

static int run(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    fprintf(stderr, "joined: %s\n", sqlite3_errmsg(database));
    return 1;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:joined.db";
    struct dblock_error error;
    dblock_client *client = NULL;
    sqlite3 *first = NULL, *second = NULL;
    int result = 1;

    if (sqlite3_open(url + strlen("sqlite:"), &first) != SQLITE_OK ||
        sqlite3_open(url + strlen("sqlite:"), &second) != SQLITE_OK)
        fprintf(stderr, "joined: cannot open %s\n", url);
    else if (dblock_open(dblock_sqlite_driver(), url, NULL, &client, &error) != DBLOCK_OK)
        fprintf(stderr, "joined: %s\n", error.message);
    else if (run(first, "CREATE TABLE IF NOT EXISTS orders (state); BEGIN") == 0 &&
        lock_order(client, first) == 0 && /* the first request */
        run(first, "INSERT INTO orders VALUES ('paid')") == 0 &&
        run(second, "BEGIN") == 0 && lock_order(client, second) != 0 && /* the second is kept out */
        run(first, "COMMIT") == 0)
        result = lock_order(client, second) ||
            run(second, "UPDATE orders SET state = 'sent'; COMMIT");
    (void)sqlite3_close(second);
    (void)sqlite3_close(first);
    dblock_close(client);
    return result;
}
