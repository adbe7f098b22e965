/* SPDX-License-Identifier: MIT */
/* sqlite_line.c - the words of a line and the bytes of its tickets; see sqlite_line.h.
 *
 * Why no lock is needed around a ticket's drawing and locking. Between the two the
 * ticket looks dead to the one behind it, who may go past. So both say what they did
 * before they look: the latecomer locks its byte, then reads `first`; the one behind
 * writes `first`, then looks for bytes before its own. At least one of them sees the
 * other: the latecomer draws anew, or the one behind waits for it after all. */
#include "sqlite_line.h"

#include <errno.h>

#define N_PROBES 16
#define N_DRAWS_MAX 100
#define N_COUNTED_MAX 10000
#define N_RINGS_MAX 32 /* beyond that somebody's helper finds out */
#define LATE_US 1000000
#define TICKET_BITS 44

_Static_assert(sizeof(struct line) == SIDE_LINE_SIZE, "the file's layout is fixed");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
    "a lock of the C library is no good between processes");

/* ------------------------------------------------------------------ finding one */

uint64_t sqlite_line_key(int strategy, int64_t number)
{
    return (uint64_t)strategy << 61 | ((uint64_t)number & ((UINT64_C(1) << 61) - 1));
}

static struct line *probe(const struct sqlite_side *side, uint64_t key, unsigned i)
{
    uint64_t home = (key * UINT64_C(0x9E3779B97F4A7C15)) >> 32;

    return &side->lines[(home + i) % SIDE_N_LINES];
}

struct line *sqlite_line_find(const struct sqlite_side *side, uint64_t key)
{
    unsigned i;

    if (side == NULL || side->lines == NULL)
        return NULL;
    for (i = 0; i < N_PROBES; ++i) {
        struct line *line = probe(side, key, i);
        uint64_t found = atomic_load(&line->key);

        if (found == key)
            return line;
        if (found == 0)
            return NULL;
    }
    return NULL;
}

/* For this key from now on, if it had `found` until now. Whoever joined for the old one in this
 * very moment finds that out after locking its ticket. */
static int give_away(struct line *line, uint64_t found, uint64_t key)
{
    if (!atomic_compare_exchange_strong(&line->key, &found, key))
        return found == key;
    atomic_store(&line->due_us, 0);
    return 1;
}

static struct line *find_or_make(struct sqlite_side *side, uint64_t key)
{
    struct line *line = sqlite_line_find(side, key);
    unsigned i;

    if (line != NULL)
        return line;
    for (i = 0; i < N_PROBES; ++i) {
        line = probe(side, key, i);
        if (give_away(line, 0, key))
            return line;
    }
    for (i = 0; i < N_PROBES; ++i) {
        uint64_t found;

        line = probe(side, key, i);
        found = atomic_load(&line->key);
        if (!sqlite_line_is_waited(side, line) && give_away(line, found, key))
            return line;
    }
    return NULL;
}

int64_t sqlite_line_offset(const struct sqlite_side *side, const struct line *line, uint64_t ticket)
{
    return SIDE_TICKET_LOCKS + ((int64_t)(line - side->lines) << TICKET_BITS) +
           (int64_t)(ticket & ((UINT64_C(1) << TICKET_BITS) - 1));
}

/* ------------------------------------------------------------ joining and leaving */

static int has_tickets(struct sqlite_side *side, struct line *line, uint64_t first, uint64_t end)
{
    return first < end && sqlite_side_has_locks(side, sqlite_line_offset(side, line, first),
                              sqlite_line_offset(side, line, end));
}

/* A word for each ticket would be many; those that share one mostly differ in the bit. */
static struct sqlite_bell turn_of(struct line *line, uint64_t ticket)
{
    return (struct sqlite_bell){
        &line->turns[ticket % LINE_N_TURNS], UINT32_C(1) << (ticket / LINE_N_TURNS % 32)};
}

static void raise_to(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t found = atomic_load(word);

    while (found < value && !atomic_compare_exchange_weak(word, &found, value))
        ;
}

int sqlite_line_is_lost(const struct place *place)
{
    return atomic_load(&place->line->key) != place->key;
}

/* The next ticket may be nobody's: its owner died, or drew again. Looked at after the ring, so that
 * the usual case waits for nothing. */
static void wake_from(struct sqlite_side *side, struct line *line, uint64_t ticket)
{
    uint64_t tail = atomic_load(&line->tail);
    int n_rings;

    for (n_rings = 0; ticket <= tail && n_rings < N_RINGS_MAX; ++n_rings, ++ticket) {
        sqlite_bell_ring(turn_of(line, ticket));
        if (has_tickets(side, line, ticket, ticket + 1))
            return;
    }
}

