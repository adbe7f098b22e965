/* SPDX-License-Identifier: MIT */
/* release_many.c - dblock_release_many(). */
#include <dblock/many.h>

#include <stdint.h>
#include <string.h>

#include "core/borrowed.h"
#include "core/error.h"
#include "core/many.h"
#include "core/release.h"
#include "core/trace.h"
#include "core/watch.h"

static int rank(dblock_status status)
{
    return status < 0 ? 4
        : status == DBLOCK_LOST     ? 3
        : status == DBLOCK_PENDING  ? 2
        : status == DBLOCK_NOT_HELD ? 1
                                    : 0;
}

static void note(dblock_status status, const struct dblock_error *error, dblock_status *worst,
    struct dblock_error *reterr)
{
    if (rank(status) <= rank(*worst))
        return;
    *worst = status;
    if (status < 0)
        dblk_error_tell(reterr, error);
}

/* Goes with the first: one message for both. */
static int is_alike(const dblock_lock *lock, const dblock_lock *first, uint64_t now_us)
{
    return lock->client == first->client && lock->strategy == first->strategy &&
        !lock->strategy->lives_in_connection && dblk_lock_keep_us(lock, now_us) == 0;
}

static dblock_status drop(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    const struct dblk_many *many = context;

    return dblk_many_drop(
        client, link, call, many->locks[0]->strategy->id, &many->names, answer, error);
}

/* The locks of `many` are on their way: RELEASING. */
static void tell_database(struct dblk_many *many, uint64_t begun_us, dblock_status *worst,
    struct dblock_error *reterr)
{
    dblock_client *client = many->locks[0]->client;
    struct dblk_short_result result;
    struct dblock_error error;
    dblock_status status, each;
    size_t i;

    memset(&result, 0, sizeof result);
    dblk_error_clear(&error);
    status = dblk_short(client, begun_us, many->locks[0]->link_id, drop, many, &result, &error);
    for (i = 0; i < many->names.n_names; ++i) {
        dblock_lock *lock = many->locks[i];

        each = status == DBLOCK_OK
            ? dblk_release_judge(lock, many->names.outcomes[i], result.was_uncertain)
            : status;
        dblk_release_end(lock, each);
        dblk_trace(client, DBLOCK_TRACE_RELEASE, each, lock->subject.name,
            each < 0 ? error.message : NULL, lock->token, begun_us);
        note(each, &error, worst, reterr);
    }
}

static void release_one(dblock_lock *lock, dblock_status *worst, struct dblock_error *reterr)
{
    struct dblock_error error;
    dblock_status status;

    dblk_error_clear(&error);
    status = dblock_release(lock, &error);
    note(status, &error, worst, reterr);
}

/* Those of `locks` that are alike, and held; the others are released one by one. */
static void release_all(dblock_lock *const *locks, size_t n_locks, const dblock_lock *first,
    struct dblk_many *many, dblock_status *worst, struct dblock_error *reterr)
{
    uint64_t begun_us = dblk_now_us();
    struct dblock_error error;
    int is_handed;
    dblock_status status;
    size_t i;

    many->names.n_names = 0;
    for (i = 0; i < n_locks; ++i) {
        dblock_lock *lock = locks[i];

        if (lock == NULL)
            continue;
        if (!is_alike(lock, first, begun_us)) {
            release_one(lock, worst, reterr);
            continue;
        }
        is_handed = 0;
        status = dblk_borrowed_check_release(lock, &error);
        if (status != DBLOCK_OK) {
            note(status, &error, worst, reterr);
            continue;
        }
        dblk_watch_end(lock);
        status = dblk_release_begin(lock, begun_us, &is_handed);
        if (status != DBLOCK_OK || is_handed) {
            note(status, NULL, worst, reterr);
            continue;
        }
        many->locks[many->names.n_names] = lock;
        dblk_many_names_set(&many->names, many->names.n_names, lock);
        ++many->names.n_names;
    }
    if (many->names.n_names > 0)
        tell_database(many, begun_us, worst, reterr);
}

static const dblock_lock *find_first(dblock_lock *const *locks, size_t n_locks)
{
    size_t i;

    for (i = 0; i < n_locks; ++i)
        if (locks[i] != NULL && !locks[i]->strategy->lives_in_connection)
            return locks[i];
    return NULL;
}

dblock_status dblock_release_many(
    dblock_lock *const *locks, size_t n_locks, struct dblock_error *reterr)
{
    const dblock_lock *first;
    dblock_status status = DBLOCK_OK;
    struct dblk_many many;
    size_t i;

    if (locks == NULL && n_locks > 0)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "locks: NULL");
    if (n_locks > UINT32_MAX) /* a negative number, most likely */
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, NULL, "n_locks: %zu is more than there can be", n_locks);
    first = find_first(locks, n_locks);
    memset(&many, 0, sizeof many);
    if (first != NULL && dblk_client_check(first->client, NULL) == DBLOCK_OK) {
        dblock_client *client = first->client;

        dblk_client_ref(client);
        many.locks = dblk_allocate(n_locks * sizeof(dblock_lock *));
        if (many.locks != NULL && dblk_many_names_init(&many.names, n_locks) == 0) {
            release_all(locks, n_locks, first, &many, &status, reterr);
            dblk_many_names_fini(&many.names);
            dblk_release(many.locks);
            dblk_client_unref(client);
            return status;
        }
        dblk_release(many.locks); /* no memory for doing it at once */
        dblk_client_unref(client);
    }
    for (i = 0; i < n_locks; ++i)
        if (locks[i] != NULL)
            release_one(locks[i], &status, reterr);
    return status;
}
