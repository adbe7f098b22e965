/* SPDX-License-Identifier: MIT */
/* proxy.c - counts round trips where nobody can be mistaken about them: on the wire.
 *
 * One thread passes bytes on between clients and the server. What a client sends after
 * the server said something is a new message; what it sends before that belongs to the
 * same one. Too slow to measure time through; that is done without it. */
#include "pairs.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { N_LINKS = 32 };

struct proxy {
    pthread_t thread;
    int listener;
    int stop[2]; /* a pipe: closed to end the thread */
    struct sockaddr_un here;
    struct sockaddr_un there;
    char folder[64];
    int clients[N_LINKS];
    int servers[N_LINKS];
    int is_answered[N_LINKS]; /* the server spoke last */
    _Atomic int n_links;
    _Atomic uint64_t n_messages;
};

static void accept_client(struct proxy *proxy)
{
    int client = accept(proxy->listener, NULL, NULL);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);

    if (client < 0 || server < 0 || proxy->n_links == N_LINKS ||
        connect(server, (const struct sockaddr *)&proxy->there, sizeof proxy->there) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    proxy->clients[proxy->n_links] = client;
    proxy->servers[proxy->n_links] = server;
    proxy->is_answered[proxy->n_links++] = 1;
}

static void drop_link(struct proxy *proxy, int i)
{
    (void)close(proxy->clients[i]);
    (void)close(proxy->servers[i]);
    --proxy->n_links;
    proxy->clients[i] = proxy->clients[proxy->n_links];
    proxy->servers[i] = proxy->servers[proxy->n_links];
    proxy->is_answered[i] = proxy->is_answered[proxy->n_links];
}

/* 0, or -1: one of the two is gone. */
static int pass_on(int from, int to)
{
    char data[16384];
    ssize_t n = recv(from, data, sizeof data, 0);
    ssize_t done = 0;

    if (n <= 0)
        return -1;
    while (done < n) {
        ssize_t sent = send(to, data + done, (size_t)(n - done), MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        done += sent;
    }
    return 0;
}

static void serve_link(struct proxy *proxy, int i, int from_client, int from_server)
{
    int failed = 0;

    if (from_server) {
        proxy->is_answered[i] = 1;
        failed |= pass_on(proxy->servers[i], proxy->clients[i]);
    }
    if (from_client && !failed) {
        if (proxy->is_answered[i])
            atomic_fetch_add(&proxy->n_messages, 1);
        proxy->is_answered[i] = 0;
        failed |= pass_on(proxy->clients[i], proxy->servers[i]);
    }
    if (failed)
        drop_link(proxy, i);
}

static void *serve(void *context)
{
    struct proxy *proxy = context;
    struct pollfd polled[2 + 2 * N_LINKS];

    for (;;) {
        int n_links = proxy->n_links;
        int i;

        polled[0] = (struct pollfd){ proxy->stop[0], POLLIN, 0 };
        polled[1] = (struct pollfd){ proxy->listener, POLLIN, 0 };
        for (i = 0; i < n_links; ++i) {
            polled[2 + 2 * i] = (struct pollfd){ proxy->clients[i], POLLIN, 0 };
            polled[3 + 2 * i] = (struct pollfd){ proxy->servers[i], POLLIN, 0 };
        }
        (void)poll(polled, (nfds_t)(2 + 2 * n_links), -1);
        if (polled[0].revents != 0)
            return NULL;
        /* from the last one on, as a link that goes is replaced by the last */
        for (i = n_links - 1; i >= 0; --i)
            serve_link(proxy, i, polled[2 + 2 * i].revents != 0, polled[3 + 2 * i].revents != 0);
        if (polled[1].revents != 0)
            accept_client(proxy);
    }
}

/* Where the server listens, and a place for us with the same last part. */
static int find_sockets(
    struct proxy *proxy, const char *url, char *ret_old, char *ret_new, size_t size)
{
    char value[256];
    char port[16];

    proxy->here.sun_family = proxy->there.sun_family = AF_UNIX;
    if (url_value(url, "socket", value, sizeof value)) {
        (void)snprintf(proxy->there.sun_path, sizeof proxy->there.sun_path, "%.100s", value);
        (void)snprintf(proxy->here.sun_path, sizeof proxy->here.sun_path, "%s/s", proxy->folder);
        (void)snprintf(ret_old, size, "socket=%.200s", value);
        (void)snprintf(ret_new, size, "socket=%s", proxy->here.sun_path);
        return 0;
    }
    if (!url_value(url, "host", value, sizeof value) || !url_value(url, "port", port, sizeof port))
        return -1;
    (void)snprintf(proxy->there.sun_path, sizeof proxy->there.sun_path, "%.80s/.s.PGSQL.%s",
        value, port);
    (void)snprintf(proxy->here.sun_path, sizeof proxy->here.sun_path, "%s/.s.PGSQL.%s",
        proxy->folder, port);
    (void)snprintf(ret_old, size, "host=%.200s", value);
    (void)snprintf(ret_new, size, "host=%s", proxy->folder);
    return 0;
}

struct proxy *proxy_open(const char *url, char *ret_url, size_t size)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    char old_part[256], new_part[256];
    const char *place = getenv("TMPDIR"); /* a socket's path must be short */

    if (proxy == NULL)
        return NULL;
    (void)snprintf(proxy->folder, sizeof proxy->folder, "%s/proxy.XXXXXX",
        place != NULL && strlen(place) < 40 ? place : "/tmp");
    if (mkdtemp(proxy->folder) == NULL)
        goto failed;
    if (find_sockets(proxy, url, old_part, new_part, sizeof old_part) != 0 ||
        (place = strstr(url, old_part)) == NULL || pipe(proxy->stop) != 0)
        goto failed;
    (void)snprintf(ret_url, size, "%.*s%s%s", (int)(place - url), url, new_part,
        place + strlen(old_part));
    proxy->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(proxy->listener, (const struct sockaddr *)&proxy->here, sizeof proxy->here) != 0 ||
        listen(proxy->listener, N_LINKS) != 0 ||
        pthread_create(&proxy->thread, NULL, serve, proxy) != 0)
        goto failed;
    return proxy;
failed:
    (void)fprintf(stderr, "pairs: round trips cannot be counted: no Unix socket in the URL\n");
    (void)rmdir(proxy->folder);
    free(proxy);
    return NULL;
}

uint64_t proxy_count(const struct proxy *proxy)
{
    return atomic_load(&proxy->n_messages);
}

int proxy_links(const struct proxy *proxy)
{
    return atomic_load(&proxy->n_links);
}

void proxy_close(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    (void)close(proxy->stop[1]);
    (void)pthread_join(proxy->thread, NULL);
    while (proxy->n_links > 0)
        drop_link(proxy, proxy->n_links - 1);
    (void)close(proxy->stop[0]);
    (void)close(proxy->listener);
    (void)unlink(proxy->here.sun_path);
    (void)rmdir(proxy->folder);
    free(proxy);
}
