/* SPDX-License-Identifier: MIT */
/* lock.c - the life of a lock object, and what can be read off it without I/O. */
#include "core/lock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/channel.h"
#include "core/keeper.h"
#include "core/keeper_work.h"
#include "core/queue.h"
#include "core/session.h"
#include "core/watch.h"

dblock_lock *dblk_lock_new(dblock_client *client, const char *name, const struct dblk_wish *wish)
{
    size_t name_size = strlen(name);
    size_t label_size = strlen(wish->label);
    dblock_lock *lock = dblk_allocate(sizeof *lock + name_size + label_size + 2);
    char *text;

    if (lock == NULL)
        return NULL;
    text = (char *)(lock + 1);
    memcpy(text, name, name_size);
    memcpy(text + name_size + 1, wish->label, label_size);
    lock->client = client;
    lock->strategy = dblk_strategy_of(wish->strategy);
    lock->subject.name = text;
    lock->subject.name_size = name_size;
    lock->subject.advisory_id = wish->advisory_id;
    lock->subject.has_advisory_id = wish->has_advisory_id;
    lock->label = text + name_size + 1;
    lock->name_hash = dblk_name_hash(lock->strategy->id, &lock->subject);
    lock->asked_ttl_us = wish->ttl_us;
    lock->min_hold_us = wish->min_hold_us;
    lock->expiring_us = wish->expiring_us;
    lock->is_fenced = wish->is_fenced;
    lock->on_event = wish->on_event;
    lock->context = wish->context;
    lock->fd = -1;
    atomic_init(&lock->state, DBLK_LOCK_TAKING);
    atomic_init(&lock->cause, DBLOCK_CAUSE_NONE);
    atomic_init(&lock->ttl_us, wish->ttl_us);
    atomic_init(&lock->own_deadline_us, 0);
    atomic_init(&lock->deadline_us, &lock->own_deadline_us);
    return lock;
}

void dblk_lock_destroy(dblock_lock *lock)
{
    dblock_client *client = lock->client;

    if ((lock->channel != NULL || lock->session != NULL) && !dblk_is_forked(client)) {
        dblk_lock_client(client);
        dblk_channel_put_locked(client, lock->channel);
        dblk_session_unref(client, lock->session);
        dblk_unlock_client(client);
    }
    if (atomic_load(&lock->n_watches) != 0)
        dblk_watch_forget(lock);
    if (lock->fd >= 0)
        (void)close(lock->fd);
    dblk_release(lock->lost.error);
    dblk_release(lock->expiring.error);
    dblk_release(lock->restored.error);
    dblk_release(lock);
    dblk_client_unref(client);
}

int dblk_lock_register(dblock_lock *lock)
{
    int fault = dblk_client_new_id(lock->client, lock->owner);

    if (fault != 0 || lock->session == NULL) /* only rows of a session are read back */
        return fault;
    if (dblk_registry_reserve(&lock->client->registry) != 0)
        return ENOMEM;
    dblk_registry_add(&lock->client->registry, lock);
    lock->is_registered = 1;
    return 0;
}

int dblk_lock_is_of(const dblock_lock *lock, const char *owner)
{
    char text[sizeof lock->owner_text];

    dblock_id_text(lock->owner, text);
    return strcmp(text, owner) == 0;
}

void dblk_lock_unregister(dblock_lock *lock)
{
    if (lock->is_registered)
        dblk_registry_remove(&lock->client->registry, lock);
    lock->is_registered = 0;
}

void dblk_lock_hold(dblock_lock *lock)
{
    dblk_publish(&lock->state, DBLK_LOCK_HELD);
    dblk_list_add(&lock->client->held, lock);
    lock->is_in_held = 1;
    if (!lock->is_import && !lock->is_in_names)
        dblk_names_add(&lock->client->names, lock);
}

void dblk_lock_unhold(dblock_lock *lock, enum dblk_lock_state state)
{
    dblk_publish(&lock->state, state);
    if (lock->is_in_held)
        dblk_list_remove(&lock->client->held, lock);
    lock->is_in_held = 0;
    dblk_names_remove(&lock->client->names, lock);
    if (state != DBLK_LOCK_RELEASING) /* else when the database knows it */
        dblk_queue_wake(lock);
    if (lock->fd >= 0)
        dblk_signal_fd_raise(lock->fd);
}

