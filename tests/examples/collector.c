/* SPDX-License-Identifier: MIT */
/* collector.c - one owner per thing: takes as many names as are free, keeps them
 * by one heartbeat, and hears of every loss through one descriptor.
 *
 *     collector sqlite:/tmp/app.db ROUNDS */
#include <dblock/dblock.h>
#include <dblock/sqlite.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_PODS = 100 };

static dblock_lock *pods[N_PODS];

/* 0, or -1 after a message. */
static int take_what_is_free(dblock_client *client)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char name[32];
    int i;

    options.ttl_ms = 15000;
    for (i = 0; i < N_PODS; ++i) {
        if (pods[i] != NULL)
            continue;
        (void)snprintf(name, sizeof name, "pod/%d", i);
        options.context = &pods[i];
        if (dblock_acquire(client, name, &options, &pods[i], &error) < 0) {
            fprintf(stderr, "%s: %s; %s\n", name, error.message, error.hint);
            return -1; /* the next one would fail in the same way */
        }
    }
    return 0;
}

static void hear_of_losses(dblock_client *client)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;

    while (dblock_client_next_event(client, &event) == DBLOCK_OK) {
        dblock_lock **pod = event.context;

        if (event.kind != DBLOCK_EVENT_LOST)
            continue; /* also kinds of later versions */
        fprintf(stderr, "%s is not mine any more\n", dblock_lock_name(*pod));
        dblock_lock_free(*pod);
        *pod = NULL;
    }
}

int main(int argc, char **argv)
{
    struct dblock_error error;
    struct pollfd descriptor = { -1, POLLIN, 0 };
    dblock_client *client = NULL;
    long n_rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    int n_mine = 0;
    int result = 0;
    int i;

    if (dblock_open(dblock_sqlite_driver(), argc > 1 ? argv[1] : "", NULL, &client, &error) !=
            DBLOCK_OK ||
        dblock_client_fd(client, &descriptor.fd, &error) != DBLOCK_OK) {
        fprintf(stderr, "collector: %s\n", error.message);
        return 1;
    }
    while (n_rounds-- > 0 && result == 0) {
        result = take_what_is_free(client);
        if (poll(&descriptor, 1, 100) > 0)
            hear_of_losses(client);
    }
    for (i = 0; i < N_PODS; ++i) {
        n_mine += pods[i] != NULL && dblock_lock_is_held(pods[i]);
        dblock_lock_free(pods[i]);
    }
    printf("%d pods were mine\n", n_mine);
    dblock_close(client); /* one statement gives all of them back */
    return result == 0 ? 0 : 1;
}
