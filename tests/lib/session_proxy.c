/* SPDX-License-Identifier: MIT */
/* session_proxy.c - see session_proxy.h. One thread, which knows nothing of the protocol: what a
 * session says goes to the client that has spoken to it last. */
#include "session_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_proxy.h"

enum { PAIRS_MAX = 16, BUFFER_SIZE = 65536 };

struct pair {
    int client; /* -1: gone */
    int server;
    int listener; /* the client that has spoken to this session last */
    int has_greeted;
};

struct session_proxy {
    unsigned int server_port, port;
    session_proxy_fn greet;
    int listener;
    int stop[2];
    atomic_int route;
    pthread_t thread;
    struct pair pairs[PAIRS_MAX];
    int n_pairs;
};

static int make_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void accept_one(struct session_proxy *proxy)
{
    struct sockaddr_in server = tcp_proxy_address(proxy->server_port);
    struct pair pair = { accept(proxy->listener, NULL, NULL), make_socket(), proxy->n_pairs, 0 };
    int on = 1;

    if (proxy->n_pairs == PAIRS_MAX ||
        connect(pair.server, (struct sockaddr *)&server, sizeof server) != 0) {
        (void)close(pair.client);
        (void)close(pair.server);
        return;
    }
    (void)setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    proxy->pairs[proxy->n_pairs++] = pair;
}

static void close_pair(struct pair *pair)
{
    (void)close(pair->client);
    (void)close(pair->server);
    pair->client = pair->server = -1;
}

static int send_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* `i` is the number of the one who speaks. */
static void pass(struct session_proxy *proxy, int i, int is_server)
{
    static unsigned char bytes[BUFFER_SIZE];
    struct pair *pair = &proxy->pairs[i];
    int route = atomic_load(&proxy->route);
    ssize_t size = read(is_server ? pair->server : pair->client, bytes, sizeof bytes);
    struct pair *other;

    if (size <= 0) {
        close_pair(pair);
        return;
    }
    if (is_server && !pair->has_greeted && proxy->greet != NULL)
        proxy->greet(bytes, (size_t)size);
    pair->has_greeted |= is_server;
    other = &proxy->pairs[is_server ? pair->listener : route >= 0 ? route : i];
    if (!is_server)
        other->listener = i;
    if (send_all(is_server ? other->client : other->server, bytes, (size_t)size) != 0)
        close_pair(pair);
}

static void *run(void *argument)
{
    struct session_proxy *proxy = argument;
    struct pollfd descriptors[2 + 2 * PAIRS_MAX];
    int i, n;

    for (;;) {
        n = proxy->n_pairs;
        descriptors[0] = (struct pollfd){ proxy->stop[0], POLLIN, 0 };
        descriptors[1] = (struct pollfd){ proxy->listener, POLLIN, 0 };
        for (i = 0; i < n; ++i) {
            descriptors[2 + 2 * i] = (struct pollfd){ proxy->pairs[i].client, POLLIN, 0 };
            descriptors[3 + 2 * i] = (struct pollfd){ proxy->pairs[i].server, POLLIN, 0 };
        }
        if (poll(descriptors, 2 + 2 * (nfds_t)n, -1) < 0 || descriptors[0].revents != 0)
            break;
        for (i = 0; i < n; ++i) {
            if (proxy->pairs[i].client >= 0 && descriptors[2 + 2 * i].revents != 0)
                pass(proxy, i, 0);
            if (proxy->pairs[i].client >= 0 && descriptors[3 + 2 * i].revents != 0)
                pass(proxy, i, 1);
        }
        if (descriptors[1].revents != 0)
            accept_one(proxy);
    }
    for (i = 0; i < proxy->n_pairs; ++i)
        close_pair(&proxy->pairs[i]);
    return NULL;
}

struct session_proxy *session_proxy_start(unsigned int server_port, session_proxy_fn greet)
{
    struct session_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = tcp_proxy_address(0);
    socklen_t size = sizeof address;

    if (proxy == NULL)
        return NULL;
    proxy->server_port = server_port;
    proxy->greet = greet;
    atomic_init(&proxy->route, -1);
    proxy->listener = make_socket();
    if (bind(proxy->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy->listener, PAIRS_MAX) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0 ||
        pipe(proxy->stop) != 0 || pthread_create(&proxy->thread, NULL, run, proxy) != 0) {
        free(proxy);
        return NULL;
    }
    proxy->port = ntohs(address.sin_port);
    return proxy;
}

void session_proxy_stop(struct session_proxy *proxy)
{
    if (proxy == NULL)
        return;
    (void)close(proxy->stop[1]);
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->stop[0]);
    (void)close(proxy->listener);
    free(proxy);
}

unsigned int session_proxy_port(const struct session_proxy *proxy)
{
    return proxy->port;
}

void session_proxy_route(struct session_proxy *proxy, int number)
{
    atomic_store(&proxy->route, number);
}
