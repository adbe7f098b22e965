/* SPDX-License-Identifier: MIT */
/* sim_world.c - sessions, and the rows of lease and insert. Locks that live in
 * connections, and looking at it all, are in sim_world_locks.c. */
#include "sim_world_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sim_array_add(struct sim_array *array, size_t item_size)
{
    char *items = array->items;

    if (array->n_items == array->room) {
        size_t room = array->room == 0 ? 8 : 2 * array->room;

        items = realloc(items, room * item_size);
        if (items == NULL)
            abort(); /* a test without memory has nothing to say */
        array->items = items;
        array->room = room;
    }
    memset(items + array->n_items * item_size, 0, item_size);
    return items + array->n_items++ * item_size;
}

void sim_array_remove(struct sim_array *array, size_t item_size, size_t index)
{
    char *items = array->items;

    --array->n_items;
    memmove(items + index * item_size, items + (index + 1) * item_size,
        (array->n_items - index) * item_size);
}

void sim_world_init(struct sim_world *world, int64_t now_us)
{
    memset(world, 0, sizeof *world);
    world->start_us = now_us;
}

void sim_world_fini(struct sim_world *world)
{
    free(world->sessions.items);
    free(world->rows.items);
    free(world->locks.items);
    free(world->waiters.items);
    memset(world, 0, sizeof *world);
}

dblock_status sim_refusal(const struct sim_world *world, int is_write, struct dblock_error *reterr)
{
    if (!world->is_installed)
        return dblock_error_set(
            reterr, DBLOCK_E_SCHEMA, "run: dblock init", "cannot reach the tables: there are none");
    if (world->is_denied)
        return dblock_error_set(reterr, DBLOCK_E_PERMISSION, "GRANT ALL ON dblock TO you",
            "permission denied for the tables");
    if (world->is_read_only && is_write)
        return dblock_error_set(
            reterr, DBLOCK_E_READ_ONLY, "connect to the primary", "the database is read-only");
    return DBLOCK_OK;
}

dblock_status sim_say(struct dblock_answer *answer, int64_t now_us, int32_t outcome)
{
    answer->outcome = outcome;
    answer->now_us = now_us;
    return DBLOCK_OK;
}

/* Above all that this row and deleted ones had, and not behind the clock. */
int64_t sim_next_token(const struct sim_world *world, int64_t last, int64_t now_us)
{
    int64_t token = last > world->floor ? last : world->floor;

    ++token;
    return token > now_us ? token : now_us;
}

static void raise_floor(struct sim_world *world, int64_t token)
{
    if (token > world->floor)
        world->floor = token;
}

/* ----------------------------------------------------------------- sessions */

static int is_id(const unsigned char *left, const unsigned char *right)
{
    return memcmp(left, right, DBLOCK_ID_SIZE) == 0;
}

static struct sim_session *find_session(const struct sim_world *world, const unsigned char *id)
{
    struct sim_session *sessions = world->sessions.items;
    size_t i;

    for (i = 0; i < world->sessions.n_items; ++i)
        if (is_id(sessions[i].id, id))
            return &sessions[i];
    return NULL;
}

/* Deletes the row. What it held names it still, and is free from now on. */
static void forget_session(struct sim_world *world, int64_t now_us, struct sim_session *session)
{
    struct sim_session *sessions = world->sessions.items;
    struct sim_row *rows = world->rows.items;
    size_t i;

    for (i = 0; i < world->rows.n_items; ++i)
        if (rows[i].has_session && is_id(rows[i].session, session->id))
            rows[i].free_us = now_us;
    sim_array_remove(&world->sessions, sizeof *session, (size_t)(session - sessions));
}

