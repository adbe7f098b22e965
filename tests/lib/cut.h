/* SPDX-License-Identifier: MIT */
/* cut.h - one operation of a client whose connection is cut at each message, before it and
 * after it, in turn; and what must be true afterwards, asked by a second client that reaches the
 * server past the proxy.
 *
 * A dry run counts the messages. Each cut is a run with a name of its own, in which exactly one
 * connection ends; then the network is whole again. A cut between two messages that follow each
 * other in one direction is made once. */
#ifndef DBLOCK_TEST_CUT_H
#define DBLOCK_TEST_CUT_H

#include <dblock/dblock.h>

#include "cut_database.h"

enum { /* kinds of grants, for masks */
    CUT_LEASE = 1 << 0, /* with heartbeat */
    CUT_INSERT = 1 << 1, /* timed */
    CUT_ROW = 1 << 2,
    CUT_ADVISORY = 1 << 3,
    CUT_RECORDED = CUT_LEASE | CUT_INSERT,
    CUT_LIVE = CUT_ROW | CUT_ADVISORY,
    CUT_ALL = CUT_RECORDED | CUT_LIVE
};

enum {
    CUT_IO_MS = 1000,     /* the I/O limit of the client under test: only a busy machine meets it */
    CUT_CONNECT_MS = 2000,
    CUT_WAIT_MS = 60,     /* of a wait in vain */
    CUT_TTL_MS = 20000,   /* far beyond all bounds below */
    CUT_SHORT_TTL_MS = 400, /* where the end of a ttl is waited for */
    CUT_FREE_MS = 3000,   /* a name that nobody holds is had within that */
    CUT_SESSIONS_MS = 3000 /* and the server has ended what was left behind */
};

enum { /* how a case is run */
    CUT_FRESH = 1 << 0, /* with a new client each time; else one client goes through them all */
    CUT_LOGIN = 1 << 1  /* with a password, and messages of logging in are counted too */
};

struct cut_run {
    const struct cut_database *database;
    unsigned int kind;
    struct tcp_proxy *proxy;
    dblock_client *client; /* under test, through the proxy */
    dblock_client *other;  /* past the proxy; lives for the lane */
    dblock_lock *mine;     /* of `client` */
    dblock_lock *theirs;   /* of `other` */
    uint64_t ttl_ms;
    uint64_t io_ms;      /* 0 CUT_IO_MS */
    uint64_t connect_ms; /* 0 CUT_CONNECT_MS */
    char name[64];
    /* what act() got */
    dblock_status status;
    struct dblock_error error;
    int64_t number;
    struct dblock_grant grant;
    void *context;
    int is_dry; /* nothing is cut */
    int n_dry;
    int is_cut;
    int is_hung; /* nothing passes, so nothing can be waited for */
    char failure[600]; /* "" as long as all is well */
};

struct cut_case {
    const char *name;
    unsigned int kinds;
    unsigned int how;
    uint64_t ttl_ms; /* 0 CUT_TTL_MS */
    void (*prepare)(struct cut_run *run); /* NULL nothing; nothing is cut yet */
    void (*act)(struct cut_run *run);
    void (*judge)(struct cut_run *run); /* nothing is cut any more */
    uint64_t limit_ms; /* what act() may take at most; 0 two I/O limits and a connect */
};

struct cut_tally {
    unsigned int n_points;
    unsigned int n_failures;
    int64_t worst_ms; /* by which an act was beyond its limit; negative: never */
};

/* Tables that end with a NULL name. */
extern const struct cut_case cut_acquire_cases[], cut_held_cases[], cut_look_cases[],
    cut_many_cases[];

/* Runs the cases for one kind in the calling process, which has started no world yet. */
void cut_lane(const struct cut_database *database, unsigned int kind,
    const struct cut_case *const *tables, struct cut_tally *tally);

/* A client past the proxy. Aborts if there is none. */
dblock_client *cut_open_other(const struct cut_database *database);
/* A name, a client, and what the case prepares. */
void cut_run_begin(struct cut_run *run, const struct cut_case *test);

/* ------------------------------------------------------ what the cases use */

/* The first failure of a run stays. */
void cut_fail(struct cut_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

int cut_strategy(const struct cut_run *run);
struct dblock_options cut_options(const struct cut_run *run);
/* Take the name without wait; NULL: it is noted as a failure. */
void cut_take_mine(struct cut_run *run);
void cut_take_theirs(struct cut_run *run);
/* One try of the second client, given back at once. */
dblock_status cut_try(struct cut_run *run);
/* The second client can have it within the time, or this is a failure. */
void cut_expect_free(struct cut_run *run, uint64_t within_ms);
/* Waits until no message has passed for a moment. */
void cut_settle(struct cut_run *run);
/* Waits until something has passed, as the keeper works on its own, and then no more for a moment. */
void cut_await_work(struct cut_run *run);
/* The client under test has its connections again: of this kind, and one for short statements. */
void cut_warm(struct cut_run *run);
/* Both: theirs, and warm. */
void cut_prepare_theirs(struct cut_run *run);
/* An error that a cut may lead to; else a failure. */
void cut_expect_error(struct cut_run *run);
/* Of the client under test: if it is believed, then nobody else gets it. */
void cut_expect_one_holder(struct cut_run *run);
/* What an acquire answered, compared with what is true. */
void cut_judge_acquire(struct cut_run *run);

#endif
