/* SPDX-License-Identifier: MIT */
/* link.h - a connection with what is known of its server's clock, and the pool
 * of those that short steps borrow. */
#ifndef DBLK_LINK_H
#define DBLK_LINK_H

#include "core/client.h"

struct dblk_link {
    struct dblock_connection *connection;
    struct dblk_alarm alarm; /* of the call under way */
    int is_over;             /* it has rung */
    int role;
    uint64_t id; /* never reused within a client */
    int is_reused; /* it had been idle before this use: the server may have closed it meanwhile */
    /* Database clock minus this machine's, a lower bound: at local time L the database's clock
     * shows at least L + offset. (The answer's clock was read before the answer was seen.) */
    int64_t clock_offset_us;
    uint64_t heard_us; /* when its last answer was seen */
    struct dblk_link *next;
};

/* Connects, within connect_timeout_ms and by `deadline_us`; the client's mutex not held. */
dblock_status dblk_link_open(dblock_client *client, int role, uint64_t deadline_us, int cancel_fd,
    struct dblk_link **ret_link, struct dblock_error *reterr);
/* Takes NULL. `how`: DBLOCK_CLOSE_* */
void dblk_link_close(dblock_client *client, struct dblk_link *link, int how);

/* Around one short step by a link, of which the driver waits for nothing but the server's answer:
 * then it need not watch the time itself. What begin returns is for end, which returns what has
 * become of the step: `lost` if its time was over. */
int dblk_link_begin(dblock_client *client, struct dblk_link *link, struct dblock_call *call);
dblock_status dblk_link_end(dblock_client *client, struct dblk_link *link, int is_watched,
    dblock_status status, dblock_status lost, struct dblock_error *error);

/* A ROLE_SHORT link: an idle one, or a new one; waits while connections_max are lent, until
 * `deadline_us` at the latest. `*now_us` is read anew if it took time. */
dblock_status dblk_link_lend(dblock_client *client, uint64_t *now_us, uint64_t deadline_us,
    int cancel_fd, struct dblk_link **ret_link, struct dblock_error *reterr);
/* Takes NULL. A dead one is closed. */
void dblk_link_return(dblock_client *client, struct dblk_link *link);

/* Without I/O. 0: of no use any more. */
int dblk_link_is_alive(const dblock_client *client, const struct dblk_link *link);
/* Is an idle link still of use? Without a round trip: its socket has nothing to say. */
int dblk_link_is_quiet(const dblock_client *client, const struct dblk_link *link);
/* The same on the way of every acquire and release: one that answered a moment ago is believed
 * without the system call. If it ended in that moment, the step finds out, as it would if it ended
 * a moment later. */
int dblk_link_is_good(
    const dblock_client *client, const struct dblk_link *link, uint64_t now_us);

/* What an answer tells of the clock. */
void dblk_link_saw_clock(dblock_client *client, struct dblk_link *link, uint64_t sent_us,
    uint64_t seen_us, int64_t database_us);

/* The database's clock at local time `local_us`, at least. */
static inline int64_t dblk_link_database_us(const struct dblk_link *link, uint64_t local_us)
{
    return (int64_t)local_us + link->clock_offset_us;
}

/* One short step on a lent link. A connection that had gone stale is replaced; an answer that was
 * lost, and AGAIN, are asked for again within the I/O limit, and PINNED for a moment; so only
 * steps that may be repeated go this way. */
typedef dblock_status (*dblk_short_fn)(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error);

struct dblk_short_result {
    struct dblock_answer answer;
    uint64_t sent_us; /* of the request that was answered */
    int was_uncertain; /* an earlier answer was lost: the step may have been done twice */
};

/* `now_us`: the time, or 0. `link_id`: of the connection that it should go by if that is idle; 0. */
dblock_status dblk_short(dblock_client *client, uint64_t now_us, uint64_t link_id,
    dblk_short_fn fn, void *context,
    struct dblk_short_result *ret_result, struct dblock_error *reterr);

#endif
