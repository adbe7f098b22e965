-- SPDX-License-Identifier: MIT
-- lease.sql - grants that are rows. READ COMMITTED, autocommit, affected rows counted
-- as changed rows (never CLIENT_FOUND_ROWS). insert.sql has the same statements on
-- its own table. `clock`: see session.sql.
--
-- States of a name. In force: its session's row exists; or it names no session and
-- expires_at > clock. Ended: it has an owner but is not in force (the holder died).
-- Free: owner NULL and expires_at <= clock (we write 0), or no row.
--
-- Tokens. GREATEST(last + 1, clock), computed when the row is locked, committed with
-- the grant. A row that is missing may have been purged; then `last` is the floor,
-- which the purge raises, in a commit of its own, before it deletes. The take reads
-- the floor with a shared lock, which lasts until the take commits: if the take came
-- first, the purge's raise waits for it, and the DELETE after it meets the new row;
-- if the raise came first, the take sees it.
--
-- The grant in the OK packet: insert id = token << 11 | is_exact << 10 | q. The token is
-- multiplied, as a shift would lose what does not fit: error 1690 if the row's token, by
-- whatever accident, is 2 ** 53 - 1 or more. is_exact:
-- the token is the clock itself. q = FLOOR(16 * LOG2(what was left of the session)),
-- so at least 2 ** (q / 16) microseconds were left, at most 4.5 % more.

