/* SPDX-License-Identifier: MIT */
/* sim_world_locks.c - the rest of the simulated world: row and advisory locks,
 * their queues, and looking at, ending and purging of everything. */
#include "sim_world_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a: any hash will do where no other program shares the numbers. */
static int64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *name != 0; ++name)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (int64_t)(hash >> 1);
}

static int64_t id_of(int32_t strategy, const struct dblock_subject *subject)
{
    if (strategy == DBLOCK_ROW)
        return 0;
    return subject->has_advisory_id ? subject->advisory_id : hash_name(subject->name);
}

static struct sim_lock *find_lock(
    const struct sim_world *world, int32_t strategy, const struct dblock_subject *subject)
{
    struct sim_lock *locks = world->locks.items;
    int64_t id = id_of(strategy, subject);
    size_t i;

    for (i = 0; i < world->locks.n_items; ++i) {
        if (locks[i].strategy != strategy)
            continue;
        if (strategy == DBLOCK_ADVISORY ? locks[i].id == id
                                        : strcmp(locks[i].name, subject->name) == 0)
            return &locks[i];
    }
    return NULL;
}

static struct sim_lock *find_or_add(
    struct sim_world *world, int32_t strategy, const struct dblock_subject *subject)
{
    struct sim_lock *lock = find_lock(world, strategy, subject);

    if (lock != NULL)
        return lock;
    lock = sim_array_add(&world->locks, sizeof *lock);
    lock->strategy = strategy;
    lock->id = id_of(strategy, subject);
    if (strategy == DBLOCK_ADVISORY && subject->has_advisory_id)
        (void)snprintf(lock->name, sizeof lock->name, "#%" PRId64, lock->id);
    else
        dblock_text_copy(lock->name, sizeof lock->name, subject->name);
    return lock;
}

static uint32_t count_waiters(const struct sim_world *world, const struct sim_lock *lock)
{
    const struct sim_waiter *waiters = world->waiters.items;
    uint32_t n_waiters = 0;
    size_t i;

    for (i = 0; i < world->waiters.n_items; ++i)
        if (waiters[i].strategy == lock->strategy && waiters[i].id == lock->id &&
            strcmp(waiters[i].name, lock->name) == 0)
            ++n_waiters;
    return n_waiters;
}

static void fill_grant(const struct sim_world *world, int64_t now_us, const struct sim_lock *lock,
    struct dblock_grant *grant)
{
    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    grant->strategy = lock->strategy;
    grant->n_waiters = count_waiters(world, lock);
    grant->now_us = now_us;
    dblock_text_copy(grant->name, sizeof grant->name, lock->name);
    grant->token = lock->holder != 0 ? lock->grant_token : lock->token;
    if (lock->holder == 0)
        return;
    grant->since_us = lock->since_us;
    grant->remaining_ms = DBLOCK_FOREVER;
    grant->server_pid = (int64_t)lock->holder;
    grant->pid = lock->pid;
    dblock_text_copy(grant->label, sizeof grant->label, lock->label);
    dblock_text_copy(grant->host, sizeof grant->host, lock->host);
}

static void hold(
    struct sim_lock *lock, int64_t now_us, const struct sim_caller *caller, const char *label)
{
    lock->holder = caller->connection;
    lock->grant_token = 0;
    lock->since_us = now_us;
    lock->pid = caller->pid;
    dblock_text_copy(lock->label, sizeof lock->label, label);
    dblock_text_copy(lock->host, sizeof lock->host, caller->host);
}

static void tell(const struct sim_world *world, uint64_t connection, enum sim_notice notice)
{
    if (world->notice != NULL)
        world->notice(world->notice_context, connection, notice);
}

/* The lock goes to whoever has stood in its queue for longest. */
static void pass_on(struct sim_world *world, int64_t now_us, struct sim_lock *lock)
{
    struct sim_waiter *waiters = world->waiters.items;
    size_t first = world->waiters.n_items;
    struct sim_caller caller;
    size_t i;

    lock->holder = 0;
    lock->grant_token = 0;
    lock->since_us = now_us;
    for (i = 0; i < world->waiters.n_items; ++i)
        if (waiters[i].strategy == lock->strategy && waiters[i].id == lock->id &&
            strcmp(waiters[i].name, lock->name) == 0 &&
            (first == world->waiters.n_items || waiters[i].place < waiters[first].place))
            first = i;
    if (first == world->waiters.n_items)
        return;
    caller.connection = waiters[first].connection;
    caller.host = waiters[first].host;
    caller.label = waiters[first].label;
    caller.pid = waiters[first].pid;
    hold(lock, now_us, &caller, caller.label);
    sim_array_remove(&world->waiters, sizeof *waiters, first);
    tell(world, lock->holder, SIM_GRANTED);
}

