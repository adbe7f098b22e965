/* SPDX-License-Identifier: MIT */
/* heartbeat.h - when a session is renewed and until when it may be believed: a
 * pure machine, without clock and I/O, run by the keeper and by the simulation. */
#ifndef DBLK_HEARTBEAT_H
#define DBLK_HEARTBEAT_H

#include <stdint.h>

enum dblk_heartbeat_verdict {
    DBLK_BEAT_KEEP = 1, /* renewed: the deadline has moved */
    DBLK_BEAT_READ,     /* renewed, and somebody broke one of its grants: read back which */
    DBLK_BEAT_RETRY,    /* no answer; next_us is when to try again */
    DBLK_BEAT_LOST      /* over: nothing that it holds may be believed; never renewed again */
};

struct dblk_heartbeat {
    uint64_t ttl_us;
    uint64_t deadline_us; /* belief ends here */
    uint64_t next_us;     /* when to renew */
    uint64_t changed;     /* the database's counter as last seen */
    unsigned n_failures;  /* in a row */
    int is_lost;
};

/* The row was inserted by a request sent at `sent_us`. */
void dblk_heartbeat_start(struct dblk_heartbeat *heartbeat, uint64_t sent_us, uint64_t ttl_us);

/* A renewal sent at `sent_us` was answered yes or no, seen at `now_us`. */
enum dblk_heartbeat_verdict dblk_heartbeat_answered(struct dblk_heartbeat *heartbeat,
    uint64_t sent_us, uint64_t now_us, int is_yes, uint64_t changed);

/* A renewal failed, or its answer was lost. */
enum dblk_heartbeat_verdict dblk_heartbeat_failed(
    struct dblk_heartbeat *heartbeat, uint64_t now_us, uint64_t random);

/* The clock alone: LOST from the deadline on, else KEEP. */
enum dblk_heartbeat_verdict dblk_heartbeat_check(struct dblk_heartbeat *heartbeat, uint64_t now_us);

/* Until when a grant may be believed that was asked for at `sent_us` and that the database ends
 * `ttl_us` after its own now. The request left at sent_us, so the database counted from a moment
 * not before it: sent + ttl is safe if both clocks run at one rate. They may not (a clock being
 * slewed runs up to 8.3 % off), hence an eighth less. */
static inline uint64_t dblk_belief_end(uint64_t sent_us, uint64_t ttl_us)
{
    uint64_t belief_us = ttl_us - ttl_us / 8;

    return belief_us > UINT64_MAX - sent_us ? UINT64_MAX : sent_us + belief_us;
}

#endif
