/* SPDX-License-Identifier: MIT */
/* watch.c - see watch.h. How a statement is cancelled is the drivers' business. */
#include "core/watch.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/borrowed.h"
#include "core/event.h"

enum { FIRST_PAUSE_US = 20000, LAST_PAUSE_US = 1000000 };

struct dblk_watch {
    dblock_lock *lock;
    struct dblock_watch way;
    pthread_t thread;
    pthread_cond_t changed; /* of the two below, which the client's mutex guards */
    int is_lost;
    int is_ended;
    int end_fd; /* readable when it is ended: a cancel under way shall not go on */
    struct dblk_watch *next; /* of the client's */
};

/* The statement that was seen running may have ended, and the next one begun, before the
 * application looked: so again and again, until it says that it knows. */
static void *run(void *context)
{
    struct dblk_watch *watch = context;
    dblock_client *client = watch->lock->client;
    uint64_t pause_us = FIRST_PAUSE_US;
    struct dblock_call call;

    dblk_lock_client(client);
    while (!watch->is_ended) {
        if (!watch->is_lost) {
            (void)pthread_cond_wait(&watch->changed, &client->mutex);
            continue;
        }
        dblk_unlock_client(client);
        call.deadline_us = dblk_later(dblk_now_us(), client->settings.io_us);
        call.cancel_fd = watch->end_fd;
        watch->way.cancel(watch->way.context, &call);
        dblk_lock_client(client);
        if (!watch->is_ended)
            dblk_wait_condition(
                &watch->changed, &client->mutex, dblk_later(dblk_now_us(), pause_us));
        pause_us = dblk_sooner(2 * pause_us, LAST_PAUSE_US);
    }
    dblk_unlock_client(client);
    return NULL;
}

void dblk_watch_fire(dblock_lock *lock)
{
    struct dblk_watch *watch = lock->client->watches;

    if (atomic_load(&lock->n_watches) == 0)
        return;
    for (; watch != NULL; watch = watch->next)
        if (watch->lock == lock) {
            watch->is_lost = 1;
            (void)pthread_cond_signal(&watch->changed);
        }
}

static void destroy(struct dblk_watch *watch, int is_forked)
{
    watch->way.free(watch->way.context);
    if (!is_forked)
        (void)pthread_cond_destroy(&watch->changed);
    if (watch->end_fd >= 0)
        (void)close(watch->end_fd);
    dblk_release(watch);
}

/* Out of the client's list: those of a lock, or (NULL) all. */
static struct dblk_watch *take_out(dblock_client *client, const dblock_lock *lock)
{
    struct dblk_watch **place = &client->watches;
    struct dblk_watch *found = NULL;
    struct dblk_watch *watch;

    while ((watch = *place) != NULL)
        if (lock == NULL || watch->lock == lock) {
            *place = watch->next;
            watch->next = found;
            found = watch;
            (void)atomic_fetch_sub(&watch->lock->n_watches, 1);
        } else {
            place = &watch->next;
        }
    return found;
}

static void end(dblock_client *client, const dblock_lock *lock)
{
    struct dblk_watch *first, *watch;

    dblk_lock_client(client);
    first = take_out(client, lock);
    for (watch = first; watch != NULL; watch = watch->next) {
        watch->is_ended = 1;
        (void)pthread_cond_signal(&watch->changed);
        dblk_signal_fd_raise(watch->end_fd);
    }
    dblk_unlock_client(client);
    while ((watch = first) != NULL) {
        first = watch->next;
        (void)pthread_join(watch->thread, NULL);
        destroy(watch, 0);
    }
}

void dblk_watch_end_now(dblock_lock *lock)
{
    end(lock->client, lock);
}

void dblk_watch_end_all(dblock_client *client)
{
    end(client, NULL);
}

void dblk_watch_forget(dblock_lock *lock)
{
    struct dblk_watch *first = take_out(lock->client, lock);
    struct dblk_watch *watch;

    while ((watch = first) != NULL) {
        first = watch->next;
        destroy(watch, 1);
    }
}

/* The mutex held. 0, or an errno: nothing has changed. */
static int start(dblock_client *client, struct dblk_watch *watch)
{
    sigset_t all, before;
    int fault;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    fault = pthread_create(&watch->thread, NULL, run, watch);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (fault == 0) {
        watch->next = client->watches;
        client->watches = watch;
        (void)atomic_fetch_add(&watch->lock->n_watches, 1);
    }
    return fault;
}

static dblock_status no_means(int fault, struct dblock_error *reterr)
{
    dblock_status status = dblock_error_set(reterr, DBLOCK_E_SYSTEM,
        "raise the limit of processes, of open files or of memory",
        "cannot start the thread of a watch: %s", strerror(fault));

    dblock_error_native(reterr, fault, NULL, 1);
    return status;
}

dblock_status dblock_watch_check(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    dblock_status status = dblk_lock_enter(lock, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (lock->client->driver != driver)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "use the function of its own driver",
            "lock: \"%s\" is not in a database of this kind", lock->subject.name);
    *ret_target =
        dblk_is_borrowing(lock->client) ? lock->client->keeper_target : lock->client->target;
    dblk_lock_client(lock->client);
    (void)dblk_lock_expire(lock, dblk_now_us());
    if (atomic_load(&lock->state) != DBLK_LOCK_HELD)
        status = dblk_lock_gone(lock);
    dblk_unlock_client(lock->client);
    return status;
}

dblock_status dblock_watch_begin(
    dblock_lock *lock, const struct dblock_watch *way, struct dblock_error *reterr)
{
    dblock_client *client = lock->client;
    struct dblk_watch *watch = dblk_allocate(sizeof *watch);
    dblock_status status = DBLOCK_OK;
    int fault;

    if (watch == NULL) {
        way->free(way->context);
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    }
    watch->lock = lock;
    watch->way = *way;
    watch->end_fd = -1;
    fault = dblk_condition_init(&watch->changed);
    if (fault == 0)
        fault = dblk_signal_fd_new(&watch->end_fd);
    dblk_lock_client(client);
    if (atomic_load(&client->is_closing))
        status = dblock_error_set(reterr, DBLOCK_E_CLOSED, NULL, "the client has been closed");
    else if (atomic_load(&lock->state) != DBLK_LOCK_HELD)
        status = dblk_lock_gone(lock); /* while the connection was looked at */
    else if (fault == 0)
        fault = start(client, watch);
    dblk_unlock_client(client);
    if (status == DBLOCK_OK && fault != 0)
        status = no_means(fault, reterr);
    if (status != DBLOCK_OK)
        destroy(watch, 0);
    return status;
}

void dblock_watch_end(dblock_lock *lock)
{
    if (lock == NULL)
        return;
    if (dblk_is_forked(lock->client))
        dblk_watch_forget(lock);
    else
        dblk_watch_end(lock);
}
