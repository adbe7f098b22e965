/* SPDX-License-Identifier: MIT */
/**
 * driver.h - what a database must do for dblock, for authors of drivers
 *
 * Not for applications. This table may change with every release before 1.0:
 * a driver and the library of one release belong together (`abi`).
 *
 * A driver performs single atomic acts ("steps"): take this name for this owner
 * once, give it back, renew this session. Each step is one round trip or one
 * short transaction. A step never retries, never sleeps between attempts, and
 * decides nothing: what to do after an answer is the business of the library's
 * strategies. A step waits only where its contract says so, and never past the
 * deadline of its call.
 *
 * TIME. Whether a grant has ended is judged by the database's clock alone,
 * inside the statement. `call->deadline_us` is this machine's CLOCK_BOOTTIME and
 * bounds I/O only. Durations are microseconds.
 *
 * RESULTS. DBLOCK_OK: the database answered, and `answer` says what. Else
 * `answer` means nothing, and:
 *   DBLOCK_CANCELLED     call->cancel_fd became readable during a step that waits;
 *                        nothing is held by it, nothing is left queued on the server
 *   E_CONNECTION         not sent, or refused as a whole: certainly no effect
 *   E_UNCERTAIN          sent (at least a byte), and no answer: it may have taken
 *                        effect, or may yet take effect until not_after
 *   E_SCHEMA, E_PERMISSION, E_READ_ONLY, E_LOGIN, E_UNSUPPORTED, E_DATABASE: the
 *                        database refused; certainly no effect
 * A conflict that the database resolved against us (deadlock 40P01/1213,
 * serialization 40001, certification, SQLITE_BUSY after the busy limit) is not
 * a failure: it is DBLOCK_OK with DBLOCK_ANSWER_AGAIN, without effect. Where it was not the lock
 * that others wanted (a file that stayed locked), `reterr` says what stood in the way all the same.
 * After a failure the library asks connection.is_alive() and closes a dead one.
 *
 * THREADS. A connection is used by one thread at a time; a target by many.
 * FORK. The library calls nothing of an inherited connection but close with
 * `how` DBLOCK_CLOSE_FORKED, which frees memory and descriptors without a byte
 * on the wire and without the client library's goodbye.
 *
 * MESSAGES. `reterr` is never NULL here. Fill it at the point of failure with
 * dblock_error_set(); no password, no connection string in it.
 */
#ifndef DBLOCK_SYS_DRIVER_H
#define DBLOCK_SYS_DRIVER_H

#include "../check.h"
#include "../dblock.h"
#include "../many.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLOCK_DRIVER_ABI 1
#define DBLOCK_ID_SIZE 16 /* bytes of an owner or session id, random */
#define DBLOCK_NO_END UINT64_MAX

struct dblock_target;     /* a parsed URL; defined by the driver */
struct dblock_connection; /* one connection; defined by the driver */

/* Limits of one step. */
struct dblock_call {
    uint64_t deadline_us; /* CLOCK_BOOTTIME; the step has returned by then */
    int cancel_fd;        /* readable: end a wait; -1 none. Heeded by waits and by connecting */
};

/* As cancel_fd: none, and the library shuts the connection's socket down at the deadline. Then a
 * step may block in its client library, as long as it waits for nothing but that socket. */
#define DBLOCK_CALL_IS_WATCHED (-2)

enum { /* what the database answered */
    DBLOCK_ANSWER_YES = 1,  /* done as asked: taken, dropped, renewed, held */
    DBLOCK_ANSWER_BUSY = 2, /* take: someone else holds it */
    DBLOCK_ANSWER_AGAIN = 3, /* take: nobody holds it, yet this attempt did not get it (lost a race,
                              * the database chose us as a victim). Others: not decided. No effect */
    DBLOCK_ANSWER_NO = 4,       /* drop, extend, renew, look, prove: this grant is not in force */
    DBLOCK_ANSWER_SESSION = 5,  /* take: my own session is over; nothing was taken */
    DBLOCK_ANSWER_LATE = 6,     /* take: not_after had passed; nothing was taken */
    DBLOCK_ANSWER_PINNED = 7,   /* a guarded transaction stands on the row. take: busy for now.
                                 * It may come about 50 ms late, where only a wait can tell */
    DBLOCK_ANSWER_UNSEEDED = 8  /* row take: there is no row of that name yet */
};

