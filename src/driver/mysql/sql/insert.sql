-- SPDX-License-Identifier: MIT
-- insert.sql - the strategy insert. The statements are those of lease.sql on a table
-- (and a floor, id 2) of their own, and every argument there holds here word by word.
--
-- That is not what the name says, and on purpose. InnoDB has no source of rising
-- numbers that outlives a deleted row: AUTO_INCREMENT is drawn before the duplicate is
-- found, so a waiter commits an older number than the grant it waited for, and a
-- server may forget it on restart. So the row of a released lock stays, free, with
-- its token, until the purge takes it and raises the floor. What differs from lease
-- is what the library does with it: timed by default, a heartbeat on request.

-- name: insert_take
-- in: name, owner, ttl, pid, is there a bell, bell, host, label, session, name, session,
--     not_after, does it go past the line, prefix, name, not_after
-- out: affected rows 1 (new name), 2 (free name) or 0; insert id: see above
-- As lease_take: one statement, no wait and no write unless the name is free.
INSERT INTO dblock_insert (name, token, owner, session, expires_at, since, pid, host, label)
SELECT ?,
       LAST_INSERT_ID(
            CAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
                1 + (SELECT g.token FROM dblock_floor g
                      WHERE g.id = IF(seen.owner IS NULL AND COALESCE(seen.expires_at, 0)
                            <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 2, 0)
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
  LEFT JOIN dblock_insert seen ON seen.name = ?
 WHERE f.id = 2
   AND (? IS NULL OR me.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
   AND seen.owner IS NULL
   AND COALESCE(seen.expires_at, 0) <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?
   AND (? OR IS_FREE_LOCK(CONCAT(?, 'i', LEFT(SHA2(?, 256), 32))))
    ON DUPLICATE KEY UPDATE
       owner = IF(dblock_insert.owner IS NULL AND dblock_insert.expires_at <= VALUES(since)
            AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?,
            VALUES(owner), dblock_insert.owner),
       token = IF(dblock_insert.owner = VALUES(owner),
            LAST_INSERT_ID(
                CAST(GREATEST(dblock_insert.token + 1, VALUES(since)) AS UNSIGNED) * 2048
                | (VALUES(since) > dblock_insert.token) << 10
                | FLOOR(16 * LOG2(VALUES(expires_at) - VALUES(since)))) >> 11,
            dblock_insert.token),
       session = IF(dblock_insert.owner = VALUES(owner), VALUES(session), dblock_insert.session),
       expires_at =
            IF(dblock_insert.owner = VALUES(owner), VALUES(expires_at), dblock_insert.expires_at),
       since = IF(dblock_insert.owner = VALUES(owner), VALUES(since), dblock_insert.since),
       pid = IF(dblock_insert.owner = VALUES(owner), VALUES(pid), dblock_insert.pid),
       host = IF(dblock_insert.owner = VALUES(owner), VALUES(host), dblock_insert.host),
       label = IF(dblock_insert.owner = VALUES(owner), VALUES(label), dblock_insert.label);

-- name: insert_look
-- in: name, my session (NULL: none)
-- out: clock, token (NULL: no row), owner, session, session's end (NULL: gone),
--      my session's end (NULL: gone), expires_at, since, pid, host, label
-- As lease_look.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock,
       l.token, l.owner, l.session, s.expires_at AS session_end, me.expires_at AS my_end,
       l.expires_at, l.since, l.pid, l.host, l.label
  FROM dblock_floor f
  LEFT JOIN dblock_insert l ON l.name = ?
  LEFT JOIN dblock_session s ON s.id = l.session
  LEFT JOIN dblock_session me ON me.id = ?
 WHERE f.id = 2;

-- name: insert_probe
-- in: name, token
-- out: one row, or none if that grant is over; error 1205 (MariaDB), 3572 (MySQL 8)
-- As lease_probe.
SELECT token FROM dblock_insert
 WHERE name = ? AND token = ?
   FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */;

-- name: insert_wait
-- in: name
-- out: a row, or none; error 1969 (MariaDB) or 3024 (MySQL): locked all the while
-- As lease_wait.
/*M! SET STATEMENT max_statement_time = 0.05, innodb_lock_wait_timeout = 1 FOR */
SELECT /*+ MAX_EXECUTION_TIME(50) */ token FROM dblock_insert WHERE name = ? FOR UPDATE;

-- name: insert_take_ended
-- in: owner, session, ttl, session, session, host, label, pid, is there a bell, bell, name,
--     seen token, session, session, not_after, does it go past the line, prefix, name
-- out: affected rows 1 or 0; insert id: as of insert_take
-- As lease_take_ended.
UPDATE dblock_insert
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
            NOT EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_insert.session))
   AND (? IS NULL OR EXISTS (SELECT 1 FROM dblock_session me WHERE me.id = ?
            AND me.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?
   AND (? OR IS_FREE_LOCK(CONCAT(?, 'i', LEFT(SHA2(?, 256), 32))));

-- name: insert_drop
-- in: has this connection the bell, bell, prefix, name, name, owner
-- out: affected rows 1 or 0; insert id: as of lease_drop; error 1205: the row is locked, by
--      a guard most likely
-- As lease_drop: an UPDATE, so that the token stays.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_insert
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            + 0 * LAST_INSERT_ID(IF(? AND RELEASE_LOCK(?), 0,
                COALESCE(IS_USED_LOCK(CONCAT(?, 'i', LEFT(SHA2(?, 256), 32))), 0)))
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_insert.session));

-- name: insert_drop_nowait
-- in: has this connection the bell, bell, prefix, name, name, owner
-- out: affected rows 2 or 0; insert id: as of lease_drop; error 3572: the row is locked
-- As lease_drop_nowait (MySQL 8).
INSERT INTO dblock_insert (name, token, expires_at, since, pid, host, label)
SELECT l.name, l.token, 0,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            + 0 * LAST_INSERT_ID(IF(? AND RELEASE_LOCK(?), 0,
                COALESCE(IS_USED_LOCK(CONCAT(?, 'i', LEFT(SHA2(?, 256), 32))), 0))),
       l.pid, l.host, l.label
  FROM dblock_insert l
 WHERE l.name = ? AND l.owner = ?
   AND IF(l.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = l.session))
   FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */
    ON DUPLICATE KEY UPDATE
       owner = NULL, session = NULL, expires_at = 0, since = VALUES(since);

