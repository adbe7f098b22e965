/* SPDX-License-Identifier: MIT */
/* guard.c - what a driver must know of a lock that it binds to a transaction of the
 * application. The statements are the drivers'. */
#include <dblock/sys/driver.h>

#include <string.h>

#include "core/error.h"
#include "core/lock.h"
#include "core/token.h"

static dblock_status begin(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_guarded *ret_guarded, struct dblock_error *error)
{
    dblock_client *client = lock->client;
    dblock_status status;

    if (client->driver != driver)
        return dblock_error_set(error, DBLOCK_E_ARGUMENT, "use the function of its own driver",
            "lock: \"%s\" is not in a database of this kind", lock->subject.name);
    if (lock->strategy->lives_in_connection)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "a %s lock has no row that a transaction could pin",
            dblock_strategy_name(lock->strategy->id));
    dblk_lock_client(client);
    (void)dblk_lock_expire(lock, dblk_now_us());
    /* the next thread would go on before the transaction has ended */
    lock->is_exported = 1;
    dblk_unlock_client(client);
    status = dblk_token_get(lock, dblk_later(dblk_now_us(), lock->client->settings.io_us),
        &ret_guarded->token, error);
    ret_guarded->target = client->target;
    ret_guarded->strategy = lock->strategy->id;
    ret_guarded->subject = lock->subject;
    ret_guarded->owner = lock->owner;
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
    if (status < 0 && reterr != NULL)
        *reterr = error;
    return status;
}

dblock_status dblock_guard_end(dblock_lock *lock, dblock_status status)
{
    dblock_client *client = lock->client;

    if (status == DBLOCK_LOST) {
        dblk_lock_client(client);
        dblk_lock_lose(lock, DBLOCK_CAUSE_SERVER, NULL);
        status = dblk_lock_gone(lock); /* another thread may have released it */
        dblk_unlock_client(client);
    } else if (status == DBLOCK_OK && !dblock_lock_is_held(lock)) {
        status = DBLOCK_LOST; /* its deadline came meanwhile, and its holder has been told */
    }
    return status;
}

void dblock_guard_gives_back(dblock_lock *lock)
{
    dblk_lock_client(lock->client);
    lock->is_given_back = 1;
    dblk_unlock_client(lock->client);
}