void dblk_lock_lose(dblock_lock *lock, int cause, const struct dblock_error *error)
{
    if (atomic_load(&lock->state) != DBLK_LOCK_HELD)
        return;
    dblk_lock_unhold(lock, DBLK_LOCK_LOST);
    if (lock->is_given_back) /* that transaction was committed: no loss */
        return;
    atomic_store(&lock->cause, cause);
    ++lock->client->stats.lost;
    dblk_event_tell(lock, &lock->lost, DBLOCK_EVENT_LOST, cause, error);
    dblk_watch_fire(lock);
}

dblock_status dblk_lock_gone(const dblock_lock *lock)
{
    return atomic_load(&lock->state) == DBLK_LOCK_LOST && !lock->is_given_back ? DBLOCK_LOST
                                                                             : DBLOCK_NOT_HELD;
}

void dblk_lock_orphan(dblock_lock *lock, int64_t not_after_us)
{
    uint64_t now_us = dblk_now_us();

    lock->is_orphan = 1;
    lock->not_after_us = not_after_us;
    lock->retry_us = now_us;
    lock->n_retries = 0;
    /* Long past any not_after and any expiry: then nothing of it can be in force. A heartbeat
     * grant is in force as long as its session is; the keeper looks at that instead. */
    lock->hopeless_us = dblk_later(now_us,
        dblk_later(2 * atomic_load(&lock->ttl_us), 2 * lock->client->settings.io_us));
    dblk_list_add(&lock->client->orphans, lock);
    dblk_keeper_due(lock->client, now_us);
}

int dblk_lock_expire(dblock_lock *lock, uint64_t now_us)
{
    if (atomic_load(&lock->state) != DBLK_LOCK_HELD || now_us < dblk_lock_deadline(lock))
        return 0;
    if (lock->channel != NULL) { /* and with it all else that its connection holds */
        dblk_channel_lose(lock->client, lock->channel, NULL);
        return 1;
    }
    dblk_lock_lose(lock, DBLOCK_CAUSE_DEADLINE, NULL);
    /* An extend that was never answered ended the belief; if it never came to pass, the living
     * session would keep the row for ever. */
    if (lock->session != NULL && lock->session->state == DBLK_SESSION_ALIVE)
        dblk_lock_orphan(lock, 0);
    return 1;
}

void dblk_lock_settle(dblock_lock *lock)
{
    /* its connection and its session went with the release, its events were forgotten before it */
    lock->is_settled = lock->client->pinned != lock && !lock->is_orphan;
}

uint64_t dblk_lock_keep_us(const dblock_lock *lock, uint64_t now_us)
{
    return lock->min_hold_us != 0
        ? dblk_until(now_us, dblk_later(lock->granted_us, lock->min_hold_us))
        : 0;
}

uint64_t dblk_lock_deadline(const dblock_lock *lock)
{
    return atomic_load(atomic_load(&lock->deadline_us));
}

int dblk_lock_is_joined(const dblock_lock *lock)
{
    return atomic_load(&lock->state) == DBLK_LOCK_JOINED;
}

dblock_status dblk_lock_refuse_joined(const dblock_lock *lock, struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "ask on its own connection",
        "lock \"%s\" is held by a transaction of the application, and ends with it",
        lock->subject.name);
}

dblock_status dblk_lock_enter(dblock_lock *lock, struct dblock_error *reterr)
{
    if (lock == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "lock: NULL");
    return dblk_client_check(lock->client, reterr);
}

static int is_believed(const dblock_lock *lock)
{
    return lock != NULL && !dblk_is_forked(lock->client) &&
        atomic_load(&lock->state) == DBLK_LOCK_HELD && dblk_now_us() < dblk_lock_deadline(lock);
}

int dblock_lock_is_held(const dblock_lock *lock)
{
    return is_believed(lock);
}

uint64_t dblock_lock_remaining_ms(const dblock_lock *lock)
{
    return is_believed(lock) ? dblk_until(dblk_now_us(), dblk_lock_deadline(lock)) / 1000 : 0;
}

