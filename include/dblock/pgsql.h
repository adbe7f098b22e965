/* SPDX-License-Identifier: MIT */
/* pgsql.h - PostgreSQL 12 and later. Link with libdblock-pgsql. */
#ifndef DBLOCK_PGSQL_H
#define DBLOCK_PGSQL_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: anything that libpq takes
 * (postgresql://..., postgres://..., or "host=... dbname=..."); what a URL
 * leaves open comes from PGHOST, PGPASSWORD, ~/.pgpass, service files, as for
 * every client of libpq. A name server that is silent keeps no call, but for hosts
 * that a service file names. In a database that is not UTF-8 a label that has a character which is
 * not there is kept with "?" for all but ASCII. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_pgsql_driver(void);

struct pg_conn; /* PGconn */

/**
 * dblock_pgsql_open_on - a client over a connection of the application
 *
 * For programs that have one connection and no thread beside it. It is used inside of calls of
 * this client only, and left as it was: settings of the session, transaction, prepared statements
 * (but for the unnamed one, as by PQexec()), notice receivers, notifications that came. A client by
 * dblock_open(), beside it, can do more, and is of use to many threads.
 *
 * What is different:
 *   - Never a part of a transaction of yours: in one, everything that needs the connection is
 *     E_ARGUMENT, an acquire, a release (the lock stays held) and an extend alike. There are
 *     _acquire_in, _guard and _release_in for that, with locks of this client as well.
 *   - No heartbeat, unless config->keeper_url says how to reach the database besides: a lease needs
 *     options.heartbeat = DBLOCK_HEARTBEAT_OFF (E_UNSUPPORTED), ends with its ttl, and is extended
 *     by you.
 *   - A row lock is an open transaction: E_UNSUPPORTED without keeper_url; with it, it is taken on a
 *     connection of dblock's own. The same goes for the row of a new name and for tokens, which
 *     dblock_pgsql_acquire_in() wants.
 *   - An advisory lock is the session's: held until it is released or the connection ends, which
 *     the next call finds; dblock_lock_remaining_ms() is longer than any ttl. One that the session
 *     has by other means is BUSY. A list does not show it, and no break ends it.
 *   - Who waits looks from time to time; DBLOCK_FAIR needs keeper_url, and is not for advisory.
 *   - What dblock_lock_free() leaves to the keeper is done by the next acquire, or dblock_close().
 *   - dblock_schema_install() needs keeper_url.
 *
 * One thread at a time, for the connection and this client together. Close the client before the
 * connection, which stays open, and in no transaction of yours: in one, what it holds ends with its
 * ttl or with the session. After PQreset() what the session held is lost. A message more for the
 * first call; each of the others takes one round trip as ever, in a transaction of its own.
 *
 * Parameters
 *   connection  yours; blocking, in no pipeline, no transaction, nothing unread and no COPY under
 *               way, whenever a call has to do with the database: else E_ARGUMENT. Broken:
 *               E_CONNECTION. If no answer comes within io_timeout_ms: close it
 *   config      as dblock_open(); connections_max is 1
 *
 * Returns as dblock_open().
 */
DBLOCK_API dblock_status dblock_pgsql_open_on(struct pg_conn *connection,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr);

/**
 * dblock_pgsql_acquire_in - lock a name in the application's open transaction
 *
 * Its COMMIT or ROLLBACK frees it, and nothing else does (ROLLBACK TO a savepoint
 * that is older, and the end of the connection, are of that kind): there is
 * nothing to remember, and no other moment when others could come in between.
 * Row and advisory locks of dblock_acquire() and those here exclude each other.
 * One round trip if it is free. A transaction can lock several names, and one
 * name as often as it likes.
 *
 * Parameters
 *   client      of the same database; its own connections are used only to make the row
 *               of a new name, for DBLOCK_FENCED, and to fill options->busy
 *   connection  yours, as for dblock_pgsql_guard(). Another role needs SELECT and
 *               UPDATE on dblock_row; an advisory lock needs no right
 *   options     strategy: DBLOCK_ROW or DBLOCK_ADVISORY (E_UNSUPPORTED: lease, insert,
 *               DBLOCK_FAIR). wait_ms is heeded whatever lock_timeout says;
 *               statement_timeout ends no wait
 *   ret_lock    NULL if it is not wanted, which is usual. Else yours to free, at any
 *               time; that frees nothing else. It has the name, the owner and with
 *               DBLOCK_FENCED (row) the token. What becomes of the transaction is not
 *               seen from there: dblock_lock_is_held() and _remaining_ms() are 0, no
 *               event ever comes, dblock_release() answers DBLOCK_PENDING and sends
 *               nothing, confirm, extend, detach, export and guard are E_UNSUPPORTED.
 *               To ask whether the transaction has it: acquire it again, wait_ms 0
 *
 * Returns
 *   DBLOCK_OK              this transaction has it
 *   DBLOCK_BUSY            not within wait_ms; the transaction goes on as before
 *   DBLOCK_CANCELLED       the same, by the canceller or a PQcancel() of yours
 *   DBLOCK_STALE_SNAPSHOT  REPEATABLE READ, SERIALIZABLE: what this transaction reads is
 *                          older than the end of the last holder (it had to wait, or the
 *                          name is new): roll back, begin again. Lock before reading
 *   DBLOCK_ROLLED_BACK     a deadlock, or it had failed before: roll back, begin again
 *   DBLOCK_E_ARGUMENT      no transaction, or the connection is not free: as it was
 *   DBLOCK_E_UNSUPPORTED   as it was
 *   DBLOCK_E_CONNECTION    the connection is broken, or did not answer within
 *                          io_timeout_ms: close it
 *   others                 roll back
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_pgsql_acquire_in(dblock_client *client,
    struct pg_conn *connection, const char *name, const struct dblock_options *options,
    dblock_lock **ret_lock, struct dblock_error *reterr);

/**
 * dblock_pgsql_guard - bind the application's transaction to a lock
 *
 * Until that transaction ends nobody else can be granted the name, so what it
 * writes is atomic with holding the lock, also if this process is stopped in
 * between. Heartbeats go on meanwhile; a try of others is BUSY, a
 * release or break PENDING. (ROLLBACK TO a savepoint that is older than the guard undoes it, and
 * the COMMIT does not tell: guard before the savepoint, or again after that.) Call it at any
 * place in the transaction: what was read in it since the lock was taken is covered as well.
 * One round trip. In plain SQL: SELECT dblock_guard(name, token).
 *
 * A row or advisory lock must have been acquired with DBLOCK_FENCED, and all who write under
 * it must use that: it is among them that nobody is granted the name before the transaction
 * ends, also if the holder's connection does. Who leaves it out is not excluded. A release is
 * OK and the lock itself free; who acquires it with DBLOCK_FENCED gets it after the transaction.
 *
 * Parameters
 *   lock        of any strategy, of a client of the same database; held
 *   connection  yours, and in a transaction: blocking, in no pipeline, nothing
 *               unread. It may be of another role (SELECT and UPDATE on dblock_lease,
 *               dblock_insert and dblock_token, SELECT on dblock_session).
 *               Its settings, handlers and named statements stay as they are;
 *               the unnamed prepared statement is replaced, as by PQexec()
 *
 * Returns, all but OK meaning: roll back
 *   DBLOCK_OK              bound; DBLOCK_LOST cannot come true for others before its end
 *   DBLOCK_LOST            the grant is over; the holder has been told
 *   DBLOCK_NOT_HELD        it was released
 *   DBLOCK_STALE_SNAPSHOT  what this transaction reads is older than the grant
 *                          (REPEATABLE READ, SERIALIZABLE): begin again
 *   DBLOCK_ROLLED_BACK     the transaction had failed, or a limit of the
 *                          connection (lock_timeout, statement_timeout) ended it
 *   DBLOCK_E_ARGUMENT      no transaction, or the connection is not free; a row or advisory
 *                          lock that was acquired without DBLOCK_FENCED
 *   DBLOCK_E_UNSUPPORTED   a lock that was joined to a transaction
 *   DBLOCK_E_CONNECTION    the connection is broken, or did not answer within
 *                          io_timeout_ms: close it
 *   others                 as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_pgsql_guard(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr);

/**
 * dblock_pgsql_release_in - give a lock back with the application's COMMIT
 *
 * As the guard, and the release is part of the transaction: others get the name
 * at the moment when they can see what was written, neither before nor later
 * (with min_hold_ms not before its end). After a ROLLBACK it is held as before.
 * Who waits is woken by the COMMIT. Two round trips.
 *
 * Free the lock after the end of the transaction, whichever it was: that gives
 * back what a ROLLBACK left held. Until then dblock_lock_is_held() does not know
 * of the COMMIT; dblock_confirm() and dblock_release() answer NOT_HELD after it.
 *
 * Parameters and results as of the guard; NOT_HELD also if this transaction has
 * given it back already. E_UNSUPPORTED: a row or advisory lock, which only its own connection
 * can give back: guard the transaction, and release after the COMMIT.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_pgsql_release_in(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr);

/**
 * dblock_pgsql_watch - cancel what runs on a connection once the lock is lost
 *
 * So that a long statement stops instead of writing on. From the loss until _unwatch, the
 * release or the freeing of the lock, whatever runs on that connection is asked to
 * end (SQLSTATE 57014), again and again with pauses of up to a second: a statement that was
 * begun before the loss was noticed ends too. Nothing is cancelled as long as the lock is
 * held, nor when it is released. It comes as soon as the loss is known here, at the latest when
 * dblock_lock_remaining_ms() is 0: between two statements ask dblock_lock_is_held(), and for
 * what must not be written late at all take the guard.
 *
 * The request goes over a connection of its own, made when it is needed, by a thread that
 * the watch has to itself: a server that does not answer keeps neither heartbeats nor
 * other locks waiting.
 *
 * Parameters
 *   lock        of any strategy; held. May watch several connections
 *   connection  yours, connected, used by no other thread during this call. It may be used
 *               by any thread afterwards, and closed or reset after _unwatch
 *
 * Returns
 *   DBLOCK_OK             watched
 *   DBLOCK_LOST, DBLOCK_NOT_HELD   the grant is over; nothing is watched
 *   DBLOCK_E_ARGUMENT     a lock of another kind of database, or NULL
 *   DBLOCK_E_CONNECTION   the connection is broken
 *   DBLOCK_E_SYSTEM, DBLOCK_E_MEMORY   no thread, no descriptor, no memory
 *   others                as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_pgsql_watch(
    dblock_lock *lock, struct pg_conn *connection, struct dblock_error *reterr);

/**
 * dblock_pgsql_unwatch - undo all dblock_pgsql_watch() of a lock
 *
 * When it returns, no cancel is under way or will come; one that is under way is waited
 * for, a moment. dblock_release(), dblock_lock_free() and dblock_close() do the same. Any thread,
 * also in on_event. Takes NULL, and a lock that watches nothing.
 */
DBLOCK_API void dblock_pgsql_unwatch(dblock_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
