/* SPDX-License-Identifier: MIT */
/* strategy.h - the interface of the four strategies: pure step machines.
 *
 * A machine knows no clock, no driver and no memory but its own struct; the
 * same machines run under the real loop (core/acquire.c) and in the simulated
 * world of the tests. */
#ifndef DBLK_STRATEGY_H
#define DBLK_STRATEGY_H

#include "core/step.h"

/* Where an acquire stands. Each machine lists the moves that it allows. */
enum dblk_stage {
    DBLK_STAGE_NEW = 0,
    DBLK_STAGE_SESSION,  /* waiting for a session */
    DBLK_STAGE_SEED,     /* waiting for the row to be made */
    DBLK_STAGE_TAKE,     /* an attempt is under way */
    DBLK_STAGE_PAUSE,    /* between two attempts */
    DBLK_STAGE_STAND,    /* in the line of the name */
    DBLK_STAGE_REST,     /* the first in line, until woken */
    DBLK_STAGE_LOOK,     /* reading who owns the name, after a lost answer */
    DBLK_STAGE_RECHECK,  /* pausing between two such reads */
    DBLK_STAGE_GIVE_BACK,/* dropping a grant that came too late */
    DBLK_STAGE_END
};

struct dblk_terms { /* what the caller asked for; constant during an acquire */
    uint64_t give_up_us;  /* this machine's clock: the end of the wait; DBLK_NEVER for ever */
    uint64_t io_us;       /* of one statement; not_after is so long after its sending */
    uint64_t outage_us;   /* how long a wait outlives an unreachable database */
    int needs_session;
    int has_line;         /* waiters of this database can be woken */
    int is_contended;     /* an attempt that does not wait would most likely be for nothing */
    int is_fair;          /* in order of arrival */
};

struct dblk_machine {
    const struct dblk_strategy *strategy;
    struct dblk_terms terms;
    enum dblk_stage stage;
    unsigned n_pauses;       /* since the last sign of progress: the backoff */
    unsigned n_again;        /* attempts in a row that got neither yes nor busy */
    unsigned n_reused;       /* failures put down to a connection that had grown stale */
    int is_first;            /* in the line of the name */
    int may_pass;            /* whoever is first there sleeps: the next take heeds him not */
    uint64_t outage_us;      /* since when the database cannot be reached; 0 it can */
    uint64_t settle_us;      /* until when a lost answer is being settled */
    dblock_status failure;   /* of the attempt being settled */
    uint64_t ghost_us;       /* row, advisory: until then a lost attempt may be in its own way; 0 no */
};

struct dblk_strategy {
    int32_t id; /* DBLOCK_LEASE ... */
    int is_heartbeat_default;
    int lives_in_connection; /* row, advisory */
    struct dblk_step (*next)(struct dblk_machine *machine, const struct dblk_event *event);
};

extern const struct dblk_strategy dblk_lease, dblk_insert, dblk_row, dblk_advisory;

/* The strategy of a public number, or NULL. */
const struct dblk_strategy *dblk_strategy_of(int32_t id);

void dblk_machine_start(struct dblk_machine *machine, const struct dblk_strategy *strategy,
    const struct dblk_terms *terms);

/* One move: asserts that the strategy allows it. */
struct dblk_step dblk_machine_next(struct dblk_machine *machine, const struct dblk_event *event);

#endif
