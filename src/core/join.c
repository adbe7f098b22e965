/* SPDX-License-Identifier: MIT */
/* join.c - a row or advisory lock that belongs to a transaction of the application. The
 * statements on the application's connection are the drivers'; what this client's own
 * connections do for it (the row of a new name, the token, who holds it) is asked for here.
 *
 * The end of that transaction is not seen from here, so nothing is believed of the lock: it is
 * not among those in force, has no deadline, and is never told lost. */
#include <dblock/sys/driver.h>

#include <string.h>

#include "core/borrowed.h"
#include "core/error.h"
#include "core/lock.h"
#include "core/link.h"
#include "core/name.h"
#include "core/token.h"
#include "core/trace.h"
#include "core/waiter.h"

enum { SEEDS_MAX = 4 }; /* a purge may take the row of a name away again, once in an hour */

struct attempt {
    dblock_client *client;
    const struct dblock_join_steps *steps;
    const struct dblk_wish *wish;
    struct dblock_joining joining;
    struct dblk_waiter waiter;
    uint64_t give_up_us;
};

static dblock_status seed(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const struct attempt *attempt = context;

    return client->driver->row.seed(
        link->connection, call, &attempt->joining.subject, answer, error);
}

/* Over the application's own connection it would be a part of its transaction. */
static dblock_status seed_beside(struct attempt *attempt, struct dblock_error *error)
{
    dblock_client *client = attempt->client;
    struct dblock_call call = { dblk_later(dblk_now_us(), client->settings.io_us),
        client->stop_fd };
    struct dblock_answer answer;

    if (!dblk_has_keeper(client))
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
            "give config.keeper_url, or use a client that has connections of its own",
            "cannot make the row of \"%s\": this client has no connection but the one that is in"
            " the transaction", attempt->joining.subject.name);
    memset(&answer, 0, sizeof answer);
    return dblk_control_ask(
        client, client->driver->row.seed, &attempt->joining.subject, &call, &answer, error);
}

static dblock_status seed_row(struct attempt *attempt, struct dblock_error *error)
{
    struct dblk_short_result result;
    dblock_status status = dblk_is_borrowing(attempt->client)
        ? seed_beside(attempt, error)
        : dblk_short(attempt->client, 0, 0, seed, attempt, &result, error);

    attempt->joining.is_seeded = status == DBLOCK_OK;
    return status;
}

/* Where a row that is not there must not be asked for. One that is known is gone after a purge: then
 * the transaction has locked the gap, and only its end lets anybody make the row. */
static dblock_status take_known(
    struct attempt *attempt, int *ret_outcome, struct dblock_error *error)
{
    dblock_client *client = attempt->client;
    uint64_t hash = dblk_name_hash(attempt->joining.strategy, &attempt->joining.subject) | 1;
    uint64_t *place = &client->seeded[hash >> 32 & (DBLK_SEEDED_MAX - 1)];
    dblock_status status = DBLOCK_OK;
    int is_known;

    dblk_lock_client(client);
    is_known = *place == hash;
    dblk_unlock_client(client);
    if (!is_known)
        status = seed_row(attempt, error);
    if (status == DBLOCK_OK)
        status = attempt->steps->take(&attempt->joining, 0, -1, ret_outcome, error);
    if (status == DBLOCK_OK && *ret_outcome == DBLOCK_ANSWER_UNSEEDED) {
        status = dblock_error_set(error, DBLOCK_E_DATABASE, "roll back, and begin again",
            "cannot lock \"%s\": its row was deleted in this moment", attempt->joining.subject.name);
        dblock_error_native(error, 0, NULL, 1);
    }
    if (is_known == (status == DBLOCK_OK))
        return status;
    dblk_lock_client(client);
    *place = status == DBLOCK_OK ? hash : 0;
    dblk_unlock_client(client);
    return status;
}

/* Who ended the wait? If it was neither, somebody cancelled the statement itself. */
static dblock_status cancelled(const struct attempt *attempt, struct dblock_error *error)
{
    if (dblk_waiter_verdict(&attempt->waiter) != DBLK_EVENT_CLOSED)
        return DBLOCK_CANCELLED;
    return dblk_client_closed(error);
}

static void count_waiter(dblock_client *client, int by)
{
    dblk_lock_client(client);
    client->stats.waiters += (uint32_t)by;
    dblk_unlock_client(client);
}

