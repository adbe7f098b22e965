/* SPDX-License-Identifier: MIT */
/* guarded.c - the database itself refuses a holder that was stopped for too long: what
 * it writes is in a transaction that is bound to the lock. Two tellers, one account.
 *     guarded sqlite:/tmp/app.db        (cc guarded.c -ldblock -ldblock-sqlite -lsqlite3) */
#include <dblock/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int run(sqlite3 *database, const char *sql)
{
    return sqlite3_exec(database, sql, NULL, NULL, NULL);
}

/* 0 if it was written. */
static int deposit(dblock_lock *lock, sqlite3 *database)
{
    struct dblock_error error;
    dblock_status status;

    (void)run(database, "BEGIN IMMEDIATE"); /* outside of a transaction there is no guard */
    status = dblock_sqlite_guard(lock, database, sqlite3_sourceid(), &error);
    if (status == DBLOCK_OK &&
        run(database, "UPDATE account SET balance = balance + 1; COMMIT") == SQLITE_OK)
        return 0;
    printf("not written: %s\n", status < 0 ? error.message : dblock_status_text(status));
    (void)run(database, "ROLLBACK");
    return -1;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:guarded.db";
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *slow = NULL, *quick = NULL;
    dblock_status status = DBLOCK_E_DATABASE;
    sqlite3 *database = NULL;

    if (sqlite3_open(url + strlen("sqlite:"), &database) != SQLITE_OK ||
        run(database, "DROP TABLE IF EXISTS account; CREATE TABLE account (balance);"
            " INSERT INTO account VALUES (0)") != SQLITE_OK)
        fprintf(stderr, "guarded: %s\n", sqlite3_errmsg(database));
    else if ((status = dblock_open(dblock_sqlite_driver(), url, NULL, &client, &error)) ||
        (status = dblock_acquire(client, "account", NULL, &slow, &error)) ||
        /* the slow one is stopped; its lock is taken away, and somebody else has it now */
        (status = dblock_break(client, "account", DBLOCK_LEASE, 0, &error)) ||
        (status = dblock_acquire(client, "account", NULL, &quick, &error)))
        fprintf(stderr, "guarded: %s\n", status < 0 ? error.message : dblock_status_text(status));
    else if (deposit(quick, database) != 0 || deposit(slow, database) == 0)
        status = DBLOCK_E_DATABASE; /* the wrong one was refused */
    dblock_lock_free(quick);
    dblock_lock_free(slow);
    dblock_close(client);
    (void)sqlite3_close(database);
    return status != DBLOCK_OK;
}
