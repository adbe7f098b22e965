/* SPDX-License-Identifier: MIT */
/* client.h - a client from the inside, and the order of its locks.
 *
 * Two kinds of mutex, always in this order: a channel's `use` (held during I/O
 * on it), then the client's `mutex` (never held during I/O, a callback or a
 * pause). Everything below says which of them guards it. */
#ifndef DBLK_CLIENT_H
#define DBLK_CLIENT_H

#include <dblock/sys/driver.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/alarm.h"
#include "core/contended.h"
#include "core/environment.h"
#include "core/names.h"
#include "core/options.h"
#include "core/registry.h"

struct dblk_channel;
struct dblk_link;
struct dblk_queue;
struct dblk_seat;
struct dblk_session;
struct dblk_watch;

enum { DBLK_SEEDED_MAX = 256 };

struct dblock_client {
    /* constant after dblock_open() */
    const struct dblock_driver *driver;
    struct dblock_target *target;
    struct dblock_target *keeper_target; /* `target` itself unless there is a keeper_url */
    struct dblk_settings settings;
    struct dblock_borrowing borrowing; /* roles 0: every connection is its own */
    pid_t pid;           /* of the process that opened it, for people */
    uint64_t generation; /* of it: a fork is noticed by this */
    int stop_fd; /* readable once the client is being closed: ends every wait */
    atomic_int spare_epoll_fd; /* of it, for the next wait that heeds a canceller too; or -1 */

    atomic_uint n_refs; /* the opener, each lock object, each call under way */
    atomic_int is_closing;
    atomic_int has_no_line; /* nothing can wake a waiter here, as was found out */
    atomic_uint n_given_back; /* tries of the keeper to give back what callers left behind */

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a connection came back, a session is there, a callback has ended */

    /* guarded by `mutex` from here on */
    struct dblk_link *idle;   /* ROLE_SHORT, most recently used first */
    unsigned n_short;         /* opened, lent or idle */
    struct dblk_link *idle_places; /* ROLE_LINE, without a place */
    unsigned n_idle_places;
    unsigned n_connections;   /* of all roles */
    struct dblk_channel *channels; /* all that are alive, in use or idle */
    struct dblk_channel *buried;   /* dead ones whose connection is still to be closed */
    struct dblk_channel *shared;   /* the advisory channel of all tries, alive */
    uint64_t next_channel_id;
    uint64_t next_link_id;
    struct dblk_session *sessions; /* alive, or beginning, or over but still named by a lock */
    struct dblk_registry registry; /* lock objects by owner id, from before the first send */
    struct dblk_lock_list held;    /* those in force, for the timers */
    struct dblk_names names;       /* the same by name */
    unsigned n_releasing;          /* releases that the database is being told of */
    struct dblk_queue *queues;     /* of names that threads wait for */
    struct dblk_seat *seats;       /* spare ones, for threads that will */
    unsigned n_seats;
    struct dblk_contended contended;
    /* hashes of names whose row was there when last asked for, see join.c; 0 none */
    uint64_t seeded[DBLK_SEEDED_MAX];
    struct dblk_lock_list orphans; /* to be given back by the keeper */
    pthread_cond_t given_back;     /* one of them was, or at least tried */
    struct dblk_breaking *breakings; /* breaks that wait for a guarded transaction */
    struct dblk_event_queue {
        struct dblk_event_node *first, *last;
        int fd; /* -1 until asked for */
    } events;
    struct dblk_event_node *notices_first, *notices_last; /* for on_event, on the keeper's thread */
    struct dblk_watch *watches;      /* connections of the application */
    int is_settling;     /* see borrowed.c */
    dblock_lock *pinned; /* in use without the mutex (its on_event runs): not to be freed */
    struct dblock_stats stats;
    unsigned char random_pool[256]; /* owner ids are drawn in batches: a system call less each */
    size_t n_random;

    struct dblk_keeper {
        pthread_t clock_thread; /* deadlines and callbacks; never does I/O */
        pthread_t work_thread;  /* heartbeats and all else that needs the database */
        atomic_int is_running; /* written under the mutex */
        int is_stopping;
        int wake_fd;           /* ends a rest of the clock thread */
        int epoll_fd;          /* of it: wake_fd and the channels */
        pthread_cond_t work;   /* ends a rest of the work thread */
        uint64_t clock_us;     /* when each will look by itself; 0 while it is at work */
        uint64_t work_us;
        struct dblk_link *link; /* the work thread's alone */
        uint64_t purge_us;
        int64_t server_start_us;
    } keeper;

    struct dblk_alarms alarms; /* of calls by connections; has a mutex of its own */

    pthread_mutex_t control_use; /* I/O on `control`; before `mutex`, after no other */
    struct dblk_link *control;
};

/* The first lines of every public function: E_ARGUMENT, E_CALLBACK, E_FORKED or E_CLOSED. */
dblock_status dblk_client_check(const dblock_client *client, struct dblock_error *reterr);
/* The same, and takes a reference that dblk_client_leave() gives back. */
dblock_status dblk_client_enter(dblock_client *client, struct dblock_error *reterr);
void dblk_client_leave(dblock_client *client);
/* E_CLOSED, of a call that had begun. */
dblock_status dblk_client_closed(struct dblock_error *reterr) DBLOCK_COLD_;

void dblk_client_ref(dblock_client *client);
void dblk_client_unref(dblock_client *client);

int dblk_is_forked(const dblock_client *client);

/* Set while a callback of ours runs on this thread. */
void dblk_callback_begin(void);
void dblk_callback_end(void);
int dblk_is_in_callback(void);

/* A fresh owner or session id; `mutex` held. 0 or an errno. */
int dblk_client_new_id(dblock_client *client, unsigned char id[DBLOCK_ID_SIZE]);

static inline void dblk_lock_client(dblock_client *client)
{
    (void)pthread_mutex_lock(&client->mutex);
}

static inline void dblk_unlock_client(dblock_client *client)
{
    (void)pthread_mutex_unlock(&client->mutex);
}

/* What others read without the mutex: who sees it sees all that was written before. The mutex that
 * is held orders the writers; atomic_store() would wait for the store buffer besides. */
#define dblk_publish(place, value) \
    atomic_store_explicit((place), (value), memory_order_release)

/* Waits on `changed` until then at the latest; `mutex` held. */
void dblk_client_wait(dblock_client *client, uint64_t until_us);

#endif
