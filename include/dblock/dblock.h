/* SPDX-License-Identifier: MIT */
/**
 * dblock.h - a named lock, kept in the database that the program already uses
 *
 *     struct dblock_error error;
 *     struct dblock_options options = DBLOCK_OPTIONS_INIT;
 *     dblock_client *client = NULL;
 *     dblock_lock *lock = NULL;
 *     dblock_status status;
 *
 *     status = dblock_open(dblock_sqlite_driver(), "sqlite:/var/lib/app/lock.db",
 *         NULL, &client, &error);
 *     if (status == DBLOCK_OK) {
 *         options.wait_ms = 5000;
 *         status = dblock_acquire(client, "nightly-report", &options, &lock, &error);
 *     }
 *     if (status == DBLOCK_OK) {
 *         work();
 *         status = dblock_release(lock, &error);
 *     }
 *     dblock_lock_free(lock);
 *     dblock_close(client);
 *
 * RESULTS. Zero is done; above zero the database answered "no"; below zero
 * something failed and `reterr` says what (status.h). A call that existed in
 * one version returns a new positive result only when an option that is new as
 * well was used.
 *
 * OUTPUTS. `ret_x` is written on DBLOCK_OK only, `reterr` below zero only; both
 * are untouched otherwise. `reterr` may always be NULL.
 *
 * OWNERSHIP. What comes through `ret_x` is yours: dblock_close() ends a client,
 * dblock_lock_free() a lock, dblock_canceller_free() a canceller. Each takes
 * NULL. A lock keeps its client's memory alive, so these may be called in any
 * order. A `const char *` that a function returns belongs to its argument and
 * lives as long. Strings passed in are copied before the call returns.
 *
 * THREADS. Every function may be called from any thread at any time, except
 * that nothing may use an object while or after it is being freed.
 *
 * CALLBACKS run on the keeper's thread (on_event), or on the thread of the call
 * (list, with, on_trace of that call), never with a lock of ours held. From
 * on_event and on_trace only the functions marked [any] may be called, and
 * dblock_lock_free() of the event's own lock; the others answer
 * DBLOCK_E_CALLBACK. No C++ exception and no longjmp() may leave a callback.
 *
 * SIGNALS. Waits go on after EINTR; to end one, call dblock_cancel() from the
 * handler. The keeper blocks all signals. No handler is ever installed.
 *
 * FORK. In a child every function answers DBLOCK_E_FORKED; the closers free the
 * memory and the descriptors and send nothing. exec() closes all descriptors.
 *
 * EVERY CALL that takes a client may answer, besides what is said at each:
 * E_ARGUMENT, E_CALLBACK, E_FORKED and E_MEMORY: nothing was sent. E_CLOSED: nor was it, or it has
 * been given back. A call that needs the database adds: E_CONNECTION, E_LOGIN, E_SCHEMA,
 * E_PERMISSION, E_READ_ONLY, E_DATABASE, E_SYSTEM and E_DRIVER: it had no effect.
 */
#ifndef DBLOCK_DBLOCK_H
#define DBLOCK_DBLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "export.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- constants */

#define DBLOCK_FOREVER UINT64_MAX
#define DBLOCK_NAME_MAX 255        /* bytes of a name, without the zero */
#define DBLOCK_LABEL_MAX 127       /* bytes of a label, without the zero */
#define DBLOCK_GRANT_TEXT_SIZE 192 /* room for dblock_lock_export(), besides 3 * strlen(name) */

enum { /* how a name is held; locks of different strategies do not exclude each other */
    DBLOCK_STRATEGY_DEFAULT = 0, /* the client's, which is DBLOCK_LEASE if not set */
    DBLOCK_LEASE = 1,
    DBLOCK_INSERT = 2,
    DBLOCK_ROW = 3,
    DBLOCK_ADVISORY = 4
};

enum { /* mode */
    DBLOCK_EXCLUSIVE = 0,
    DBLOCK_SHARED = 1 /* not in this version: E_UNSUPPORTED */
};

