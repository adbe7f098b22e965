/* SPDX-License-Identifier: MIT */
/* acquire.c - take a lock, work under it, give it back.
 *
 *     acquire sqlite:/tmp/app.db NAME */
#include <dblock/dblock.h>
#include <dblock/sqlite.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status;
    int64_t token = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: acquire URL NAME\n");
        return 64;
    }
    options.wait_ms = 5000;
    status = dblock_open(dblock_sqlite_driver(), argv[1], NULL, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, argv[2], &options, &lock, &error);
    if (status == DBLOCK_OK)
        status = dblock_lock_token(lock, &token, &error);
    if (status == DBLOCK_OK) {
        printf("%s is mine, token %lld\n", argv[2], (long long)token);
        status = dblock_release(lock, &error);
    }
    if (status < 0)
        fprintf(stderr, "acquire: %s%s%s\n", error.message, error.hint[0] != 0 ? "; " : "",
            error.hint);
    else if (status > 0)
        fprintf(stderr, "acquire: %s\n", dblock_status_text(status));
    dblock_lock_free(lock);
    dblock_close(client);
    return status == DBLOCK_OK ? 0 : 1;
}
