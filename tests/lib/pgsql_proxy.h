/* SPDX-License-Identifier: MIT */
/* pgsql_proxy.h - stands between the driver and the server: counts round trips, and
 * loses, on request, what passes. */
#ifndef DBLOCK_TEST_PGSQL_PROXY_H
#define DBLOCK_TEST_PGSQL_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

enum pgsql_proxy_mode {
    PROXY_PASSES,
    PROXY_SWALLOWS,     /* nothing passes any more, and nobody is told */
    PROXY_LOSES_ANSWER, /* the next answer is not passed on: both sides are closed */
    PROXY_MUTES_ANSWER  /* answers are read and dropped */
};

struct pgsql_proxy {
    char url[400]; /* of the server through the proxy */
    char folder[64];
    char server[108]; /* path of the server's socket */
    int listener;
    int stop[2];
    pthread_t thread;
    atomic_int mode;
    atomic_int n_turns; /* how often the client spoke after the server had */
};

/* `url` of a server on a Unix socket. 0, or it cannot be used. */
int pgsql_proxy_start(struct pgsql_proxy *proxy, const char *url);
void pgsql_proxy_stop(struct pgsql_proxy *proxy);

#endif
