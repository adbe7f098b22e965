-- SPDX-License-Identifier: MIT
-- observe.sql - what concerns all strategies: the clock, breaks, the floor, the purge
-- of sessions and tokens. `clock`: see session.sql.

-- name: clock
-- in: nothing
-- out: clock
-- A ping. Reads no table, so it begins no transaction on a connection without
-- autocommit, and the IN_TRANS flag of its answer tells whether one stands.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock;

-- name: session_changed
-- in: session
-- out: affected rows 1 or 0 (it has ended meanwhile)
-- Third step of a break, in its transaction, after the grant's row (nobody asks for them
-- in the other order): the holder reads back what it holds at its next heartbeat, which
-- waits for the commit of this if they meet.
UPDATE dblock_session SET changed = changed + 1 WHERE id = ?;

-- name: floor_raise
-- in: token, id, token
-- out: nothing
-- First step of a purge, in a commit of its own: waits for the takes that have read
-- the floor (each a statement of ours, a second at most); takes that come later see it.
UPDATE dblock_floor SET token = ? WHERE id = ? AND token < ?;

-- name: session_purge_candidates
-- in: limit
-- out: id
-- Sessions that have been dead for an hour, and whose names nobody wanted since.
SELECT id FROM dblock_session
 WHERE expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000
 LIMIT ?;

-- name: token_purge_candidates
-- in: limit
-- out: strategy, name, token
-- Tokens whose names nobody drew for an hour. Read without locks; token_purge judges
-- each again. A damaged one stays (lease_purge_candidates).
SELECT strategy, name, token FROM dblock_token
 WHERE since <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000
   AND token < 9007199254740991
 LIMIT ?;

-- name: token_purge
-- in: strategy, name, token
-- out: affected rows 1 or 0
-- After floor_raise, in a commit of its own. The token is the one that was seen: a draw
-- since then has a larger one, and its row stays. A draw that meets this asks again, inserts,
-- and has read the raised floor.
-- Not the row of a lock that is still held, as a guard looks for it (token_guard): after the
-- token was seen it is asked whether anybody has the lock (row_purge_probe, advisory_holder).
-- Who drew that token had it then, so if nobody has, that grant is over.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
DELETE FROM dblock_token WHERE strategy = ? AND name = ? AND token = ?;

-- name: token_keep
-- in: strategy, name, token
-- out: nothing
-- Instead of token_purge, if somebody has the lock: not a candidate for another hour, so that
-- locks that are held for long do not keep the purge from the others.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_token SET since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE strategy = ? AND name = ? AND token = ?;

-- name: row_purge_candidates
-- in: limit
-- out: name
-- Names that were seeded an hour ago, locked or not: row_purge finds out.
SELECT name FROM dblock_row
 WHERE created <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 3600000000
 LIMIT ?;

-- name: row_purge
-- in: name
-- out: affected rows 1 or 0; error 1205: somebody holds the lock
-- Nobody holds it if this gets the row. Who queues behind it finds no row (UNSEEDED)
-- and seeds it anew; a try within the same moment finds it locked.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
DELETE FROM dblock_row WHERE name = ?;

-- name: row_purge_probe
-- in: name
-- out: at most one row, or error 3572 (MariaDB 1205): somebody holds the lock
-- Before token_purge; before row_purge on MySQL 8, whose DELETE would wait a second. In
-- autocommit: its own lock is gone with the answer. A holder that comes in between makes
-- the DELETE wait that second, and no more.
SELECT created FROM dblock_row WHERE name = ? FOR UPDATE /*M! NOWAIT */ /*!80000 NOWAIT */;
