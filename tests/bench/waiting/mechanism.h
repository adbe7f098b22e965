/* SPDX-License-Identifier: MIT */
/* mechanism.h - one way to lock a name and to wait for it: through the library, or a raw
 * loop on the client library of the database. */
#ifndef DBLOCK_BENCH_MECHANISM_H
#define DBLOCK_BENCH_MECHANISM_H

#include <stdint.h>

struct place;

struct opening {
    const struct place *place; /* the database */
    const char *url;
    const char *folder; /* for files */
    char name[96];      /* to be locked; of no other turn */
    uint64_t ttl_ms;    /* 0: the library's own */
    uint64_t wait_ms;   /* how long the library is to wait; DBLOCK_FOREVER */
    int has_no_canceller; /* a signal does not end its waits, then */
};

enum { ACQUIRED = 0, ENDED = 1, FAILED = -1 };

struct mechanism {
    const char *name; /* as in the tables */
    int strategy;     /* DBLOCK_LEASE etc.; 0: a raw loop */
    int kind;         /* which raw loop, as its file knows */
    /* Connects. NULL, or -1 below: failed, and complain() has been told why. */
    void *(*open)(const struct mechanism *mechanism, const struct opening *opening);
    void *(*share)(void *hand, const char *name); /* for another thread; NULL: cannot */
    int (*acquire)(void *hand, int64_t *ret_token); /* token 0: has none without asking */
    int (*release)(void *hand);
    void (*close)(void *hand);
};

/* Keeps what went wrong for this thread's complaint(). Always -1. */
int complain(const char *what, const char *why);
const char *complaint(void);

/* The library's. */
void *hand_open(const struct mechanism *mechanism, const struct opening *opening);
void *hand_share(void *hand, const char *name);
int hand_acquire(void *hand, int64_t *ret_token);
int hand_release(void *hand);
void hand_close(void *hand);
/* In a child: SIGTERM ends its waits, and acquire answers ENDED. */
int hand_end_by_signal(void);

#define THROUGH_LIBRARY(text, strategy)                                                            \
    { text, strategy, 0, hand_open, hand_share, hand_acquire, hand_release, hand_close }

#endif
