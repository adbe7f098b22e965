-- SPDX-License-Identifier: MIT
-- session.sql - the rows that heartbeats renew.
--
-- What holds for every statement of this driver:
--   One writer. A statement that writes takes SQLite's write lock before it
--   evaluates anything (the first thing that its program does is to begin the
--   write transaction; BEGIN IMMEDIATE takes it too), so what it reads is the newest
--   commit, and stays it until its own commit. A second writer waits in our busy
--   handler, has evaluated nothing yet, and afterwards sees what the first committed.
--   Clock. dblock_now_us() is the machine's wall clock, read at its first mention
--   in a statement (in a transaction of ours: at the first mention after BEGIN
--   IMMEDIATE) and the same until its end. So it is read after the wait for the
--   write lock, and no condition can straddle an expiry.
--   Lost answers. There is no wire: a statement that ended without an error is
--   committed, one that ended with SQLITE_BUSY has done nothing. A process that is
--   killed inside a commit has made all of it or nothing. Only an I/O error in a
--   commit leaves it open what the file will say, and is reported as uncertain.
--   Power. With the write-ahead log and synchronous = NORMAL a power cut can lose
--   the last commits, in whole and from the end. All holders were processes of this
--   machine, so they ended with it; what is lost is grants that nobody has any
--   more. Tokens do not go back: a token is at least the clock, so the next one
--   exceeds the forgotten ones as long as the clock was not set back over the cut.
--   Hence no flush for each grant; a database that needs one of its own
--   (rollback journal) keeps its default, FULL.

-- name: session_begin
-- in: ?1 session (blob), ?2 ttl (us), ?3 host, ?4 pid, ?5 label
-- out: nothing
-- An id is 128 random bits and inserted once; the same id again is a mistake of the
-- caller and fails by the primary key.
INSERT INTO dblock_session (id, expires_at, ttl_us, host, pid, label, created)
VALUES (?1, dblock_now_us() + ?2, ?2, ?3, ?4, ?5, dblock_now_us());

-- name: session_renew
-- in: ?1 session (blob), ?2 ttl (us)
-- out: dblock_note 0 the session's change counter; changed rows: 1 renewed, 0 over
-- Against an ender (session_end_expired): one of the two is first. If the heartbeat
-- is, the row no longer is expired and the ender deletes nothing; if the ender is,
-- there is no row. An expired row is never revived, also when nobody wanted it yet:
-- somebody may have judged a name of it free by the same clock.
UPDATE dblock_session
SET expires_at = dblock_now_us() + ?2, ttl_us = ?2, beat = beat + 1,
    changed = dblock_note(0, changed)
WHERE id = ?1 AND expires_at > dblock_now_us();

-- name: session_end
-- in: ?1 session (blob)
-- out: changed rows: 1 ended, 0 was gone
-- All that names the session is free with this commit. Twice, or after somebody else
-- has ended it, it changes nothing.
DELETE FROM dblock_session WHERE id = ?1;

-- name: session_end_expired
-- in: ?1 session (blob)
-- out: changed rows: 1 ended now, 0 it is gone or was renewed meanwhile
-- Runs in one transaction with the take that wants a name of it, so nobody can see
-- the session ended and the name not taken. Deleting it, and not only taking the
-- name, makes the verdict final: should the clock be set back now, the holder's next
-- heartbeat still finds no row.
DELETE FROM dblock_session WHERE id = ?1 AND expires_at <= dblock_now_us();

-- name: session_touch
-- in: ?1 session (blob)
-- out: nothing
-- Tells the holder, with its next heartbeat, that a grant of it was taken away. In
-- one transaction with the end of that grant, so it is not told too early.
UPDATE dblock_session SET changed = changed + 1 WHERE id = ?1;

-- name: session_holds
-- in: ?1 session (blob)
-- out: strategy, then a grant: name, session, owner, token, since, expires_at,
--   label, host, pid, the session's expires_at or NULL
-- One snapshot of both tables. There is no index on session (it would dirty a second
-- page with each grant), so this reads the tables through; it runs rarely.
SELECT 1, l.name, l.session, l.owner, l.token, l.since, l.expires_at, l.label, l.host, l.pid,
    (SELECT s.expires_at FROM dblock_session AS s WHERE s.id = l.session)
FROM dblock_lease AS l WHERE l.session = ?1
UNION ALL
SELECT 2, i.name, i.session, i.owner, i.token, i.since, i.expires_at, i.label, i.host, i.pid,
    (SELECT s.expires_at FROM dblock_session AS s WHERE s.id = i.session)
FROM dblock_insert AS i WHERE i.session = ?1;
