/* SPDX-License-Identifier: MIT */
/* transfer.c - money goes to and fro between two accounts, each under a lock of its own, and two
 * tellers name them in opposite orders. Neither waits for ever.
 *     transfer sqlite:/tmp/app.db        (cc -pthread transfer.c -ldblock -ldblock-sqlite) */
#include <dblock/many.h>
#include <dblock/sqlite.h>
#include <pthread.h>
#include <stdio.h>

static dblock_client *client;
static int balances[2] = { 500, 500 };

static void *teller(void *context)
{
    const int from = *(const int *)context;
    static const char *const names[3] = { "account/0", "account/1", "account/0" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *locks[2];
    dblock_status status;

    options.wait_ms = 20000;
    for (int i = 0; i < 50; ++i) {
        status = dblock_acquire_many(client, names + from, 2, &options, locks, &error);
        if (status != DBLOCK_OK) {
            fprintf(stderr, "%s\n", status < 0 ? error.message : dblock_status_text(status));
            return NULL;
        }
        balances[from] -= 1;
        balances[1 - from] += 1;
        (void)dblock_release_many(locks, 2, NULL);
        dblock_lock_free(locks[0]);
        dblock_lock_free(locks[1]);
    }
    return context;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:transfer.db";
    static int from[2] = { 0, 1 };
    struct dblock_error error;
    pthread_t threads[2];
    void *ends[2];
    int i;

    if (dblock_open(dblock_sqlite_driver(), url, NULL, &client, &error) != DBLOCK_OK) {
        fprintf(stderr, "transfer: %s\n", error.message);
        return 1;
    }
    for (i = 0; i < 2; ++i)
        if (pthread_create(&threads[i], NULL, teller, &from[i]) != 0)
            return 1;
    for (i = 0; i < 2; ++i)
        (void)pthread_join(threads[i], &ends[i]);
    dblock_close(client);
    printf("%d and %d\n", balances[0], balances[1]);
    return ends[0] == NULL || ends[1] == NULL || balances[0] + balances[1] != 1000;
}