-- name: lease_take
-- in: name, owner, ttl, pid, is there a bell, bell, host, label, session, name, session,
--     not_after, does it go past the line, prefix, name, not_after
-- out: affected rows 1 (new name), 2 (free name) or 0; insert id: see above
-- Takes a free name; session NULL: a timed grant. One statement, one round trip.
-- The bell (line.sql) is locked on the way, with the row that is to be inserted, so before
-- anybody can see the grant. If somebody else was faster it is of no use, and is unlocked
-- by the caller's next statement; a statement that selects nothing has locked none. That it
-- could not be had changes nothing: who waits naps then. Whoever lets those pass who wait
-- is stopped by the gate of the first of them, in the server's memory.
-- Held, kept or ended name: the read of `seen` (a consistent read without a lock,
-- as INSERT ... SELECT does at READ COMMITTED) selects nothing, so no row is locked
-- or written, and nothing is waited for, whatever guards stand on it. The locking
-- read of the floor may be made all the same (MariaDB reads rows that a key fixes
-- while it optimises): then its key is 0, which is not there.
-- Two at once for a free name: the second waits for the first one's commit or
-- rollback (innodb_lock_wait_timeout is one second), and ON DUPLICATE KEY judges the
-- row's newest version: not free any more, nothing changes, 0 rows. A row whose owner
-- is NULL carries no guard, so this never waits for an application's transaction.
-- The condition is evaluated once, in the first assignment; the others follow from
-- the owner, which is unique to this statement. Assignments run left to right.
-- not_after is judged when the statement begins, and again after the wait.
-- My session is read without a lock, so its heartbeat never waits for a take. If it
-- is ended meanwhile, the grant names a session that is gone: ended from the start.
-- Client dies: the grant is committed or not; it ends with the session or at its
-- time. Lost answer: the owner id is sent once, so a look tells. Server dies: rolled
-- back, or committed with its token.
-- Galera: certified like any write; error 1213 if another node was faster.
INSERT INTO dblock_lease (name, token, owner, session, expires_at, since, pid, host, label)
SELECT ?,
       LAST_INSERT_ID(
            CAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
                1 + (SELECT g.token FROM dblock_floor g
                      WHERE g.id = IF(seen.owner IS NULL AND COALESCE(seen.expires_at, 0)
                            <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1, 0)
                       LOCK IN SHARE MODE)) AS UNSIGNED) * 2048
            | (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) > f.token) << 10
            | FLOOR(16 * LOG2(COALESCE(me.expires_at
                - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)))) >> 11,
       ?, me.id,
       COALESCE(me.expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       ? + 0 * IF(?, GET_LOCK(?, 0) IS NULL, 0), ?, ?
  FROM dblock_floor f
  LEFT JOIN dblock_session me ON me.id = ?
  LEFT JOIN dblock_lease seen ON seen.name = ?
 WHERE f.id = 1
   AND (? IS NULL OR me.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
   AND seen.owner IS NULL
   AND COALESCE(seen.expires_at, 0) <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?
   AND (? OR IS_FREE_LOCK(CONCAT(?, 'l', LEFT(SHA2(?, 256), 32))))
    ON DUPLICATE KEY UPDATE
       owner = IF(dblock_lease.owner IS NULL AND dblock_lease.expires_at <= VALUES(since)
            AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?,
            VALUES(owner), dblock_lease.owner),
       token = IF(dblock_lease.owner = VALUES(owner),
            LAST_INSERT_ID(
                CAST(GREATEST(dblock_lease.token + 1, VALUES(since)) AS UNSIGNED) * 2048
                | (VALUES(since) > dblock_lease.token) << 10
                | FLOOR(16 * LOG2(VALUES(expires_at) - VALUES(since)))) >> 11,
            dblock_lease.token),
       session = IF(dblock_lease.owner = VALUES(owner), VALUES(session), dblock_lease.session),
       expires_at =
            IF(dblock_lease.owner = VALUES(owner), VALUES(expires_at), dblock_lease.expires_at),
       since = IF(dblock_lease.owner = VALUES(owner), VALUES(since), dblock_lease.since),
       pid = IF(dblock_lease.owner = VALUES(owner), VALUES(pid), dblock_lease.pid),
       host = IF(dblock_lease.owner = VALUES(owner), VALUES(host), dblock_lease.host),
       label = IF(dblock_lease.owner = VALUES(owner), VALUES(label), dblock_lease.label);

-- name: lease_look
-- in: name, my session (NULL: none)
-- out: clock, token (NULL: no row), owner, session, session's end (NULL: gone),
--      my session's end (NULL: gone), expires_at, since, pid, host, label
-- One row always, of one snapshot, without locks: newer than every commit that was
-- acknowledged before (Galera: wsrep_sync_wait is set on the connection).
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock,
       l.token, l.owner, l.session, s.expires_at AS session_end, me.expires_at AS my_end,
       l.expires_at, l.since, l.pid, l.host, l.label
  FROM dblock_floor f
  LEFT JOIN dblock_lease l ON l.name = ?
  LEFT JOIN dblock_session s ON s.id = l.session
  LEFT JOIN dblock_session me ON me.id = ?
 WHERE f.id = 1;

-- name: lease_probe
-- in: name, token
-- out: one row, or none if that grant is over; error 1205 (MariaDB), 3572 (MySQL 8)
-- Asks whether a guard, or anybody else, has the row locked, before a statement that
-- could block on it. In autocommit: its own lock is gone with the answer. MySQL 5.7
-- has no NOWAIT and waits for innodb_lock_wait_timeout, a second.
SELECT token FROM dblock_lease
 WHERE name = ? AND token = ?
   FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */;

-- name: lease_wait
-- in: name
-- out: a row, or none; error 1969 (MariaDB) or 3024 (MySQL): locked all the while
-- After a drop, an extension or a break found the row locked: by a guard, or by a take
-- that saw the name free just before this grant was committed, queued for the row, and is
-- about to find it taken. That is a matter of microseconds; a guard lasts. Waits 50 ms.
-- In autocommit: its own lock is gone with the answer.
/*M! SET STATEMENT max_statement_time = 0.05, innodb_lock_wait_timeout = 1 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ token FROM dblock_lease WHERE name = ? FOR UPDATE;

-- name: lease_take_ended
-- in: owner, session, ttl, session, session, host, label, pid, is there a bell, bell, name,
--     seen token, session, session, not_after, does it go past the line, prefix, name
-- out: affected rows 1 or 0; insert id: as of lease_take
-- Takes a name whose holder has ended, as a look has seen it: its session expired,
-- and session_end_expired has deleted it since, or its own time is over. The token
-- names the grant that was seen: it is never drawn twice. A session that is gone
-- never comes back, so it does not matter that the subqueries (consistent reads, as in
-- every UPDATE at READ COMMITTED) may be read before the wait for the row.
-- The guard that stands on an ended row was met by lease_probe; one that is faster
-- than this finds no session any more, or makes this wait a second and fail (1205).
-- The row may have been purged: 0 rows, and it is never inserted here.
-- Bell and gate as in lease_take; the bell is locked only if the row is changed.
UPDATE dblock_lease
   SET owner = ?,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       expires_at = IF(? IS NULL, since + ?,
            (SELECT me.expires_at FROM dblock_session me WHERE me.id = ?)),
       token = LAST_INSERT_ID(
            CAST(GREATEST(token + 1, since) AS UNSIGNED) * 2048
            | (since > token) << 10
            | FLOOR(16 * LOG2(expires_at - since))) >> 11,
       session = ?, host = ?, label = ?,
       pid = ? + 0 * IF(?, GET_LOCK(?, 0) IS NULL, 0)
 WHERE name = ? AND token = ?
   AND IF(session IS NULL,
            expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            NOT EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session))
   AND (? IS NULL OR EXISTS (SELECT 1 FROM dblock_session me WHERE me.id = ?
            AND me.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?
   AND (? OR IS_FREE_LOCK(CONCAT(?, 'l', LEFT(SHA2(?, 256), 32))));

-- name: lease_drop
-- in: has this connection the bell, bell, prefix, name, name, owner
-- out: affected rows 1 or 0; insert id: 0, or the connection of the first in line, who is
--      still to be woken; error 1205: the row is locked
-- Wakes whoever is first in line by unlocking the bell, while the row is locked: he looks
-- when this is committed, or waits for that (line.sql). If another connection has the
-- bell, or none, the caller wakes him afterwards.
-- Gives back what (name, owner) holds, if in force; what is to stay taken for a minimum
-- time is extended instead. One round trip. Only a guard, a break or a take that came too
-- late has the row of a grant in force locked, so MariaDB does not wait at all, and
-- lease_wait tells which; see lease_drop_nowait for MySQL 8.
-- Lost answer: asked again it changes nothing, and answers 0.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_lease
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            + 0 * LAST_INSERT_ID(IF(? AND RELEASE_LOCK(?), 0,
                COALESCE(IS_USED_LOCK(CONCAT(?, 'l', LEFT(SHA2(?, 256), 32))), 0)))
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));

-- name: lease_drop_nowait
-- in: has this connection the bell, bell, prefix, name, name, owner
-- out: affected rows 2 or 0; insert id: as of lease_drop; error 3572: the row is locked
-- The same for MySQL 8, which has no UPDATE that does not wait. The SELECT locks the
-- row or fails at once, and the insert is always a duplicate of the row that it has
-- just locked.
INSERT INTO dblock_lease (name, token, expires_at, since, pid, host, label)
SELECT l.name, l.token, 0,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            + 0 * LAST_INSERT_ID(IF(? AND RELEASE_LOCK(?), 0,
                COALESCE(IS_USED_LOCK(CONCAT(?, 'l', LEFT(SHA2(?, 256), 32))), 0))),
       l.pid, l.host, l.label
  FROM dblock_lease l
 WHERE l.name = ? AND l.owner = ?
   AND IF(l.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = l.session))
   FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */
    ON DUPLICATE KEY UPDATE
       owner = NULL, session = NULL, expires_at = 0, since = VALUES(since);

-- name: lease_extend
-- in: ttl, name, owner
-- out: insert id: the clock, 0 if not in force; error 1205: the row is locked
-- The grant becomes a timed one. Also a release that keeps the name for a minimum time:
-- its owner stays in the row, so that a look tells who had it, and a second drop ends it.
-- Judged by the insert id: the row may already have exactly these values. MySQL asks
-- lease_wait first, as this would wait a second for a guard. Lost answer: the caller
-- knows only the old end, which may have moved either way; asking again moves it again.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_lease
   SET expires_at = LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + ?,
       session = NULL
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));

