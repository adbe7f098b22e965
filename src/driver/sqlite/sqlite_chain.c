/* SPDX-License-Identifier: MIT */
/* sqlite_chain.c - see sqlite_chain.h.
 *
 * Whoever makes it our turn says so by our bell. Nobody does so who was killed, and
 * that is what the helper is for: it blocks on the byte of the ticket before ours, and
 * at last on the lock itself. The bell wakes us and the bytes wake the helper, mostly
 * both at once. The lock is the descriptor's, so it does not matter which of the two
 * gets it, nor that the helper asks for it again when we have it. */
#include "sqlite_chain.h"

#include "sqlite_nap.h"

#include <errno.h>

#define LOOK_EVERY_US 1000000
#define LOOK_LATER_US 100000 /* for each who stands before */
#define LOOK_LAST_US 10000000

/* From the one before backwards to the last that was served: whoever of them is alive goes first.
 * The last one too: it keeps its byte until it has rung for us, so that this thread is not woken
 * before the one that matters. */
static int walk(void *context)
{
    struct sqlite_chain *chain = context;
    const struct place *place = &chain->walked;
    uint64_t ticket;
    int number;

    while (place->line != NULL) {
        /* 0 is nobody's */
        for (ticket = place->ticket - 1; ticket > 0 && ticket >= atomic_load(&place->line->head);
             --ticket) {
            atomic_store(&chain->before, ticket);
            number = sqlite_side_wait_free(
                chain->side, sqlite_line_offset(chain->side, place->line, ticket));
            if (number != 0)
                return number;
        }
        if (sqlite_line_become_first(chain->side, place))
            break;
    }
    atomic_store(&chain->before, 0);
    return chain->lock != 0 ? sqlite_side_wait_lock(chain->side, chain->lock) : 0;
}

static int try_now(struct sqlite_chain *chain)
{
    const struct place *place = &chain->place;

    if (place->line != NULL && !(sqlite_line_is_front(chain->side, place, place->ticket) &&
                                   sqlite_line_become_first(chain->side, place)))
        return EAGAIN;
    return chain->lock != 0 ? sqlite_side_lock(chain->side, chain->lock) : 0;
}

int sqlite_chain_may_pass(struct sqlite_side *side, struct line *line, int64_t lock)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t nobody = 0;

    if (lock == 0)
        return sqlite_line_is_late(line, now_us);
    if (sqlite_side_is_locked(side, lock, NULL)) {
        atomic_store(&line->due_us, 0);
        return 0;
    }
    (void)atomic_compare_exchange_strong(&line->due_us, &nobody, now_us);
    return sqlite_line_is_late(line, now_us);
}

/* What the helper may have got hold of in the moment in which it was ended. */
static void stop(struct sqlite_chain *chain)
{
    const struct place *place = &chain->place;
    uint64_t before;

    sqlite_helper_give_up(chain->helper);
    before = atomic_load(&chain->before);
    if (before != 0 && place->line != NULL)
        sqlite_side_unlock(chain->side, sqlite_line_offset(chain->side, place->line, before));
    if (chain->lock != 0)
        sqlite_side_unlock(chain->side, chain->lock);
}

/* The one before us does nothing although it is its turn: past it. What it wants when it goes on,
 * it gets after us. EAGAIN: there is no such one. */
static int pass_by(struct sqlite_chain *chain)
{
    const struct place *place = &chain->place;
    uint64_t before = atomic_load(&chain->before);

    if (before == 0 || !sqlite_chain_may_pass(chain->side, place->line, chain->lock) ||
        !sqlite_line_is_front(chain->side, place, before))
        return EAGAIN;
    stop(chain); /* it would block on that one for as long as it does nothing */
    (void)sqlite_line_become_first(chain->side, place);
    return chain->lock != 0 ? sqlite_side_lock(chain->side, chain->lock) : 0;
}

static int look_round(struct sqlite_chain *chain)
{
    if (!sqlite_side_is_in_place(chain->side))
        return ESTALE;
    if (chain->place.line == NULL)
        return EAGAIN;
    return sqlite_line_is_lost(&chain->place) ? ESRCH : pass_by(chain);
}

/* The next in line looks whether the first does anything; those far behind have time for that. */
static uint64_t find_look(const struct sqlite_chain *chain)
{
    const struct place *place = &chain->place;
    uint64_t head = place->line != NULL ? atomic_load(&place->line->head) : 0;
    uint64_t n_before = place->line != NULL && head < place->ticket ? place->ticket - head - 1 : 0;

    if (n_before > (LOOK_LAST_US - LOOK_EVERY_US) / LOOK_LATER_US)
        return LOOK_LAST_US;
    return LOOK_EVERY_US + n_before * LOOK_LATER_US;
}

static int wait_in_line(struct sqlite_chain *chain, uint64_t until_us, int cancel_fd)
{
    struct sqlite_nap nap = sqlite_nap_begin(until_us, cancel_fd);
    struct sqlite_bell bell = chain->place.line != NULL
                                  ? sqlite_line_turn(&chain->place)
                                  : (struct sqlite_bell){&chain->turn, SQLITE_BELL_ALL};
    uint64_t looked_us = nap.begun_us;
    int is_blocking = 0;
    int number = 0;

    while (number == 0) {
        uint32_t heard = atomic_load(bell.word);

        number = try_now(chain);
        if (number == EAGAIN && is_blocking)
            (void)sqlite_helper_is_through(chain->helper, &number);
        if (number == EAGAIN && is_blocking && dblock_clock_us() - looked_us > LOOK_EVERY_US) {
            looked_us = dblock_clock_us();
            number = look_round(chain);
            is_blocking = number != EAGAIN || sqlite_helper_is_blocked(chain->helper);
        }
        if (number != EAGAIN)
            break;
        number = sqlite_nap(&nap, &chain->helper, bell, heard, find_look(chain));
        if (number == 0 && nap.is_long && !is_blocking) {
            chain->walked = chain->place;
            number = sqlite_helper_block(&chain->helper, walk, chain, bell);
            is_blocking = number == 0;
        }
    }
    sqlite_nap_end(&nap, chain->helper);
    return number;
}

int sqlite_chain_wait(struct sqlite_chain *chain, struct sqlite_side *side, uint64_t key,
    int64_t lock, uint64_t until_us, int cancel_fd)
{
    int number;

    sqlite_helper_settle(chain->helper);
    chain->side = side;
    chain->lock = lock;
    do {
        chain->place.line = NULL;
        atomic_store(&chain->before, 0);
        number = side->lines != NULL ? sqlite_line_join(side, key, &chain->place) : ENOSPC;
        if (number != 0 && (number != ENOSPC || lock == 0))
            return number;
        number = wait_in_line(chain, until_us, cancel_fd);
        if (number != 0) {
            stop(chain);
            sqlite_line_leave(side, &chain->place);
        }
    } while (number == ESRCH);
    return number;
}

void sqlite_chain_settle(struct sqlite_chain *chain)
{
    sqlite_helper_settle(chain->helper);
}