dblock_status sim_lock_seed(struct sim_world *world, int64_t now_us,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    find_or_add(world, DBLOCK_ROW, subject)->is_seeded = 1;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_lock_take(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, int32_t strategy, const struct dblock_take *take,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_lock *lock;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    lock = strategy == DBLOCK_ROW ? find_lock(world, strategy, &take->subject)
                                  : find_or_add(world, strategy, &take->subject);
    if (lock == NULL || (strategy == DBLOCK_ROW && !lock->is_seeded))
        return sim_say(answer, now_us, DBLOCK_ANSWER_UNSEEDED);
    if (lock->holder != 0) {
        if (holder != NULL)
            fill_grant(world, now_us, lock, holder);
        answer->remaining_us = DBLOCK_NO_END;
        return sim_say(answer, now_us, DBLOCK_ANSWER_BUSY);
    }
    hold(lock, now_us, caller, take->label);
    answer->remaining_us = DBLOCK_NO_END;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

void sim_lock_enqueue(struct sim_world *world, const struct sim_caller *caller, int32_t strategy,
    const struct dblock_take *take)
{
    struct sim_lock *lock = find_or_add(world, strategy, &take->subject);
    struct sim_waiter *waiter = sim_array_add(&world->waiters, sizeof *waiter);

    waiter->connection = caller->connection;
    waiter->place = ++world->last_place;
    waiter->strategy = strategy;
    waiter->id = lock->id;
    waiter->pid = caller->pid;
    dblock_text_copy(waiter->name, sizeof waiter->name, lock->name);
    dblock_text_copy(waiter->label, sizeof waiter->label, take->label);
    dblock_text_copy(waiter->host, sizeof waiter->host, caller->host);
}

void sim_lock_leave(struct sim_world *world, uint64_t connection)
{
    struct sim_waiter *waiters = world->waiters.items;
    size_t i;

    for (i = world->waiters.n_items; i > 0; --i)
        if (waiters[i - 1].connection == connection)
            sim_array_remove(&world->waiters, sizeof *waiters, i - 1);
}

int sim_lock_is_held(const struct sim_world *world, uint64_t connection, int32_t strategy,
    const struct dblock_subject *subject)
{
    const struct sim_lock *lock = find_lock(world, strategy, subject);

    return lock != NULL && lock->holder == connection;
}

dblock_status sim_lock_drop(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    (void)reterr; /* what is held can be let go in any world */
    if (!sim_lock_is_held(world, connection, strategy, subject))
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    pass_on(world, now_us, find_lock(world, strategy, subject));
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_lock_prove(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    (void)reterr;
    return sim_say(answer, now_us,
        sim_lock_is_held(world, connection, strategy, subject) ? DBLOCK_ANSWER_YES
                                                               : DBLOCK_ANSWER_NO);
}

dblock_status sim_lock_draw(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_lock *lock;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    lock = find_or_add(world, strategy, subject);
    /* an advisory token is drawn on the lock's own connection, which then must have it */
    if (strategy == DBLOCK_ADVISORY && lock->holder != connection)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (lock->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    lock->token = sim_next_token(world, lock->token, now_us);
    lock->grant_token = lock->token;
    answer->token = lock->token;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

int sim_lock_guard(struct sim_world *world, int32_t strategy, const char *name, int by)
{
    const struct dblock_subject subject = { name, strlen(name), 0, 0 };
    struct sim_lock *lock = find_lock(world, strategy, &subject);

    if (lock == NULL || lock->token == 0)
        return 0;
    lock->n_guards = (unsigned)((int)lock->n_guards + by);
    return 1;
}

void sim_connection_end(struct sim_world *world, int64_t now_us, uint64_t connection)
{
    size_t i;

    sim_lock_leave(world, connection);
    for (i = 0; i < world->locks.n_items; ++i) {
        struct sim_lock *lock = (struct sim_lock *)world->locks.items + i;

        if (lock->holder == connection)
            pass_on(world, now_us, lock);
    }
}

/* ------------------------------------------------------------------ observe */

static int is_on_page(const struct dblock_page *page, const char *name)
{
    if (page->name != NULL && !page->has_advisory_id && strcmp(name, page->name) != 0)
        return 0;
    if (page->prefix != NULL && strncmp(name, page->prefix, strlen(page->prefix)) != 0)
        return 0;
    return page->after == NULL || strcmp(name, page->after) > 0;
}

static int compare_grants(const void *left, const void *right)
{
    return strcmp(
        ((const struct dblock_grant *)left)->name, ((const struct dblock_grant *)right)->name);
}

static void collect_rows(const struct sim_world *world, int64_t now_us,
    const struct dblock_page *page, struct sim_array *found)
{
    const struct sim_row *rows = world->rows.items;
    size_t i;

    for (i = 0; i < world->rows.n_items; ++i) {
        struct dblock_grant *grant;

        if (rows[i].strategy != page->strategy || !is_on_page(page, rows[i].name))
            continue;
        if (!page->is_idle && !sim_row_is_in_force(world, now_us, &rows[i]))
            continue;
        grant = sim_array_add(found, sizeof *grant);
        sim_row_grant(world, now_us, &rows[i], grant);
        /* what has ended has no owner, although the row may still name one */
        if (!sim_row_is_in_force(world, now_us, &rows[i]))
            grant->owner[0] = 0;
    }
}

static void collect_locks(const struct sim_world *world, int64_t now_us,
    const struct dblock_page *page, struct sim_array *found)
{
    const struct sim_lock *locks = world->locks.items;
    size_t i;

    for (i = 0; i < world->locks.n_items; ++i) {
        if (locks[i].strategy != page->strategy || !is_on_page(page, locks[i].name))
            continue;
        if (page->has_advisory_id && locks[i].id != page->advisory_id)
            continue;
        if (locks[i].holder == 0 && !page->is_idle)
            continue;
        fill_grant(world, now_us, &locks[i], sim_array_add(found, sizeof(struct dblock_grant)));
    }
}

dblock_status sim_list(struct sim_world *world, int64_t now_us, const struct dblock_page *page,
    dblock_grant_fn fn, void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_array found = { NULL, 0, 0 };
    struct dblock_grant *grants;
    size_t i;

    if (sim_refusal(world, 0, reterr) != DBLOCK_OK)
        return reterr->status;
    if (page->strategy == DBLOCK_LEASE || page->strategy == DBLOCK_INSERT)
        collect_rows(world, now_us, page, &found);
    else
        collect_locks(world, now_us, page, &found);
    grants = found.items;
    if (found.n_items > 0)
        qsort(grants, found.n_items, sizeof *grants, compare_grants);
    for (i = 0; i < found.n_items && i < page->limit; ++i)
        if (fn(&grants[i], context) != 0)
            break;
    free(grants);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_end_token(struct sim_world *world, int64_t now_us, int32_t strategy,
    const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_lock *lock = find_lock(world, strategy, subject);

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    answer->token = token;
    if (lock != NULL && lock->token == token && lock->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    if (lock != NULL && lock->token == token)
        ++lock->token;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_end(struct sim_world *world, int64_t now_us, int32_t strategy,
    const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_lock *lock;
    uint64_t connection;
    int64_t ended;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    if (strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT)
        return sim_row_end(world, now_us, strategy, subject->name, token, answer);
    lock = find_lock(world, strategy, subject);
    if (lock == NULL || lock->holder == 0 || (token != 0 && lock->grant_token != token))
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    connection = lock->holder;
    ended = lock->grant_token;
    sim_connection_end(world, now_us, connection);
    tell(world, connection, SIM_ENDED);
    return ended != 0 ? sim_end_token(world, now_us, strategy, subject, ended, answer, reterr)
                      : sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_purge(struct sim_world *world, int64_t now_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    const int64_t before_us = now_us - INT64_C(3600000000);
    const uint64_t limit = 100;
    size_t i;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    answer->n_rows = sim_rows_purge(world, now_us, before_us, limit);
    for (i = world->locks.n_items; i > 0 && answer->n_rows < limit; --i) {
        struct sim_lock *lock = (struct sim_lock *)world->locks.items + (i - 1);

        if (lock->holder != 0 || lock->n_guards > 0 || count_waiters(world, lock) > 0 ||
            lock->since_us >= before_us)
            continue;
        if (lock->token > world->floor)
            world->floor = lock->token;
        sim_array_remove(&world->locks, sizeof *lock, i - 1);
        ++answer->n_rows;
    }
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_verify(struct sim_world *world, int64_t now_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    if (sim_refusal(world, 0, reterr) != DBLOCK_OK)
        return reterr->status;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}