-- name: lease_draw
-- in: name, owner
-- out: insert id: as of lease_take, without q; 0 if not in force; error 1205: the row is
--      locked
-- A new token for a grant in force, for a lease that one thread of a client hands to
-- another. Under the row's lock, as a take's: whoever takes the name next meets this
-- lock and finds the larger token. MySQL asks lease_wait first, as for lease_extend. Lost
-- answer: asked again it draws the next one, and one is skipped.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_lease
   SET token = LAST_INSERT_ID(
            CAST(GREATEST(token + 1,
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS UNSIGNED) * 2048
            | (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) > token) << 10) >> 11
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));

-- name: lease_break
-- in: name, token
-- out: affected rows 1 or 0
-- Second step of a break, in a transaction: lease_probe has locked the row or failed,
-- this ends the grant and raises the token, session_changed tells the holder.
-- The order (grant, then session) is kept by all; nobody holds a session's row and
-- then asks for a grant's, so no deadlock.
UPDATE dblock_lease
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       token = GREATEST(token + 1, since)
 WHERE name = ? AND token = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));

-- name: lease_list
-- in: after, from, below, is_idle, limit
-- out: clock, name, token, owner, session, session's end, expires_at, since, pid, host, label
-- A page, without locks, in the byte order of names.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock,
       l.name, l.token, l.owner, l.session, s.expires_at AS session_end,
       l.expires_at, l.since, l.pid, l.host, l.label
  FROM dblock_lease l
  LEFT JOIN dblock_session s ON s.id = l.session
 WHERE l.name > ? AND l.name >= ? AND l.name < ?
   AND (? <> 0 OR IF(l.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            COALESCE(s.expires_at, 0) >
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
 ORDER BY l.name
 LIMIT ?;

-- name: lease_purge_candidates
-- in: limit
-- out: name, token
-- Rows that are not in force and were last changed an hour ago. A read without locks,
-- through the whole table; lease_purge judges again. A token that was damaged stays where it
-- is: in the floor it would be every name's.
SELECT l.name, l.token
  FROM dblock_lease l
  LEFT JOIN dblock_session s ON s.id = l.session
 WHERE l.since <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000
   AND IF(l.session IS NULL,
            l.expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000,
            s.id IS NULL)
   AND l.token < 9007199254740991
 LIMIT ?;

-- name: lease_purge
-- in: name, token
-- out: affected rows 1 or 0; error 1205: the row is locked
-- After the floor was raised to that token or above, in a commit of its own. Only the
-- very grant that was seen as ended or free: a take since then has a larger token. A
-- take that waits for this finds no row, inserts, and has read the floor that was
-- raised before (see the head of this file).
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
DELETE FROM dblock_lease
 WHERE name = ? AND token = ?;