static dblock_status wait_for(struct attempt *attempt, int *outcome, struct dblock_error *error)
{
    uint64_t wait_us = dblk_until(dblk_now_us(), attempt->give_up_us);
    dblock_status status;

    if (wait_us == 0)
        return DBLOCK_BUSY;
    if (dblk_waiter_verdict(&attempt->waiter) != 0)
        return cancelled(attempt, error);
    count_waiter(attempt->client, 1);
    status = attempt->steps->take(
        &attempt->joining, wait_us, dblk_waiter_fd(&attempt->waiter), outcome, error);
    count_waiter(attempt->client, -1);
    return status;
}

static dblock_status take(struct attempt *attempt, struct dblock_error *error)
{
    int n_seeds = 0;
    int outcome = 0;
    dblock_status status = attempt->steps->waits_itself
        ? attempt->steps->take(&attempt->joining, attempt->wish->wait_us, -1, &outcome, error)
        : attempt->joining.strategy == DBLOCK_ROW && attempt->steps->has_gap_locks
        ? take_known(attempt, &outcome, error)
        : attempt->steps->take(&attempt->joining, 0, -1, &outcome, error);

    if (status == DBLOCK_OK && outcome == DBLOCK_ANSWER_BUSY && attempt->steps->waits_itself)
        return DBLOCK_BUSY;
    while (status == DBLOCK_OK && outcome != DBLOCK_ANSWER_YES) {
        if (outcome != DBLOCK_ANSWER_UNSEEDED) {
            status = wait_for(attempt, &outcome, error);
        } else if (n_seeds++ < SEEDS_MAX) {
            status = seed_row(attempt, error);
            if (status == DBLOCK_OK)
                status = attempt->steps->take(&attempt->joining, 0, -1, &outcome, error);
        } else {
            status = dblock_error_set(error, DBLOCK_E_DATABASE, NULL,
                "cannot lock \"%s\": its row in dblock_row is deleted again and again",
                attempt->joining.subject.name);
        }
    }
    return status == DBLOCK_CANCELLED ? cancelled(attempt, error) : status;
}

/* The number is drawn while the transaction has the lock, is committed by another connection, and
 * is handed out once that transaction has answered again (S3). */
static dblock_status fence(struct attempt *attempt, int64_t *ret_token, struct dblock_error *error)
{
    int outcome = 0;
    dblock_status status = dblk_token_status(
        dblk_token_draw_on_control(attempt->client, &attempt->joining.subject,
            dblk_later(dblk_now_us(), attempt->client->settings.io_us), ret_token, error));

    if (status == DBLOCK_OK)
        status = attempt->steps->take(&attempt->joining, 0, -1, &outcome, error);
    if (status == DBLOCK_OK && outcome != DBLOCK_ANSWER_YES)
        status = dblock_error_set(error, DBLOCK_E_DATABASE, "roll back, and begin again",
            "lock \"%s\" was lost while its token was drawn", attempt->joining.subject.name);
    return status;
}

static dblock_status check_wish(const struct dblk_wish *wish, const struct dblock_join_steps *steps,
    const char *name, struct dblock_error *error)
{
    if (!dblk_strategy_of(wish->strategy)->lives_in_connection)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
            "options.strategy = DBLOCK_ROW; or acquire the lease and guard the transaction",
            "cannot join \"%s\" to a transaction: the row of a lease or insert does not end"
            " with it", name);
    if (wish->is_fair)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "leave DBLOCK_FAIR out",
            "cannot lock \"%s\" in order of arrival: a transaction stands in the server's queue",
            name);
    if (wish->is_fenced && steps->cannot_fence)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED,
            "acquire a lease, and guard the transaction",
            "cannot draw a token for \"%s\": nobody can commit it while this transaction writes",
            name);
    if (wish->is_fenced && wish->strategy != DBLOCK_ROW)
        return dblock_error_set(error, DBLOCK_E_UNSUPPORTED, "options.strategy = DBLOCK_ROW",
            "cannot draw a token for \"%s\": an advisory lock draws on its own connection, and a"
            " transaction cannot commit it", name);
    return DBLOCK_OK;
}

static dblock_status tell_holder(
    dblock_client *client, const struct dblk_wish *wish, const char *name, struct dblock_error *error)
{
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    dblock_status status;

    if (wish->has_advisory_id ||
        dblock_inspect(client, name, wish->strategy, &holder, NULL) != DBLOCK_OK) {
        memset(&holder, 0, sizeof holder);
        holder.struct_size = sizeof holder;
        holder.strategy = wish->strategy;
        dblock_text_copy(holder.name, sizeof holder.name, name);
        holder.remaining_ms = DBLOCK_FOREVER;
    }
    status = dblk_struct_write(wish->busy, &holder, sizeof holder, "options.busy", error);
    return status == DBLOCK_OK ? DBLOCK_BUSY : status;
}

