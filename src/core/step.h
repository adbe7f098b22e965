/* SPDX-License-Identifier: MIT */
/* step.h - the words between a strategy, which decides, and the loop that
 * performs: what just happened goes in as an event, the next step comes out. */
#ifndef DBLK_STEP_H
#define DBLK_STEP_H

#include <dblock/sys/driver.h>

enum dblk_step_kind {
    DBLK_STEP_SESSION = 1, /* make sure that a session with time left is there */
    DBLK_STEP_SEED,        /* make the row that is going to be locked */
    DBLK_STEP_TAKE,        /* one attempt, under an owner id never sent before */
    DBLK_STEP_LOOK,        /* who owns the name? settles a lost answer by reading */
    DBLK_STEP_PAUSE,       /* nothing until `until_us`, or until cancelled */
    DBLK_STEP_STAND,       /* stand in the line of the name, at most `wait_us`, until first */
    DBLK_STEP_REST,        /* as the first in line: nothing until woken, or `until_us` */
    DBLK_STEP_GIVE_BACK,   /* drop what was granted: it came too late to be believed */
    DBLK_STEP_END          /* over, with `status` */
};

struct dblk_step {
    enum dblk_step_kind kind;
    uint64_t until_us;    /* PAUSE, REST */
    uint64_t wait_us;     /* TAKE: stand in the server's queue at most so long; STAND */
    int heeds_line;       /* TAKE: whoever stands in line comes before us */
    dblock_status status; /* END */
    /* END: an attempt whose answer never came may have been granted, or may yet be: somebody has
     * to read who owns the name, and give it back, after this call has returned. */
    int is_open;
};

enum dblk_event_kind {
    DBLK_EVENT_STARTED = 1,
    DBLK_EVENT_ANSWERED,  /* the step's answer: `outcome` and what belongs to it */
    DBLK_EVENT_FAILED,    /* the step failed: `status`, `is_transient` */
    DBLK_EVENT_PAUSED,    /* the pause is over */
    DBLK_EVENT_CANCELLED, /* the caller raised the canceller */
    DBLK_EVENT_CLOSED     /* the client is being closed */
};

struct dblk_event {
    enum dblk_event_kind kind;
    uint64_t now_us;       /* this machine's clock when the event was seen */
    uint64_t random;       /* for jitter; unpredictable, so that a herd spreads */
    int32_t outcome;       /* DBLOCK_ANSWER_* */
    uint64_t remaining_us; /* TAKE BUSY: of the holder's grant; DBLOCK_NO_END not known */
    uint64_t deadline_us;  /* TAKE YES, LOOK mine: until when the grant may be believed */
    int is_mine;           /* LOOK: the name is owned by the id of the last attempt */
    int is_past;           /* LOOK: the database's clock is past not_after: it can not come any more */
    int is_reused;         /* FAILED: on a connection that had been idle before */
    dblock_status status;  /* FAILED; ANSWERED AGAIN: what to say if no later attempt gets further,
                            * OK if nothing but others who want the name stood in the way */
    int is_transient;      /* FAILED */
};

#endif
