/* SPDX-License-Identifier: MIT */
/* lock.h - one lock object from the inside: an attempt, then a grant, then what
 * is left of it. One allocation, from before the first send. */
#ifndef DBLK_LOCK_H
#define DBLK_LOCK_H

#include <stdatomic.h>

#include "core/client.h"
#include "core/event.h"
#include "strategy/strategy.h"

enum dblk_lock_state {
    DBLK_LOCK_TAKING = 0, /* an acquire is under way */
    DBLK_LOCK_HELD,
    DBLK_LOCK_RELEASING, /* belief is over, the release is under way */
    DBLK_LOCK_RELEASED,
    DBLK_LOCK_LOST,
    DBLK_LOCK_JOINED /* to a transaction of the application; nothing is known of its end */
};

struct dblock_lock {
    /* constant once handed out */
    dblock_client *client;
    const struct dblk_strategy *strategy;
    struct dblock_subject subject; /* the name stands behind the struct */
    uint64_t name_hash;
    const char *label;
    unsigned char owner[DBLOCK_ID_SIZE];
    uint64_t asked_ttl_us; /* what dblock_extend(lock, 0) gives again */
    uint64_t min_hold_us;
    uint64_t expiring_us;
    int is_fenced;         /* has its token since before anybody was told of the grant */
    dblock_event_fn on_event;
    void *context;

    /* read by anybody at any time */
    atomic_int state; /* written under the client's mutex */
    atomic_int cause;
    atomic_uint n_watches; /* written under the client's mutex */
    _Atomic uint64_t ttl_us;
    _Atomic uint64_t own_deadline_us;             /* of a timed grant */
    _Atomic(const _Atomic uint64_t *) deadline_us; /* own, the session's, or the channel's */

    /* guarded by the client's mutex */
    char owner_text[40];          /* "" until somebody asks for it; does not change then */
    struct dblk_session *session; /* of a heartbeat grant; a reference */
    struct dblk_channel *channel; /* of row and advisory */
    int64_t token;                /* 0: none drawn */
    uint64_t link_id;             /* of lease and insert: the connection that took it */
    uint64_t taken_us;            /* when the request left that was granted */
    uint64_t granted_us;          /* when its answer was seen */
    int is_import;                /* freeing it gives nothing back */
    int is_exported;              /* somebody else may know it */
    int is_given_back;            /* by a transaction of the application, if that is committed */
    unsigned n_handed;            /* from thread to thread, since the database granted it */
    uint64_t handed_since_us;     /* when that was */
    int is_remote_heartbeat;      /* import: renewed elsewhere */
    int is_announced;             /* EXPIRING was told */
    int fd;                       /* -1 until asked for */
    struct dblk_event_node lost, expiring, restored;
    struct dblock_lock *next_in_bucket, *next_of_name, *next, *previous;
    int is_settled; /* released, and nobody knows it but its owner: it goes without the mutex */
    int is_registered;
    int is_in_names;
    int is_in_held;
    uint64_t read_us;    /* when the read-back was sent that saw it last */
    unsigned n_extending;     /* extends under way */
    unsigned n_drawing;       /* draws of a token under way */
    unsigned extend_round;    /* counts every one that was begun */
    uint64_t least_ttl_us;    /* of an extend whose answer was lost: it may yet come; 0 none */
    uint64_t least_until_us;  /* when it cannot any more */

    /* of an orphan: the caller has gone, the keeper gives it back */
    int is_freed;          /* the object is the keeper's to free */
    int is_orphan;
    uint64_t retry_us;     /* when to try next */
    uint64_t hopeless_us;  /* when nothing can be in force any more */
    int64_t not_after_us;  /* database clock: the take may still come until then; 0 it cannot */
    unsigned n_retries;
};

/* NULL without memory. Has a reference on the client from then on: one that the caller took. */
dblock_lock *dblk_lock_new(dblock_client *client, const char *name, const struct dblk_wish *wish);
/* Frees memory, descriptor and references; it is in no list and no registry. */
void dblk_lock_destroy(dblock_lock *lock);

/* The client's mutex held: */
int dblk_lock_register(dblock_lock *lock); /* with a fresh owner id; 0, an errno, or ENOMEM */
void dblk_lock_unregister(dblock_lock *lock);
/* Is this text, as databases tell it, its owner? */
int dblk_lock_is_of(const dblock_lock *lock, const char *owner);
void dblk_lock_hold(dblock_lock *lock);    /* TAKING -> HELD, into the list of those in force */
void dblk_lock_unhold(dblock_lock *lock, enum dblk_lock_state state); /* out of it again */
/* HELD -> LOST: tells by descriptor, event or callback, unless it was given back by the application's
 * transaction. No effect in another state. */
void dblk_lock_lose(dblock_lock *lock, int cause, const struct dblock_error *error);
/* Lost if its deadline has passed: whoever sees that first says so, and nothing that comes later
 * brings belief back. 1 if it is over by that. */
int dblk_lock_expire(dblock_lock *lock, uint64_t now_us);
/* To the keeper, to be given back: after `not_after_us` if it may still be granted. */
void dblk_lock_orphan(dblock_lock *lock, int64_t not_after_us);

/* The mutex not held. After a try that found `lock` taken: perhaps by a grant that this very client
 * has freed and the keeper has not given back yet. Waits for that, and says whether anything was given
 * back since client->n_given_back was `n_before`: then it is worth another try. */
int dblk_orphans_await(const dblock_lock *lock, unsigned n_before, uint64_t until_us);

/* What a call on a lock that is not in force any more answers: LOST, or NOT_HELD. */
dblock_status dblk_lock_gone(const dblock_lock *lock);
/* A release has ended: says so if nothing has to be waited for or taken back when it is freed. */
void dblk_lock_settle(dblock_lock *lock);

/* Joined, and not released yet; and what a call answers that only the transaction could. */
int dblk_lock_is_joined(const dblock_lock *lock);
dblock_status dblk_lock_refuse_joined(const dblock_lock *lock, struct dblock_error *reterr);

uint64_t dblk_lock_deadline(const dblock_lock *lock);

/* What is left of min_hold_ms: how long the name stays taken after a release at `now_us`. */
uint64_t dblk_lock_keep_us(const dblock_lock *lock, uint64_t now_us);

/* The first lines of a function on a lock; as dblk_client_check(). The lock's own reference keeps
 * the client: whoever is in here must not be overtaken by dblock_lock_free(). */
dblock_status dblk_lock_enter(dblock_lock *lock, struct dblock_error *reterr);

#endif
