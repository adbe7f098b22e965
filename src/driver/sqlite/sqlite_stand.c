/* SPDX-License-Identifier: MIT */
/* sqlite_stand.c - lease and insert: standing in line, and waking those who do. */
#include "sqlite_stand.h"

#include "sqlite_clock.h"
#include "sqlite_hash.h"
#include "sqlite_nap.h"
#include "sqlite_steps.h"

#include <errno.h>
#include <string.h>

#define NEXT_LOOKS_US 1000000 /* as often as a nap ends */

static uint64_t key_of(int strategy, const struct dblock_subject *subject)
{
    return sqlite_line_key(strategy, sqlite_hash_quickly(subject->name, subject->name_size));
}

/* ------------------------------------------------------------ for those who do not wait */

int sqlite_stand_is_waited(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    struct sqlite_side *side = sqlite_connection_lines(connection);
    struct line *line = sqlite_line_find(side, key_of(strategy, subject));

    return line != NULL && sqlite_line_is_waited(side, line) &&
           !sqlite_chain_may_pass(side, line, 0);
}

int sqlite_stand_was_woken(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    struct line *line =
        sqlite_line_find(sqlite_connection_lines(connection), key_of(strategy, subject));

    return line != NULL && sqlite_line_was_rung(line);
}

void sqlite_stand_wake(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject)
{
    sqlite_line_ring(sqlite_connection_lines(connection), key_of(strategy, subject));
}

uint32_t sqlite_stand_count(struct dblock_connection *connection, int strategy, const char *name)
{
    struct dblock_subject subject = {name, strlen(name), 0, 0};
    struct sqlite_side *side = sqlite_connection_lines(connection);

    return side != NULL && side->lines != NULL ? sqlite_line_count(side, key_of(strategy, &subject))
                                               : UINT32_MAX;
}

/* ------------------------------------------------------------------- those who wait */

static struct sqlite_bell bell_of(const struct place *place)
{
    return (struct sqlite_bell){&place->line->bell, SQLITE_BELL_ALL};
}

/* From here on `due_us` says when this one ought to do something. */
static void become_first(struct dblock_connection *connection)
{
    struct line *line = connection->chain.place.line;

    connection->heard = atomic_load(&line->bell);
    atomic_store(&line->due_us, dblock_clock_us());
}

dblock_status sqlite_stand(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, uint64_t wait_us, int is_fair,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sqlite_side *side = connection->side;
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    int number;

    (void)is_fair; /* it is */
    sqlite_line_leave(side, &connection->chain.place);
    if (connection->left != 0)
        sqlite_side_unlock(side, connection->left);
    connection->left = 0;
    if (until_us > call->deadline_us)
        until_us = call->deadline_us;
    number = sqlite_side_is_in_place(side)
                 ? sqlite_chain_wait(&connection->chain, side, key_of(strategy, subject), 0,
                       until_us, call->cancel_fd)
                 : ESTALE;
    answer->now_us = sqlite_clock_us();
    switch (number) {
    case 0:
        become_first(connection);
        answer->outcome = DBLOCK_ANSWER_YES;
        return DBLOCK_OK;
    case EAGAIN:
        answer->outcome = DBLOCK_ANSWER_BUSY;
        return DBLOCK_OK;
    case ECANCELED:
        return DBLOCK_CANCELLED;
    case ESTALE:
        return sqlite_connection_refuse_side(connection, reterr);
    default: /* no map, no room for one more line, no thread, no memory for a lock */
        answer->outcome = DBLOCK_ANSWER_NO;
        return DBLOCK_OK;
    }
}

static int is_place_lost(const struct dblock_connection *connection)
{
    const struct place *place = &connection->chain.place;

    return place->line == NULL || sqlite_line_is_lost(place) ||
           !sqlite_side_is_in_place(connection->side);
}

/* 0 woken, EAGAIN the time is over, ECANCELED, or another errno. */
static int sleep_until_woken(struct dblock_connection *connection, const struct dblock_call *call)
{
    struct sqlite_bell bell = bell_of(&connection->chain.place);
    struct sqlite_nap nap = sqlite_nap_begin(call->deadline_us, call->cancel_fd);
    int number = 0;

    while (number == 0 && atomic_load(bell.word) == connection->heard)
        number = sqlite_nap(&nap, &connection->chain.helper, bell, connection->heard, UINT64_MAX);
    if (sqlite_nap_is_cancelled(&nap, connection->chain.helper))
        number = ECANCELED;
    if (number == 0)
        connection->heard = atomic_load(bell.word);
    sqlite_nap_end(&nap, connection->chain.helper);
    return number;
}

dblock_status sqlite_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct place *place = &connection->chain.place;
    int number;

    (void)owner;
    (void)reterr;
    answer->outcome = DBLOCK_ANSWER_AGAIN;
    if (place->line == NULL)
        return DBLOCK_OK;
    /* before the bell is looked at: whoever rings puts the time forward */
    atomic_store(&place->line->due_us, call->deadline_us);
    number = sleep_until_woken(connection, call);
    atomic_store(&place->line->due_us, dblock_clock_us());
    answer->now_us = sqlite_clock_us();
    if (number == ECANCELED) {
        sqlite_leave(connection);
        return DBLOCK_CANCELLED;
    }
    /* an unwatched rest is none: the caller takes, and comes back */
    answer->outcome = number == 0 ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    if (number != 0 && is_place_lost(connection)) {
        sqlite_line_leave(connection->side, place);
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    }
    return DBLOCK_OK;
}

/* On the way of every grant that was waited for: so nobody is woken here (sqlite_line.h) unless this
 * one has not heard the last ring, and the byte of the ticket is given back when the connection is
 * used again. */
void sqlite_leave(struct dblock_connection *connection)
{
    struct line *line = connection->chain.place.line;

    if (line == NULL)
        return;
    connection->left = sqlite_line_offset(connection->side, line, connection->chain.place.ticket);
    atomic_store(&line->due_us, dblock_clock_us() + NEXT_LOOKS_US);
    sqlite_line_serve(&connection->chain.place);
    connection->chain.place.line = NULL;
    if (atomic_load(&line->bell) != connection->heard)
        sqlite_line_wake_next(connection->side, line);
}
