/* SPDX-License-Identifier: MIT */
/* sqlite_byte.c - taking and giving back bytes of the side file, and the books of
 * what a connection holds. Looking at those of others: sqlite_byte_list.c. */
#include "sqlite_byte.h"

#include "sqlite_clock.h"
#include "sqlite_hash.h"
#include "sqlite_statement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t sqlite_byte_number(int strategy, const struct dblock_subject *subject)
{
    if (strategy == DBLOCK_ADVISORY && subject->has_advisory_id)
        return subject->advisory_id;
    return dblock_name_number(subject->name, subject->name_size);
}

/* ------------------------------------------------------------------- the books */

static size_t find_place(const struct dblock_connection *connection, int64_t offset)
{
    size_t low = 0;
    size_t high = connection->n_held;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (connection->held[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct held_byte *find_held(const struct dblock_connection *connection, int64_t offset)
{
    size_t place = find_place(connection, offset);

    if (place == connection->n_held || connection->held[place].offset != offset)
        return NULL;
    return &connection->held[place];
}

static int make_room(struct dblock_connection *connection)
{
    size_t capacity = connection->held_capacity == 0 ? 4 : connection->held_capacity * 2;
    struct held_byte *held;

    if (connection->n_held < connection->held_capacity)
        return 1;
    held = realloc(connection->held, capacity * sizeof *held);
    if (held == NULL)
        return 0;
    connection->held = held;
    connection->held_capacity = capacity;
    return 1;
}

static void add_held(struct dblock_connection *connection, const struct held_byte *held)
{
    size_t place = find_place(connection, held->offset);

    memmove(connection->held + place + 1, connection->held + place,
        (connection->n_held - place) * sizeof *connection->held);
    connection->held[place] = *held;
    ++connection->n_held;
}

static void remove_held(struct dblock_connection *connection, struct held_byte *held)
{
    size_t place = (size_t)(held - connection->held);

    --connection->n_held;
    memmove(held, held + 1, (connection->n_held - place) * sizeof *held);
}

int sqlite_byte_is_held(
    const struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    return find_held(connection,
               sqlite_side_offset(strategy, sqlite_byte_number(strategy, subject))) != NULL;
}

/* ----------------------------------------------------------------------- steps */

struct search {
    int64_t offset;
    int64_t now_us;
    struct dblock_grant *grant;
};

static int copy_if_sought(const struct slot *slot, int64_t index, void *context)
{
    struct search *search = context;

    (void)index;
    if (slot->offset != search->offset)
        return 0;
    sqlite_byte_grant(slot, search->now_us, search->grant);
    return 1;
}

static void answer_busy(struct dblock_connection *connection, int strategy,
    const struct dblock_take *take, int64_t offset, struct dblock_grant *holder,
    struct dblock_answer *answer)
{
    struct search search = {offset, sqlite_clock_us(), holder};

    answer->outcome = DBLOCK_ANSWER_BUSY;
    answer->remaining_us = DBLOCK_NO_END;
    if (holder == NULL)
        return;
    memset(holder, 0, sizeof *holder); /* what is known if it has no slot, or not yet */
    holder->struct_size = sizeof *holder;
    holder->strategy = strategy;
    holder->n_waiters = UINT32_MAX;
    holder->now_us = search.now_us;
    holder->remaining_ms = DBLOCK_FOREVER;
    dblock_text_copy(holder->name, sizeof holder->name, take->subject.name);
    sqlite_slot_each(connection->side, &connection->slots, copy_if_sought, &search);
}

static dblock_status refuse_system(struct dblock_connection *connection, int number,
    const struct dblock_take *take, struct dblock_error *reterr)
{
    (void)dblock_error_set(reterr, DBLOCK_E_SYSTEM, NULL, "cannot lock \"%s\" in %s: %s",
        take->subject.name, connection->side->path, strerror(number));
    dblock_error_native(reterr, number, NULL, number == ENOLCK || number == EAGAIN);
    return DBLOCK_E_SYSTEM;
}

static void describe(struct dblock_connection *connection, int strategy,
    const struct dblock_take *take, int64_t number, int64_t offset, int64_t now_us, int64_t index)
{
    const struct dblock_target *target = connection->target;
    struct slot slot;

    if (index < 0)
        return;
    memset(&slot, 0, sizeof slot);
    slot.offset = offset;
    slot.since_us = now_us;
    slot.pid = target->pid;
    slot.number = number;
    slot.strategy = strategy;
    if (take->owner != NULL)
        memcpy(slot.owner, take->owner, sizeof slot.owner);
    if (take->subject.has_advisory_id) /* the name says nothing then */
        (void)snprintf(slot.name, sizeof slot.name, "#%" PRId64, take->subject.advisory_id);
    else
        dblock_text_copy(slot.name, sizeof slot.name, take->subject.name);
    dblock_text_copy(slot.label, sizeof slot.label, take->label);
    dblock_text_copy(slot.host, sizeof slot.host, target->host);
    sqlite_slot_write(connection->side, index, &slot);
}

static uint64_t find_end(const struct dblock_call *call, uint64_t wait_us)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;

    return until_us < call->deadline_us ? until_us : call->deadline_us;
}

/* In order of arrival. The byte of the ticket stays locked as long as the lock itself: so those
 * behind, who may be blocked on it, need not wake twice. */
static int wait_for_byte(struct dblock_connection *connection, const struct dblock_call *call,
    uint64_t key, uint64_t wait_us, struct held_byte *held)
{
    struct sqlite_chain *chain = &connection->chain;
    struct sqlite_side *side = connection->side;
    int number =
        sqlite_chain_wait(chain, side, key, held->offset, find_end(call, wait_us), call->cancel_fd);

    if (number == 0 && chain->place.line != NULL) {
        sqlite_line_serve(&chain->place);
        atomic_store(&chain->place.line->due_us, 0);
        held->ticket = sqlite_line_offset(side, chain->place.line, chain->place.ticket);
    }
    return number;
}

/* 0 locked; EAGAIN, ECANCELED, ESTALE the file was replaced, or another errno. */
static int lock_byte(struct dblock_connection *connection, const struct dblock_call *call,
    uint64_t key, uint64_t wait_us, struct held_byte *held)
{
    struct sqlite_side *side = connection->side;
    struct line *line = sqlite_line_find(side, key);
    int number = EAGAIN;

    if (line == NULL || !sqlite_line_is_waited(side, line) ||
        sqlite_chain_may_pass(side, line, held->offset))
        number = sqlite_side_lock(side, held->offset);
    if (number != EAGAIN || wait_us == 0)
        return number;
    return wait_for_byte(connection, call, key, wait_us, held);
}

static void unlock_byte(
    struct dblock_connection *connection, uint64_t key, const struct held_byte *held)
{
    struct sqlite_side *side = connection->side;
    struct line *line;

    sqlite_chain_settle(&connection->chain);
    sqlite_side_unlock(side, held->offset);
    /* who joins the line after this look finds the byte free */
    atomic_thread_fence(memory_order_seq_cst);
    line = sqlite_line_find(side, key);
    if (line != NULL)
        sqlite_line_wake_next(side, line);
    if (held->ticket != 0)
        sqlite_side_unlock(side, held->ticket);
}

dblock_status sqlite_byte_take(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    int64_t number = sqlite_byte_number(strategy, &take->subject);
    int64_t offset = sqlite_side_offset(strategy, number);
    uint64_t key = sqlite_line_key(strategy, number);
    struct held_byte held = {offset, -1, 0};
    int result;

    /* to lock one's own byte again would succeed, so our own books decide first */
    if (find_held(connection, offset) != NULL) {
        answer_busy(connection, strategy, take, offset, holder, answer);
        answer->now_us = sqlite_clock_us();
        return DBLOCK_OK;
    }
    if (!make_room(connection))
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "no memory to lock \"%s\"", take->subject.name);
    result = lock_byte(connection, call, key, take->wait_us, &held);
    answer->now_us = sqlite_clock_us();
    if (result == ECANCELED)
        return DBLOCK_CANCELLED;
    if (result == EAGAIN) {
        answer_busy(connection, strategy, take, offset, holder, answer);
        return DBLOCK_OK;
    }
    if (result == ESTALE)
        return sqlite_connection_refuse_side(connection, reterr);
    if (result != 0)
        return refuse_system(connection, result, take, reterr);
    if (!sqlite_side_is_in_place(connection->side)) {
        unlock_byte(connection, key, &held);
        return sqlite_connection_refuse_side(connection, reterr);
    }
    answer->outcome = DBLOCK_ANSWER_LATE;
    if (answer->now_us > take->not_after_us) {
        unlock_byte(connection, key, &held);
        return DBLOCK_OK;
    }
    held.slot = sqlite_slot_claim(connection->side, &connection->slots);
    describe(connection, strategy, take, number, offset, answer->now_us, held.slot);
    add_held(connection, &held);
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->remaining_us = DBLOCK_NO_END;
    return DBLOCK_OK;
}

/* A lock in a file that was deleted or replaced keeps nobody away: it is gone. */
static int is_still_ours(struct dblock_connection *connection)
{
    if (connection->side != NULL && !sqlite_side_is_in_place(connection->side))
        connection->is_broken = 1;
    return !connection->is_broken;
}

dblock_status sqlite_byte_drop(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_answer *answer)
{
    int64_t number = sqlite_byte_number(strategy, subject);
    struct held_byte *held = find_held(connection, sqlite_side_offset(strategy, number));

    answer->outcome = DBLOCK_ANSWER_NO;
    if (held != NULL) {
        if (held->slot >= 0)
            sqlite_slot_clear(connection->side, &connection->slots, held->slot);
        unlock_byte(connection, sqlite_line_key(strategy, number), held);
        remove_held(connection, held);
        /* somebody may be waiting for the above, nobody for this */
        if (is_still_ours(connection))
            answer->outcome = DBLOCK_ANSWER_YES;
    }
    answer->now_us = sqlite_clock_us();
    return DBLOCK_OK;
}

dblock_status sqlite_byte_prove(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject, struct dblock_answer *answer)
{
    answer->now_us = sqlite_clock_us();
    answer->outcome =
        sqlite_byte_is_held(connection, strategy, subject) && is_still_ours(connection)
            ? DBLOCK_ANSWER_YES
            : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

dblock_status sqlite_byte_ping(struct dblock_connection *connection, struct dblock_answer *answer)
{
    answer->now_us = sqlite_clock_us();
    answer->outcome = is_still_ours(connection) ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

void sqlite_byte_token_name(
    int strategy, char *buffer, size_t size, struct dblock_subject *subject)
{
    if (strategy != DBLOCK_ADVISORY)
        return;
    subject->name_size =
        (size_t)snprintf(buffer, size, "#%" PRId64, sqlite_byte_number(strategy, subject));
    subject->name = buffer;
}

int sqlite_byte_has_holder(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *token_name)
{
    struct dblock_subject subject = *token_name;
    int64_t end;

    if (strategy == DBLOCK_ADVISORY) {
        subject.advisory_id = strtoll(subject.name + 1, NULL, 10);
        subject.has_advisory_id = 1;
    }
    return sqlite_byte_is_held(connection, strategy, &subject) ||
        sqlite_side_is_locked(connection->side,
            sqlite_side_offset(strategy, sqlite_byte_number(strategy, &subject)), &end);
}

dblock_status sqlite_byte_draw(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    char number[32];
    struct dblock_subject token_name = *subject;
    sqlite3_stmt *statement = NULL;
    dblock_status status =
        sqlite_step_begin(connection, call, "draw a token of", subject->name, reterr);

    sqlite_byte_token_name(strategy, number, sizeof number, &token_name);
    if (status == DBLOCK_OK)
        status = sqlite_prepare(connection, STATEMENT_TOKEN_DRAW, &statement, reterr);
    if (status == DBLOCK_OK) {
        (void)sqlite3_bind_int(statement, 1, strategy);
        sqlite_bind_name(statement, 2, &token_name);
        status = sqlite_change(connection, statement, NULL, reterr);
    }
    if (status == DBLOCK_OK)
        answer->token = connection->notes[0];
    answer->outcome = DBLOCK_ANSWER_YES;
    return sqlite_step_end(connection, status, answer);
}
