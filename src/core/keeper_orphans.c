/* SPDX-License-Identifier: MIT */
/* keeper_orphans.c - giving back what callers left behind: objects freed while
 * held, releases that failed, takes whose answer never came.
 *
 * A drop compares the owner id, so it may be repeated at will. One that answers
 * "not in force" is final only once the take can not be granted any more, which
 * is when the database's clock has passed its not_after. */
#include <string.h>

#include "core/borrowed.h"
#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/keeper_work.h"
#include "core/link.h"
#include "core/lock.h"
#include "core/session.h"
#include "core/trace.h"
#include "strategy/backoff.h"

static dblock_lock *find_due(dblock_client *client, uint64_t now_us)
{
    dblock_lock *lock;

    for (lock = client->orphans.first; lock != NULL; lock = lock->next)
        if (now_us >= lock->retry_us && dblk_may_touch(client, lock->channel))
            return lock;
    return NULL;
}

/* One of that name for which nothing was tried yet, by another thread than this. */
static int is_left(const dblock_client *client, const dblock_lock *lock)
{
    const dblock_lock *orphan;

    for (orphan = client->orphans.first; orphan != NULL; orphan = orphan->next)
        if (orphan->n_retries == 0 && !dblk_may_touch(client, orphan->channel) && orphan->strategy == lock->strategy &&
            orphan->subject.name_size == lock->subject.name_size &&
            memcmp(orphan->subject.name, lock->subject.name, lock->subject.name_size) == 0)
            return 1;
    return 0;
}

int dblk_orphans_await(const dblock_lock *lock, unsigned n_before, uint64_t until_us)
{
    dblock_client *client = lock->client;

    dblk_lock_client(client);
    while (is_left(client, lock) && !atomic_load(&client->is_closing) && dblk_now_us() < until_us)
        dblk_wait_condition(&client->given_back, &client->mutex, until_us);
    dblk_unlock_client(client);
    return atomic_load(&client->n_given_back) != n_before;
}

static dblock_status drop_recorded(dblock_client *client, dblock_lock *lock, uint64_t limit_us,
    struct dblock_answer *answer, struct dblock_error *error)
{
    struct dblock_call call = { limit_us, client->stop_fd };
    struct dblk_link *link = NULL;
    uint64_t sent_us = dblk_now_us();
    dblock_status status = dblk_keeper_link(client, limit_us, &link, error);

    if (status == DBLOCK_OK)
        status = dblk_hold_steps(client, lock->strategy->id)
                     ->drop(link->connection, &call, &lock->subject, lock->owner,
                         dblk_lock_keep_us(lock, sent_us), answer, error);
    if (status == DBLOCK_OK)
        dblk_link_saw_clock(client, link, sent_us, dblk_now_us(), answer->now_us);
    /* whether the take can still come is asked of the clock after the drop was answered */
    if (status == DBLOCK_OK && answer->now_us == 0)
        answer->now_us = dblk_link_database_us(link, sent_us);
    if (status != DBLOCK_OK)
        dblk_keeper_check_link(client);
    return status;
}

static dblock_status drop_channel(dblock_client *client, dblock_lock *lock, uint64_t limit_us,
    struct dblock_answer *answer, struct dblock_error *error)
{
    struct dblock_call call = { limit_us, client->stop_fd };
    struct dblock_connection *connection = dblk_channel_use(lock->channel);
    dblock_status status = DBLOCK_E_CONNECTION;

    if (connection != NULL)
        status = dblk_connection_steps(client, lock->strategy->id)
                     ->drop(connection, &call, &lock->subject, answer, error);
    dblk_channel_unuse(lock->channel);
    return status;
}

static int is_settled(
    const dblock_lock *lock, dblock_status status, const struct dblock_answer *answer)
{
    if (lock->strategy->lives_in_connection)
        return 1; /* dropped, or gone with the connection, which is closed on a failure */
    if (status != DBLOCK_OK)
        return 0;
    if (answer->outcome == DBLOCK_ANSWER_YES)
        return 1;
    return answer->outcome == DBLOCK_ANSWER_NO &&
        (lock->not_after_us == 0 || answer->now_us > lock->not_after_us);
}

/* The session that it names is over, or its own time is: nothing is left to give back. */
static int is_hopeless(const dblock_lock *lock, uint64_t now_us)
{
    if (lock->session != NULL)
        return lock->session->state == DBLK_SESSION_ENDED && lock->not_after_us == 0;
    return now_us >= lock->hopeless_us;
}

static int give_back(
    dblock_client *client, dblock_lock *lock, uint64_t now_us, uint64_t limit_us)
{
    struct dblock_answer answer;
    struct dblock_error error;
    dblock_status status;
    int is_over;

    if (lock == NULL)
        return 0;
    lock->retry_us = DBLK_NEVER; /* ours alone meanwhile */
    dblk_unlock_client(client);
    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    if (lock->strategy->lives_in_connection)
        status = drop_channel(client, lock, limit_us, &answer, &error);
    else
        status = drop_recorded(client, lock, limit_us, &answer, &error);
    dblk_trace(client, DBLOCK_TRACE_SETTLE, status, lock->subject.name, error.message, lock->token,
        now_us);
    dblk_lock_client(client);
    if (status != DBLOCK_OK && lock->strategy->lives_in_connection)
        dblk_channel_lose(client, lock->channel, &error);
    is_over = is_settled(lock, status, &answer) || is_hopeless(lock, dblk_now_us());
    if (is_over) {
        dblk_list_remove(&client->orphans, lock);
        dblk_lock_unregister(lock);
        lock->is_orphan = 0;
    } else {
        lock->retry_us = dblk_now_us() +
            dblk_backoff(++lock->n_retries, dblk_random_u64(), 5000, 250000);
    }
    /* before the mutex is let go: who finds it gone from the list asks the database again for this */
    (void)atomic_fetch_add(&client->n_given_back, 1);
    (void)pthread_cond_broadcast(&client->given_back);
    if (is_over && lock->is_freed) {
        dblk_unlock_client(client);
        dblk_lock_destroy(lock);
        dblk_lock_client(client);
    }
    return 1;
}

int dblk_keeper_give_back(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    return give_back(client, find_due(client, now_us), now_us, limit_us);
}

int dblk_keeper_give_back_beside(dblock_client *client)
{
    uint64_t now_us = dblk_now_us();
    dblock_lock *lock;

    for (lock = client->orphans.first; lock != NULL; lock = lock->next)
        if (lock->channel != NULL && lock->channel->is_borrowed && now_us >= lock->retry_us)
            return give_back(client, lock, now_us, dblk_later(now_us, client->settings.io_us));
    return 0;
}
