/* SPDX-License-Identifier: MIT */
/* pgsql_proxy.c - see pgsql_proxy.h. One thread; a Unix socket on both sides. */
#include "pgsql_proxy.h"

#ifdef DBLOCK_TEST_HAS_PGSQL

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS_MAX = 16 };

struct pair {
    int client;
    int server;
    int was_server; /* the last who spoke */
};

static int make_socket(const char *path, int is_listener)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int fault;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fault = is_listener ? bind(fd, (struct sockaddr *)&address, sizeof address)
                        : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (fault == 0 && is_listener)
        fault = listen(fd, 16);
    if (fault == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void close_pair(struct pair *pair)
{
    (void)close(pair->client);
    (void)close(pair->server);
    pair->client = pair->server = -1;
}

static void pass(struct pgsql_proxy *proxy, struct pair *pair, int is_server)
{
    static char buffer[65536];
    int mode = atomic_load(&proxy->mode);
    ssize_t size;
    ssize_t sent = 0;

    if (mode == PROXY_SWALLOWS)
        return;
    size = read(is_server ? pair->server : pair->client, buffer, sizeof buffer);
    if (size <= 0 || (is_server && mode == PROXY_LOSES_ANSWER)) {
        if (mode == PROXY_LOSES_ANSWER)
            atomic_store(&proxy->mode, PROXY_PASSES);
        close_pair(pair);
        return;
    }
    if (!is_server && pair->was_server)
        (void)atomic_fetch_add(&proxy->n_turns, 1);
    pair->was_server = is_server;
    if (is_server && mode == PROXY_MUTES_ANSWER)
        return;
    while (sent < size) {
        ssize_t step = send(is_server ? pair->client : pair->server, buffer + sent,
            (size_t)(size - sent), MSG_NOSIGNAL);

        if (step <= 0) {
            close_pair(pair);
            return;
        }
        sent += step;
    }
}

static void *run(void *argument)
{
    struct pgsql_proxy *proxy = argument;
    struct pair pairs[PAIRS_MAX];
    struct pollfd descriptors[2 + 2 * PAIRS_MAX];
    int i;

    for (i = 0; i < PAIRS_MAX; ++i)
        pairs[i].client = pairs[i].server = -1;
    for (;;) {
        int is_silent = atomic_load(&proxy->mode) == PROXY_SWALLOWS;

        descriptors[0] = (struct pollfd){ proxy->stop[0], POLLIN, 0 };
        descriptors[1] = (struct pollfd){ proxy->listener, POLLIN, 0 };
        for (i = 0; i < PAIRS_MAX; ++i) {
            descriptors[2 + 2 * i] = (struct pollfd){ is_silent ? -1 : pairs[i].client, POLLIN, 0 };
            descriptors[3 + 2 * i] = (struct pollfd){ is_silent ? -1 : pairs[i].server, POLLIN, 0 };
        }
        if (poll(descriptors, 2 + 2 * PAIRS_MAX, 20) < 0 || descriptors[0].revents != 0)
            break;
        for (i = 0; i < PAIRS_MAX; ++i) {
            if (pairs[i].client >= 0 && descriptors[2 + 2 * i].revents != 0)
                pass(proxy, &pairs[i], 0);
            if (pairs[i].client >= 0 && descriptors[3 + 2 * i].revents != 0)
                pass(proxy, &pairs[i], 1);
        }
        for (i = 0; descriptors[1].revents != 0 && i < PAIRS_MAX; ++i)
            if (pairs[i].client < 0) {
                pairs[i].client = accept(proxy->listener, NULL, NULL);
                pairs[i].server = make_socket(proxy->server, 0);
                pairs[i].was_server = 1;
                break;
            }
    }
    for (i = 0; i < PAIRS_MAX; ++i)
        close_pair(&pairs[i]);
    return NULL;
}

int pgsql_proxy_start(struct pgsql_proxy *proxy, const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    PQconninfoOption *option;
    const char *host = NULL;
    const char *port = "5432";
    char path[100];
    size_t length;

    memset(proxy, 0, sizeof *proxy);
    (void)snprintf(proxy->folder, sizeof proxy->folder, "/tmp/dblock-proxy.XXXXXX");
    if (options == NULL || mkdtemp(proxy->folder) == NULL)
        return -1;
    length = (size_t)snprintf(
        proxy->url, sizeof proxy->url, "host=%s port=5432", proxy->folder);
    for (option = options; option->keyword != NULL; ++option) {
        if (option->val == NULL)
            continue;
        if (strcmp(option->keyword, "host") == 0)
            host = option->val;
        else if (strcmp(option->keyword, "port") == 0)
            port = option->val;
        else if (strcmp(option->keyword, "user") == 0 || strcmp(option->keyword, "dbname") == 0 ||
            strcmp(option->keyword, "password") == 0)
            length += (size_t)snprintf(proxy->url + length, sizeof proxy->url - length,
                " %s=%s", option->keyword, option->val);
    }
    if (host == NULL || host[0] != '/') {
        PQconninfoFree(options);
        return -1;
    }
    (void)snprintf(proxy->server, sizeof proxy->server, "%s/.s.PGSQL.%s", host, port);
    PQconninfoFree(options);
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", proxy->folder);
    proxy->listener = make_socket(path, 1);
    if (proxy->listener < 0 || pipe(proxy->stop) != 0)
        return -1;
    return pthread_create(&proxy->thread, NULL, run, proxy);
}

void pgsql_proxy_stop(struct pgsql_proxy *proxy)
{
    char path[100];

    (void)close(proxy->stop[1]);
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->stop[0]);
    (void)close(proxy->listener);
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", proxy->folder);
    (void)unlink(path);
    (void)rmdir(proxy->folder);
}

#else

typedef int pgsql_proxy_needs_the_pgsql_driver;

#endif
