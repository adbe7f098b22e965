/* SPDX-License-Identifier: MIT */
/* sqlite_byte_list.c - who holds bytes of the side file, as far as they say so. */
#include "sqlite_byte.h"
#include "sqlite_clock.h"
#include "sqlite_statement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sqlite_byte_grant(const struct slot *slot, int64_t now_us, struct dblock_grant *grant)
{
    static const unsigned char no_owner[DBLOCK_ID_SIZE];

    memset(grant, 0, sizeof *grant);
    grant->struct_size = sizeof *grant;
    grant->strategy = slot->strategy;
    grant->n_waiters = UINT32_MAX;
    grant->token = slot->token;
    grant->now_us = now_us;
    grant->since_us = slot->since_us;
    grant->remaining_ms = DBLOCK_FOREVER;
    grant->pid = slot->pid;
    if (memcmp(slot->owner, no_owner, sizeof no_owner) != 0)
        dblock_id_text(slot->owner, grant->owner);
    dblock_text_copy(grant->name, sizeof grant->name, slot->name);
    dblock_text_copy(grant->label, sizeof grant->label, slot->label);
    dblock_text_copy(grant->host, sizeof grant->host, slot->host);
}

struct collection {
    const struct dblock_page *page;
    struct slot *slots;
    size_t n_slots, capacity;
    int is_out_of_memory;
};

static int is_wanted(const struct dblock_page *page, const struct slot *slot)
{
    if (slot->strategy != page->strategy)
        return 0;
    if (page->has_advisory_id && page->name != NULL) {
        if (slot->offset != sqlite_side_offset(page->strategy, page->advisory_id))
            return 0;
    } else if (page->name != NULL && strcmp(page->name, slot->name) != 0) {
        return 0;
    }
    if (page->prefix != NULL && strncmp(page->prefix, slot->name, strlen(page->prefix)) != 0)
        return 0;
    return page->after == NULL || strcmp(slot->name, page->after) > 0;
}

static int collect(const struct slot *slot, int64_t index, void *context)
{
    struct collection *collection = context;

    (void)index;
    if (!is_wanted(collection->page, slot))
        return 0;
    if (collection->n_slots == collection->capacity) {
        size_t capacity = collection->capacity == 0 ? 16 : collection->capacity * 2;
        struct slot *slots = realloc(collection->slots, capacity * sizeof *slots);

        collection->is_out_of_memory = slots == NULL;
        if (slots == NULL)
            return 1;
        collection->slots = slots;
        collection->capacity = capacity;
    }
    collection->slots[collection->n_slots++] = *slot;
    return 0;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct slot *)left)->name, ((const struct slot *)right)->name);
}

/* The token that was last drawn for the lock, if this grant can be the one that drew it. */
static dblock_status read_token(
    struct dblock_connection *connection, struct slot *slot, struct dblock_error *reterr)
{
    char number[32];
    sqlite3_stmt *statement = NULL;
    const char *key = slot->name;
    int has_row = 0;
    dblock_status status = sqlite_prepare(connection, STATEMENT_TOKEN_LOOK, &statement, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (slot->strategy == DBLOCK_ADVISORY) {
        (void)snprintf(number, sizeof number, "#%" PRId64, slot->number);
        key = number;
    }
    (void)sqlite3_bind_int(statement, 1, slot->strategy);
    (void)sqlite3_bind_blob(statement, 2, key, (int)strlen(key), SQLITE_STATIC);
    status = sqlite_fetch(connection, statement, &has_row, reterr);
    if (!has_row)
        return status;
    if (sqlite3_column_int64(statement, 1) >= slot->since_us)
        slot->token = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return DBLOCK_OK;
}

static dblock_status gather(struct dblock_connection *connection, const struct dblock_page *page,
    struct collection *collection, struct dblock_error *reterr)
{
    dblock_status status = sqlite_connection_side(connection, reterr);
    size_t i;

    memset(collection, 0, sizeof *collection);
    collection->page = page;
    if (status != DBLOCK_OK)
        return status;
    sqlite_slot_each(connection->side, &connection->slots, collect, collection);
    if (collection->is_out_of_memory)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "no memory for the list of locks");
    if (collection->n_slots > 1)
        qsort(collection->slots, collection->n_slots, sizeof *collection->slots, compare_names);
    if (collection->n_slots > page->limit)
        collection->n_slots = page->limit;
    for (i = 0; status == DBLOCK_OK && i < collection->n_slots; ++i)
        status = read_token(connection, &collection->slots[i], reterr);
    return status;
}

dblock_status sqlite_byte_list(struct dblock_connection *connection, const struct dblock_page *page,
    dblock_grant_fn fn, void *context, struct dblock_error *reterr)
{
    struct collection collection;
    struct dblock_grant grant;
    dblock_status status = gather(connection, page, &collection, reterr);
    int64_t now_us = sqlite_clock_us();
    size_t i;

    for (i = 0; status == DBLOCK_OK && i < collection.n_slots; ++i) {
        sqlite_byte_grant(&collection.slots[i], now_us, &grant);
        if (connection->side->lines != NULL)
            grant.n_waiters = sqlite_line_count(connection->side,
                sqlite_line_key(page->strategy, collection.slots[i].number));
        if (fn(&grant, context) != 0)
            break;
    }
    free(collection.slots);
    return status;
}

/* Nobody can take a descriptor away from another process, and to end the process is not ours: it
 * may hold more than this. */
static dblock_status refuse_end(
    struct dblock_connection *connection, const struct slot *slot, struct dblock_error *reterr)
{
    char hint[256];

    if (slot == NULL)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "find the process that has the file open: fuser PATH-dblock",
            "cannot break a lock in %s: the holder is not known", connection->path);
    (void)snprintf(
        hint, sizeof hint, "end the process %" PRId64 " on %.100s", slot->pid, slot->host);
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, hint,
        "cannot break \"%s\" in %s: the lock is held by an open file of process %" PRId64,
        slot->name, connection->path, slot->pid);
}

dblock_status sqlite_byte_end(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct dblock_page page = {.strategy = strategy,
        .name = subject->name,
        .advisory_id = subject->advisory_id,
        .has_advisory_id = subject->has_advisory_id,
        .limit = 1};
    struct collection collection = {0};
    int64_t offset = sqlite_side_offset(strategy, sqlite_byte_number(strategy, subject));
    dblock_status status = sqlite_step_begin(connection, call, "break", subject->name, reterr);

    if (status == DBLOCK_OK)
        status = gather(connection, &page, &collection, reterr);
    answer->outcome = DBLOCK_ANSWER_NO;
    if (status == DBLOCK_OK && collection.n_slots > 0) {
        if (token == 0 || collection.slots[0].token == token)
            status = refuse_end(connection, &collection.slots[0], reterr);
    } else if (status == DBLOCK_OK && sqlite_side_is_locked(connection->side, offset, NULL)) {
        status = refuse_end(connection, NULL, reterr);
    }
    free(collection.slots);
    return sqlite_step_end(connection, status, answer);
}
