/* SPDX-License-Identifier: MIT */
/* session.h - the heartbeat rows of this client: one for each ttl class in use.
 * An id is inserted once; a session that was lost is never revived, a new one
 * takes its place. Guarded by the client's mutex, except `deadline_us`. */
#ifndef DBLK_SESSION_H
#define DBLK_SESSION_H

#include <stdatomic.h>

#include "core/client.h"
#include "core/heartbeat.h"

enum dblk_session_state {
    DBLK_SESSION_BEGINNING = 0, /* its row is being inserted by some thread */
    DBLK_SESSION_ALIVE,
    DBLK_SESSION_LOST,   /* never renewed again; its row is still to be deleted, if it is there */
    DBLK_SESSION_ENDED   /* its row is gone */
};

struct dblk_session {
    unsigned char id[DBLOCK_ID_SIZE];
    uint64_t ttl_us;
    _Atomic uint64_t deadline_us; /* belief of all its grants; 0 once lost */
    enum dblk_session_state state;
    unsigned n_refs; /* lock objects, attempts included, and threads that wait for its beginning */
    struct dblk_heartbeat beat;
    uint64_t read_back_us;  /* when to read back what it holds; DBLK_NEVER not wanted */
    uint64_t read_us;       /* when the last one that was answered was sent; 0 none was */
    uint64_t give_up_us;    /* LOST: when its row has expired for certain */
    uint64_t retry_us;      /* LOST: when to try to delete the row */
    unsigned n_beats;       /* answered */
    int is_broken;          /* the heartbeat told that something of it was broken */
    int is_announced;       /* EXPIRING was told of a grant of it since the last answer */
    struct dblk_session *next;
};

/* A session of that class with time left, begun if need be; a reference. Failures of the beginning
 * are E_CONNECTION and the like, never UNCERTAIN: a row nobody uses is no harm. */
dblock_status dblk_session_get(dblock_client *client, uint64_t now_us, uint64_t ttl_us,
    uint64_t deadline_us, int cancel_fd, struct dblk_session **ret_session, struct dblock_error *reterr);

/* The client's mutex held: */
void dblk_session_unref(dblock_client *client, struct dblk_session *session);
/* All its grants are lost. */
void dblk_session_lose(dblock_client *client, struct dblk_session *session, int cause,
    const struct dblock_error *error);
/* The database said that it is over: stop using it. */
void dblk_session_ended(dblock_client *client, struct dblk_session *session, int cause,
    const struct dblock_error *error);
/* Read back soon what it holds: something may be there that nobody here owns. */
void dblk_session_read_back(
    dblock_client *client, struct dblk_session *session, uint64_t at_us);

#endif