enum { /* heartbeat */
    DBLOCK_HEARTBEAT_DEFAULT = 0, /* on for lease, off for insert */
    DBLOCK_HEARTBEAT_ON = 1,
    DBLOCK_HEARTBEAT_OFF = 2
};

enum { /* flags of struct dblock_options; a bit that this library does not know is E_ARGUMENT */
    DBLOCK_FAIR = 1 << 0,      /* in order of arrival, over all machines */
    DBLOCK_FENCED = 1 << 1,    /* draw the token with the grant (row, advisory), as a guard needs;
                                * BUSY while one stands on the name. Without, guards are passed */
    DBLOCK_REENTRANT = 1 << 2, /* with `reentrant_owner`; not in this version: E_UNSUPPORTED */
    DBLOCK_QUIET_OK = 1 << 3   /* dblock_acquire_some(): OK if there was none; else E_UNSUPPORTED */
};

enum { /* why a grant was lost */
    DBLOCK_CAUSE_NONE = 0,
    DBLOCK_CAUSE_DEADLINE = 1,   /* no heartbeat got through in time, or the ttl was over */
    DBLOCK_CAUSE_BROKEN = 2,     /* somebody used break (told by a heartbeat) */
    DBLOCK_CAUSE_CONNECTION = 3, /* row, advisory: its connection ended */
    DBLOCK_CAUSE_SERVER = 4,     /* the database does not have it any more: restart, fail-over, clock
                                  * step, row removed, or a break that a call met first */
    DBLOCK_CAUSE_TRANSACTION = 5 /* joined: COMMIT or ROLLBACK */
};

/* -------------------------------------------------------------------- types */

typedef struct dblock_driver dblock_driver;       /* code for one database; static, never freed */
typedef struct dblock_client dblock_client;       /* one database */
typedef struct dblock_lock dblock_lock;           /* one grant */
typedef struct dblock_request dblock_request;     /* an acquire that is under way */
typedef struct dblock_canceller dblock_canceller; /* ends waits; may be shared by many */

/* Everything known of one grant. Owned by the caller, nothing in it to free.
 * Times are the database's clock, microseconds since 1970 UTC; 0 = not known. */
struct dblock_grant {
    size_t struct_size;
    int32_t strategy;
    int32_t mode;
    uint32_t permits;      /* 0 unless a semaphore */
    uint32_t is_heartbeat; /* 1: renewed while its client lives */
    uint32_t is_pinned;    /* 1: over, but a guarded transaction still stands on it */
    uint32_t n_waiters;    /* UINT32_MAX = this database cannot tell */
    int64_t token;         /* 0 = none drawn */
    int64_t now_us;
    int64_t since_us;
    int64_t expires_us;
    uint64_t remaining_ms; /* DBLOCK_FOREVER: ends with a connection */
    int64_t server_pid;    /* row, advisory: the server's session; 0 unknown */
    int64_t pid;           /* on `host`; 0 unknown */
    char owner[40];        /* 32 hex digits, or "" */
    char name[256];
    char label[128];
    char host[256];
};

enum { /* kinds of events; later versions may add some: ignore those you do not know */
    DBLOCK_EVENT_LOST = 1,     /* exactly one for each grant found lost before its release began; a
                                * loss that the release itself finds is its result, not an event */
    DBLOCK_EVENT_EXPIRING = 2, /* expiring_ms are left and no heartbeat got through yet */
    DBLOCK_EVENT_REQUEST = 3,
    DBLOCK_EVENT_RESTORED = 4 /* a heartbeat got through after EXPIRING */
};

struct dblock_event {
    size_t struct_size;
    int32_t kind;
    int32_t cause;             /* DBLOCK_CAUSE_*; LOST and EXPIRING */
    dblock_lock *lock;         /* borrowed; valid until you free it */
    dblock_request *request;   /* borrowed; REQUEST only */
    void *context;             /* from the options */
    uint64_t remaining_ms;     /* EXPIRING: until the deadline */
    struct dblock_error error; /* what stood in the way; status 0 if nothing did */
};

typedef void (*dblock_event_fn)(const struct dblock_event *event, void *context);
typedef int (*dblock_work_fn)(dblock_lock *lock, void *context);
typedef int (*dblock_grant_fn)(
    const struct dblock_grant *grant, void *context); /* non-zero stops the listing */

