/* SPDX-License-Identifier: MIT */
/* liar.h - what the fuzzers of servers' answers share: a server in a thread that says what the bytes
 * of an input make it say (x_answer_fuzz.c knows the protocol), and a client that uses all of it.
 *
 * Connections are served in one loop, several at once, as the keeper has its own. */
#ifndef DBLOCK_TEST_LIAR_H
#define DBLOCK_TEST_LIAR_H

#include <pthread.h>
#include <stdatomic.h>

#include <dblock/dblock.h>

#include "fuzz.h"

enum { LIAR_CONNECTIONS = 8, LIAR_PACKET_MAX = 1 << 16 };

/* What the server says next: the bytes of the input, from the begin again at their end. */
struct script {
    const uint8_t *bytes;
    size_t size;
    size_t next;
};

unsigned draw(struct script *script);

struct liar;

struct liar_connection {
    int fd; /* -1: a free place */
    int phase; /* 0 when it has just come */
    unsigned number;
    unsigned n_columns; /* of what was described last */
};

struct liar {
    /* Somebody has come; somebody has said something. 0: hang up. */
    int (*greet)(struct liar *liar, struct liar_connection *connection);
    int (*answer)(struct liar *liar, struct liar_connection *connection);
    struct script script;
    atomic_int has_granted; /* it said something that a client may take for a grant of its own */
    char folder[64];
    char path[96]; /* "": a port */
    unsigned port;
    struct liar_connection connections[LIAR_CONNECTIONS];
    unsigned n_greeted;
    int listener;
    int stop[2];
    pthread_t thread;
};

/* Listens at /tmp/dblock-fuzz.PID/FILE, or, if NULL, at a port of 127.0.0.1. */
void liar_start(struct liar *liar, const char *file);
void liar_stop(struct liar *liar);

/* 1, or the other end is gone. */
int liar_receive(int fd, void *bytes, size_t size);
int liar_skip(int fd, size_t size);
int liar_send(int fd, const void *bytes, size_t size);

/* Opens, asks for what the bits of `what` say, and closes. Each call says how it ended, and a lease
 * or insert is claimed only if the server granted one. */
void liar_use(struct liar *liar, const dblock_driver *driver, const char *url, unsigned what);

#endif
