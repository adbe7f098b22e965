/* SPDX-License-Identifier: MIT */
/* session_proxy.h - what stands between clients and a server, logs each in with a session of its
 * own there, and may give the next statements of all of them to one of these sessions, as a pooler
 * does that changes the session between two statements. Meanwhile one client at a time speaks. */
#ifndef DBLOCK_TEST_SESSION_PROXY_H
#define DBLOCK_TEST_SESSION_PROXY_H

#include <stddef.h>

struct session_proxy;

/* Alters what a server says first to a client. Called in a thread of the proxy's own. */
typedef void (*session_proxy_fn)(unsigned char *bytes, size_t size);

/* In front of 127.0.0.1:port. `greet` may be NULL. NULL: it cannot be started. */
struct session_proxy *session_proxy_start(unsigned int server_port, session_proxy_fn greet);
void session_proxy_stop(struct session_proxy *proxy); /* takes NULL */
unsigned int session_proxy_port(const struct session_proxy *proxy);

/* From now on all speak to the session of the number-th client that came (0, 1, ...); -1: each to
 * its own. */
void session_proxy_route(struct session_proxy *proxy, int number);

#endif
