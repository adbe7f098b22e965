-- SPDX-License-Identifier: MIT
-- token.sql - tokens of row and advisory locks, drawn when asked for.
-- What holds for every statement is said in session.sql.

-- name: token_draw
-- in: ?1 strategy, ?2 name (blob; advisory: the lock's number as "#NUMBER")
-- out: dblock_note 0 the token, committed
-- Two that draw for one name: the second counts on from the first one's commit. A
-- row that was purged left its token in the floor. That the drawer still holds the
-- lock is proved afterwards by the library (row), or certain (advisory: the lock ends
-- with the connection that draws).
-- A guarded transaction is the file's writer, so nothing is drawn before it ends.
-- Killed after the commit: a number is skipped.
INSERT INTO dblock_token AS t (strategy, name, token, since)
SELECT ?1, ?2, dblock_note(0, max(f.token + 1, dblock_now_us())), dblock_now_us()
FROM dblock_floor AS f WHERE f.id = 1
ON CONFLICT (strategy, name) DO UPDATE
SET token = dblock_note(0, max(t.token + 1, excluded.token)), since = excluded.since;

-- name: token_look
-- in: ?1 strategy, ?2 name as above
-- out: token, since
-- A read for people: the caller compares `since` with the grant's own, as the last
-- token may have been drawn by an earlier holder.
SELECT token, since FROM dblock_token WHERE strategy = ?1 AND name = ?2;
