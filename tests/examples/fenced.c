/* SPDX-License-Identifier: MIT */
/* fenced.c - the token as the answer to a holder that wakes up late: what is
 * written carries the token, and the receiver refuses one smaller than it has
 * seen. Two holders of one name, in the wrong order.
 *
 *     fenced sqlite:/tmp/app.db */
#include <dblock/dblock.h>
#include <dblock/sqlite.h>

#include <stdio.h>

static struct { /* what the lock protects; in life a row: UPDATE ... WHERE token <= $1 */
    int64_t token;
    const char *text;
} report;

static int write_report(const char *text, int64_t token)
{
    if (token < report.token)
        return -1;
    report.token = token;
    report.text = text;
    return 0;
}

static int64_t hold_once(dblock_client *client)
{
    struct dblock_error error;
    dblock_lock *lock = NULL;
    int64_t token = -1;
    dblock_status status = dblock_acquire(client, "report", NULL, &lock, &error);

    if (status == DBLOCK_OK)
        status = dblock_lock_token(lock, &token, &error);
    if (status != DBLOCK_OK) /* above zero there is no error to tell */
        fprintf(stderr, "fenced: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    dblock_lock_free(lock); /* the first holder does not know it: it is asleep */
    return token;
}

int main(int argc, char **argv)
{
    struct dblock_error error;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_client *client = NULL;
    int64_t early, late;

    if (dblock_open(dblock_sqlite_driver(), argc > 1 ? argv[1] : "", NULL, &client, &error) !=
            DBLOCK_OK ||
        dblock_schema_install(client, &error) != DBLOCK_OK) {
        fprintf(stderr, "fenced: %s; %s\n", error.message, error.hint);
        return 1;
    }
    early = hold_once(client);
    if (early < 0) {
        dblock_close(client);
        return 1;
    }
    while (dblock_inspect(client, "report", DBLOCK_LEASE, &grant, &error) == DBLOCK_OK)
        continue; /* given back in the background */
    late = hold_once(client);
    printf("the second holder writes: %s\n", write_report("new", late) == 0 ? "done" : "refused");
    printf("the first one, awake again: %s\n",
        write_report("old", early) == 0 ? "done" : "refused");
    dblock_close(client);
    return early > 0 && early < late && report.token == late ? 0 : 1;
}