int sqlite_line_join(struct sqlite_side *side, uint64_t key, struct place *place)
{
    int n_draws;

    for (n_draws = 0; n_draws < N_DRAWS_MAX; ++n_draws) {
        struct line *line = find_or_make(side, key);
        uint64_t ticket;
        int64_t offset;
        int number;

        if (line == NULL)
            return ENOSPC;
        ticket = atomic_fetch_add(&line->tail, 1) + 1;
        offset = sqlite_line_offset(side, line, ticket);
        number = sqlite_side_lock(side, offset);
        if (number == EAGAIN)
            continue; /* the one behind is just looking whether we live */
        if (number != 0)
            return number;
        if (atomic_load(&line->first) <= ticket && atomic_load(&line->head) < ticket &&
            atomic_load(&line->key) == key) {
            *place = (struct place){line, key, ticket};
            return 0;
        }
        sqlite_side_unlock(side, offset);
        wake_from(side, line, ticket + 1);               /* it may have seen us, and wait for us */
        raise_to(&line->tail, atomic_load(&line->head)); /* also if somebody wrote nonsense there */
        raise_to(&line->tail, atomic_load(&line->first));
    }
    return ENOSPC;
}

void sqlite_line_serve(const struct place *place)
{
    raise_to(&place->line->head, place->ticket);
}

void sqlite_line_leave(struct sqlite_side *side, struct place *place)
{
    if (place->line == NULL)
        return;
    sqlite_side_unlock(side, sqlite_line_offset(side, place->line, place->ticket));
    /* it has to find out that it waits for another one now */
    wake_from(side, place->line, place->ticket + 1);
    place->line = NULL;
}

/* ------------------------------------------------------------------- who is there */

int sqlite_line_become_first(struct sqlite_side *side, const struct place *place)
{
    struct line *line = place->line;

    raise_to(&line->first, place->ticket);
    return !has_tickets(side, line, atomic_load(&line->head) + 1, place->ticket);
}

int sqlite_line_is_front(struct sqlite_side *side, const struct place *place, uint64_t ticket)
{
    struct line *line = place->line;

    return atomic_load(&line->first) == ticket ||
           !has_tickets(side, line, atomic_load(&line->head) + 1, ticket);
}

/* Tickets that nobody holds any more are passed by for all who come. */
int sqlite_line_is_waited(struct sqlite_side *side, struct line *line)
{
    uint64_t head = atomic_load(&line->head);
    uint64_t tail = atomic_load(&line->tail);

    if (tail <= head)
        return 0;
    if (has_tickets(side, line, head + 1, tail + 1))
        return 1;
    raise_to(&line->head, tail);
    return 0;
}

int sqlite_line_is_late(const struct line *line, uint64_t now_us)
{
    uint64_t due_us = atomic_load(&line->due_us);

    return due_us != 0 && now_us > due_us && now_us - due_us > LATE_US;
}

uint32_t sqlite_line_count(struct sqlite_side *side, uint64_t key)
{
    struct line *line = sqlite_line_find(side, key);
    uint32_t n_waiters = 0;
    uint64_t ticket, tail;

    if (line == NULL)
        return 0;
    ticket = atomic_load(&line->head) + 1;
    tail = atomic_load(&line->tail);
    if (tail >= ticket && tail - ticket >= N_COUNTED_MAX)
        ticket = tail - N_COUNTED_MAX + 1;
    for (; ticket <= tail; ++ticket)
        n_waiters += has_tickets(side, line, ticket, ticket + 1) != 0;
    return n_waiters;
}

/* --------------------------------------------------------------------- waking them */

/* Between what freed the name and the look at the line there must be no way for either to come
 * late: who joins after the look finds the name free. */
void sqlite_line_ring(struct sqlite_side *side, uint64_t key)
{
    struct line *line;

    atomic_thread_fence(memory_order_seq_cst);
    line = sqlite_line_find(side, key);
    if (line == NULL || atomic_load(&line->tail) <= atomic_load(&line->head))
        return;
    atomic_store(&line->due_us, dblock_clock_us());
    atomic_store(&line->is_rung, 1);
    if (atomic_load(&line->first) > atomic_load(&line->head))
        sqlite_bell_ring((struct sqlite_bell){&line->bell, SQLITE_BELL_ALL});
    else
        sqlite_line_wake_next(side, line);
}

int sqlite_line_was_rung(struct line *line)
{
    return atomic_exchange(&line->is_rung, 0) != 0;
}

struct sqlite_bell sqlite_line_turn(const struct place *place)
{
    return turn_of(place->line, place->ticket);
}

void sqlite_line_wake_next(struct sqlite_side *side, struct line *line)
{
    wake_from(side, line, atomic_load(&line->head) + 1);
}