-- name: insert_extend
-- in: ttl, name, owner
-- out: insert id: the clock, 0 if not in force; error 1205: the row is locked
-- As lease_extend.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_insert
   SET expires_at = LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + ?,
       session = NULL
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_insert.session));

-- name: insert_draw
-- in: name, owner
-- out: insert id: as of insert_take, without q; 0 if not in force; error 1205: the row is
--      locked
-- As lease_draw.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_insert
   SET token = LAST_INSERT_ID(
            CAST(GREATEST(token + 1,
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS UNSIGNED) * 2048
            | (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) > token) << 10) >> 11
 WHERE name = ? AND owner = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_insert.session));

-- name: insert_break
-- in: name, token
-- out: affected rows 1 or 0
-- As lease_break.
UPDATE dblock_insert
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       token = GREATEST(token + 1, since)
 WHERE name = ? AND token = ?
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_insert.session));

-- name: insert_list
-- in: after, from, below, is_idle, limit
-- out: clock, name, token, owner, session, session's end, expires_at, since, pid, host, label
-- As lease_list.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock,
       l.name, l.token, l.owner, l.session, s.expires_at AS session_end,
       l.expires_at, l.since, l.pid, l.host, l.label
  FROM dblock_insert l
  LEFT JOIN dblock_session s ON s.id = l.session
 WHERE l.name > ? AND l.name >= ? AND l.name < ?
   AND (? <> 0 OR IF(l.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            COALESCE(s.expires_at, 0) >
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
 ORDER BY l.name
 LIMIT ?;

-- name: insert_purge_candidates
-- in: limit
-- out: name, token
-- As lease_purge_candidates.
SELECT l.name, l.token
  FROM dblock_insert l
  LEFT JOIN dblock_session s ON s.id = l.session
 WHERE l.since <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000
   AND IF(l.session IS NULL,
            l.expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000,
            s.id IS NULL)
   AND l.token < 9007199254740991
 LIMIT ?;

-- name: insert_purge
-- in: name, token
-- out: affected rows 1 or 0; error 1205: the row is locked
-- As lease_purge: the floor (id 2) was raised before.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
DELETE FROM dblock_insert
 WHERE name = ? AND token = ?;
