/* SPDX-License-Identifier: MIT */
/* tcp_proxy.h - a network that can be hurt: stands between clients and one server, counts the
 * messages that pass, cuts the connection at one of them, or swallows what comes.
 *
 * A message is one of the server's own protocol (a packet of MySQL, a typed message of
 * PostgreSQL), so that their number does not depend on how TCP cuts them up. They are numbered
 * over all connections in the order in which they pass. TLS is not taken apart. */
#ifndef DBLOCK_TEST_TCP_PROXY_H
#define DBLOCK_TEST_TCP_PROXY_H

#include <netinet/in.h>
#include <stdint.h>

enum tcp_proxy_wire {
    PROXY_WIRE_RAW, /* a message is what one read gave */
    PROXY_WIRE_PGSQL,
    PROXY_WIRE_MYSQL
};

enum { /* directions, for masks */
    PROXY_TO_SERVER = 1,
    PROXY_TO_CLIENT = 2,
    PROXY_BOTH = 3
};

enum tcp_proxy_cut {
    PROXY_CUTS_BEFORE, /* the message is lost with the connection; every other one by a reset */
    PROXY_CUTS_AFTER   /* it is the last one that gets through */
};

struct tcp_proxy;

/* In front of 127.0.0.1:port. NULL: it cannot be started. */
struct tcp_proxy *tcp_proxy_start(enum tcp_proxy_wire wire, unsigned int server_port);
/* The same; to the server it comes from that address, a text, which may be any of 127.0.0.0/8. */
struct tcp_proxy *tcp_proxy_start_from(
    enum tcp_proxy_wire wire, unsigned int server_port, const char *source);
void tcp_proxy_stop(struct tcp_proxy *proxy); /* takes NULL */
unsigned int tcp_proxy_port(const struct tcp_proxy *proxy);

/* Counts from zero from now on, and ends the connection of message number `at` (1, 2, ...; 0:
 * none), which both sides see. Logging in is counted if `is_login` says so. */
void tcp_proxy_arm(
    struct tcp_proxy *proxy, unsigned int at, enum tcp_proxy_cut cut, int is_login);
/* Counts and cuts nothing any more. 1: it had cut. */
int tcp_proxy_disarm(struct tcp_proxy *proxy);
unsigned int tcp_proxy_n_messages(struct tcp_proxy *proxy);
/* 1: message `at` is followed by another one of its connection and direction, so that a cut after
 * it is one before that. Of the messages counted last, as far as they are remembered. */
int tcp_proxy_is_in_flight(struct tcp_proxy *proxy, unsigned int at);
/* What was cut, for people: "to client Z". */
const char *tcp_proxy_victim(struct tcp_proxy *proxy);
/* Milliseconds since the last message. */
uint64_t tcp_proxy_quiet_ms(struct tcp_proxy *proxy);

/* From now on nothing passes in these directions, of connections that are there and of new ones,
 * and nobody is told; 0 ends it, and what was kept back passes. */
void tcp_proxy_swallow(struct tcp_proxy *proxy, unsigned int directions);
/* Each side to which a direction leads is told that no more will come; the other way goes on. */
void tcp_proxy_half_close(struct tcp_proxy *proxy, unsigned int directions);
/* Each message is kept for so long. */
void tcp_proxy_delay(struct tcp_proxy *proxy, uint64_t delay_ms);
/* Ends all connections. */
void tcp_proxy_cut_all(struct tcp_proxy *proxy);
/* Loses one, the number-th of those that are there, around and around: nothing passes any more,
 * after a pause the client reads its end, and after another one the server gets what the client has
 * sent, and the end. Without a pause both are reset at once. 0: there is none. */
int tcp_proxy_lose(struct tcp_proxy *proxy, unsigned int number, uint64_t pause_ms);

/* On this machine; port 0: one that is free. */
struct sockaddr_in tcp_proxy_address(unsigned int port);

#endif