/* One acquire. All zero but struct_size is right for most. A struct_size that
 * this library does not know is accepted if the unknown tail is all zero, else
 * E_ARGUMENT: a new option is never ignored by an old library. */
struct dblock_options {
    size_t struct_size;
    int32_t strategy;
    int32_t mode;
    int32_t heartbeat;
    uint32_t permits; /* 0; a semaphore is not in this version: E_UNSUPPORTED */
    uint32_t flags;
    uint32_t reserved;
    uint64_t wait_ms;     /* 0 try once; DBLOCK_FOREVER; at most ten years otherwise */
    uint64_t ttl_ms;      /* 0 the client's. With heartbeat rounded down to one of a few classes
                           * (dblock_lock_ttl_ms tells), so that others take over no later */
    uint64_t min_hold_ms; /* stays taken so long even if released sooner (lease, insert). Not if its
                           * holder dies, nor if an importer releases it: then it is free after the
                           * ttl, or at once. Above the ttl of a timed grant: E_ARGUMENT */
    uint64_t expiring_ms; /* EXPIRING comes that long before the deadline; 0 never */
    int64_t advisory_id;  /* with has_advisory_id: this number, not the name's hash */
    uint32_t has_advisory_id;
    uint32_t reserved2;
    const char *label;           /* what people see in `show`; NULL the client's */
    const char *reentrant_owner; /* NULL the calling thread */
    dblock_canceller *canceller; /* borrowed until the call returns */
    struct dblock_grant *busy;   /* filled with a holder on DBLOCK_BUSY; NULL not wanted */
    dblock_event_fn on_event;    /* NULL: events of this lock go to the client's queue */
    void *context;               /* must live until dblock_lock_free() has returned */
};

enum { /* kinds of traces; ignore those you do not know */
    DBLOCK_TRACE_ATTEMPT = 1,
    DBLOCK_TRACE_GRANT = 2,
    DBLOCK_TRACE_WAIT = 3,
    DBLOCK_TRACE_RENEW = 4,
    DBLOCK_TRACE_LOST = 5,
    DBLOCK_TRACE_RELEASE = 6,
    DBLOCK_TRACE_CONNECT = 7,
    DBLOCK_TRACE_CLOCK = 8,
    DBLOCK_TRACE_SETTLE = 9 /* a lost answer was settled, or a surplus grant given back */
};

struct dblock_trace {
    size_t struct_size;
    int32_t kind;
    dblock_status status;
    const char *name;   /* both pointers: during the callback only; may be NULL */
    const char *detail; /* for people */
    int64_t token;      /* 0 none */
    uint64_t duration_us;
};
typedef void (*dblock_trace_fn)(const struct dblock_trace *trace, void *context);

/* One client. NULL or all zero is right for most. Grows as options do. */
struct dblock_config {
    size_t struct_size;
    const char *label;           /* NULL none */
    const char *schema;          /* SQL schema of the tables; NULL the driver's default */
    const char *keeper_url;      /* another way to the same database, for the keeper; NULL the URL */
    uint64_t connect_timeout_ms; /* 0 = 5 s */
    uint64_t io_timeout_ms;      /* 0 = 10 s: the I/O limit of every call */
    uint64_t outage_ms;          /* a wait outlives an unreachable database so long; 0 = fail at once */
    uint64_t ttl_ms;             /* 0 = 30 s */
    int32_t strategy;            /* 0 = DBLOCK_LEASE */
    uint32_t connections_max;    /* 0 = 8 for short statements, besides the two reserved ones and
                                  * those that row and advisory locks hold */
    dblock_trace_fn on_trace;    /* called on the thread that does the thing; see CALLBACKS */
    void *trace_context;
};

struct dblock_stats {
    size_t struct_size;
    uint64_t grants, busy, lost, releases, uncertain;
    uint64_t heartbeats, heartbeats_late, reconnects;
    uint64_t wait_us, hold_us;
    uint32_t locks_held, connections, waiters, sessions;
};