/* Filled by the driver on DBLOCK_OK; the library zeroes it before each step. A
 * member that a step's contract does not name may be left zero. */
struct dblock_answer {
    int32_t outcome;
    int64_t token;
    int64_t now_us;                /* the database's clock while it worked; 0 not known */
    uint64_t remaining_us;         /* BUSY: until the holder's grant ends; DBLOCK_NO_END: with its
                                    * connection, or not known. take YES: until mine ends */
    uint64_t session_remaining_us; /* take: of my session; 0 not known */
    uint64_t changed;              /* renew: the session row's change counter, or its low bits
                                    * (MySQL: modulo 2048): the library asks only whether it
                                    * differs from the last one */
    int64_t server_start_us;       /* renew: when the server started; 0 not known */
    uint64_t n_rows;               /* purge: rows removed */
};

/* Which lock. `name` is UTF-8 without a zero byte, 1 to 255 bytes, and also
 * zero-terminated. */
struct dblock_subject {
    const char *name;
    size_t name_size;
    int64_t advisory_id; /* with has_advisory_id: the server's number itself */
    int has_advisory_id;
};

struct dblock_take {
    struct dblock_subject subject;
    const unsigned char *owner;   /* DBLOCK_ID_SIZE bytes; sent in one take, never again */
    const unsigned char *session; /* DBLOCK_ID_SIZE bytes: a heartbeat grant; NULL: a timed one */
    uint64_t ttl_us;              /* timed: the grant ends so long after the database's now */
    int64_t not_after_us;         /* database clock: a take that would be granted later is not made */
    uint64_t wait_us;             /* row, advisory: stand in the server's queue so long; 0 no */
    int is_fair;                  /* with wait_us: strictly in order of arrival among all that say so;
                                   * E_UNSUPPORTED where nobody keeps his place */
    const char *label;            /* never NULL, at most DBLOCK_LABEL_MAX bytes */
    int heeds_line;               /* lease, insert: BUSY also if somebody is first in the line of that
                                   * name, although nobody holds it (then remaining_us is 0) */
};

/* What a connection is for. Autocommit and READ COMMITTED unless said. */
enum {
    DBLOCK_ROLE_SHORT = 1,   /* short steps, lent to one caller after the other */
    DBLOCK_ROLE_KEEPER = 2,  /* heartbeats; may go another way (keeper_url) */
    DBLOCK_ROLE_CONTROL = 3, /* tokens of row locks, settling: never lent out for anything else */
    DBLOCK_ROLE_ROW = 4,     /* one row lock at a time, held by its open transaction */
    DBLOCK_ROLE_ADVISORY = 5, /* advisory locks: many that a try gave, or one that was waited for */
    DBLOCK_ROLE_LINE = 6      /* a place in one line at a time (struct dblock_driver_line) */
};

enum { /* how to close */
    DBLOCK_CLOSE_POLITE = 0, /* say goodbye, without waiting for an answer */
    DBLOCK_CLOSE_ABORT = 1,  /* it is broken, or its lock shall go at once; interrupt what the
                              * server may still be doing for it, as far as that is quick */
    DBLOCK_CLOSE_FORKED = 2
};

