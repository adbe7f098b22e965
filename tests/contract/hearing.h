/* SPDX-License-Identifier: MIT */
/* hearing.h - an on_event that notes what it is told. */
#ifndef DBLOCK_TEST_HEARING_H
#define DBLOCK_TEST_HEARING_H

#include "contract.h"

enum {
    HEARING_TTL_MS = 700, /* of take_hearing(), where a test waits for the end of a grant */
    STEADY_TTL_MS = 2400 /* where a heartbeat has to get through first, on a busy machine too */
};

/* What on_event heard. */
struct hearing {
    uint64_t ttl_ms; /* 0: HEARING_TTL_MS */
    atomic_int n_lost;
    atomic_int n_expiring;
    atomic_int n_restored;
    atomic_int n_others;
    atomic_int cause;
    atomic_int was_held;
    _Atomic uint64_t remaining_ms;
    dblock_lock *lock; /* of the event */
    void (*act)(const struct dblock_event *event, struct hearing *hearing);
    dblock_client *client;
    int n_wrong;
    atomic_int is_handed_over; /* the lock is the callback's to free */
};

void hear(const struct dblock_event *event, void *hearing);
int has_heard_lost(void *hearing); /* for test_until() */

/* Takes the name with the ttl of `hearing`; what happens to it is noted in `hearing`. */
dblock_lock *take_hearing(
    struct contract *contract, dblock_client *client, const char *name, struct hearing *hearing);

#endif