#ifdef __cplusplus
#define DBLOCK_INIT_(type)                                                                         \
    ([]() {                                                                                        \
        struct type value_;                                                                        \
        memset(&value_, 0, sizeof value_);                                                         \
        value_.struct_size = sizeof value_;                                                        \
        return value_;                                                                             \
    }())
#define DBLOCK_OPTIONS_INIT DBLOCK_INIT_(dblock_options)
#define DBLOCK_CONFIG_INIT DBLOCK_INIT_(dblock_config)
#define DBLOCK_GRANT_INIT DBLOCK_INIT_(dblock_grant)
#define DBLOCK_EVENT_INIT DBLOCK_INIT_(dblock_event)
#define DBLOCK_STATS_INIT DBLOCK_INIT_(dblock_stats)
#define DBLOCK_FILTER_INIT DBLOCK_INIT_(dblock_filter)
#else
#define DBLOCK_OPTIONS_INIT { .struct_size = sizeof(struct dblock_options) }
#define DBLOCK_CONFIG_INIT { .struct_size = sizeof(struct dblock_config) }
#define DBLOCK_GRANT_INIT { .struct_size = sizeof(struct dblock_grant) }
#define DBLOCK_EVENT_INIT { .struct_size = sizeof(struct dblock_event) }
#define DBLOCK_STATS_INIT { .struct_size = sizeof(struct dblock_stats) }
#define DBLOCK_FILTER_INIT { .struct_size = sizeof(struct dblock_filter) }
#endif

/* ------------------------------------------------------------------- client */

/**
 * dblock_open - make a client of one database
 *
 * Connects to nothing yet: the first call that needs the database does.
 *
 * Parameters
 *   driver      dblock_pgsql_driver(), dblock_mysql_driver(), dblock_sqlite_driver()
 *   url         what the driver takes; copied. A password in it is kept in
 *               memory only and appears in no message
 *   config      NULL for the defaults
 *   ret_client  yours; dblock_close() ends it
 *
 * Returns
 *   DBLOCK_OK            open
 *   DBLOCK_E_ARGUMENT    a URL that is not the driver's, or a config out of range
 *   DBLOCK_E_DRIVER      the driver is of another release than this library
 *   DBLOCK_E_UNSUPPORTED the driver cannot do what the URL asks for
 */
DBLOCK_API dblock_status dblock_open(const dblock_driver *driver, const char *url,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr);

/**
 * dblock_ping - prove that the database can be reached and the tables are there
 *
 * For start-up and health checks. Changes nothing.
 *
 * Returns
 *   DBLOCK_OK        the database answers, the tables are there and of this release
 *   DBLOCK_E_SCHEMA  reached, but `dblock init` has not been run there
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_ping(
    dblock_client *client, struct dblock_error *reterr);

/**
 * dblock_close - end a client
 *
 * Waits of other threads end with E_CLOSED; what is held is released, within
 * one I/O limit in all; the keeper ends and its callbacks have returned. Locks
 * stay valid objects, not held, until they are freed. `client` may be NULL. In
 * on_event and on_trace it does nothing.
 */
DBLOCK_API void dblock_close(dblock_client *client);

/* One descriptor for all events of all locks of this client; for poll(), level
 * triggered. It belongs to the client: do not read or close it. E_SYSTEM if no
 * descriptor is to be had. */
DBLOCK_API dblock_status dblock_client_fd(
    dblock_client *client, int *ret_fd, struct dblock_error *reterr);

/* [any] The oldest event, or DBLOCK_EMPTY. Never waits. Freeing a lock removes
 * its events, so `lock` in an event is alive if you are its only freer. */
DBLOCK_API dblock_status dblock_client_next_event(
    dblock_client *client, struct dblock_event *ret_event);

/* [any] Counters since dblock_open(), and what is there now. */
DBLOCK_API dblock_status dblock_client_stats(
    dblock_client *client, struct dblock_stats *ret_stats);

/* ---------------------------------------------------------------- one grant */

