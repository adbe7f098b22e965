/* SPDX-License-Identifier: MIT */
/* silent_tls.c - see silent_tls.h. One thread, one client after the other. */
#include "silent_tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_wait.h"

struct silent_tls {
    enum tcp_proxy_wire wire;
    unsigned int server_port;
    unsigned int port;
    int listener;
    int stop[2];
    pthread_t thread;
};

/* The server's greeting, with the bit that says that it can do TLS. */
static void greet_as_mysql(const struct silent_tls *silent, int client)
{
    struct sockaddr_in address = tcp_proxy_address(silent->server_port);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    unsigned char greeting[512];
    ssize_t size = 0;

    if (connect(server, (struct sockaddr *)&address, sizeof address) == 0)
        size = read(server, greeting, sizeof greeting);
    if (size > 40) { /* length and number, protocol, version, zero, id, scramble, filler */
        size_t capabilities = 5 + strlen((const char *)greeting + 5) + 1 + 4 + 8 + 1;

        greeting[capabilities + 1] |= 0x08;
        (void)!write(client, greeting, (size_t)size);
    }
    (void)close(server);
}

static void *run(void *argument)
{
    struct silent_tls *silent = argument;
    int clients[16];
    size_t n_clients = 0;
    char request[8];

    while (n_clients < 16) {
        int client = accept(silent->listener, NULL, NULL);

        if (client < 0)
            break;
        clients[n_clients++] = client;
        if (silent->wire == PROXY_WIRE_MYSQL)
            greet_as_mysql(silent, client);
        else if (test_readable(client, 1000) && read(client, request, sizeof request) > 0)
            (void)!write(client, "S", 1);
    }
    (void)test_readable(silent->stop[0], 60000);
    while (n_clients > 0)
        (void)close(clients[--n_clients]);
    return NULL;
}

struct silent_tls *silent_tls_start(enum tcp_proxy_wire wire, unsigned int server_port)
{
    struct silent_tls *silent = calloc(1, sizeof *silent);
    struct sockaddr_in address = tcp_proxy_address(0);
    socklen_t size = sizeof address;

    if (silent == NULL)
        return NULL;
    silent->wire = wire;
    silent->server_port = server_port;
    silent->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(silent->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(silent->listener, 16) != 0 ||
        getsockname(silent->listener, (struct sockaddr *)&address, &size) != 0 ||
        pipe(silent->stop) != 0 || pthread_create(&silent->thread, NULL, run, silent) != 0) {
        (void)close(silent->listener);
        free(silent);
        return NULL;
    }
    silent->port = ntohs(address.sin_port);
    return silent;
}

void silent_tls_stop(struct silent_tls *silent)
{
    (void)shutdown(silent->listener, SHUT_RDWR); /* ends the accept */
    (void)close(silent->stop[1]);
    (void)pthread_join(silent->thread, NULL);
    (void)close(silent->stop[0]);
    (void)close(silent->listener);
    free(silent);
}

unsigned int silent_tls_port(const struct silent_tls *silent)
{
    return silent->port;
}
