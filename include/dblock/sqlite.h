/* SPDX-License-Identifier: MIT */
/* sqlite.h - SQLite 3.35 and later, on a local file. Link with libdblock-sqlite. */
#ifndef DBLOCK_SQLITE_H
#define DBLOCK_SQLITE_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: sqlite:PATH (sqlite:/var/lib/app/lock.db,
 * or relative: sqlite:lock.db). The file is made by dblock_schema_install(); row
 * and advisory locks, and the lines of those who wait for any, live in PATH-dblock
 * beside it; neither may be deleted or replaced while in use. Network file systems
 * are refused. A program that carries its own copy of SQLite gives dblock a file of
 * its own. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_sqlite_driver(void);

struct sqlite3;

/**
 * dblock_sqlite_open_on - a client over a connection of the application
 *
 * For programs that have one connection and no thread beside it. It is used inside of calls of
 * this client only, and left as it was: settings, the state of statements, sqlite3_last_insert_rowid().
 * (Not sqlite3_changes(), the last error, and what counts on, like sqlite3_total_changes(); hooks of
 * yours see what dblock writes.) Two functions for dblock alone stay on it, dblock_now_us and
 * dblock_note. A client by dblock_open(), beside it, can do more, and is of use to many threads.
 *
 * All four strategies. What is different:
 *   - Never a part of a transaction of yours: in one, what reads or writes the file is E_ARGUMENT,
 *     an acquire, a release (the lock stays held) and an extend alike. There are _acquire_in, _guard
 *     and _release_in for that, with locks of this client as well. Row and advisory locks live
 *     beside the connection, in PATH-dblock, and have nothing to do with its transactions.
 *   - No heartbeat, unless config->keeper_url says how to reach the file besides ("sqlite:PATH"):
 *     a lease needs options.heartbeat = DBLOCK_HEARTBEAT_OFF (E_UNSUPPORTED), ends with its ttl,
 *     and is extended by you.
 *   - Row and advisory locks are believed until a call finds that the side file was replaced;
 *     dblock_lock_remaining_ms() is longer than any ttl.
 *   - What dblock_lock_free() leaves to the keeper is done by the next acquire, or dblock_close().
 *   - dblock_schema_install() needs the keeper_url.
 *
 * One thread at a time, for the connection and this client together. Who waits for somebody else's
 * write lock does so within the limits of the call, with a busy handler of yours as long as that
 * wants. Close the client before the connection, which stays open, and in no transaction of yours:
 * in one, the leases that it holds end with their ttl.
 *
 * Parameters
 *   database   yours; its main database is the file. In no transaction, and no statement in the
 *              middle of its rows, whenever a call has to do with the file (E_ARGUMENT)
 *   source_id  sqlite3_sourceid(), as your program sees it: two copies of SQLite in
 *              one process drop each other's file locks
 *   config     as dblock_open(); connections_max is 1
 *
 * Returns
 *   as dblock_open(), and
 *   DBLOCK_E_UNSUPPORTED  a database in memory
 *   DBLOCK_E_READ_ONLY    opened for reading
 *   DBLOCK_E_DRIVER       another copy of SQLite than the driver's
 */
DBLOCK_API dblock_status dblock_sqlite_open_on(struct sqlite3 *database, const char *source_id,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr);