uint64_t dblock_lock_ttl_ms(const dblock_lock *lock)
{
    return lock != NULL ? atomic_load(&lock->ttl_us) / 1000 : 0;
}

int dblock_lock_strategy(const dblock_lock *lock)
{
    return lock != NULL ? lock->strategy->id : DBLOCK_STRATEGY_DEFAULT;
}

const char *dblock_lock_name(const dblock_lock *lock)
{
    return lock != NULL ? lock->subject.name : "";
}

const char *dblock_lock_owner(const dblock_lock *lock)
{
    dblock_lock *told = (dblock_lock *)(uintptr_t)lock; /* what is seen of it does not change */
    int is_forked;

    if (lock == NULL)
        return "";
    is_forked = dblk_is_forked(lock->client); /* alone then, and the mutex may never be free */
    if (!is_forked)
        dblk_lock_client(lock->client);
    if (lock->owner_text[0] == 0)
        dblock_id_text(lock->owner, told->owner_text);
    if (!is_forked)
        dblk_unlock_client(lock->client);
    return lock->owner_text;
}

int dblock_lock_cause(const dblock_lock *lock)
{
    return lock != NULL ? atomic_load(&lock->cause) : DBLOCK_CAUSE_NONE;
}

void *dblock_lock_context(const dblock_lock *lock)
{
    return lock != NULL ? lock->context : NULL;
}

dblock_status dblock_lock_fd(dblock_lock *lock, int *ret_fd, struct dblock_error *reterr)
{
    dblock_status status = dblk_lock_enter(lock, reterr);
    int fault = 0;

    if (status != DBLOCK_OK)
        return status;
    if (ret_fd == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_fd: NULL");
    dblk_lock_client(lock->client);
    if (lock->fd < 0) {
        fault = dblk_signal_fd_new(&lock->fd);
        if (fault == 0 && atomic_load(&lock->state) != DBLK_LOCK_HELD &&
            atomic_load(&lock->state) != DBLK_LOCK_JOINED)
            dblk_signal_fd_raise(lock->fd);
    }
    if (fault == 0)
        *ret_fd = lock->fd;
    dblk_unlock_client(lock->client);
    if (fault != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_SYSTEM,
            "raise the limit of open files, or use dblock_client_fd() for many locks",
            "cannot make a descriptor for lock \"%s\": %s", lock->subject.name, strerror(fault));
        dblock_error_native(reterr, fault, NULL, 1);
    }
    return status;
}

void dblock_lock_free(dblock_lock *lock)
{
    dblock_client *client;
    int is_ours;

    if (lock == NULL)
        return;
    client = lock->client;
    if (lock->is_settled || dblk_is_forked(client)) {
        dblk_lock_destroy(lock);
        return;
    }
    dblk_watch_end(lock);
    dblk_lock_client(client);
    dblk_event_forget(lock);
    /* its callback runs just now, on another thread: only afterwards is it gone */
    while (client->pinned == lock && !dblk_is_clock(client)) {
        (void)pthread_cond_wait(&client->changed, &client->mutex);
        dblk_event_forget(lock);
    }
    is_ours = atomic_load(&lock->state) == DBLK_LOCK_HELD && !lock->is_import;
    lock->is_freed = 1;
    if (is_ours) {
        dblk_lock_unhold(lock, DBLK_LOCK_RELEASED);
        ++client->stats.releases;
        client->stats.hold_us += dblk_until(lock->granted_us, dblk_now_us());
        dblk_lock_orphan(lock, 0);
        lock = NULL;
    } else if (lock->is_orphan) {
        lock = NULL; /* a release that failed: the keeper is still at it */
    } else if (atomic_load(&lock->state) == DBLK_LOCK_HELD) {
        dblk_lock_unhold(lock, DBLK_LOCK_RELEASED);
    }
    if (lock != NULL)
        dblk_lock_unregister(lock);
    /* beside the connection: nothing keeps it from ending at once */
    while (client->borrowing.has_own_locks && dblk_keeper_give_back_beside(client))
        continue;
    dblk_unlock_client(client);
    if (lock != NULL)
        dblk_lock_destroy(lock);
}
