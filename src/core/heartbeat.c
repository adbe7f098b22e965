/* SPDX-License-Identifier: MIT */
/* heartbeat.c - the arithmetic of staying alive.
 *
 * A renewal goes out every third of the ttl. The deadline is at 7/8 of it, so
 * after a good heartbeat two more may fail outright, and the time between is
 * filled with retries. Once the deadline has passed there is no way back: a
 * late yes would revive grants that their holders were told they had lost. */
#include "core/heartbeat.h"

#include "core/environment.h"

void dblk_heartbeat_start(struct dblk_heartbeat *heartbeat, uint64_t sent_us, uint64_t ttl_us)
{
    heartbeat->ttl_us = ttl_us;
    heartbeat->deadline_us = dblk_belief_end(sent_us, ttl_us);
    heartbeat->next_us = dblk_later(sent_us, ttl_us / 3);
    heartbeat->changed = 0;
    heartbeat->n_failures = 0;
    heartbeat->is_lost = 0;
}

enum dblk_heartbeat_verdict dblk_heartbeat_check(struct dblk_heartbeat *heartbeat, uint64_t now_us)
{
    if (now_us >= heartbeat->deadline_us)
        heartbeat->is_lost = 1;
    return heartbeat->is_lost ? DBLK_BEAT_LOST : DBLK_BEAT_KEEP;
}

enum dblk_heartbeat_verdict dblk_heartbeat_answered(struct dblk_heartbeat *heartbeat,
    uint64_t sent_us, uint64_t now_us, int is_yes, uint64_t changed)
{
    enum dblk_heartbeat_verdict verdict = DBLK_BEAT_KEEP;

    if (dblk_heartbeat_check(heartbeat, now_us) == DBLK_BEAT_LOST || !is_yes) {
        heartbeat->is_lost = 1;
        return DBLK_BEAT_LOST;
    }
    if (changed != heartbeat->changed)
        verdict = DBLK_BEAT_READ;
    heartbeat->changed = changed;
    heartbeat->n_failures = 0;
    heartbeat->deadline_us = dblk_belief_end(sent_us, heartbeat->ttl_us);
    heartbeat->next_us = dblk_later(sent_us, heartbeat->ttl_us / 3);
    /* an answer so late that the next one is due already: not a burst of them */
    if (heartbeat->next_us < now_us)
        heartbeat->next_us = dblk_later(now_us, heartbeat->ttl_us / 16);
    return verdict;
}

enum dblk_heartbeat_verdict dblk_heartbeat_failed(
    struct dblk_heartbeat *heartbeat, uint64_t now_us, uint64_t random)
{
    uint64_t pause_us = heartbeat->ttl_us / 64;

    if (dblk_heartbeat_check(heartbeat, now_us) == DBLK_BEAT_LOST)
        return DBLK_BEAT_LOST;
    /* grows to ttl/16, so that many tries fit before the deadline without a storm on a server
     * that is just starting; spread, because all its clients lost it at the same moment */
    if (heartbeat->n_failures < 4)
        pause_us = pause_us * (heartbeat->n_failures + 1);
    else
        pause_us = heartbeat->ttl_us / 16;
    ++heartbeat->n_failures;
    pause_us = pause_us / 2 + random % (pause_us / 2 + 1);
    heartbeat->next_us = dblk_sooner(dblk_later(now_us, pause_us), heartbeat->deadline_us);
    return DBLK_BEAT_RETRY;
}
