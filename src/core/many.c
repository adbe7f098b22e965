/* SPDX-License-Identifier: MIT */
/* many.c - dblock_acquire_many(): the loop for several names. What each step does is in
 * perform_many.c. */
#include "core/many.h"

#include <dblock/many.h>
#include <stdlib.h>
#include <string.h>

#include "core/borrowed.h"
#include "core/close.h"
#include "core/driver_steps.h"
#include "core/error.h"
#include "core/heartbeat.h"
#include "core/keeper.h"
#include "core/name.h"
#include "core/session.h"
#include "core/token.h"
#include "core/trace.h"

static int compare(const void *left, const void *right)
{
    /* as bytes: strcmp() compares unsigned char */
    return strcmp(((const struct dblk_wanted *)left)->name, ((const struct dblk_wanted *)right)->name);
}

static dblock_status check_names(
    const char *const *names, size_t n_names, struct dblock_error *reterr)
{
    dblock_status status;
    size_t i;

    if (names == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "names: NULL");
    if (n_names == 0 || n_names > DBLOCK_MANY_MAX)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            n_names == 0 ? NULL : "lock one name that stands for a group of them",
            "n_names: %zu, not 1 to %d", n_names, DBLOCK_MANY_MAX);
    for (i = 0; i < n_names; ++i) {
        status = dblk_name_check(names[i], reterr);
        if (status != DBLOCK_OK)
            return status;
    }
    return DBLOCK_OK;
}

static dblock_status sort_names(const char *const *names, size_t n_names, struct dblk_wanted *wanted,
    struct dblock_error *reterr)
{
    size_t i;

    for (i = 0; i < n_names; ++i) {
        wanted[i].name = names[i];
        wanted[i].place = i;
    }
    qsort(wanted, n_names, sizeof *wanted, compare);
    for (i = 1; i < n_names; ++i)
        if (strcmp(wanted[i - 1].name, wanted[i].name) == 0)
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "name each lock once",
                "names: \"%s\" is there twice", wanted[i].name);
    return DBLOCK_OK;
}

static dblock_status check_wish(const dblock_client *client, const struct dblk_wish *wish,
    struct dblock_error *reterr)
{
    if (dblk_strategy_of(wish->strategy)->lives_in_connection)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use lease or insert",
            "several %s locks cannot be had at once: each lives in a connection of its own, or in"
            " a session that others share", dblock_strategy_name(wish->strategy));
    if (wish->is_fair)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "leave DBLOCK_FAIR out",
            "several names have no common line in which to stand in order of arrival");
    if (dblk_hold_steps(client, wish->strategy)->take_many == NULL)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "take them one after the other, in one"
            " order everywhere", "the %s driver cannot take several names at once",
            client->driver->scheme);
    return DBLOCK_OK;
}

static void discard(struct dblk_many *many)
{
    dblock_client *client = many->attempt.client;
    size_t i;

    for (i = 0; i < many->names.n_names && many->locks[i] != NULL; ++i) {
        dblk_lock_client(client);
        dblk_lock_unregister(many->locks[i]);
        dblk_unlock_client(client);
        dblk_lock_destroy(many->locks[i]);
        many->locks[i] = NULL;
    }
}

/* The objects and arrays; each object has a reference on the client. */
static dblock_status prepare(
    struct dblk_many *many, const struct dblk_wanted *wanted, size_t n_names, struct dblock_error *reterr)
{
    size_t i;

