/* SPDX-License-Identifier: MIT */
/* tcp_proxy.c - see tcp_proxy.h. One thread; what is asked of it is under one mutex. */
#include "tcp_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_wait.h"
#include "wire_message.h"

enum { PAIRS_MAX = 256, BUFFER_SIZE = 1 << 18, REMEMBERED = 1024 };

enum loss { /* of a connection, in this order */
    LOSS_NONE = 0,
    LOSS_SILENT,  /* nothing passes */
    LOSS_TOLD,    /* the client has read its end */
    LOSS_LATE     /* the server, too, after what the client had sent; its answers go nowhere */
};

struct flow { /* one direction of a connection */
    int from;
    int to;
    unsigned int direction;
    int is_over; /* nothing more is read */
    size_t size; /* bytes that wait to pass */
    uint64_t since_ms;
    unsigned char *bytes;
};

struct pair {
    int is_used;
    struct wire_state wire;
    struct flow flows[2]; /* to the server, to the client */
    enum loss loss;
    uint64_t loss_ms;     /* when its next part is due */
    uint64_t pause_ms;    /* from one to the next */
};

struct tcp_proxy {
    enum tcp_proxy_wire wire;
    unsigned int server_port;
    struct sockaddr_in source;
    unsigned int port;
    int listener;
    int wake[2];
    pthread_t thread;
    pthread_mutex_t mutex; /* for all below */
    int is_stopping;
    int is_armed;
    unsigned int n_messages;
    const struct flow *carriers[REMEMBERED]; /* of the messages; only compared */
    unsigned int cut_at;
    enum tcp_proxy_cut cut;
    int is_login_counted;
    int has_cut;
    char victim[40];
    uint64_t last_ms;
    unsigned int swallowed;
    uint64_t delay_ms;
    struct pair pairs[PAIRS_MAX];
};

static void close_pair(struct pair *pair)
{
    (void)close(pair->flows[0].from);
    (void)close(pair->flows[1].from);
    free(pair->flows[0].bytes);
    free(pair->flows[1].bytes);
    memset(pair, 0, sizeof *pair);
}

