/* SPDX-License-Identifier: MIT */
/* bank.h - what all parts of the bank know of it. */
#ifndef DBLOCK_TEST_BANK_H
#define DBLOCK_TEST_BANK_H

#include <stdatomic.h>
#include <stdint.h>

#include "application.h"

enum {
    BANK_TELLERS = 16,
    BANK_STAGED = 2, /* accounts with the highest numbers, for the staged tellers only */
    BANK_ROUTES = 3
};

enum bank_locking {
    BANK_BARE,     /* no lock at all */
    BANK_HELD,     /* both accounts' locks, and the transaction is not bound to them */
    BANK_GUARDED,  /* it is */
    BANK_JOINED    /* the locks are the transaction's own */
};

/* In memory that all processes share. */
struct bank_tally {
    atomic_uint n_transfers; /* that were acknowledged */
    atomic_uint n_unknown;   /* whose COMMIT had no good answer */
    atomic_uint n_lost;      /* the guard said so */
    atomic_uint n_stale;     /* a snapshot that is too old, by the guard or the joined lock */
    atomic_uint n_conflicts; /* the database rolled back, or a statement failed */
    atomic_uint n_pauses;
    atomic_uint n_served[BANK_TELLERS]; /* so that one that stands still is seen */
};

/* A server's port, and that of the network in front of it. */
struct bank_route {
    unsigned server;
    unsigned proxy;
};

struct bank {
    const struct application *application;
    int strategy;
    int reads_snapshot;
    enum bank_locking locking;
    int n_accounts; /* without the staged ones */
    int part;       /* of the transfers that are asked for */
    unsigned ttl_ms;
    unsigned seed;
    int teller; /* which of them is started */
    struct bank_tally *tally;
    int n_routes; /* 0: nothing is between the tellers and the server */
    struct bank_route routes[BANK_ROUTES];
};

static inline unsigned bank_draw(uint64_t *random, unsigned below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (unsigned)((*random >> 11) % below);
}

#endif