/**
 * dblock_acquire - take a named lock, waiting while someone else holds it
 *
 * Holding is bounded: a program that is stopped past its deadline and then goes
 * on cannot be told so in time by any lock. If that must do no harm, send the
 * token (dblock_lock_token) along with what you write and let the receiver
 * refuse older ones.
 *
 * Parameters
 *   client    an open client
 *   name      1 to DBLOCK_NAME_MAX bytes of UTF-8, compared byte by byte
 *   options   NULL for the defaults
 *   ret_lock  yours; dblock_lock_free() ends it
 *
 * Returns
 *   DBLOCK_OK             held by you: work until dblock_lock_remaining_ms() is over
 *   DBLOCK_BUSY           wait_ms is over; `options->busy` tells who holds it
 *   DBLOCK_CANCELLED      the canceller was raised; nothing is left behind
 *   DBLOCK_CONFLICT       held under other terms; waiting does not help
 *   DBLOCK_E_UNCERTAIN    not known within the limit; there is no lock object, and the
 *                         keeper gives back what may have been granted
 *   DBLOCK_E_UNSUPPORTED  this database or strategy cannot; nothing was sent
 *   DBLOCK_E_CONNECTION   not held by you; is_transient tells whether to ask again
 *
 * Promises
 *   P1  The database never records two exclusive holders of one name.
 *   P2  The deadline is counted from before the request left, on a clock that
 *       runs on through suspend, less an eighth for clocks of different rate.
 *   P3  The token is larger than that of every earlier grant of the name.
 *   P7  The call ends within wait_ms plus one I/O limit.
 *   P8  A lost answer is settled by reading; yes and no are never guessed.
 *
 * Cost: one round trip if the lock is free.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_acquire(dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *reterr);

/**
 * dblock_release - end the grant; the object stays, not held
 *
 * Belief ends before anything is sent.
 *
 * Returns
 *   DBLOCK_OK        free for others (or at the end of min_hold_ms)
 *   DBLOCK_PENDING   free as soon as the guarded transaction that pins it ends, or
 *                    the one that it was joined to; nothing is left to do
 *   DBLOCK_LOST      it had ended before; what you did since may not have been protected
 *   DBLOCK_NOT_HELD  this is the second release
 *   below zero       not yours any more, free for others within the ttl; the keeper
 *                    goes on trying. No second call is needed
 *
 * Promises
 *   P4  Nothing but this very grant is ended.
 *
 * Cost: one round trip.
 */
DBLOCK_API dblock_status dblock_release(dblock_lock *lock, struct dblock_error *reterr);

/**
 * dblock_lock_free - free the object, at once
 *
 * Never waits for the network: what is still held is given to the keeper to
 * release, a moment later; a try of this client for the same name waits for
 * that, and one of another may still be BUSY. So it serves as a finalizer and
 * in an event loop. When it returns, no callback of this lock is running or
 * will run, unless it was called from that callback. `lock` may be NULL.
 */
DBLOCK_API void dblock_lock_free(dblock_lock *lock);

/**
 * dblock_extend - give a grant more time
 *
 * Timed grants: it now ends ttl_ms from now by the database's clock, also
 * earlier than before; 0 is the ttl it was taken with. With heartbeat, and for
 * row and advisory: ttl_ms must be 0, and the call is dblock_confirm().
 *
 * Returns
 *   DBLOCK_OK             held, until the new deadline
 *   DBLOCK_LOST           it had ended before; nothing was changed
 *   DBLOCK_NOT_HELD       it was released
 *   DBLOCK_E_UNSUPPORTED  a ttl for a grant that has none of its own
 *   below zero            unchanged or extended; the deadline known here is the earlier of
 *                         the two, and the old one again where it certainly had no effect
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_extend(
    dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *reterr);

/**
 * dblock_confirm - ask the database whether the grant stands
 *
 * Returns DBLOCK_OK (held), DBLOCK_LOST, DBLOCK_NOT_HELD (released); below zero
 * it is not known, and the deadline stands as it was. One round trip.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_confirm(
    dblock_lock *lock, struct dblock_error *reterr);

/**
 * dblock_lock_token - the fencing token of this grant
 *
 * Larger than that of every earlier grant of the name; below 2^53; never 0. Of
 * lease and insert it came with the grant. If another thread of this client
 * handed that over, and of row and advisory, the first call draws it (a round
 * trip; for row by a second connection), unless taken with DBLOCK_FENCED.
 *
 * Returns DBLOCK_OK, DBLOCK_LOST, DBLOCK_NOT_HELD, or a failure of the drawing.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_lock_token(
    dblock_lock *lock, int64_t *ret_token, struct dblock_error *reterr);

/* [any] 1 or 0, without I/O. 0 from the deadline on, at the latest. */
DBLOCK_API int dblock_lock_is_held(const dblock_lock *lock);