/* Each side reads "connection reset" and not an orderly end. */
static void reset_pair(struct pair *pair)
{
    const struct linger at_once = { 1, 0 };
    int side;

    for (side = 0; side < 2; ++side)
        (void)setsockopt(
            pair->flows[side].from, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close_pair(pair);
}

static int send_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* 0: passed on. Else the pair has ended. */
static int pass_message(
    struct tcp_proxy *proxy, struct pair *pair, struct flow *flow, size_t size)
{
    int is_to_server = flow->direction == PROXY_TO_SERVER;
    int is_login = wire_message_saw(&pair->wire, is_to_server, flow->bytes, size);
    int is_victim = 0;

    proxy->last_ms = test_now_ms();
    if (proxy->is_armed && (!is_login || proxy->is_login_counted)) {
        if (proxy->n_messages < REMEMBERED)
            proxy->carriers[proxy->n_messages] = flow;
        is_victim = ++proxy->n_messages == proxy->cut_at;
    }
    if (is_victim) {
        proxy->has_cut = 1;
        (void)snprintf(proxy->victim, sizeof proxy->victim, "to %s %s",
            is_to_server ? "server" : "client",
            wire_message_name(&pair->wire, is_to_server, flow->bytes, size));
    }
    if ((is_victim && proxy->cut == PROXY_CUTS_BEFORE) ||
        send_all(flow->to, flow->bytes, size) != 0 || is_victim) {
        /* what was passed on before a reset may be lost with it, so only what was not */
        if (is_victim && proxy->cut == PROXY_CUTS_BEFORE && proxy->cut_at % 2 == 0)
            reset_pair(pair);
        else
            close_pair(pair);
        return -1;
    }
    flow->size -= size;
    memmove(flow->bytes, flow->bytes + size, flow->size);
    return 0;
}

static void pass(struct tcp_proxy *proxy, struct pair *pair, struct flow *flow)
{
    if (pair->loss != LOSS_NONE) {
        if (pair->loss == LOSS_LATE)
            flow->size = 0;
        return;
    }
    if ((proxy->swallowed & flow->direction) != 0 || flow->size == 0 ||
        (proxy->delay_ms > 0 && test_now_ms() < flow->since_ms + proxy->delay_ms))
        return;
    for (;;) {
        size_t size = wire_message_size(
            &pair->wire, flow->direction == PROXY_TO_SERVER, flow->bytes, flow->size);

        if (size > flow->size && flow->size == BUFFER_SIZE)
            size = flow->size; /* longer than any that is expected */
        if (size == 0 || size > flow->size || pass_message(proxy, pair, flow, size) != 0)
            return;
    }
}

static void read_some(struct tcp_proxy *proxy, struct pair *pair, struct flow *flow)
{
    ssize_t n = read(flow->from, flow->bytes + flow->size, BUFFER_SIZE - flow->size);

    if (n > 0) {
        if (flow->size == 0)
            flow->since_ms = test_now_ms();
        flow->size += (size_t)n;
        return;
    }
    flow->is_over = 1;
    /* a network that swallows everything swallows the end too */
    if ((proxy->swallowed & flow->direction) == 0)
        close_pair(pair);
}

static int make_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

struct sockaddr_in tcp_proxy_address(unsigned int port)
{
    struct sockaddr_in address;

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    return address;
}

static void accept_one(struct tcp_proxy *proxy)
{
    struct sockaddr_in address = tcp_proxy_address(proxy->server_port);
    int client = accept(proxy->listener, NULL, NULL);
    int server = make_socket();
    int on = 1;
    size_t i = 0;

    while (i < PAIRS_MAX && proxy->pairs[i].is_used)
        ++i;
    if (client < 0 || i == PAIRS_MAX ||
        bind(server, (struct sockaddr *)&proxy->source, sizeof proxy->source) != 0 ||
        connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    proxy->pairs[i].is_used = 1;
    wire_state_init(&proxy->pairs[i].wire, (int)proxy->wire);
    proxy->pairs[i].flows[0] =
        (struct flow){ client, server, PROXY_TO_SERVER, 0, 0, 0, malloc(BUFFER_SIZE) };
    proxy->pairs[i].flows[1] =
        (struct flow){ server, client, PROXY_TO_CLIENT, 0, 0, 0, malloc(BUFFER_SIZE) };
}

/* What flow may be read: not one that is swallowed, so that its sender finds its window closed. */
static int is_read(
    const struct tcp_proxy *proxy, const struct pair *pair, const struct flow *flow)
{
    if (pair->loss != LOSS_NONE)
        return pair->loss == LOSS_LATE && flow->direction == PROXY_TO_CLIENT;
    return !flow->is_over && flow->size < BUFFER_SIZE &&
        (proxy->swallowed & flow->direction) == 0;
}

/* What the client had sent before it was told, and perhaps after that, reaches the server. */
static void deliver_late(struct pair *pair)
{
    struct flow *flow = &pair->flows[0];
    ssize_t n =
        recv(flow->from, flow->bytes + flow->size, BUFFER_SIZE - flow->size, MSG_DONTWAIT);

    if (n > 0)
        flow->size += (size_t)n;
    (void)send_all(flow->to, flow->bytes, flow->size);
    (void)shutdown(flow->to, SHUT_WR);
}

/* Milliseconds until the next part of its loss is due; -1: none is. */
static int lose_more(struct pair *pair)
{
    uint64_t now_ms = test_now_ms();

    if (pair->loss == LOSS_NONE || pair->loss == LOSS_LATE)
        return -1;
    if (now_ms < pair->loss_ms)
        return (int)(pair->loss_ms - now_ms);
    if (pair->loss == LOSS_SILENT)
        (void)shutdown(pair->flows[1].to, SHUT_WR);
    else
        deliver_late(pair);
    ++pair->loss;
    pair->loss_ms = now_ms + pair->pause_ms;
    return 0;
}

static void work(struct tcp_proxy *proxy, struct pollfd *descriptors)
{
    size_t i;
    int side;
    char bytes[64];

    if (descriptors[0].revents != 0)
        (void)!read(proxy->wake[0], bytes, sizeof bytes);
    for (i = 0; i < PAIRS_MAX; ++i)
        for (side = 0; side < 2; ++side) {
            struct pair *pair = &proxy->pairs[i];

            if (pair->is_used && descriptors[2 + 2 * i + (size_t)side].revents != 0 &&
                is_read(proxy, pair, &pair->flows[side]))
                read_some(proxy, pair, &pair->flows[side]);
            if (pair->is_used)
                pass(proxy, pair, &pair->flows[side]);
        }
    if (descriptors[1].revents != 0)
        accept_one(proxy);
}

static void *run(void *argument)
{
    struct tcp_proxy *proxy = argument;
    struct pollfd descriptors[2 + 2 * PAIRS_MAX];
    size_t i;
    int side;

    (void)pthread_mutex_lock(&proxy->mutex);
    while (!proxy->is_stopping) {
        int timeout_ms = -1;

        descriptors[0] = (struct pollfd){ proxy->wake[0], POLLIN, 0 };
        descriptors[1] = (struct pollfd){ proxy->listener, POLLIN, 0 };
        for (i = 0; i < PAIRS_MAX; ++i) {
            struct pair *pair = &proxy->pairs[i];
            int loss_ms = pair->is_used ? lose_more(pair) : -1;

            if (loss_ms >= 0 && (timeout_ms < 0 || loss_ms < timeout_ms))
                timeout_ms = loss_ms;
            for (side = 0; side < 2; ++side) {
                const struct flow *flow = &pair->flows[side];

                descriptors[2 + 2 * i + (size_t)side] = (struct pollfd){
                    pair->is_used && is_read(proxy, pair, flow) ? flow->from : -1, POLLIN, 0 };
                if (pair->is_used && flow->size > 0 && proxy->delay_ms > 0)
                    timeout_ms = 2;
            }
        }
        (void)pthread_mutex_unlock(&proxy->mutex);
        (void)poll(descriptors, 2 + 2 * PAIRS_MAX, timeout_ms);
        (void)pthread_mutex_lock(&proxy->mutex);
        work(proxy, descriptors);
    }
    for (i = 0; i < PAIRS_MAX; ++i)
        if (proxy->pairs[i].is_used)
            close_pair(&proxy->pairs[i]);
    (void)pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

struct tcp_proxy *tcp_proxy_start(enum tcp_proxy_wire wire, unsigned int server_port)
{
    return tcp_proxy_start_from(wire, server_port, "127.0.0.1");
}

struct tcp_proxy *tcp_proxy_start_from(
    enum tcp_proxy_wire wire, unsigned int server_port, const char *source)
{
    struct tcp_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = tcp_proxy_address(0);
    socklen_t size = sizeof address;

    if (proxy == NULL)
        return NULL;
    proxy->source = tcp_proxy_address(0);
    proxy->source.sin_addr.s_addr = inet_addr(source);
    proxy->wire = wire;
    proxy->server_port = server_port;
    proxy->listener = make_socket();
    proxy->last_ms = test_now_ms();
    (void)pthread_mutex_init(&proxy->mutex, NULL);
    if (bind(proxy->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(proxy->listener, 64) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0 ||
        pipe(proxy->wake) != 0 || pthread_create(&proxy->thread, NULL, run, proxy) != 0) {
        (void)close(proxy->listener);
        free(proxy);
        return NULL;
    }
    proxy->port = ntohs(address.sin_port);
    return proxy;
}

/* After a change under the mutex. */
static void wake_and_unlock(struct tcp_proxy *proxy)
{
    (void)!write(proxy->wake[1], "", 1);
    (void)pthread_mutex_unlock(&proxy->mutex);
}

void tcp_proxy_stop(struct tcp_proxy *proxy)
{
    if (proxy == NULL)
        return;
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->is_stopping = 1;
    wake_and_unlock(proxy);
    (void)pthread_join(proxy->thread, NULL);
    (void)pthread_mutex_destroy(&proxy->mutex);
    (void)close(proxy->listener);
    (void)close(proxy->wake[0]);
    (void)close(proxy->wake[1]);
    free(proxy);
}

unsigned int tcp_proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void tcp_proxy_arm(struct tcp_proxy *proxy, unsigned int at, enum tcp_proxy_cut cut, int is_login)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->is_armed = 1;
    proxy->n_messages = 0;
    proxy->cut_at = at;
    proxy->cut = cut;
    proxy->is_login_counted = is_login;
    proxy->has_cut = 0;
    (void)snprintf(proxy->victim, sizeof proxy->victim, "nothing");
    (void)pthread_mutex_unlock(&proxy->mutex);
}

int tcp_proxy_disarm(struct tcp_proxy *proxy)
{
    int has_cut;

    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->is_armed = 0;
    has_cut = proxy->has_cut;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return has_cut;
}

unsigned int tcp_proxy_n_messages(struct tcp_proxy *proxy)
{
    unsigned int n_messages;

    (void)pthread_mutex_lock(&proxy->mutex);
    n_messages = proxy->n_messages;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return n_messages;
}

int tcp_proxy_is_in_flight(struct tcp_proxy *proxy, unsigned int at)
{
    int is_in_flight;

    (void)pthread_mutex_lock(&proxy->mutex);
    is_in_flight = at > 0 && at < proxy->n_messages && at < REMEMBERED &&
        proxy->carriers[at - 1] == proxy->carriers[at];
    (void)pthread_mutex_unlock(&proxy->mutex);
    return is_in_flight;
}

const char *tcp_proxy_victim(struct tcp_proxy *proxy)
{
    return proxy->victim;
}

uint64_t tcp_proxy_quiet_ms(struct tcp_proxy *proxy)
{
    uint64_t last_ms;

    (void)pthread_mutex_lock(&proxy->mutex);
    last_ms = proxy->last_ms;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return test_now_ms() - last_ms;
}

void tcp_proxy_swallow(struct tcp_proxy *proxy, unsigned int directions)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->swallowed = directions;
    wake_and_unlock(proxy);
}

void tcp_proxy_half_close(struct tcp_proxy *proxy, unsigned int directions)
{
    size_t i;
    int side;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (i = 0; i < PAIRS_MAX; ++i)
        for (side = 0; side < 2; ++side) {
            struct flow *flow = &proxy->pairs[i].flows[side];

            if (proxy->pairs[i].is_used && (flow->direction & directions) != 0) {
                flow->is_over = 1;
                (void)shutdown(flow->to, SHUT_WR);
            }
        }
    wake_and_unlock(proxy);
}

void tcp_proxy_delay(struct tcp_proxy *proxy, uint64_t delay_ms)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->delay_ms = delay_ms;
    wake_and_unlock(proxy);
}

void tcp_proxy_cut_all(struct tcp_proxy *proxy)
{
    size_t i;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (i = 0; i < PAIRS_MAX; ++i)
        if (proxy->pairs[i].is_used)
            close_pair(&proxy->pairs[i]);
    wake_and_unlock(proxy);
}

int tcp_proxy_lose(struct tcp_proxy *proxy, unsigned int number, uint64_t pause_ms)
{
    struct pair *there[PAIRS_MAX];
    unsigned int n = 0;
    size_t i;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (i = 0; i < PAIRS_MAX; ++i)
        if (proxy->pairs[i].is_used && proxy->pairs[i].loss == LOSS_NONE)
            there[n++] = &proxy->pairs[i];
    if (n > 0 && pause_ms == 0) {
        reset_pair(there[number % n]);
    } else if (n > 0) {
        there[number % n]->loss = LOSS_SILENT;
        there[number % n]->loss_ms = test_now_ms() + pause_ms;
        there[number % n]->pause_ms = pause_ms;
    }
    wake_and_unlock(proxy);
    return n > 0;
}