    many->locks = dblk_allocate(n_names * sizeof(dblock_lock *));
    if (many->locks == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    if (dblk_many_names_init(&many->names, n_names) != 0) {
        dblk_release(many->locks);
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    }
    for (i = 0; i < n_names; ++i) {
        many->locks[i] = dblk_lock_new(many->attempt.client, wanted[i].name, many->attempt.wish);
        if (many->locks[i] == NULL) {
            discard(many);
            dblk_many_names_fini(&many->names);
            dblk_release(many->locks);
            return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
        }
        dblk_client_ref(many->attempt.client);
        dblk_many_names_set(&many->names, i, many->locks[i]);
    }
    many->attempt.lock = many->locks[0];
    return DBLOCK_OK;
}

static dblock_status loop(struct dblk_many *many, uint64_t begun_us, int *ret_is_open)
{
    struct dblk_attempt *attempt = &many->attempt;
    struct dblk_event event = { DBLK_EVENT_STARTED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    int verdict = dblk_waiter_verdict(&attempt->waiter);
    struct dblk_step step;
    size_t i;

    event.now_us = begun_us;
    if (verdict != 0)
        event.kind = (enum dblk_event_kind)verdict;
    for (;;) {
        step = dblk_machine_next(&attempt->machine, &event);
        if (step.kind == DBLK_STEP_END)
            break;
        dblk_attempt_count_waiter(attempt, &step, 1);
        dblk_many_perform(many, &step, &event);
        dblk_attempt_count_waiter(attempt, &step, -1);
    }
    dblk_place_leave(&attempt->place, attempt->client, event.now_us);
    *ret_is_open = step.is_open;
    for (i = 0; i < many->names.n_names; ++i)
        many->locks[i]->granted_us = event.now_us;
    return step.status;
}

/* All are there: from now on each is believed, and the keeper watches it. */
static dblock_status hold(struct dblk_many *many, uint64_t begun_us)
{
    dblock_client *client = many->attempt.client;
    dblock_lock *lock = NULL;
    dblock_status status = DBLOCK_OK;
    size_t i;

    for (i = 0; i < many->names.n_names && status == DBLOCK_OK; ++i)
        status = dblk_token_check(many->locks[i], many->locks[i]->token, &many->attempt.error);
    if (status != DBLOCK_OK)
        return status;
    dblk_lock_client(client);
    if (atomic_load(&client->is_closing)) {
        dblk_unlock_client(client);
        return DBLOCK_E_CLOSED;
    }
    for (i = 0; i < many->names.n_names; ++i) {
        lock = many->locks[i];
        if (lock->session != NULL)
            dblk_publish(&lock->deadline_us, &lock->session->deadline_us);
        else
            dblk_publish(&lock->own_deadline_us,
                dblk_belief_end(lock->taken_us, atomic_load(&lock->ttl_us)));
        dblk_lock_hold(lock);
        ++client->stats.grants;
    }
    client->stats.wait_us += lock->granted_us - begun_us;
    dblk_clock_due(client,
        dblk_lock_deadline(lock) > lock->expiring_us ? dblk_lock_deadline(lock) - lock->expiring_us
                                                     : 0);
    dblk_unlock_client(client);
    return DBLOCK_OK;
}

/* Given to the keeper: granted although nobody wants them any more, or perhaps granted yet. */
static void abandon(struct dblk_many *many)
{
    dblock_client *client = many->attempt.client;
    size_t i;

    dblk_lock_client(client);
    if (atomic_load(&client->is_closing)) { /* there is no keeper any more */
        dblk_unlock_client(client);
        for (i = 0; i < many->names.n_names; ++i)
            dblk_close_drop(client, many->locks[i]);
        discard(many);
        return;
    }
    for (i = 0; i < many->names.n_names; ++i) {
        atomic_store(&many->locks[i]->state, DBLK_LOCK_RELEASED);
        many->locks[i]->is_freed = 1;
        dblk_lock_orphan(many->locks[i], many->attempt.not_after_us);
    }
    dblk_unlock_client(client);
}

static void explain(struct dblk_many *many, dblock_status status)
{
    struct dblock_error *error = &many->attempt.error;
    size_t n_names = many->names.n_names;
    const char *name = many->attempt.lock->subject.name;

    if (status == DBLOCK_E_CLOSED)
        (void)dblk_client_closed(error);
    else if (status == DBLOCK_E_UNCERTAIN)
        (void)dblock_error_set(error, status,
            "the keeper finds out and gives the locks back; try again",
            "it is not known whether %zu locks, \"%s\" among them, were granted: the connection was"
            " lost, and the database could not be asked in time", n_names, name);
    else if (error->status == DBLOCK_OK)
        (void)dblock_error_set(error, status, NULL, "cannot acquire %zu locks, \"%s\" among them: %s",
            n_names, name, dblock_status_text(status));
    else
        error->status = status;
}

static dblock_status finish(struct dblk_many *many, dblock_status status, int is_open,
    uint64_t begun_us, struct dblock_error *reterr)
{
    struct dblk_attempt *attempt = &many->attempt;

    dblk_attempt_count(attempt, status, begun_us);
    if (status < 0)
        explain(many, status);
    status = dblk_attempt_tell(attempt, status, reterr);
    if (is_open)
        abandon(many);
    else
        discard(many);
    return status;
}

dblock_status dblk_many_acquire(dblock_client *client, const struct dblk_wanted *wanted,
    size_t n_names, const struct dblk_wish *wish, dblock_lock **ret_locks, int *ret_is_in_way,
    struct dblock_error *reterr)
{
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    struct dblk_many many;
    struct dblk_terms terms;
    uint64_t begun_us = dblk_now_us();
    unsigned n_given_back;
    int is_open = 0;
    dblock_status status;
    size_t i;

    memset(&many, 0, sizeof many);
    many.attempt.client = client;
    many.attempt.wish = wish;
    many.attempt.holder = &holder;
    status = prepare(&many, wanted, n_names, reterr);
    if (status != DBLOCK_OK)
        return status;
    dblk_attempt_set_terms(&many.attempt, begun_us, &terms);
    many.attempt.end_us = dblk_later(terms.give_up_us, client->settings.io_us);
    dblk_waiter_init(&many.attempt.waiter, client, wish->canceller);
    dblk_machine_start(&many.attempt.machine, dblk_strategy_of(wish->strategy), &terms);
    n_given_back = atomic_load(&client->n_given_back);
    status = loop(&many, begun_us, &is_open);
    if (status == DBLOCK_BUSY && wish->wait_us == 0 &&
        dblk_orphans_await(many.attempt.lock, n_given_back, many.attempt.end_us)) {
        dblk_machine_start(&many.attempt.machine, dblk_strategy_of(wish->strategy), &terms);
        status = loop(&many, dblk_now_us(), &is_open);
    }
    dblk_waiter_fini(&many.attempt.waiter);
    for (i = 0; ret_is_in_way != NULL && i < n_names; ++i)
        ret_is_in_way[i] = many.names.outcomes[i] == DBLOCK_ANSWER_BUSY;
    if (status == DBLOCK_OK) {
        status = hold(&many, begun_us);
        is_open = status != DBLOCK_OK;
    }
    if (status != DBLOCK_OK)
        status = finish(&many, status, is_open, begun_us, reterr);
    else
        for (i = 0; i < n_names; ++i) {
            ret_locks[wanted[i].place] = many.locks[i];
            dblk_trace(client, DBLOCK_TRACE_GRANT, status, wanted[i].name, NULL,
                many.locks[i]->token, begun_us);
        }
    dblk_many_names_fini(&many.names);
    dblk_release(many.locks);
    return status;
}

dblock_status dblk_many_check(dblock_client *client, const char *const *names, size_t n_names,
    const struct dblock_options *options, dblock_lock *const *locks, struct dblk_wanted *wanted,
    struct dblk_wish *ret_wish, struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_OK;

    if (locks == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_locks: NULL");
    if (status == DBLOCK_OK)
        status = check_names(names, n_names, reterr);
    if (status == DBLOCK_OK)
        status = sort_names(names, n_names, wanted, reterr);
    if (status == DBLOCK_OK)
        status = dblk_wish_resolve(&client->settings, options, ret_wish, reterr);
    if (status == DBLOCK_OK)
        status = check_wish(client, ret_wish, reterr);
    if (status == DBLOCK_OK)
        status = dblk_borrowed_check_wish(client, ret_wish, wanted[0].name, reterr);
    return status;
}

dblock_status dblock_acquire_many(dblock_client *client, const char *const *names, size_t n_names,
    const struct dblock_options *options, dblock_lock **ret_locks, struct dblock_error *reterr)
{
    struct dblk_wanted wanted[DBLOCK_MANY_MAX];
    struct dblk_wish wish;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    status = dblk_many_check(client, names, n_names, options, ret_locks, wanted, &wish, reterr);
    if (status == DBLOCK_OK)
        status = dblk_keeper_ensure(client, reterr);
    if (status == DBLOCK_OK)
        status = dblk_many_acquire(client, wanted, n_names, &wish, ret_locks, NULL, reterr);
    dblk_client_leave(client);
    return status;
}
