/* SPDX-License-Identifier: MIT */
/* guard.c - what a driver must know of a lock that it binds to a transaction of the
 * application. The statements are the drivers'. */
#include <dblock/sys/driver.h>

#include <string.h>

#include "core/error.h"
#include "core/lock.h"
#include "core/token.h"

/* Row and advisory: what is pinned is the row of the token, which the next holder has to write
 * before he is told of his grant (sql/guard.sql). A token that was drawn later, when asked for, does
 * not do: an earlier holder's guarded transaction may have ended between the grant and that. */
static dblock_status check_live(const dblock_lock *lock, struct dblock_error *error)
{
    if (atomic_load(&lock->state) == DBLK_LOCK_JOINED)
        return dblk_lock_refuse_joined(lock, error);
    if (lock->is_fenced)
        return DBLOCK_OK;
    return dblock_error_set(error, DBLOCK_E_ARGUMENT, "acquire it with DBLOCK_FENCED",
        "lock: \"%s\" was acquired without a token, and a %s lock has no other row that a"
        " transaction could pin",
        lock->subject.name, dblock_strategy_name(lock->strategy->id));
}

static dblock_status begin(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_guarded *ret_guarded, struct dblock_error *error)
{
    dblock_client *client = lock->client;
    dblock_status status;
    int i;

    if (client->driver != driver)
        return dblock_error_set(error, DBLOCK_E_ARGUMENT, "use the function of its own driver",
            "lock: \"%s\" is not in a database of this kind", lock->subject.name);
    if (lock->strategy->lives_in_connection) {
        status = check_live(lock, error);
        if (status != DBLOCK_OK)
            return status;
    }
    dblk_lock_client(client);
    (void)dblk_lock_expire(lock, dblk_now_us());
    /* the next thread would go on before the transaction has ended */
    lock->is_exported = 1;
    dblk_unlock_client(client);
    status = dblk_token_status(dblk_token_get(lock,
        dblk_later(dblk_now_us(), lock->client->settings.io_us), &ret_guarded->token, error));
    ret_guarded->target = client->target;
    ret_guarded->strategy = lock->strategy->id;
    ret_guarded->subject = lock->subject;
    ret_guarded->owner = lock->owner;
    ret_guarded->keep_us = dblk_lock_keep_us(lock, dblk_now_us());
    for (i = 0; i < DBLOCK_ID_SIZE; ++i)
        ret_guarded->kept_owner[i] = (unsigned char)~lock->owner[i];
    ret_guarded->io_timeout_us = client->settings.io_us;
    return status;
}

dblock_status dblock_guard_begin(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_guarded *ret_guarded, struct dblock_error *reterr)
{
    struct dblock_error error;
    dblock_status status = dblk_lock_enter(lock, reterr);

    if (status != DBLOCK_OK)
        return status;
    dblk_error_clear(&error);
    status = begin(lock, driver, ret_guarded, &error);
    if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}

/* The number in the row is not the grant's. Either somebody holds the lock after it; or it is still
 * held, and the number is that of an earlier holder, who drew it without knowing that he had lost
 * the lock and was then not given it (token.c), or the row was deleted by hand. */
static dblock_status find_lost(dblock_lock *lock, struct dblock_error *reterr)
{
    struct dblock_error error;

    if (lock->strategy->lives_in_connection && dblock_confirm(lock, &error) == DBLOCK_OK)
        return dblock_error_set(reterr, DBLOCK_E_DATABASE,
            "roll back, release the lock and acquire it again",
            "cannot guard \"%s\": the row of its token has been written over or deleted, although"
            " it is still held",
            lock->subject.name);
    dblk_lock_client(lock->client);
    dblk_lock_lose(lock, DBLOCK_CAUSE_SERVER, NULL);
    dblk_unlock_client(lock->client);
    return DBLOCK_LOST;
}

dblock_status dblock_guard_end(
    dblock_lock *lock, dblock_status status, struct dblock_error *reterr)
{
    dblock_client *client = lock->client;

    if (status == DBLOCK_LOST)
        status = find_lost(lock, reterr);
    if (status == DBLOCK_LOST) {
        dblk_lock_client(client);
        status = dblk_lock_gone(lock); /* another thread may have released it */
        dblk_unlock_client(client);
    } else if (status == DBLOCK_OK && !dblock_lock_is_held(lock)) {
        status = DBLOCK_LOST; /* its deadline came meanwhile, and its holder has been told */
    }
    return status;
}

dblock_status dblock_guard_check_release(const dblock_lock *lock, struct dblock_error *reterr)
{
    if (lock == NULL || !lock->strategy->lives_in_connection)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
        "guard the transaction, and release the lock after its COMMIT",
        "cannot release \"%s\" in a transaction: a %s lock belongs to its own connection, which"
        " alone can give it back",
        lock->subject.name, dblock_strategy_name(lock->strategy->id));
}

void dblock_guard_gives_back(dblock_lock *lock)
{
    dblk_lock_client(lock->client);
    lock->is_given_back = 1;
    dblk_unlock_client(lock->client);
}
