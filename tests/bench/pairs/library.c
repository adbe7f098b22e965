/* SPDX-License-Identifier: MIT */
/* library.c - pairs through the public interface, on a client that stays open. */
#include "pairs.h"

#include <stdlib.h>
#include <unistd.h>

struct library {
    dblock_client *client;
    struct dblock_options options;
    char name[64];
};

static int complain(const char *what, dblock_status status, const struct dblock_error *error)
{
    (void)fprintf(stderr, "pairs: %s: %s: %s\n", what, dblock_status_name(status),
        status < 0 ? error->message : dblock_status_text(status));
    return -1;
}

struct library *library_open(const struct database *database, const char *url, int strategy,
    uint64_t ttl_ms)
{
    const struct dblock_options defaults = DBLOCK_OPTIONS_INIT;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct library *library = calloc(1, sizeof *library);
    struct dblock_error error;
    dblock_status status;

    if (library == NULL)
        return NULL;
    config.ttl_ms = ttl_ms;
    library->options = defaults;
    library->options.strategy = strategy;
    (void)snprintf(library->name, sizeof library->name, "bench-ours-%ld-%s", (long)getpid(),
        dblock_strategy_name(strategy));
    status = dblock_open(database->driver(), url, &config, &library->client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(library->client, &error);
    if (status == DBLOCK_OK)
        return library;
    (void)complain("cannot open a client", status, &error);
    library_close(library);
    return NULL;
}

int library_pair(void *context)
{
    struct library *library = context;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;

    status = dblock_acquire(library->client, library->name, &library->options, &lock, &error);
    if (status != DBLOCK_OK)
        return complain("acquire", status, &error);
    status = dblock_release(lock, &error);
    dblock_lock_free(lock);
    if (status != DBLOCK_OK)
        return complain("release", status, &error);
    return 0;
}

dblock_client *library_client(struct library *library)
{
    return library->client;
}

int library_is_busy(struct library *library)
{
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;

    status = dblock_acquire(library->client, library->name, &library->options, &lock, &error);
    if (status == DBLOCK_BUSY)
        return 1;
    if (status != DBLOCK_OK)
        return complain("acquire", status, &error);
    (void)dblock_release(lock, NULL);
    dblock_lock_free(lock);
    return 0;
}

void library_close(struct library *library)
{
    if (library == NULL)
        return;
    dblock_close(library->client);
    free(library);
}
