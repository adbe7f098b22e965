-- SPDX-License-Identifier: MIT
-- session.sql - the rows that heartbeats renew. READ COMMITTED, autocommit.
--
-- `clock` in the comments of these files is
-- TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)): the server's clock in
-- microseconds, frozen when the statement begins. A statement that waited therefore
-- judges "not yet expired" where a fresh clock would say "expired": nothing is ever
-- taken early, and an expiry that it writes is early, never late. Where lateness is
-- the question (not_after), SYSDATE(6) is used, which moves; it is in the session's
-- time zone, which our connections set to +00:00.
--
-- Answers that fit come back in the OK packet, as LAST_INSERT_ID(expression): one
-- round trip, and no result set. (Client side: mysql_session.c, mysql_hold.c.)

-- name: session_begin
-- in: id, ttl, ttl, host, pid, label
-- out: insert id: the clock
-- Alone with its key: an id is drawn at random and inserted once. Lost answer: never
-- repeated; the library draws a new id, and the row dies unused.
INSERT INTO dblock_session (id, created, expires_at, ttl_us, host, pid, label)
VALUES (?,
    LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?, ?, ?, ?, ?);

-- name: session_renew
-- in: ttl, ttl, id
-- out: affected rows 1 or 0; insert id: clock << 11 | changed & 2047
-- Locks the session's row alone; no take and no guard ever locks that (takes read it
-- without a lock), so it waits at most for one ender's DELETE or one break's counter.
-- After such a wait the row is gone, or WHERE is judged on its newest version.
-- An expired session is never revived. Lost answer: the row may live one ttl longer;
-- the client counts from the last heartbeat that was answered.
UPDATE dblock_session
   SET beat = beat + 1,
       expires_at = (LAST_INSERT_ID(
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) << 11 | changed & 2047)
            >> 11) + ?,
       ttl_us = ?
 WHERE id = ? AND expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: session_end
-- in: id
-- out: affected rows 1 or 0
-- All that the session holds is free with this one row. A lost answer is harmless:
-- it is gone now, or it expires.
DELETE FROM dblock_session WHERE id = ?;

-- name: session_end_expired
-- in: id
-- out: affected rows 1 or 0
-- By whoever wants one of its names. Atomic against the heartbeat: one of the two
-- gets the row first; the heartbeat then finds no row, or this finds it renewed.
-- An autocommit statement of its own: together with a take in one transaction two
-- enders can deadlock.
DELETE FROM dblock_session
 WHERE id = ? AND expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: session_holds
-- in: id, id
-- out: strategy, name, owner, token, since, expires_at, pid, host, label, clock
-- A read of both tables without locks. It goes through all rows (there is no index
-- on session, which every grant would pay for); it is asked rarely: after a
-- reconnect, and when `changed` has moved. Galera: wsrep_sync_wait is set on the
-- connection, so every commit that was acknowledged on another node is seen.
SELECT 1 AS strategy, name, owner, token, since, expires_at, pid, host, label,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
  FROM dblock_lease WHERE session = ?
UNION ALL
SELECT 2, name, owner, token, since, expires_at, pid, host, label,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM dblock_insert WHERE session = ?;
