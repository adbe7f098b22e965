-- SPDX-License-Identifier: MIT
-- guard.sql - what runs on a connection of the application, in its open transaction. Sent as
-- text, with literals for the marks; "dblock_" stands for the database of the tables and that.
-- The isolation is the application's, InnoDB's default is REPEATABLE READ. So is the clock, which
-- stands still after `SET timestamp` (mysql_guard.c), and sql_select_limit, hence LIMIT 1.

-- name: lease_guard
-- in: owner, token, name, owner, token
-- out: no row: not in this transaction's snapshot (lease_guard_look); else: is it this grant
--      still, is it in force, does it have a session
-- The clause that locks the row is appended: each server has another word for "shared, and
-- without waiting". The row is locked shared until the transaction ends, so several guarded
-- transactions of one holder run together, and who takes, drops, extends or breaks meets the
-- lock and says so (lease_probe, lease_wait). The heartbeat changes the session's row alone,
-- which is read here without a lock.
-- What is nested reads the transaction's snapshot, without a lock (LIMIT keeps it from being
-- merged): a grant that is not there is either over, or newer than what the application
-- reads, and nothing is pinned. The locking read sees the newest commit. A session in the
-- snapshot may be older than its last heartbeat.
SELECT l.owner = ? AND l.token = ? AS is_own,
       IF(seen.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = seen.session AND s.expires_at
                > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))) AS is_in_force,
       seen.session IS NOT NULL AS has_session
  FROM (SELECT name, session FROM dblock_lease
         WHERE name = ? AND owner = ? AND token = ? LIMIT 1) seen
  JOIN dblock_lease l ON l.name = seen.name LIMIT 1;

-- name: insert_guard
-- in: as lease_guard
-- out: as lease_guard
-- As lease_guard.
SELECT l.owner = ? AND l.token = ? AS is_own,
       IF(seen.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = seen.session AND s.expires_at
                > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))) AS is_in_force,
       seen.session IS NOT NULL AS has_session
  FROM (SELECT name, session FROM dblock_insert
         WHERE name = ? AND owner = ? AND token = ? LIMIT 1) seen
  JOIN dblock_insert l ON l.name = seen.name LIMIT 1;

-- name: lease_guard_look
-- in: name
-- out: the token in the transaction's snapshot; no row: not there. Does the grant have a session,
--      and is that in force
-- Why a grant is not in the snapshot: tokens rise, so a smaller one means that it came later.
-- On Galera and Group Replication before lease_guard_write, after which the transaction reads
-- its own change. The session is read here, without a lock: a condition of that change would
-- lock its row, and heartbeats would wait, or come from another node and abort it all.
SELECT l.token, l.session IS NOT NULL AS has_session,
       EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = l.session AND s.expires_at
            > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS is_in_force
  FROM dblock_lease l WHERE l.name = ? LIMIT 1;

-- name: insert_guard_look
-- in: as lease_guard_look
-- out: as lease_guard_look
-- As lease_guard_look.
SELECT l.token, l.session IS NOT NULL AS has_session,
       EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = l.session AND s.expires_at
            > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS is_in_force
  FROM dblock_insert l WHERE l.name = ? LIMIT 1;

-- name: token_guard
-- in: token, strategy, name, token
-- out: as lease_guard
-- A lock that lives in a connection has no row with its owner, and whether it is still held is
-- not asked: that would be true for a moment. What is pinned is the row of the token that was
-- drawn with the grant (DBLOCK_FENCED), before anybody was told of it. Whoever is granted the
-- name with a token after that writes this row and commits before he is told (token_draw). If
-- he came before, the row has a larger token. If he comes later, he meets the lock on the row,
-- gives the lock of the name back and asks again, so he is told of no grant until this
-- transaction has ended, whatever became of the holder's connection meanwhile. Who takes the
-- name without a token excludes nothing of this. The purge leaves the row as long as the lock
-- is held (observe.sql). Snapshot and locking read: as lease_guard. Single writer only, as
-- are these locks themselves.
SELECT t.token = ? AS is_own, 1 AS is_in_force, 0 AS has_session
  FROM (SELECT strategy, name FROM dblock_token
         WHERE strategy = ? AND name = ? AND token = ? LIMIT 1) seen
  JOIN dblock_token t ON t.strategy = seen.strategy AND t.name = seen.name
 LIMIT 1;

-- name: token_guard_look
-- in: strategy, name
-- out: as lease_guard_look
-- As lease_guard_look.
SELECT token FROM dblock_token WHERE strategy = ? AND name = ? LIMIT 1;

-- name: lease_guard_write
-- in: seconds to wait (MariaDB), name, owner, token
-- out: affected rows: 1 pinned, 0 this grant is over
-- Where several nodes are written to. Nodes agree on changes of rows and not on locks, so
-- the guard is a change: a take, a release or a break on another node writes the same row.
-- Which of the two commits first is one order for all nodes, and the other fails: this
-- transaction with 1213, at its next statement or its COMMIT, whose answer alone counts; or
-- the other's single statement, which is AGAIN and finds things as they are then. On this node
-- they meet the lock on the row, as others' guards do: PINNED. A heartbeat writes
-- the session's row, which this does not lock. At most another guarded transaction of the same
-- grant is waited for.
/*M! SET STATEMENT innodb_lock_wait_timeout = ? FOR */
UPDATE dblock_lease SET guards = guards + 1
 WHERE name = ? AND owner = ? AND token = ? AND (session IS NOT NULL
    OR expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)));

-- name: insert_guard_write
-- in: as lease_guard_write
-- out: as lease_guard_write
-- As lease_guard_write.
/*M! SET STATEMENT innodb_lock_wait_timeout = ? FOR */
UPDATE dblock_insert SET guards = guards + 1
 WHERE name = ? AND owner = ? AND token = ? AND (session IS NOT NULL
    OR expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)));

-- name: lease_leave
-- in: name, owner
-- out: affected rows: 1; 0: given back before by this transaction
-- After the guard in the same transaction, so nobody else has changed the row or can: at most
-- another guarded transaction of the same holder is waited for. The COMMIT gives the name
-- back, with all that was written; a ROLLBACK leaves it held. The bell of the grant belongs to
-- the connection that took it, so who waits is woken when the lock is freed.
UPDATE dblock_lease
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE name = ? AND owner = ?;

-- name: insert_leave
-- in: as lease_leave
-- out: as lease_leave
-- As lease_leave.
UPDATE dblock_insert
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE name = ? AND owner = ?;

-- name: lease_keep
-- in: another owner, time (us), name, owner
-- out: as lease_leave
-- Instead of lease_leave where min_hold_ms is not over: the COMMIT leaves a timed grant of the
-- rest. Under another owner, so that for its holder it is given back all the same.
UPDATE dblock_lease
   SET owner = ?, session = NULL,
       expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?
 WHERE name = ? AND owner = ?;

-- name: insert_keep
-- in: as lease_keep
-- out: as lease_leave
-- As lease_keep.
UPDATE dblock_insert
   SET owner = ?, session = NULL,
       expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?
 WHERE name = ? AND owner = ?;