dblock_status sim_session_begin(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_session *added;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    if (find_session(world, session) != NULL)
        return dblock_error_set(reterr, DBLOCK_E_DATABASE, NULL, "duplicate session id");
    added = sim_array_add(&world->sessions, sizeof *added);
    memcpy(added->id, session, sizeof added->id);
    added->ttl_us = ttl_us;
    added->since_us = now_us;
    added->expires_us = now_us + (int64_t)ttl_us;
    added->pid = caller->pid;
    dblock_text_copy(added->host, sizeof added->host, caller->host);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_session_renew(struct sim_world *world, int64_t now_us,
    const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_session *found;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    found = find_session(world, session);
    if (found == NULL || found->expires_us <= now_us)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    found->ttl_us = ttl_us;
    found->expires_us = now_us + (int64_t)ttl_us;
    ++found->n_beats;
    answer->changed = found->changed;
    answer->server_start_us = world->start_us;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_session_end(struct sim_world *world, int64_t now_us, const unsigned char *session,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_session *found;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    found = find_session(world, session);
    if (found == NULL)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    forget_session(world, now_us, found);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_session_holds(struct sim_world *world, int64_t now_us,
    const unsigned char *session, dblock_grant_fn fn, void *context, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_row *rows = world->rows.items;
    size_t i;

    if (sim_refusal(world, 0, reterr) != DBLOCK_OK)
        return reterr->status;
    for (i = 0; i < world->rows.n_items; ++i) {
        struct dblock_grant grant;

        if (!rows[i].has_owner || !rows[i].has_session || !is_id(rows[i].session, session))
            continue;
        sim_row_grant(world, now_us, &rows[i], &grant);
        if (fn(&grant, context) != 0)
            break;
    }
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

/* --------------------------------------------------------- lease and insert */

struct sim_row *sim_hold_row(struct sim_world *world, int32_t strategy, const char *name)
{
    struct sim_row *rows = world->rows.items;
    size_t i;

    for (i = 0; i < world->rows.n_items; ++i)
        if (rows[i].strategy == strategy && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static struct sim_row *add_row(struct sim_world *world, int32_t strategy, const char *name)
{
    struct sim_row *row = sim_array_add(&world->rows, sizeof *row);

    row->strategy = strategy;
    dblock_text_copy(row->name, sizeof row->name, name);
    return row;
}

static void remove_row(struct sim_world *world, struct sim_row *row)
{
    struct sim_row *rows = world->rows.items;

    raise_floor(world, row->token);
    sim_array_remove(&world->rows, sizeof *row, (size_t)(row - rows));
}

/* When the grant of the row ends if nothing more happens; not above now: it is not in force. */
static int64_t end_of(const struct sim_world *world, const struct sim_row *row)
{
    const struct sim_session *session;

    if (!row->has_owner)
        return INT64_MIN;
    if (!row->has_session)
        return row->expires_us;
    session = find_session(world, row->session);
    return session == NULL ? INT64_MIN : session->expires_us;
}

int sim_row_is_in_force(const struct sim_world *world, int64_t now_us, const struct sim_row *row)
{
    return end_of(world, row) > now_us;
}

void sim_row_grant(const struct sim_world *world, int64_t now_us, const struct sim_row *row,
    struct dblock_grant *grant)
{
    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    grant->strategy = row->strategy;
    grant->is_pinned = row->n_guards > 0;
    grant->n_waiters = UINT32_MAX;
    grant->token = row->token;
    grant->now_us = now_us;
    dblock_text_copy(grant->name, sizeof grant->name, row->name);
    if (!row->has_owner)
        return;
    dblock_id_text(row->owner, grant->owner);
    grant->since_us = row->since_us;
    grant->is_heartbeat = row->has_session != 0;
    grant->pid = row->pid;
    dblock_text_copy(grant->label, sizeof grant->label, row->label);
    dblock_text_copy(grant->host, sizeof grant->host, row->host);
    if (sim_row_is_in_force(world, now_us, row)) {
        grant->expires_us = end_of(world, row);
        grant->remaining_ms = (uint64_t)(grant->expires_us - now_us) / 1000;
    }
}

/* Free from now on. A row of insert goes, as on PostgreSQL and SQLite, and leaves its token in
 * the floor. */
static void free_row(struct sim_world *world, int64_t now_us, struct sim_row *row)
{
    if (row->strategy == DBLOCK_INSERT) {
        remove_row(world, row);
        return;
    }
    row->has_owner = 0;
    row->has_session = 0;
    row->expires_us = 0;
    row->free_us = now_us;
}

static dblock_status answer_holder(const struct sim_world *world, int64_t now_us,
    const struct sim_row *row, int32_t outcome, struct dblock_grant *holder,
    struct dblock_answer *answer)
{
    int64_t end_us = end_of(world, row);

    if (holder != NULL)
        sim_row_grant(world, now_us, row, holder);
    answer->remaining_us = end_us > now_us ? (uint64_t)(end_us - now_us) : DBLOCK_NO_END;
    return sim_say(answer, now_us, outcome);
}

/* An expired session that stands in the way is ended, whatever becomes of the attempt. */
static void end_expired_session(struct sim_world *world, int64_t now_us, const struct sim_row *row)
{
    struct sim_session *session = row->has_session ? find_session(world, row->session) : NULL;

    if (session != NULL && session->expires_us <= now_us)
        forget_session(world, now_us, session);
}

static void grant_row(struct sim_world *world, int64_t now_us, const struct sim_caller *caller,
    struct sim_row *row, const struct dblock_take *take)
{
    row->has_owner = 1;
    memcpy(row->owner, take->owner, sizeof row->owner);
    row->has_session = take->session != NULL;
    row->expires_us = 0;
    if (take->session != NULL)
        memcpy(row->session, take->session, sizeof row->session);
    else
        row->expires_us = now_us + (int64_t)take->ttl_us;
    row->token = sim_next_token(world, row->token, now_us);
    row->since_us = now_us;
    row->free_us = 0;
    row->pid = caller->pid;
    dblock_text_copy(row->label, sizeof row->label, take->label);
    dblock_text_copy(row->host, sizeof row->host, caller->host);
}

dblock_status sim_hold_take(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, int32_t strategy, const struct dblock_take *take,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct sim_session *mine = NULL;
    struct sim_row *row;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    row = sim_hold_row(world, strategy, take->subject.name);
    if (row != NULL && sim_row_is_in_force(world, now_us, row))
        return answer_holder(world, now_us, row, DBLOCK_ANSWER_BUSY, holder, answer);
    if (row != NULL)
        end_expired_session(world, now_us, row);
    if (take->session != NULL) {
        mine = find_session(world, take->session);
        if (mine == NULL || mine->expires_us <= now_us)
            return sim_say(answer, now_us, DBLOCK_ANSWER_SESSION);
        answer->session_remaining_us = (uint64_t)(mine->expires_us - now_us);
    }
    if (row != NULL && row->n_guards > 0)
        return answer_holder(world, now_us, row, DBLOCK_ANSWER_PINNED, holder, answer);
    if (now_us > take->not_after_us)
        return sim_say(answer, now_us, DBLOCK_ANSWER_LATE);
    if (row == NULL)
        row = add_row(world, strategy, take->subject.name);
    grant_row(world, now_us, caller, row, take);
    answer->token = row->token;
    answer->remaining_us = (uint64_t)(end_of(world, row) - now_us);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

/* The row of this very grant if it is in force, else NULL. */
static struct sim_row *find_grant(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner)
{
    struct sim_row *row = sim_hold_row(world, strategy, name);

    if (row == NULL || !row->has_owner || !is_id(row->owner, owner))
        return NULL;
    return sim_row_is_in_force(world, now_us, row) ? row : NULL;
}

static void make_timed(struct sim_row *row, int64_t now_us, uint64_t ttl_us)
{
    row->has_session = 0;
    row->expires_us = now_us + (int64_t)ttl_us;
}

dblock_status sim_hold_drop(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_row *row;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    row = find_grant(world, now_us, strategy, name, owner);
    if (row == NULL)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (row->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    if (keep_us > 0)
        make_timed(row, now_us, keep_us);
    else
        free_row(world, now_us, row);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_hold_extend(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_row *row;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    row = find_grant(world, now_us, strategy, name, owner);
    if (row == NULL)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (row->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    make_timed(row, now_us, ttl_us);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_hold_draw(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_row *row;

    if (sim_refusal(world, 1, reterr) != DBLOCK_OK)
        return reterr->status;
    row = find_grant(world, now_us, strategy, name, owner);
    if (row == NULL)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (row->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    row->token = sim_next_token(world, row->token, now_us);
    answer->token = row->token;
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

dblock_status sim_hold_look(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_row *row;

    if (sim_refusal(world, 0, reterr) != DBLOCK_OK)
        return reterr->status;
    row = sim_hold_row(world, strategy, name);
    if (row == NULL || !sim_row_is_in_force(world, now_us, row))
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    return answer_holder(world, now_us, row, DBLOCK_ANSWER_YES, grant, answer);
}

int sim_hold_guard(struct sim_world *world, int32_t strategy, const char *name, int by)
{
    struct sim_row *row = sim_hold_row(world, strategy, name);

    if (row == NULL)
        return 0;
    row->n_guards = (unsigned)((int)row->n_guards + by);
    return 1;
}

void sim_hold_plant(struct sim_world *world, int64_t now_us, int32_t strategy, const char *name,
    const unsigned char *owner, const unsigned char *session)
{
    struct sim_row *row = sim_hold_row(world, strategy, name);

    if (row == NULL)
        row = add_row(world, strategy, name);
    row->has_owner = 1;
    row->has_session = 1;
    memcpy(row->owner, owner, sizeof row->owner);
    memcpy(row->session, session, sizeof row->session);
    row->token = sim_next_token(world, row->token, now_us);
    row->since_us = now_us;
}

void sim_hold_delete(struct sim_world *world, int32_t strategy, const char *name)
{
    struct sim_row *row = sim_hold_row(world, strategy, name);
    struct sim_row *rows = world->rows.items;

    if (row != NULL)
        sim_array_remove(&world->rows, sizeof *row, (size_t)(row - rows));
}

/* ----------------------------------------------- ending and purging of these */

dblock_status sim_row_end(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, int64_t token, struct dblock_answer *answer)
{
    struct sim_row *row = sim_hold_row(world, strategy, name);
    struct sim_session *session;

    if (row == NULL || !sim_row_is_in_force(world, now_us, row))
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (token != 0 && row->token != token)
        return sim_say(answer, now_us, DBLOCK_ANSWER_NO);
    if (row->n_guards > 0)
        return sim_say(answer, now_us, DBLOCK_ANSWER_PINNED);
    session = row->has_session ? find_session(world, row->session) : NULL;
    if (session != NULL)
        ++session->changed;
    ++row->token;
    free_row(world, now_us, row);
    return sim_say(answer, now_us, DBLOCK_ANSWER_YES);
}

static int is_free_since(
    const struct sim_world *world, int64_t now_us, const struct sim_row *row, int64_t before_us)
{
    if (row->n_guards > 0 || sim_row_is_in_force(world, now_us, row))
        return 0;
    /* an owner that is out of force: it ended when its own time or its session's was over */
    if (row->has_owner && end_of(world, row) != INT64_MIN)
        return end_of(world, row) < before_us;
    return row->free_us < before_us;
}

uint64_t sim_rows_purge(struct sim_world *world, int64_t now_us, int64_t before_us, uint64_t limit)
{
    struct sim_session *sessions = world->sessions.items;
    struct sim_row *rows = world->rows.items;
    uint64_t n_removed = 0;
    size_t i;

    for (i = world->sessions.n_items; i > 0 && n_removed < limit; --i) {
        if (sessions[i - 1].expires_us >= before_us)
            continue;
        forget_session(world, sessions[i - 1].expires_us, &sessions[i - 1]);
        ++n_removed;
    }
    for (i = world->rows.n_items; i > 0 && n_removed < limit; --i) {
        if (!is_free_since(world, now_us, &rows[i - 1], before_us))
            continue;
        remove_row(world, &rows[i - 1]);
        ++n_removed;
    }
    return n_removed;
}
