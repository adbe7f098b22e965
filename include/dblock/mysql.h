/* SPDX-License-Identifier: MIT */
/* mysql.h - MySQL 5.7 and later, MariaDB 10.5 and later. Link with
 * libdblock-mysql. */
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
 * usual option files.
 *
 * Who waits for a lease or insert is woken by named locks of the server, GET_LOCK(), over
 * a connection of its own, in order of arrival. Through a proxy that lends out connections
 * of its own he looks from time to time instead, and on Galera if the holder's
 * connection leads to another node. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_mysql_driver(void);

/**
 * dblock_mysql_guard - bind the application's transaction to a lock
 *
 * Until that transaction ends nobody else can be granted the name, so what it
 * writes is atomic with holding the lock, also if this process is stopped in
 * between. Heartbeats go on meanwhile; a try of others is BUSY (is_pinned), a
 * release or break PENDING. One round trip; on Galera and Group Replication two,
 * and there the guard holds only if COMMIT succeeds. In plain SQL: see
 * schemas/mysql.
 *
 * Take the lock before you begin: at REPEATABLE READ, InnoDB's default, a
 * transaction that has read before the grant goes on reading what was before it,
 * and is told STALE_SNAPSHOT. (At READ COMMITTED read anew what you read before.)
 *
 * Parameters
 *   lock         a lease or insert, of a client of the same server; held
 *   mysql        yours (MYSQL *), and in a transaction; nothing unread. It may be
 *                of another user (SELECT and UPDATE on dblock_lease and
 *                dblock_insert, SELECT on dblock_session). It waits for the server
 *                as long as its MYSQL_OPT_READ_TIMEOUT lets it
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
 *   DBLOCK_E_ARGUMENT      no transaction, or an answer is unread
 *   DBLOCK_E_UNSUPPORTED   a row or advisory lock
 *   DBLOCK_E_DRIVER        another client library than the driver's
 *   others                 as dblock_confirm()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_guard_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr);

/**
 * dblock_mysql_release_in - give a lock back with the application's COMMIT
 *
 * As the guard, and the release is part of the transaction: others get the name
 * at the moment when they can see what was written, neither before nor later.
 * After a ROLLBACK it is held as before. Who waits is woken when the lock is
 * freed after the COMMIT. Two round trips.
 *
 * Free the lock after the end of the transaction, whichever it was: that gives
 * back what a ROLLBACK left held. Until then dblock_lock_is_held() does not know
 * of the COMMIT; dblock_confirm() and dblock_release() answer NOT_HELD after it.
 *
 * Parameters and results as of the guard; NOT_HELD also if this transaction has
 * given it back already.
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_mysql_release_in_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr);

#if defined(_mysql_h) || defined(_mysql_h_) /* Oracle's and MariaDB's <mysql.h> */
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
#endif

#ifdef __cplusplus
}
#endif

#endif