/* What the caller gets: name, strategy, owner id and token, until it is freed. */
static dblock_status make_lock(dblock_client *client, const char *name,
    const struct dblk_wish *wish, dblock_lock **ret_lock, struct dblock_error *error)
{
    dblock_lock *lock = dblk_lock_new(client, name, wish);
    int fault;

    if (lock == NULL)
        return dblock_error_set(error, DBLOCK_E_MEMORY, NULL, "out of memory");
    dblk_client_ref(client); /* the lock's */
    dblk_lock_client(client);
    fault = dblk_lock_register(lock);
    atomic_store(&lock->state, DBLK_LOCK_JOINED);
    dblk_unlock_client(client);
    *ret_lock = lock;
    if (fault == 0)
        return DBLOCK_OK;
    (void)dblock_error_set(error, DBLOCK_E_SYSTEM, NULL, "cannot draw an owner id: %s",
        strerror(fault));
    dblock_error_native(error, fault, NULL, 1);
    return DBLOCK_E_SYSTEM;
}

static void count(dblock_client *client, dblock_status status, uint64_t waited_us)
{
    dblk_lock_client(client);
    client->stats.wait_us += waited_us;
    client->stats.grants += status == DBLOCK_OK;
    client->stats.busy += status == DBLOCK_BUSY;
    dblk_unlock_client(client);
}

static dblock_status run(struct attempt *attempt, const char *name, uint64_t begun_us,
    dblock_lock **ret_lock, struct dblock_error *error)
{
    dblock_client *client = attempt->client;
    const struct dblk_wish *wish = attempt->wish;
    dblock_lock *lock = NULL;
    int64_t token = 0;
    dblock_status status = DBLOCK_OK;

    attempt->joining.target = client->target;
    attempt->joining.strategy = wish->strategy;
    attempt->joining.subject.name = name;
    attempt->joining.subject.name_size = strlen(name);
    attempt->joining.subject.advisory_id = wish->advisory_id;
    attempt->joining.subject.has_advisory_id = wish->has_advisory_id;
    attempt->joining.has_canceller = wish->canceller != NULL;
    attempt->joining.io_timeout_us = client->settings.io_us;
    attempt->give_up_us = dblk_later(begun_us, wish->wait_us);
    if (ret_lock != NULL) /* before anything that could not be taken back */
        status = make_lock(client, name, wish, &lock, error);
    if (status == DBLOCK_OK) {
        dblk_waiter_init(&attempt->waiter, client, wish->canceller);
        status = take(attempt, error);
        dblk_waiter_fini(&attempt->waiter);
    }
    if (status == DBLOCK_OK && wish->is_fenced)
        status = fence(attempt, &token, error);
    if (!attempt->steps->waits_itself) /* else it has been counted */
        count(client, status,
            wish->wait_us > 0 ? dblk_until(begun_us, dblk_now_us()) : 0);
    if (status == DBLOCK_OK && ret_lock != NULL) {
        lock->token = token;
        lock->taken_us = begun_us;
        lock->granted_us = dblk_now_us();
        *ret_lock = lock;
    } else {
        dblock_lock_free(lock);
    }
    if (status == DBLOCK_OK)
        dblk_trace(client, DBLOCK_TRACE_GRANT, status, name, "joined", token, begun_us);
    if (status == DBLOCK_BUSY && wish->busy != NULL)
        status = tell_holder(client, wish, name, error);
    return status;
}

dblock_status dblock_join(dblock_client *client, const struct dblock_driver *driver,
    const struct dblock_join_steps *steps, void *connection, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *reterr)
{
    struct attempt attempt;
    struct dblk_wish wish;
    struct dblock_error error;
    uint64_t begun_us = dblk_now_us();
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    dblk_error_clear(&error);
    if (client->driver != driver)
        status = dblock_error_set(&error, DBLOCK_E_ARGUMENT, "use the function of its own driver",
            "client: not of a database of this kind");
    if (status == DBLOCK_OK)
        status = dblk_name_check(name, &error);
    if (status == DBLOCK_OK)
        status = dblk_wish_resolve(&client->settings, options, &wish, &error);
    if (status == DBLOCK_OK)
        status = check_wish(&wish, steps, name, &error);
    if (status == DBLOCK_OK)
        status = steps->check(connection, name, &error);
    if (status == DBLOCK_OK) {
        memset(&attempt, 0, sizeof attempt);
        attempt.client = client;
        attempt.steps = steps;
        attempt.wish = &wish;
        attempt.joining.connection = connection;
        status = run(&attempt, name, begun_us, ret_lock, &error);
    }
    if (status < 0)
        dblk_error_tell(reterr, &error);
    dblk_client_leave(client);
    return status;
}