/* [any] Until the deadline, 0 once lost or released. For heartbeat, row and
 * advisory: if nothing more were heard of the database. Never DBLOCK_FOREVER. */
DBLOCK_API uint64_t dblock_lock_remaining_ms(const dblock_lock *lock);

DBLOCK_API uint64_t dblock_lock_ttl_ms(const dblock_lock *lock);  /* [any] the one in force */
DBLOCK_API int dblock_lock_strategy(const dblock_lock *lock);     /* [any] never DEFAULT */
DBLOCK_API const char *dblock_lock_name(const dblock_lock *lock); /* [any] */
DBLOCK_API const char *dblock_lock_owner(const dblock_lock *lock); /* [any] 32 hex digits */
DBLOCK_API int dblock_lock_cause(const dblock_lock *lock);        /* [any] DBLOCK_CAUSE_* */
DBLOCK_API void *dblock_lock_context(const dblock_lock *lock);    /* [any] from the options */

/* A descriptor of this lock alone, readable once it is lost or released. Made
 * on the first call (one descriptor each: for thousands use dblock_client_fd).
 * Belongs to the lock, valid until it is freed; do not read or close it. */
DBLOCK_API dblock_status dblock_lock_fd(dblock_lock *lock, int *ret_fd, struct dblock_error *reterr);

/**
 * dblock_lock_export - the grant as a line of printable ASCII
 *
 * For another process: a child, the next step of a script. It is a capability:
 * who has it can release the lock. Lease and insert only (E_UNSUPPORTED: row
 * and advisory live in a connection).
 *
 * Parameters
 *   buffer  at least DBLOCK_GRANT_TEXT_SIZE + 3 * strlen(name) bytes
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_lock_export(
    dblock_lock *lock, char *buffer, size_t size, struct dblock_error *reterr);

/**
 * dblock_lock_import - the lock of an exported grant, without heartbeat here
 *
 * Asks the database. Freeing the object releases nothing; dblock_release() does.
 *
 * Returns
 *   DBLOCK_OK          held; remaining_ms is the database's own, for a heartbeat
 *                      grant that of its holder's session
 *   DBLOCK_LOST        it is over
 *   DBLOCK_E_ARGUMENT  not the text of a grant
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_lock_import(dblock_client *client,
    const char *text, dblock_lock **ret_lock, struct dblock_error *reterr);

/**
 * dblock_lock_detach - stop renewing, and keep the lock for ttl_ms
 *
 * It ends by itself although this process goes on or ends. For hand-over by
 * dblock_lock_export(). Freeing the object then releases nothing.
 *
 * Returns DBLOCK_OK (a timed grant now), DBLOCK_LOST, DBLOCK_NOT_HELD,
 * E_UNSUPPORTED (row, advisory); other failures: as it was.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_lock_detach(
    dblock_lock *lock, uint64_t ttl_ms, struct dblock_error *reterr);

/**
 * dblock_with - acquire, run, always release
 *
 * Returns
 *   DBLOCK_OK    `fn` ran under the lock to its end; its result is in `*ret_result`.
 *                A release that failed is OK here: the work was protected
 *   DBLOCK_LOST  `fn` ran (`*ret_result` is written), and the lock ended before it did
 *   else         as dblock_acquire(): `fn` did not run
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_with(dblock_client *client, const char *name,
    const struct dblock_options *options, dblock_work_fn fn, void *context, int *ret_result,
    struct dblock_error *reterr);

/* ------------------------------------------------------------------ cancel */

