/* SPDX-License-Identifier: MIT */
/* borrowed.c - see borrowed.h. */
#include "core/borrowed.h"

#include <string.h>

#include "core/channel.h"
#include "core/keeper_work.h"
#include "core/lock.h"

static dblock_status refuse_role(int role, struct dblock_error *error)
{
    const char *what = role == DBLOCK_ROLE_ROW
        ? "a row lock keeps a transaction open, and a connection of the application is not ours to"
          " do that"
        : role == DBLOCK_ROLE_CONTROL
        ? "a token of a row lock is committed by another connection"
        : "who waits in line waits on a connection of his own";

    return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
        role == DBLOCK_ROLE_ROW ? "give config.keeper_url, or lock with the acquire_in of the driver"
                                  " in a transaction of yours"
                                : "give config.keeper_url",
        "%s: this client has only that one", what);
}

struct dblock_target *dblk_way_of(
    const dblock_client *client, int role, struct dblock_error *error)
{
    if (role == DBLOCK_ROLE_KEEPER)
        return client->keeper_target;
    if (!dblk_is_borrowing(client) || dblk_is_borrowed(client, role))
        return client->target;
    if (dblk_has_keeper(client))
        return client->keeper_target;
    (void)refuse_role(role, error);
    return NULL;
}

static int role_of(int strategy)
{
    return strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW
        : strategy == DBLOCK_ADVISORY ? DBLOCK_ROLE_ADVISORY
                                      : DBLOCK_ROLE_SHORT;
}

/* Is it the application's connection that a lock of this strategy is taken by? */
static int is_taken_there(const dblock_client *client, int strategy)
{
    int role = role_of(strategy);

    return dblk_is_borrowed(client, role) &&
        (role == DBLOCK_ROLE_SHORT || !client->borrowing.has_own_locks);
}

dblock_status dblk_borrowed_check_wish(
    dblock_client *client, const struct dblk_wish *wish, const char *name, struct dblock_error *error)
{
    dblock_status status = DBLOCK_OK;

    if (!dblk_is_borrowing(client))
        return DBLOCK_OK;
    if (wish->is_heartbeat && !dblk_has_keeper(client))
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
            "options.heartbeat = DBLOCK_HEARTBEAT_OFF, or give config.keeper_url",
            "cannot acquire \"%s\" with a heartbeat: it would have to go over the application's"
            " connection while the application uses that", name);
    if (dblk_way_of(client, role_of(wish->strategy), error) == NULL)
        return DBLOCK_E_UNSUPPORTED;
    if (is_taken_there(client, wish->strategy))
        status = client->borrowing.check(client->target, "acquire", name, error);
    if (status == DBLOCK_OK)
        dblk_borrowed_settle(client);
    return status;
}

dblock_status dblk_borrowed_check_release(const dblock_lock *lock, struct dblock_error *error)
{
    const dblock_client *client = lock->client;

    if (!is_taken_there(client, lock->strategy->id) ||
        atomic_load(&lock->state) != DBLK_LOCK_HELD)
        return DBLOCK_OK;
    return client->borrowing.check(client->target, "release", lock->subject.name, error);
}

int dblk_may_touch(const dblock_client *client, const struct dblk_channel *channel)
{
    int is_worker = client->keeper.is_running && dblk_has_keeper(client) &&
        pthread_equal(client->keeper.work_thread, pthread_self());
    int is_theirs = channel != NULL && channel->is_borrowed;

    /* what is not the connection's is the keeper's, if there is one */
    return is_worker ? !is_theirs : is_theirs || !dblk_has_keeper(client) ||
            atomic_load(&client->is_closing);
}

void dblk_borrowed_settle(dblock_client *client)
{
    uint64_t now_us = dblk_now_us();
    uint64_t limit_us = dblk_later(now_us, client->settings.io_us);
    int is_more = 1;

    dblk_lock_client(client);
    if ((client->buried == NULL && client->orphans.first == NULL && client->breakings == NULL) ||
        client->is_settling) {
        dblk_unlock_client(client);
        return;
    }
    client->is_settling = 1;
    dblk_unlock_client(client);
    /* if it is not free, later */
    if (client->borrowing.check(client->target, "use", "", NULL) == DBLOCK_OK) {
        dblk_lock_client(client);
        while (is_more && now_us < limit_us) {
            is_more = dblk_channel_bury(client, 0) ||
                dblk_keeper_give_back(client, now_us, limit_us) ||
                (!dblk_has_keeper(client) && dblk_keeper_break(client, now_us, limit_us));
            now_us = dblk_now_us();
        }
        dblk_unlock_client(client);
    }
    dblk_lock_client(client);
    client->is_settling = 0;
    dblk_unlock_client(client);
}
