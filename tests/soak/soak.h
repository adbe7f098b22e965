/* SPDX-License-Identifier: MIT */
/* soak.h - everything at once, for long: workers of all strategies on all databases, and a
 * conductor who harms them. What all processes share, and what judges it.
 *
 * The oracle. A worker that was granted a name says until when it believes to hold it, and renews
 * that every few milliseconds (dblock_lock_remaining_ms()). Whoever is granted the name looks
 * whether somebody else believes so at this moment. That is a violation, unless the other has
 * been harmed since it began to ask for the name: stopped, killed, cut off from its server, or
 * its server killed. What a harmed holder still believes is the business of tokens: each grant's
 * must exceed all that were drawn for the name before the grant was asked for. */
#ifndef DBLOCK_TEST_SOAK_H
#define DBLOCK_TEST_SOAK_H

#include <dblock/dblock.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "contract_database.h"
#include "processes.h"
#include "tcp_proxy.h"

enum {
    N_DATABASES = 3,
    N_STRATEGIES = 4,
    N_NAMES = 3,   /* of each strategy */
    N_WORDS = 8,   /* violations that are told in full */
    N_PROCESSES = 4, /* of each strategy on each database */
    N_TELLERS = 6,   /* workers in them: the last two are second threads of those before them */
    N_WORKERS = N_DATABASES * N_STRATEGIES * N_TELLERS,
    TTL_MS = 3000,
    IO_LIMIT_MS = 10000
};

enum count {
    COUNT_GRANTS,
    COUNT_GRANTS_UNDER_HARM, /* harmed between the question and the release */
    COUNT_BUSY,
    COUNT_LOST,
    COUNT_UNCERTAIN,
    COUNT_UNREACHED, /* other errors for which there was a harm */
    COUNT_CLIENTS,
    COUNT_HANDED, /* from one thread of a client to the other */
    N_COUNTS
};

enum violation {
    VIOLATION_TWO_HOLDERS,
    VIOLATION_TOKEN_BACK,
    VIOLATION_ERROR, /* one that reached a caller whom nobody had harmed, or one that never may */
    N_VIOLATIONS
};

struct soak_worker {
    size_t database;
    int strategy;
    int is_proxied;
    int is_steady;          /* never killed: its memory is looked at */
    struct soak_worker *twin; /* another thread of its process, with the same client; NULL */
    int is_twin;
    atomic_uint n_harms;    /* that have begun */
    atomic_uint n_ongoing;  /* of these, that have not ended */
    atomic_uint n_stops;    /* of these: it was stopped */
    atomic_ullong harmed_us; /* when the last one ended */
    const char *_Atomic harm; /* and what it was; NULL: there was none */
    atomic_int held;        /* the number of the name that it believes to hold, or -1 */
    atomic_ullong until_us; /* so long, by the clock of all (soak_now_us) */
    atomic_uint n_harms_at_grant;
    atomic_ullong counts[N_COUNTS];
    atomic_ullong latest_us; /* the most that a call took beyond its limits, unless stopped */
};

struct soak_database {
    const struct contract_database *contract;
    const char *service; /* its name for ci/services; NULL: it has no server */
    unsigned int (*port)(void);
    const char *(*proxied_url)(unsigned int port);
    unsigned int (*n_sessions)(void); /* through the proxy */
    const char *why_not;
    struct tcp_proxy *proxy;
};

struct soak_shared {
    atomic_ullong end_us;
    atomic_ullong network_harmed_us[N_DATABASES]; /* until when, last */
    _Atomic int64_t tokens[N_DATABASES][N_STRATEGIES][N_NAMES]; /* the largest that was drawn */
    atomic_ullong violations[N_VIOLATIONS];
    atomic_uint n_words;
    char words[N_WORDS][700];
    struct soak_worker workers[N_WORKERS];
};

extern struct soak_shared *soak_shared;
extern struct soak_database soak_databases[N_DATABASES];
extern const int soak_strategies[N_STRATEGIES];

uint64_t soak_now_us(void);
unsigned soak_draw(unsigned below);
void soak_name(size_t database, int strategy, int number, char *name, size_t size);
/* Its grants, all of them, from the begin to the end. In the worker's process. */
int soak_work(void *worker, int ready_fd);

/* harm.c, by the conductor. */
enum harm { HARM_STOP, HARM_KILL, HARM_CUT, HARM_SWALLOW, HARM_SERVER, N_HARMS };
extern unsigned long soak_n_harms[N_HARMS];
/* Begins and ends harms as the time comes; some 20 times a second. -1: a server does not start. */
int soak_harm(struct test_process *processes);
/* Nobody is harmed any more. */
void soak_heal(struct test_process *processes);

/* judge.c, by the worker. `n_harms`: of soak_harms_before(), before the grant was asked for. */
unsigned soak_harms_before(const struct soak_worker *worker);
void soak_violation(enum violation violation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void soak_enter(struct soak_worker *worker, int number, int64_t token, int64_t token_before,
    unsigned n_harms, uint64_t remaining_ms);
/* Still believed, for so long. */
void soak_stay(struct soak_worker *worker, uint64_t remaining_ms);
void soak_leave(struct soak_worker *worker);
int64_t soak_largest_token(const struct soak_worker *worker, int number);

/* size.c: bytes of the tables on the server's disk; -1: not known. */
long long soak_size_of_tables(size_t database);
/* Of a process: resident memory in KiB, and how many descriptors. */
long soak_memory_of(pid_t pid);
int soak_descriptors_of(pid_t pid);

#endif
