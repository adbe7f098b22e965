/* SPDX-License-Identifier: MIT */
/* channel.h - a connection that holds row or advisory locks. What it holds is
 * believed until its deadline, which every proof of life moves. */
#ifndef DBLK_CHANNEL_H
#define DBLK_CHANNEL_H

#include <stdatomic.h>

#include "core/client.h"

struct dblk_channel {
    struct dblk_link *link; /* NULL once closed; both mutexes to change it, either to read it */
    int role;
    uint64_t id;         /* never reused: names it in the keeper's epoll set */
    pthread_mutex_t use; /* I/O on the link; taken before the client's mutex */
    _Atomic uint64_t deadline_us; /* 0 once dead, and as long as nothing is held there */
    /* the client's mutex: */
    unsigned n_refs;     /* the list, lock objects, threads at work with it */
    unsigned n_locks;    /* held by it, or being taken */
    uint64_t next_ping_us;
    uint64_t suspect_us; /* its socket said something: prove it then; 0: it did not */
    int is_dead;
    int is_idle;    /* may be borrowed */
    int is_borrowed; /* it is the application's: lasts as long as that, and is the caller's to use */
    struct dblk_channel *next;
};

/* A channel for one attempt of `strategy`: the shared one for an advisory try, else an idle or a
 * new one. A reference; n_locks counted. `*now_us` is read anew if it took time. */
dblock_status dblk_channel_get(dblock_client *client, int strategy, int is_waiting,
    uint64_t *now_us, uint64_t deadline_us, int cancel_fd, struct dblk_channel **ret_channel, struct dblock_error *reterr);

/* After an attempt without a grant, or after the release of one. Takes NULL. */
void dblk_channel_put(dblock_client *client, struct dblk_channel *channel);
void dblk_channel_put_locked(dblock_client *client, struct dblk_channel *channel); /* mutex held */

/* The client's mutex held: what it holds is lost, and its connection is going to be closed. */
void dblk_channel_lose(
    dblock_client *client, struct dblk_channel *channel, const struct dblock_error *error) DBLOCK_COLD_;
void dblk_channel_unref(struct dblk_channel *channel);
int dblk_channel_is_alive(const dblock_client *client, const struct dblk_channel *channel);

/* Closes the connection of one dead channel; the client's mutex held, but not meanwhile. 0: there
 * was none. A channel at whose connection a thread is at work comes later, unless `is_last`. */
int dblk_channel_bury(dblock_client *client, int is_last);

/* For I/O on a channel: its `use` is taken and a live connection returned, or NULL. */
struct dblock_connection *dblk_channel_use(struct dblk_channel *channel);
void dblk_channel_unuse(struct dblk_channel *channel);

/* It proved itself by an answer to a request sent then. */
void dblk_channel_proved(dblock_client *client, struct dblk_channel *channel, uint64_t sent_us);

/* Closes all; for dblock_close() and for a fork. */
void dblk_channels_close(dblock_client *client, int how);
/* With the client itself: those that a call opened or gave back while it was being closed. */
void dblk_channels_fini(dblock_client *client);

#endif
