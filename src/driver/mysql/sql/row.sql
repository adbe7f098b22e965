-- SPDX-License-Identifier: MIT
-- row.sql - row locks: SELECT ... FOR UPDATE in a transaction that stays open. On
-- connections of the role ROW (autocommit off, READ COMMITTED); draw on others, in autocommit,
-- and seed on either.

-- name: row_take
-- in: name
-- out: one row: locked. None: not seeded. Error 1205 (MariaDB), 3572 (MySQL 8): busy
-- With autocommit off this is BEGIN and the lock in one message; COMMIT ends it: two
-- round trips a pair. NOWAIT and not SKIP LOCKED, so that "no row" and "locked" are
-- different answers. At READ COMMITTED a missing row locks nothing (no gap), and a
-- locking read opens no snapshot. A transaction whose try failed is rolled back.
-- MySQL 5.7 has no NOWAIT and waits for innodb_lock_wait_timeout, a second.
-- Lost answer: the connection is closed, and with it goes the lock.
SELECT 1 FROM dblock_row WHERE name = ? FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */;

-- name: row_wait
-- in: seconds, milliseconds, name; sent as text, with literals for the marks
-- out: as row_take; error 1969 (MariaDB) or 3024 (MySQL): not within the time
-- The server's queue. innodb_lock_wait_timeout counts whole seconds and is set above
-- the longest wait; the limit of the statement counts milliseconds: a hint that MySQL
-- knows, or SET STATEMENT, which MariaDB knows. MySQL 5.7 keeps its second, after
-- which the driver asks again. KILL QUERY ends it at once (1317).
/*M! SET STATEMENT innodb_lock_wait_timeout = 100000, max_statement_time = ? FOR */
SELECT /*+ MAX_EXECUTION_TIME(?) */ 1 FROM dblock_row WHERE name = ? FOR UPDATE;

-- name: row_seed
-- in: name, name
-- out: nothing
-- Waits for nobody who holds it: a row that is there is seen without a lock, and
-- nothing is inserted. Two seeders at once: the second waits for the first one's
-- commit, for a second at most. If a holder has locked the new row by then, the duplicate
-- check meets that lock (1205): the row is there, which is all that was asked. On MySQL 8 the
-- driver sets that second before, and the limit back afterwards. Without autocommit a COMMIT
-- follows. Lost answer: repeating it is harmless.
/*M! SET STATEMENT innodb_lock_wait_timeout = 1 FOR */
INSERT IGNORE INTO dblock_row (name, created)
SELECT ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM dblock_floor f
 WHERE f.id = 3 AND NOT EXISTS (SELECT 1 FROM dblock_row r WHERE r.name = ?);

-- name: token_draw
-- in: strategy, name, strategy
-- out: insert id: the token
-- In autocommit, so the token is durable before anybody sees it. It follows the last
-- one of the name, or the floor if the purge took that (read with a shared lock, see
-- lease.sql). Row: on another connection than the lock's, and the library then has the
-- lock proved: a dead holder may draw, but not show it. Lost answer: a token is skipped.
-- A guarded transaction has the row locked (token_guard), which is not waited for: the draw
-- of MariaDB waits for nothing (1205), and token_probe tells for which row; elsewhere that
-- is asked first, and a guard that comes in between costs a second. A statement of ours that
-- has the row at this moment looks the same: the library asks again before it believes it.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
INSERT INTO dblock_token (strategy, name, token, since)
SELECT ?, ?,
       LAST_INSERT_ID(GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            f.token + 1)),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM dblock_floor f
 WHERE f.id = ?
  LOCK IN SHARE MODE
    ON DUPLICATE KEY UPDATE
       token = LAST_INSERT_ID(GREATEST(dblock_token.token + 1, VALUES(since))),
       since = VALUES(since);

-- name: token_probe
-- in: strategy, name
-- out: at most one row; error 1205 or 3572: somebody stands on it
-- In autocommit: its own lock is gone with the answer, and a draw or a guard that meets it in
-- that moment asks again. Alone it decides nothing. MySQL 5.7 waits for a second.
SELECT token FROM dblock_token WHERE strategy = ? AND name = ?
   FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */;

-- name: row_list
-- in: after, from, below, limit
-- out: name, created, clock
-- The server tells only a DBA which rows are locked. So a page of names is read, and
-- row_list_probe asks for each.
SELECT r.name, r.created,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
  FROM dblock_row r
 WHERE r.name > ? AND r.name >= ? AND r.name < ?
 ORDER BY r.name
 LIMIT ?;

-- name: row_list_probe
-- in: name
-- out: one row: nobody holds it; error 1205 or 3572: somebody does
-- In autocommit, so the lock of the probe is gone with its answer. A try that comes in
-- that same moment is told "busy". MySQL 5.7 cannot tell: never held.
SELECT 1 FROM dblock_row WHERE name = ?
    /*M! LOCK IN SHARE MODE NOWAIT */ /*!80000 FOR SHARE NOWAIT */;
