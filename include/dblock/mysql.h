/* SPDX-License-Identifier: MIT */
/* mysql.h - MySQL 5.7 and later, MariaDB 10.5 and later. Link with libdblock-mysql. What takes
 * a MYSQL * is declared after <mysql.h> only: include that one first. */
#ifndef DBLOCK_MYSQL_H
#define DBLOCK_MYSQL_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: mysql://user:password@host:port/database
 * (also mariadb://), with ?socket=PATH, ssl-mode=DISABLED|PREFERRED|REQUIRED|
 * VERIFY_CA|VERIFY_IDENTITY, ssl-ca=, ssl-cert=, ssl-key=, option-file=PATH and
 * option-group=NAME. What a URL leaves open comes from the [client] group of the
 * usual option files. A server that asks for the password as it is (PAM) gets it if it is
 * proved (VERIFY_CA) or called localhost; the plugin that asks at the terminal is refused.
 * A host name is looked up before, and must be found in half of the time for connecting, as the
 * client library then asks again and cannot be stopped; nor can it for a host of an option file.
 *
 * Who waits for a lease or insert is woken by named locks of the server, GET_LOCK(), over
 * a connection of its own, in order of arrival. Through a proxy that lends out connections
 * of its own he looks from time to time instead, and on Galera if the holder's
 * connection leads to another node. With Oracle's client library a wait that is cancelled while
 * the server is silent may take a second to end. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_mysql_driver(void);

/**
 * dblock_mysql_open_on - a client over a connection of the application
 *
 * For programs that have one connection and no thread beside it. It is used inside of calls of
 * this client only, and left as it was: session variables, transaction, prepared statements, named
 * locks, default database, LAST_INSERT_ID(), a clock that was set (SET timestamp). (Not
 * mysql_insert_id() and mysql_affected_rows(), which are of the last statement. A SET TRANSACTION
 * without SESSION is used up.) That costs about three round trips more for each call: a client by
 * dblock_open(), beside it, is faster, can do more, and is of use to many threads.
 *
 * What is different:
 *   - Never a part of a transaction of yours: in one, everything that needs the connection is
 *     E_ARGUMENT, an acquire, a release (the lock stays held) and an extend alike. There are
 *     _acquire_in, _guard and _release_in for that, with locks of this client as well. With
 *     autocommit off that holds from the first statement after COMMIT on.
 *   - No heartbeat, unless config->keeper_url says how to reach the database besides: a lease needs
 *     options.heartbeat = DBLOCK_HEARTBEAT_OFF (E_UNSUPPORTED), ends with its ttl, and is extended
 *     by you.
 *   - A row lock is an open transaction: E_UNSUPPORTED without keeper_url; with it, it is taken on a
 *     connection of dblock's own. The same goes for the row of a new name and for tokens, which
 *     dblock_mysql_acquire_in() wants, and for dblock_mysql_watch().
 *   - An advisory lock is the session's: held until it is released or the connection ends, which
 *     the next call finds; dblock_lock_remaining_ms() is longer than any ttl. One that the session
 *     has by other means is BUSY.
 *   - Who waits looks from time to time; DBLOCK_FAIR needs keeper_url, and is not for advisory.
 *   - What dblock_lock_free() leaves to the keeper is done by the next acquire, or dblock_close().
 *   - dblock_schema_install() needs keeper_url.
 *   - A temporary table of the session that has the name of one of dblock's hides it: E_ARGUMENT.
 *     Make none later, as that is not looked for again. Where the session's changes are not
 *     replicated (sql_log_bin, wsrep_on), its locks exclude nobody on another server.
 *
 * One thread at a time, for the connection and this client together. Close the client before the
 * connection, which stays open, and in no transaction of yours: in one, what it holds ends with its
 * ttl or with the session.
 *
 * Parameters
 *   mysql        yours (MYSQL *), connected without CLIENT_FOUND_ROWS; in no transaction, and nothing
 *                unread, whenever a call has to do with the database: else E_ARGUMENT. If no answer
 *                comes within io_timeout_ms it is of no use any more: E_CONNECTION, E_UNCERTAIN (with
 *                Oracle's client library its MYSQL_OPT_READ_TIMEOUT counts)
 *   client_text  mysql_get_client_info(), as your program sees it: two client
 *                libraries in one process would crash it. The function without
 *                "_", which is there after <mysql.h>, fills it in
 *   config       as dblock_open(); connections_max is 1. `schema`: the database of the tables; NULL
 *                the default database at the first call
 *
 * Returns as dblock_open(), and
 *   DBLOCK_E_UNSUPPORTED  CLIENT_FOUND_ROWS
 *   DBLOCK_E_DRIVER       another client library than the driver's
 */
DBLOCK_API dblock_status dblock_mysql_open_on_(void *mysql, const char *client_text,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr);

/**
 * dblock_mysql_acquire_in - lock a name in the application's open transaction
 *
 * Its COMMIT or ROLLBACK frees it, as does the end of the connection, and nothing else:
 * there is nothing to remember, and no other moment when others could come in between.
 * (ROLLBACK TO an older savepoint may free it or not: lock it again then.) Row locks of dblock_acquire() and
 * those here exclude each other. One round trip if it is free and the client has seen
 * the name before. A transaction can lock several names, and one name as often as it
 * likes.
 *
 * Lock before you read: at REPEATABLE READ, InnoDB's default, a transaction that has
 * read before goes on reading what was before the lock, and nothing tells. One that
 * locks first reads what the last holder has written, at any isolation.
 *
 * Parameters
 *   client       of the same server; its own connections are used only to make the row of
 *                a new name, for DBLOCK_FENCED, and to fill options->busy
 *   mysql        yours, as for the guard. Another user needs SELECT and UPDATE on
 *                dblock_row
 *   client_text  as of the guard
 *   options      strategy: DBLOCK_ROW (E_UNSUPPORTED: DBLOCK_ADVISORY, as GET_LOCK() does
 *                not end with a transaction; lease, insert; DBLOCK_FAIR; MySQL 5.7). wait_ms
 *                is heeded whatever innodb_lock_wait_timeout says
 *   ret_lock     NULL if it is not wanted, which is usual. Else yours to free, at any
 *                time; that frees nothing else. It has the name, the owner and with
 *                DBLOCK_FENCED the token. What becomes of the transaction is not seen
 *                from there: dblock_lock_is_held() and _remaining_ms() are 0, no event
 *                ever comes, dblock_release() answers DBLOCK_PENDING and sends nothing,
 *                confirm, extend, detach, export and guard are E_UNSUPPORTED.
 *                To ask whether the transaction has it: acquire it again, wait_ms 0
 *
 * Returns
 *   DBLOCK_OK              this transaction has it
 *   DBLOCK_BUSY            not within wait_ms; the transaction goes on as before
 *   DBLOCK_CANCELLED       the same, by the canceller or a KILL QUERY of yours
 *   DBLOCK_STALE_SNAPSHOT  MariaDB with innodb_snapshot_isolation: roll back, begin again
 *   DBLOCK_ROLLED_BACK     a deadlock, or innodb_rollback_on_timeout: the server has rolled
 *                          the transaction back, all of it. Begin again
 *   DBLOCK_E_ARGUMENT      no transaction, or the connection is not free: as it was
 *   DBLOCK_E_UNSUPPORTED   as it was
 *   DBLOCK_E_DRIVER        another client library than the driver's: as it was
 *   DBLOCK_E_CONNECTION    the connection is broken: close it
 *   others                 roll back
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_acquire_in_(dblock_client *client,
    void *mysql, const char *client_text, const char *name, const struct dblock_options *options,
    dblock_lock **ret_lock, struct dblock_error *reterr);

/**
 * dblock_mysql_guard - bind the application's transaction to a lock
 *
 * Until that transaction ends nobody else can be granted the name, so what it
 * writes is atomic with holding the lock, also if this process is stopped in
 * between. Heartbeats go on meanwhile; a try of others is BUSY, a
 * release or break PENDING. (ROLLBACK TO a savepoint that is older than the guard may undo it, and
 * the COMMIT does not tell: guard before the savepoint, or again after that.) One round
 * trip. In plain SQL: see schemas/mysql.
 *
 * On Galera and Group Replication it is a change, and two round trips, and holds only if COMMIT
 * succeeds. A try, release or break on another node does not wait for this transaction: if it
 * comes first, this one is rolled back as a whole, which its next statement or its COMMIT says
 * (1213). Then nothing of it was done: if the lock is still held, begin again. Guarded
 * transactions of one lock run one after the other there.
 *
 * A row or advisory lock must have been acquired with DBLOCK_FENCED, and all who write under
 * it must use that: it is among them that nobody is granted the name before the transaction
 * ends, also if the holder's connection does. Who leaves it out is not excluded. A release is
 * OK and the lock itself free; who acquires it with DBLOCK_FENCED gets it after the transaction.
 *
 * Take the lock before you begin: at REPEATABLE READ, InnoDB's default, a
 * transaction that has read before the grant goes on reading what was before it,
 * and is told STALE_SNAPSHOT. (At READ COMMITTED read anew what you read before.)
 *
 * Parameters
 *   lock         of any strategy, of a client of the same server; held
 *   mysql        yours (MYSQL *), and in a transaction; nothing unread. It may be
 *                of another user (SELECT and UPDATE on dblock_lease, dblock_insert and
 *                dblock_token, SELECT on dblock_session). It waits for the server as
 *                long as its MYSQL_OPT_READ_TIMEOUT lets it
 *   client_text  mysql_get_client_info(), as your program sees it: two client
 *                libraries in one process would crash it. The function without
 *                "_", which is there after <mysql.h>, fills it in
 *
 * Returns, all but OK meaning: roll back
 *   DBLOCK_OK              bound
 *   DBLOCK_LOST            the grant is over; the holder has been told
 *   DBLOCK_NOT_HELD        it was released
 *   DBLOCK_STALE_SNAPSHOT  what this transaction reads is older than the grant
 *   DBLOCK_ROLLED_BACK     the server has rolled the transaction back (deadlock)
 *   DBLOCK_E_ARGUMENT      no transaction, or an answer is unread; a row or advisory lock
 *                          that was acquired without DBLOCK_FENCED
 *   DBLOCK_E_UNSUPPORTED   a lock that was joined to a transaction
 *   DBLOCK_E_DRIVER        another client library than the driver's
 *   others                 as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_guard_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr);

/**
 * dblock_mysql_release_in - give a lock back with the application's COMMIT
 *
 * As the guard, and the release is part of the transaction: others get the name
 * at the moment when they can see what was written, neither before nor later
 * (with min_hold_ms not before its end). After a ROLLBACK it is held as before.
 * Who waits is woken when the lock is freed after the COMMIT. Two round trips.
 *
 * Free the lock after the end of the transaction, whichever it was: that gives
 * back what a ROLLBACK left held. Until then dblock_lock_is_held() does not know
 * of the COMMIT; dblock_confirm() and dblock_release() answer NOT_HELD after it.
 *
 * Parameters and results as of the guard; NOT_HELD also if this transaction has
 * given it back already. E_UNSUPPORTED: a row or advisory lock, which only its own connection
 * can give back: guard the transaction, and release after the COMMIT.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_release_in_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr);

/**
 * dblock_mysql_watch - cancel what runs on a connection once the lock is lost
 *
 * So that a long statement stops instead of writing on. From the loss until _unwatch, the
 * release or the freeing of the lock, whatever runs on that connection is ended by KILL QUERY
 * (error 1317), again and again with pauses of up to a second: a statement that was begun
 * before the loss was noticed ends too. Nothing is cancelled as long as the lock is held,
 * nor when it is released. It comes as soon as the loss is known here, at the latest when
 * dblock_lock_remaining_ms() is 0: between two statements ask dblock_lock_is_held(), and for
 * what must not be written late at all take the guard.
 *
 * The KILL goes over a connection of its own, made when it is needed, by a thread that the
 * watch has to itself: a server that does not answer keeps neither heartbeats nor other locks
 * waiting. It is sent only while a statement is seen to run; if that ends in the same moment,
 * the server may keep the KILL for the next one. So send "DO 0" first, and heed not what it
 * says, on a connection that shall be used after a loss.
 *
 * Parameters
 *   lock         of any strategy; held. May watch several connections
 *   mysql        yours (MYSQL *), connected to the server of the lock, nothing unread, used by
 *                no other thread during this call. It may be used by any thread afterwards, and
 *                closed after _unwatch. Same user as in the client's URL, or that one has the
 *                right to end it. One round trip on it, and a few on one of the client's
 *   client_text  as of the guard
 *
 * Returns
 *   DBLOCK_OK             watched
 *   DBLOCK_LOST, DBLOCK_NOT_HELD   the grant is over; nothing is watched
 *   DBLOCK_E_ARGUMENT     another server than the lock's, an answer unread, or NULL
 *   DBLOCK_E_UNSUPPORTED  it leads to a proxy that lends out connections of its own
 *   DBLOCK_E_PERMISSION   a user whom the client's may not end
 *   DBLOCK_E_DRIVER       another client library than the driver's
 *   DBLOCK_E_SYSTEM, DBLOCK_E_MEMORY   no thread, no descriptor, no memory
 *   others                as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_watch_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr);

/**
 * dblock_mysql_unwatch - undo all dblock_mysql_watch() of a lock
 *
 * When it returns, no KILL is under way or will come; one that is under way is waited for,
 * for io_timeout_ms at most. dblock_release(), dblock_lock_free() and dblock_close() do the
 * same. Any thread, also in on_event. Takes NULL, and a lock that watches nothing.
 */
DBLOCK_API void dblock_mysql_unwatch(dblock_lock *lock);

#if defined(_mysql_h) || defined(_mysql_h_) /* Oracle's and MariaDB's <mysql.h> */
static inline dblock_status dblock_mysql_open_on(MYSQL *mysql, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr)
{
    return dblock_mysql_open_on_(mysql, mysql_get_client_info(), config, ret_client, reterr);
}
static inline dblock_status dblock_mysql_acquire_in(dblock_client *client, MYSQL *mysql,
    const char *name, const struct dblock_options *options, dblock_lock **ret_lock,
    struct dblock_error *reterr)
{
    return dblock_mysql_acquire_in_(
        client, mysql, mysql_get_client_info(), name, options, ret_lock, reterr);
}
static inline dblock_status dblock_mysql_guard(
    dblock_lock *lock, MYSQL *mysql, struct dblock_error *reterr)
{
    return dblock_mysql_guard_(lock, mysql, mysql_get_client_info(), reterr);
}
static inline dblock_status dblock_mysql_release_in(
    dblock_lock *lock, MYSQL *mysql, struct dblock_error *reterr)
{
    return dblock_mysql_release_in_(lock, mysql, mysql_get_client_info(), reterr);
}
static inline dblock_status dblock_mysql_watch(
    dblock_lock *lock, MYSQL *mysql, struct dblock_error *reterr)
{
    return dblock_mysql_watch_(lock, mysql, mysql_get_client_info(), reterr);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
