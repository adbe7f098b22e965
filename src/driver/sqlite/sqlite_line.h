/* SPDX-License-Identifier: MIT */
/* sqlite_line.h - in which order a name is waited for, and whom to wake: a few words
 * for each name, in the part of the side file that all processes have mapped.
 *
 * Whoever waits draws a ticket (`tail`) and locks the byte that belongs to it. That
 * byte says that the ticket is a living one, whatever the words say: the kernel frees
 * it with the process. One waits for the byte of the ticket before one's own; when it
 * is free and was served (`head`), or all between the head and oneself are free, one
 * is the first. Nobody is woken but the next.
 *
 * The words are order and wake-ups only. Exclusion never depends on them: they may be
 * stale (after a kill or a reboot), or be two names' words for a moment, and then
 * somebody is served out of turn, or wakes late.
 *
 * Sleeping. A waiter sleeps on one of the words `turns`, which its ticket chooses, and
 * whoever makes the next one's turn wakes that one: one switch from process to process.
 * The first of lease and insert, who waits for the name itself, sleeps on `bell`. There
 * it need not become the first before the name is free: when the one before has gone,
 * it is left asleep, and if nobody releases the name it finds out within a second. To
 * wake it would be to wake a process while another one wants to begin its work.
 *
 * A name has a line once it was waited for. Lines are found by probing from a hash of
 * the name; one that nobody stands in is given to another name when room is short. */
#ifndef DBLK_SQLITE_LINE_H
#define DBLK_SQLITE_LINE_H

#include "sqlite_bell.h"
#include "sqlite_side.h"

#define LINE_N_TURNS 16

struct line {
    _Atomic uint64_t key;     /* of strategy and name; 0: never used */
    _Atomic uint64_t tail;    /* the last ticket drawn */
    _Atomic uint64_t head;    /* the last ticket that was served; those up to it do not wait */
    _Atomic uint64_t first;   /* the last ticket that became the first */
    _Atomic uint64_t due_us;  /* CLOCK_BOOTTIME when whoever is first ought to act; 0 not known */
    _Atomic uint32_t bell;    /* lease, insert: counts wake-ups of the first */
    _Atomic uint32_t is_rung; /* lease, insert: a hint that the name is free */
    _Atomic uint32_t turns[LINE_N_TURNS]; /* count wake-ups of those whose ticket leads here */
    uint64_t reserved2[2];
};

struct place {         /* in a line, of one connection */
    struct line *line; /* NULL: nowhere */
    uint64_t key;
    uint64_t ticket;
};

/* `number`: 61 bits are used. */
uint64_t sqlite_line_key(int strategy, int64_t number);
/* NULL: nobody ever waited. */
struct line *sqlite_line_find(const struct sqlite_side *side, uint64_t key);

/* Draws a ticket, at the end of the line. 0, ENOSPC: there is no room for one more line, or
 * another errno. */
int sqlite_line_join(struct sqlite_side *side, uint64_t key, struct place *place);
/* Gives the ticket back without having been served. */
void sqlite_line_leave(struct sqlite_side *side, struct place *place);
/* Notes that the ticket was served. Its byte stays locked, which means nothing any more. */
void sqlite_line_serve(const struct place *place);
/* The line belongs to another name by now: whoever stands there has to go. */
int sqlite_line_is_lost(const struct place *place);

/* Says that this ticket is the first now. 0: one before it appeared in the meantime, and goes
 * first. */
int sqlite_line_become_first(struct sqlite_side *side, const struct place *place);
/* Whether nobody living stands between the head and this ticket, or it became the first. */
int sqlite_line_is_front(struct sqlite_side *side, const struct place *place, uint64_t ticket);

/* Whether anybody living stands there. Costs a system call only if it seems so. */
int sqlite_line_is_waited(struct sqlite_side *side, struct line *line);
/* Whether the first ought to have acted more than a second ago. */
int sqlite_line_is_late(const struct line *line, uint64_t now_us);
uint32_t sqlite_line_count(struct sqlite_side *side, uint64_t key);

/* Lease, insert. The name may be free: wakes the first, or who is to become it. */
void sqlite_line_ring(struct sqlite_side *side, uint64_t key);
/* Whether it was rung since this was asked last. */
int sqlite_line_was_rung(struct line *line);
/* Wakes the next one after the head, if there is one. */
void sqlite_line_wake_next(struct sqlite_side *side, struct line *line);
/* Where the ticket sleeps. */
struct sqlite_bell sqlite_line_turn(const struct place *place);

int64_t sqlite_line_offset(
    const struct sqlite_side *side, const struct line *line, uint64_t ticket);

#endif