/* What the library tells a driver once. Strings are copied by target_open. */
struct dblock_target_config {
    const char *url;
    const char *schema; /* SQL schema of the tables; NULL the default */
    const char *host;   /* of this process, for others to read; never NULL */
    int64_t pid;
    const char *label; /* never NULL */
    uint64_t connect_timeout_us;
    uint64_t io_timeout_us; /* also the basis of the server's own time-outs (a statement of ours
                             * must not outlive not_after by much) */
    uint64_t ttl_us;        /* row, advisory: idle limit of the server's session; a ping comes at
                             * least every third of it */
};

struct dblock_driver_connection {
    /* Connects, sets what the role needs (time-outs, isolation, keepalive), and reads the
     * database's clock: answer->now_us. Reads nothing of our tables. */
    dblock_status (*open)(struct dblock_target *target, int role, const struct dblock_call *call,
        struct dblock_connection **ret_connection, struct dblock_answer *answer,
        struct dblock_error *reterr);
    void (*close)(struct dblock_connection *connection, int how); /* takes NULL */
    /* No I/O. 0: of no use any more (and nothing that it held is held). */
    int (*is_alive)(const struct dblock_connection *connection);
    /* The socket, for poll(): readable while idle means that the server said something unasked
     * (most likely the end); then the library calls ping. -1: there is none. */
    int (*fd)(const struct dblock_connection *connection);
    /* One round trip. YES with now_us; a row connection with an open transaction, and an
     * advisory one, prove that by it: NO if what it held is gone. */
    dblock_status (*ping)(struct dblock_connection *connection, const struct dblock_call *call,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* YES if all tables are there and of this release, else E_SCHEMA with the way out in the hint,
     * E_PERMISSION if the role may not use them. */
    dblock_status (*verify)(struct dblock_connection *connection, const struct dblock_call *call,
        struct dblock_answer *answer, struct dblock_error *reterr);
};

/* Sessions: the rows that heartbeats renew. A heartbeat grant is in force exactly as long as the
 * row of its session exists and nobody has taken the name. */
struct dblock_driver_session {
    /* Inserts the row; an id is inserted once and never again. YES, now_us. */
    dblock_status (*begin)(struct dblock_connection *connection, const struct dblock_call *call,
        const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* YES: expires ttl from now (changed, now_us, server_start_us). NO: it is gone or has expired,
     * also if its row is still there because nobody has wanted its names: never revived. Waits for
     * nothing that a guard or another take holds. */
    dblock_status (*renew)(struct dblock_connection *connection, const struct dblock_call *call,
        const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* Deletes the row: all that it holds is free at once. YES or NO (was gone). */
    dblock_status (*end)(struct dblock_connection *connection, const struct dblock_call *call,
        const unsigned char *session, struct dblock_answer *answer, struct dblock_error *reterr);
    /* Calls `fn` for every lease and insert row that names the session, whether expired or not:
     * strategy, name, owner, token. `fn` must not use the connection. Read as current as the
     * database can (Galera: wsrep_sync_wait). May read in pages. YES. */
    dblock_status (*holds)(struct dblock_connection *connection, const struct dblock_call *call,
        const unsigned char *session, dblock_grant_fn fn, void *context,
        struct dblock_answer *answer, struct dblock_error *reterr);
};

/* Several names of one strategy, in their byte order, no two the same; at most DBLOCK_MANY_MAX. */
struct dblock_many {
    size_t n_names;
    struct dblock_subject *subjects;
    const unsigned char **owners; /* DBLOCK_ID_SIZE bytes each */
    int64_t *tokens;              /* take_many fills them on YES */
    int32_t *outcomes;            /* drop_many; what is YES or NO already is not asked again.
                                   * take_many, of zeros: BUSY for those that are seen to be held */
};

/* Lease and insert: grants that are rows. */
struct dblock_driver_hold {
    /* YES: taken, committed durably, with a token larger than all before (token, now_us,
     * remaining_us, session_remaining_us). BUSY or PINNED: `holder` (NULL: not wanted) filled as
     * far as known, remaining_us, now_us; nothing written, nothing waited for. AGAIN, SESSION,
     * LATE. A grant that has ended, or whose session has expired, is no obstacle: it is cleared on
     * the way, which may take a second round trip, within the same deadline and not_after. */
    dblock_status (*take)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* Gives back the grant of (name, owner). keep_us > 0: it stays taken for so long still, timed,
     * by nobody's heartbeat. Its owner may stay in the row meanwhile (PostgreSQL and SQLite leave
     * it), so look can show it as in force and a second drop can end it. YES: it was in force until
     * now. NO: not in force (it may have ended, or another has it; nothing changed for others).
     * PINNED: nothing done, ask later. Need not be durable: a crash only gives it back later. Never
     * inside one transaction with a take. */
    dblock_status (*drop)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, const unsigned char *owner, uint64_t keep_us,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* The grant of (name, owner), if in force, is timed from now on and ends ttl_us from the
     * database's now; durable. YES (now_us), NO, PINNED. */
    dblock_status (*extend)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, const unsigned char *owner, uint64_t ttl_us,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* Who holds the name now? YES: in force, `grant` filled (owner above all), remaining_us. NO:
     * nobody. now_us in both. Sees every commit that was acknowledged before. */
    dblock_status (*look)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, struct dblock_grant *grant,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* A new token for the grant of (name, owner), if in force: larger than all before, durable.
     * YES (token, now_us), NO, PINNED. Asked for again after a lost answer it skips a number.
     * NULL: grants do not go from thread to thread within a client. */
    dblock_status (*draw)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, const unsigned char *owner,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* All of them or none, for `terms` (whose subject and owner are not meant). YES: all taken,
     * durably, tokens filled. BUSY, PINNED: as take, of the name number *ret_place, and the line
     * that is heeded is that of any of them; and `outcomes` are BUSY for all that are in the way,
     * as far as is known without asking more. AGAIN, SESSION, LATE. Other than YES: none is taken,
     * not even for a moment unless the answer is AGAIN. E_UNCERTAIN: any of them may be. Two that
     * take the same names at once wait for each other never in a circle: at worst both are AGAIN.
     * NULL: cannot. */
    dblock_status (*take_many)(struct dblock_connection *connection,
        const struct dblock_call *call, const struct dblock_take *terms,
        const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* As drop without keep_us, for each of them, in one message: outcomes filled. NULL: the library
     * drops one after the other. */
    dblock_status (*drop_many)(struct dblock_connection *connection,
        const struct dblock_call *call, const struct dblock_many *many,
        struct dblock_answer *answer, struct dblock_error *reterr);
};

/* Waiting for lease and insert without asking again and again: a line for each (strategy, name),
 * whose first waiter is woken when the name may have become free, while the others cost nothing.
 * A line carries order and wake-ups only. Exclusion never depends on it: whoever takes, takes by
 * hold.take, also the first, over a connection of ROLE_SHORT. A wake-up may be lost or come for
 * nothing; the library bounds each rest by the end of the grant that is in the way.
 *
 * Who wakes: hold.drop and observe.end, if somebody is first in line (else they cost nothing more).
 * A driver whose wake-up belongs to the connection that took the grant says so by
 * `drops_where_taken`; the library then gives the drop to that connection if it can, and if it
 * cannot the wake-up may be late.
 *
 * A first waiter that died, was stopped or cut off must not keep a free name from the others for
 * longer than two seconds or so: `stand` of the next then answers YES or AGAIN. */
struct dblock_driver_line {
    /* Stands in line, on a connection of ROLE_LINE that has no place, for wait_us at most.
     * `is_fair`: strictly in order of arrival, if that costs more. YES: is the first. AGAIN: not
     * the first, but the name has been free for about a second with somebody else before: may
     * take past him (has left the line). BUSY: wait_us is over (has left). NO: nothing can wake
     * here (a pooler, no rights); nothing was left behind, and it will be so the next time.
     * Heeds cancel_fd (has left the line, or the connection is dead). No snapshot is held for
     * longer than 0.9 s, and no line is written into the server's log. NULL in a driver without
     * lines. */
    dblock_status (*stand)(struct dblock_connection *connection, const struct dblock_call *call,
        int strategy, const struct dblock_subject *subject, uint64_t wait_us, int is_fair,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* The first only: rests until somebody wakes or call->deadline_us comes; a wake-up since
     * `stand` or the last `rest` returned counts, so the order is take, rest, take, rest ...
     * `owner`: of the grant that the last take met, as text, "" not known. YES: woken. NO: the time
     * is over. AGAIN: the place is lost (the connection lives). Heeds cancel_fd. */
    dblock_status (*rest)(struct dblock_connection *connection, const struct dblock_call *call,
        const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
    /* Leaves the line: the next becomes the first. Sent, and the answer is left for the next use
     * of the connection: it is on the way of every grant that was waited for. A connection that
     * cannot do so is dead afterwards. */
    void (*leave)(struct dblock_connection *connection);
    int drops_where_taken;
};

/* Row and advisory: grants that live in a connection of their role. */
struct dblock_driver_session_lock {
    /* row only: makes the row of that name and commits, waiting for nobody but who makes it just
     * now; over a connection of ROLE_ROW that holds nothing, of ROLE_SHORT or ROLE_CONTROL. YES:
     * it is there, AGAIN. */
    dblock_status (*seed)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* YES: held by this connection. BUSY: not within wait_us (`holder` as in hold.take); nothing
     * is left open or queued. row: UNSEEDED. advisory: a connection that has it already answers
     * BUSY (holder: itself). PINNED, AGAIN. While it waits it heeds cancel_fd, keeps no snapshot
     * longer than 0.9 s and leaves no line in the server's log. */
    dblock_status (*take)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* YES: was held until now. NO: it was not (its transaction or session had ended). */
    dblock_status (*drop)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* One round trip: YES if the lock is still held by this connection, else NO. */
    dblock_status (*prove)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, struct dblock_answer *answer,
        struct dblock_error *reterr);
    /* Draws the next token of the name and commits it durably: YES, token. row: on a connection
     * other than the lock's (the library proves the lock afterwards); advisory: on its own.
     * PINNED: a guarded transaction stands on the row of the last one (with a second at most where
     * that cannot be seen without waiting); AGAIN. */
    dblock_status (*draw)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_subject *subject, struct dblock_answer *answer,
        struct dblock_error *reterr);
};

/* One page of a listing, of one strategy. */
struct dblock_page {
    int32_t strategy;
    uint32_t is_idle;     /* also rows that nobody holds */
    const char *name;     /* exactly this one, or NULL */
    const char *prefix;   /* beginning so, byte by byte, or NULL */
    const char *after;    /* names above this one in byte order, or NULL */
    int64_t advisory_id;  /* with has_advisory_id and name: that id */
    int has_advisory_id;
    size_t limit; /* at most so many */
};

struct dblock_driver_observe {
    /* Calls `fn` in the byte order of names; `fn` must not use the connection. Advisory locks
     * that were taken by an id, or whose name the server cannot tell, are named "#ID". Of many only
     * dblock's own locks; of one `name` whoever holds it. YES. */
    dblock_status (*list)(struct dblock_connection *connection, const struct dblock_call *call,
        const struct dblock_page *page, dblock_grant_fn fn, void *context,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* Ends the grant of `name`, of `token` only unless 0; durable; the next token is larger, and
     * the holder's session row counts `changed` up. YES, NO (nobody, or another token), PINNED.
     * Row, advisory: ends the server's session, and then the token that it had drawn: see below.
     * PINNED with that token: done but for this. */
    dblock_status (*end)(struct dblock_connection *connection, const struct dblock_call *call,
        int strategy, const struct dblock_subject *subject, int64_t token,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* Row, advisory: the grant that drew that token is over, and if it is still the newest of the
     * name it goes up, so that guards refuse it before there is a next one; durable. YES, PINNED.
     * NULL if `end` never answers PINNED with a token. */
    dblock_status (*end_token)(struct dblock_connection *connection,
        const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
        int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
    /* Removes one small batch of what nobody needs (dead sessions an hour old, rows that have been
     * free for an hour), raising the floor of tokens first. Never the token of a row or advisory
     * lock that is still held: a guard looks for it. Waits for nobody. YES, n_rows; AGAIN. */
    dblock_status (*purge)(struct dblock_connection *connection, const struct dblock_call *call,
        struct dblock_answer *answer, struct dblock_error *reterr);
    /* Calls `fn` for each thing of the database that was looked at for dblock_check(), good or
     * bad; not for the tables being there (connection.verify). What this role may not see is left
     * out. Changes nothing, waits for nobody. YES. NULL: there is nothing to look at. */
    dblock_status (*check)(struct dblock_connection *connection, const struct dblock_call *call,
        dblock_finding_fn fn, void *context, struct dblock_answer *answer,
        struct dblock_error *reterr);
};

struct dblock_driver {
    uint32_t abi;       /* DBLOCK_DRIVER_ABI */
    size_t struct_size; /* sizeof(struct dblock_driver) */
    const char *scheme; /* "postgresql" */
    const char *schema; /* the DDL text */
    /* Parses; no I/O. E_ARGUMENT with the place of the mistake; never the password. */
    dblock_status (*target_open)(const struct dblock_target_config *config,
        struct dblock_target **ret_target, struct dblock_error *reterr);
    void (*target_close)(struct dblock_target *target); /* takes NULL */
    /* Applies the DDL over a connection of its own; safe to repeat and to run by many at once. */
    dblock_status (*install)(
        struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr);
    struct dblock_driver_connection connection;
    struct dblock_driver_session session;
    struct dblock_driver_hold lease;
    struct dblock_driver_hold insert;
    struct dblock_driver_line line;
    struct dblock_driver_session_lock row;
    struct dblock_driver_session_lock advisory;
    struct dblock_driver_observe observe;
};

/* ------------------------------------------- what the library does for drivers */

#if defined(__GNUC__)
#define DBLOCK_PRINTF_(format_index, first) __attribute__((format(printf, format_index, first)))
/* What seldom runs: it lies apart from what usually does, and what leads to it as well. */
#define DBLOCK_COLD_ __attribute__((cold, noinline))
#else
#define DBLOCK_PRINTF_(format_index, first)
#define DBLOCK_COLD_
#endif

/* Fills `*error` (takes NULL) and returns `status`: message by printf rules, `hint` NULL or the
 * way out. is_transient follows from the status (E_CONNECTION and E_UNCERTAIN: yes). */
DBLOCK_API dblock_status dblock_error_set(struct dblock_error *error, dblock_status status,
    const char *hint, const char *format, ...) DBLOCK_PRINTF_(4, 5) DBLOCK_COLD_;
/* The native code and SQLSTATE (NULL none) of an error that was just set. */
DBLOCK_API void dblock_error_native(
    struct dblock_error *error, int32_t native_code, const char *sqlstate, int is_transient);

/* CLOCK_BOOTTIME in microseconds: runs on through suspend, is never set. */
DBLOCK_API uint64_t dblock_clock_us(void);

/* Waits for `events` (POLLIN, POLLOUT) on `fd`. 1 ready (or hung up), 0 the deadline came,
 * -1 cancel_fd is readable (only if `heed_cancel`). Goes on after EINTR. */
DBLOCK_API int dblock_fd_wait(
    int fd, short events, const struct dblock_call *call, int heed_cancel);

#define DBLOCK_SHA256_SIZE 32

/* What names and numbers of advisory locks are made of: every language and database has it. */
DBLOCK_API void dblock_sha256(
    const void *data, size_t size, unsigned char digest[DBLOCK_SHA256_SIZE]);

/* Its first eight bytes, the first one the highest: the number of a name.
 *   "nightly-report" 7440995589958059143, "J\u00f6b" 6007079653076722657 */
DBLOCK_API int64_t dblock_name_number(const char *name, size_t size);

#define DBLOCK_ADDRESS_SIZE 72
#define DBLOCK_ADDRESSES_MAX 16

struct dblock_addresses {
    size_t n;
    char texts[DBLOCK_ADDRESSES_MAX][DBLOCK_ADDRESS_SIZE]; /* in digits */
};

/* Before a client library would look `host` up itself, in a call that nobody can end. OK: the
 * addresses that it has; none if there is nothing to look up (it is an address, localhost, a path,
 * or ""), or no thread to do it. CANCELLED; E_CONNECTION: not within the call, or it has none. */
DBLOCK_API dblock_status dblock_host_look_up(const char *host, const struct dblock_call *call,
    struct dblock_addresses *ret_addresses, struct dblock_error *reterr);

/* DBLOCK_ID_SIZE bytes as 32 lower-case hex digits and a zero into `text`. */
DBLOCK_API void dblock_id_text(const unsigned char *id, char text[40]);

/* A grant, as a statement in the application's transaction must name it. */
struct dblock_guarded {
    struct dblock_target *target;
    int32_t strategy;
    struct dblock_subject subject;
    const unsigned char *owner; /* DBLOCK_ID_SIZE bytes */
    int64_t token;
    uint64_t io_timeout_us;
    /* What is left of min_hold_ms, 0 nothing: a transaction that gives the lock back leaves a timed
     * grant of so long instead, under an owner that nobody is. */
    uint64_t keep_us;
    unsigned char kept_owner[DBLOCK_ID_SIZE];
};

/* The first line of a function of a driver that binds a lock to a transaction of the application.
 * DBLOCK_OK: `*ret_guarded` is good until dblock_guard_end(), and the grant does not go to another
 * thread of its client any more. LOST, NOT_HELD: it is over. E_ARGUMENT: not a lock of `driver`.
 * The token may have to be drawn first (and with it all failures of dblock_lock_token()). A row or
 * advisory lock has the one that it was acquired with, and owner means nothing there. */
DBLOCK_API dblock_status dblock_guard_begin(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_guarded *ret_guarded, struct dblock_error *reterr);
/* What came of it: LOST makes the lock lost, and tells its holder; a row or advisory lock is asked
 * for over its own connection before. Returns what the function shall. */
DBLOCK_API dblock_status dblock_guard_end(
    dblock_lock *lock, dblock_status status, struct dblock_error *reterr);
/* Before dblock_guard_begin(), if that transaction shall give the lock back: E_UNSUPPORTED if only
 * its own connection can. Takes NULL. */
DBLOCK_API dblock_status dblock_guard_check_release(
    const dblock_lock *lock, struct dblock_error *reterr);
/* Between the two: that transaction gives it back, if it is committed. Then its end is no loss. */
DBLOCK_API void dblock_guard_gives_back(dblock_lock *lock);

/* How a driver cancels what runs on a connection of the application. */
struct dblock_watch {
    /* On a thread of the library, while the application may use the connection: asks for the end
     * of what runs there now, if anything does. Has returned by the deadline, and soon after
     * cancel_fd is readable. What came of it is not asked: it is called again. */
    void (*cancel)(void *context, const struct dblock_call *call);
    void (*free)(void *context); /* once, also in a child after fork: sends nothing */
    void *context;
};

/* The first lines of a function of a driver that watches a lock. OK: `*ret_target` lives as long as
 * the lock; LOST, NOT_HELD: it is over. E_ARGUMENT: not a lock of `driver`. */
DBLOCK_API dblock_status dblock_watch_check(dblock_lock *lock, const struct dblock_driver *driver,
    struct dblock_target **ret_target, struct dblock_error *reterr);
/* From the loss of the lock until dblock_watch_end(), its release, its freeing or the client's close:
 * cancels. Takes `way->context`, whatever the result. */
DBLOCK_API dblock_status dblock_watch_begin(
    dblock_lock *lock, const struct dblock_watch *way, struct dblock_error *reterr);
/* All watches of the lock; takes NULL. Once it has returned nothing is cancelled. */
DBLOCK_API void dblock_watch_end(dblock_lock *lock);

/* A row or advisory lock that shall belong to the transaction which is open on a connection of the
 * application. */
struct dblock_joining {
    struct dblock_target *target;
    void *connection; /* as dblock_join() was given it */
    int32_t strategy;
    struct dblock_subject subject;
    int is_seeded;     /* row: its row was committed by another connection during this call */
    int has_canceller; /* while it waits, cancel_fd shall be heeded within 100 ms; else a second */
    uint64_t io_timeout_us;
};

/* What a driver does on that connection. Its transaction is neither begun nor ended, and of the
 * connection nothing is kept or changed. */
struct dblock_join_steps {
    /* Can it be used, and is it in a transaction? OK, ROLLED_BACK, E_ARGUMENT, E_CONNECTION. */
    dblock_status (*check)(void *connection, const char *name, struct dblock_error *reterr);
    /* OK with an outcome: YES (the transaction has it, or had it already), BUSY (not within
     * wait_us; 0: waits for nothing), UNSEEDED. In all three the transaction can go on. CANCELLED
     * (also if somebody cancelled the statement itself): not taken, and it can go on.
     * STALE_SNAPSHOT, ROLLED_BACK, and below zero: it has to be rolled back, or is over. */
    dblock_status (*take)(const struct dblock_joining *joining, uint64_t wait_us, int cancel_fd,
        int *ret_outcome, struct dblock_error *reterr);
    /* row: asking for a row that is not there would keep others from making it. So it is made
     * before, unless this client knows that it was there; UNSEEDED then is a failure */
    int has_gap_locks;
    int waits_itself; /* called once, for the whole wait, which heeds the canceller: not cancel_fd */
    int cannot_fence; /* nobody else can commit a token while the transaction is open */
};

/* The body of a driver's acquire_in. `ret_lock` may be NULL. */
DBLOCK_API dblock_status dblock_join(dblock_client *client, const struct dblock_driver *driver,
    const struct dblock_join_steps *steps, void *connection, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *reterr);

/* A connection that the application owns, and goes on using between the calls of a client over it.
 * The driver's connections of `roles` then are over it: to open one connects to nothing, and to
 * close one ends nothing; each step leaves the connection as it found it, and refuses with
 * E_ARGUMENT or E_CONNECTION one that is not free, or is in a transaction. Used by threads of the
 * application alone, inside of their calls. */
struct dblock_borrowing {
    void *connection; /* for target_open */
    /* As dblock_driver.target_open; config->url is NULL. */
    dblock_status (*target_open)(void *connection, const struct dblock_target_config *config,
        struct dblock_target **ret_target, struct dblock_error *reterr);
    /* Without I/O: could a step be done on it now? `action` and `name` ("" none) are for the message,
     * and `reterr` may be NULL here. */
    dblock_status (*check)(struct dblock_target *target, const char *action, const char *name,
        struct dblock_error *reterr);
    unsigned roles; /* 1 << DBLOCK_ROLE_*; SHORT and KEEPER at least. Others need the keeper's URL */
    int has_own_locks; /* row, advisory: they are not the connection's at all, only beside it */
};

/* The body of a driver's open_on. */
DBLOCK_API dblock_status dblock_open_borrowed(const dblock_driver *driver,
    const struct dblock_borrowing *borrowing, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr);

/* For fixed text members: copies, cut at a UTF-8 character. */
DBLOCK_API void dblock_text_copy(char *target, size_t target_size, const char *source);

#ifdef __cplusplus
}
#endif

#endif