/**
 * dblock_sqlite_acquire_in - lock a name in the application's open transaction
 *
 * Its COMMIT or ROLLBACK frees it, as does the closing of the connection, and nothing
 * else: there is nothing to remember, and no other moment when others could come in
 * between. (ROLLBACK TO a savepoint does not free it.) Row and advisory locks of
 * dblock_acquire() and those here exclude each other. A transaction can lock several
 * names, and one name as often as it likes.
 *
 * The transaction becomes the file's writer by it, if it is not yet; who only waits for
 * a lock is not, unless he was before. So begin with BEGIN IMMEDIATE, or with BEGIN and
 * this call; what was read before is looked at (STALE_SNAPSHOT). While others write, the
 * lock is not kept, so that a writer who waits for this name gets it. (With a busy handler
 * of yours, other than sqlite3_busy_timeout(), it is: then two transactions that lock
 * several names can stand until one gives up waiting. BEGIN IMMEDIATE is the cure.)
 *
 * The end of the transaction is seen by a virtual table dblock_joined, which belongs to
 * the connection alone, has no rows and is in no schema; none of your hooks is used.
 *
 * Parameters
 *   client     of the same file; to be closed after the transaction, as it keeps the lock
 *   database   yours, as for the guard. sqlite3_changes() is 0 afterwards
 *   source_id  as of the guard
 *   options    strategy: DBLOCK_ROW or DBLOCK_ADVISORY (E_UNSUPPORTED: lease, insert,
 *              DBLOCK_FAIR, DBLOCK_FENCED)
 *   ret_lock   NULL if it is not wanted, which is usual. Else yours to free, at any
 *              time; that frees nothing else. It has the name and an owner. What becomes
 *              of the transaction is not seen from there: dblock_lock_is_held() and
 *              _remaining_ms() are 0, no event ever comes, dblock_release() answers
 *              DBLOCK_PENDING and does nothing, confirm, extend, detach, export and guard
 *              are E_UNSUPPORTED. To ask whether the transaction has it: acquire it
 *              again, wait_ms 0
 *
 * Returns
 *   DBLOCK_OK              this transaction has it
 *   DBLOCK_BUSY            not within wait_ms; the transaction goes on as before
 *   DBLOCK_CANCELLED       the same, by the canceller
 *   DBLOCK_STALE_SNAPSHOT  somebody has written since this transaction began to read: roll
 *                          back, begin again
 *   DBLOCK_ROLLED_BACK     SQLite has ended the transaction (full disk, memory)
 *   DBLOCK_E_ARGUMENT      no transaction, or another file: as it was
 *   DBLOCK_E_UNSUPPORTED   as it was
 *   DBLOCK_E_DATABASE      is_transient: somebody else writes, for longer than the
 *                          connection's busy timeout; not locked, as it was
 *   others                 as dblock_acquire(): not locked
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_sqlite_acquire_in(dblock_client *client,
    struct sqlite3 *database, const char *source_id, const char *name,
    const struct dblock_options *options, dblock_lock **ret_lock, struct dblock_error *reterr);

/**
 * dblock_sqlite_guard - bind the application's transaction to a lock
 *
 * Until that transaction ends nobody else can be granted the name, so what it
 * writes is atomic with holding the lock, also if this process is stopped in
 * between. A transaction that has not written yet becomes the file's writer by it;
 * BEGIN IMMEDIATE makes it that from the start. Heartbeats wait for the writer, so
 * a guarded transaction must be shorter than half of the ttl. (ROLLBACK TO a savepoint
 * leaves it the writer, and so the guard in force.)
 *
 * A row or advisory lock must have been acquired with DBLOCK_FENCED, and all who write under
 * it must use that: whoever is granted the name then has written to the file before. Who
 * leaves it out is not excluded.
 *
 * Parameters
 *   lock       of any strategy, in the same file; held
 *   database   yours (sqlite3 *), and in a transaction; its main database is that
 *              file. sqlite3_changes() is that of the guard afterwards
 *   source_id  sqlite3_sourceid(), as your program sees it: two copies of SQLite in
 *              one process drop each other's file locks
 *
 * Returns, all but OK meaning: roll back
 *   DBLOCK_OK              bound
 *   DBLOCK_LOST            the grant is over; the holder has been told
 *   DBLOCK_NOT_HELD        it was released
 *   DBLOCK_STALE_SNAPSHOT  somebody has written since this transaction began to read
 *   DBLOCK_ROLLED_BACK     SQLite has ended the transaction (full disk, memory)
 *   DBLOCK_E_ARGUMENT      no transaction, or another file; a row or advisory lock that was
 *                          acquired without DBLOCK_FENCED
 *   DBLOCK_E_UNSUPPORTED   a lock that was joined to a transaction
 *   DBLOCK_E_DATABASE      is_transient: somebody else writes, for longer than the
 *                          connection's busy timeout
 *   others                 as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_sqlite_guard(dblock_lock *lock,
    struct sqlite3 *database, const char *source_id, struct dblock_error *reterr);

/**
 * dblock_sqlite_release_in - give a lock back with the application's COMMIT
 *
 * As the guard, and the release is part of the transaction: others get the name
 * at the moment when they can see what was written, neither before nor later
 * (with min_hold_ms not before its end). After a ROLLBACK it is held as before.
 * Who waits is woken when the lock is freed after the COMMIT.
 *
 * Free the lock after the end of the transaction, whichever it was: that gives
 * back what a ROLLBACK left held. Until then dblock_lock_is_held() does not know
 * of the COMMIT; dblock_confirm() and dblock_release() answer NOT_HELD after it.
 *
 * Parameters and results as of the guard; NOT_HELD also if this transaction has
 * given it back already. E_UNSUPPORTED: a row or advisory lock, which only its own connection
 * can give back: guard the transaction, and release after the COMMIT.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_sqlite_release_in(dblock_lock *lock,
    struct sqlite3 *database, const char *source_id, struct dblock_error *reterr);

/**
 * dblock_sqlite_watch - interrupt what runs on a connection once the lock is lost
 *
 * So that a long statement stops instead of writing on. From the loss until _unwatch, the
 * release or the freeing of the lock, whatever runs on that connection is ended by
 * sqlite3_interrupt() (SQLITE_INTERRUPT), again and again with pauses of up to a second: a
 * statement that was begun before the loss was noticed ends too. Nothing is interrupted as
 * long as the lock is held, nor when it is released. It comes as soon as the loss is known
 * here, at the latest when dblock_lock_remaining_ms() is 0: between two statements ask
 * dblock_lock_is_held(), and for what must not be written late at all take the guard.
 *
 * A statement that writes keeps heartbeats from the file: it must be shorter than half of
 * the ttl, or the lock is in another file.
 *
 * Parameters
 *   lock       of any strategy; held. May watch several connections
 *   database   yours (sqlite3 *), to any file. _unwatch before you close it
 *   source_id  as of the guard
 *
 * Returns
 *   DBLOCK_OK            watched
 *   DBLOCK_LOST, DBLOCK_NOT_HELD   the grant is over; nothing is watched
 *   DBLOCK_E_ARGUMENT    a lock of another kind of database, or NULL
 *   DBLOCK_E_DRIVER      another copy of SQLite than the driver's
 *   DBLOCK_E_SYSTEM, DBLOCK_E_MEMORY   no thread, no descriptor, no memory
 *   others               as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_sqlite_watch(dblock_lock *lock,
    struct sqlite3 *database, const char *source_id, struct dblock_error *reterr);

/**
 * dblock_sqlite_unwatch - undo all dblock_sqlite_watch() of a lock
 *
 * When it returns, nothing is interrupted or will be. dblock_release(), dblock_lock_free() and
 * dblock_close() do the same. Any thread, also in on_event. Takes NULL, and a lock that
 * watches nothing.
 */
DBLOCK_API void dblock_sqlite_unwatch(dblock_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