/* E_MEMORY or E_SYSTEM (no descriptor). Yours; dblock_canceller_free(). */
DBLOCK_API dblock_status dblock_canceller_new(
    dblock_canceller **ret_canceller, struct dblock_error *reterr);

/* [any] Ends the waits given this canceller within 100 ms (a server that is silent: 0.5 s, amid a
 * take io_timeout_ms). Async-signal-safe. Stays raised: later waits end at once, until _reset. */
DBLOCK_API void dblock_cancel(dblock_canceller *canceller);

DBLOCK_API int dblock_canceller_is_raised(const dblock_canceller *canceller); /* [any] 1 or 0 */
DBLOCK_API int dblock_canceller_fd(
    const dblock_canceller *canceller); /* [any] readable while raised; do not read or close it */
DBLOCK_API void dblock_canceller_reset(dblock_canceller *canceller);
DBLOCK_API void dblock_canceller_free(dblock_canceller *canceller); /* no wait may be using it */

/* ------------------------------------------------------------ look and mend */

struct dblock_filter { /* NULL or all zero: every grant in force */
    size_t struct_size;
    int32_t strategy;   /* 0 all four */
    uint32_t is_idle;   /* 1: also rows that nobody holds */
    const char *name;   /* exactly this one */
    const char *prefix; /* or those that begin so */
    uint64_t limit;     /* 0 none */
};

/**
 * dblock_list - call `fn` for every grant
 *
 * By strategy and name; reads in pages, holds no statement open while `fn`
 * runs, and `fn` may call anything but dblock_close(). A name can appear more
 * than once: the strategies do not know of each other. Advisory and row locks
 * are listed as far as the server shows them to this role.
 *
 * Returns DBLOCK_OK, also when there are none or `fn` stopped it.
 */
DBLOCK_API dblock_status dblock_list(dblock_client *client, const struct dblock_filter *filter,
    dblock_grant_fn fn, void *context, struct dblock_error *reterr);

/* The holder of a name under one strategy (0: the first of the four that is
 * held): DBLOCK_OK, or DBLOCK_NOT_HELD. */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_inspect(dblock_client *client, const char *name,
    int strategy, struct dblock_grant *ret_grant, struct dblock_error *reterr);

/**
 * dblock_break - end someone's grant, durably, and fence it
 *
 * The holder learns of it with its next heartbeat; a later grant has a larger
 * token. It may still be working: guarded writes refuse it, others do not.
 *
 * Parameters
 *   strategy  must be said: row and advisory end a session of the server, with
 *             all else that it holds
 *   token     only the grant that has it; 0 whoever it is now
 *
 * Returns
 *   DBLOCK_OK             ended
 *   DBLOCK_PENDING        ends when the guarded transaction that pins it does
 *   DBLOCK_NOT_HELD       nobody holds it, or not with that token
 *   DBLOCK_E_UNSUPPORTED  the holder cannot be ended from here; the hint says why
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_break(dblock_client *client, const char *name,
    int strategy, int64_t token, struct dblock_error *reterr);

/* ------------------------------------------------------------------- schema */

/* [any] The DDL that dblock_schema_install() runs, with comments. Never NULL. */
DBLOCK_API const char *dblock_schema(const dblock_driver *driver);

/* Creates the tables, or brings them up to this release, within six I/O limits. Safe to repeat and
 * to run by many at once. E_PERMISSION: the hint has what is missing. E_UNCERTAIN: the answer was
 * lost; call it again. */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_schema_install(
    dblock_client *client, struct dblock_error *reterr);

/* ------------------------------------------------------------------- names */

DBLOCK_API const char *dblock_strategy_name(int strategy);      /* [any] "lease"; "unknown" */
DBLOCK_API int dblock_strategy_from_name(const char *name);     /* [any] -1 unknown */
DBLOCK_API const char *dblock_driver_scheme(const dblock_driver *driver); /* [any] "postgresql" */
DBLOCK_API const char *dblock_version(void); /* [any] of the library that runs: "0.1.0" */

#ifdef __cplusplus
}
#endif

#endif
