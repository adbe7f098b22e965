-- SPDX-License-Identifier: MIT
-- lease.sql - a row a name, held by naming a session (or timed); the row stays.
-- What holds for every statement is said in session.sql.
-- insert.sql has the same statements for its table, but for the drop.

-- name: lease_take
-- in: ?1 name (blob), ?2 my session (blob) or NULL: timed, ?3 owner (blob),
--   ?4 ttl (us; timed), ?5 not_after (us), ?6 label, ?7 host, ?8 pid
-- out: dblock_note 0 the token, 1 my session's expires_at; changed rows: 1 taken, 0 not
-- One autocommit statement. It does not end an expired session that stands in the
-- way (0 rows then): that takes the transaction that session_end_expired describes,
-- with this statement as its second.
-- Two takers: the second waits for the write lock, and evaluates on the first one's
-- commit with a clock read after the wait: the row is not free, 0 rows.
-- A timed row (session NULL) is free from its expires_at on; one that names a session
-- only once that session's row is gone.
-- My own session is checked here, under the write lock: if it is over nothing is
-- taken, and if it is not, nobody can end it before this commit.
-- Late: not_after is compared after the wait, so a caller that has given up gets
-- nothing.
-- Token: above the row's own, and above the floor where there was no row.
-- dblock_note() hands a value to the caller as RETURNING would; RETURNING and an
-- INSERT .. SELECT together cost more than the rest of the statement (a temporary
-- table each time), and leave the write lock behind if not read to the end.
-- Killed before the commit: nothing happened. After it: a grant without a believer,
-- which ends with its session or by its expires_at.
INSERT INTO dblock_lease AS l
    (name, session, owner, token, since, expires_at, label, host, pid)
SELECT ?1, ?2, ?3, dblock_note(0, max(f.token + 1, dblock_now_us())), dblock_now_us(),
    CASE WHEN ?2 IS NULL THEN dblock_now_us() + ?4 ELSE 0 END, ?6, ?7, ?8
FROM dblock_floor AS f
WHERE f.id = 1
    AND (?2 IS NULL OR
        (SELECT dblock_note(1, me.expires_at) > dblock_now_us()
         FROM dblock_session AS me WHERE me.id = ?2))
    AND dblock_now_us() <= ?5
ON CONFLICT (name) DO UPDATE
SET session = excluded.session, owner = excluded.owner,
    token = dblock_note(0, max(l.token + 1, excluded.token)),
    since = excluded.since, expires_at = excluded.expires_at,
    label = excluded.label, host = excluded.host, pid = excluded.pid
WHERE CASE WHEN l.session IS NULL THEN l.expires_at <= dblock_now_us()
    ELSE NOT EXISTS (SELECT 1 FROM dblock_session AS s WHERE s.id = l.session) END;

-- name: lease_drop
-- in: ?1 name (blob), ?2 owner (blob)
-- out: changed rows: 1 it was in force until now, 0 it was not
-- The owner id is of this one grant, so nobody else's is touched, also when the
-- statement comes late or twice. The row keeps its token.
UPDATE dblock_lease AS l
SET session = NULL, owner = NULL, expires_at = 0, since = dblock_now_us()
WHERE l.name = ?1 AND l.owner = ?2
    AND CASE WHEN l.session IS NULL THEN l.expires_at > dblock_now_us()
        ELSE (SELECT s.expires_at > dblock_now_us()
              FROM dblock_session AS s WHERE s.id = l.session) END;

-- name: lease_extend
-- in: ?1 name (blob), ?2 owner (blob), ?3 time (us)
-- out: changed rows: 1 timed from now on, 0 it was not in force
-- Serves extend, detach and a release that keeps the name a while: the grant no
-- longer depends on a session. A grant that has ended by the clock is not revived.
UPDATE dblock_lease AS l
SET session = NULL, expires_at = dblock_now_us() + ?3
WHERE l.name = ?1 AND l.owner = ?2
    AND CASE WHEN l.session IS NULL THEN l.expires_at > dblock_now_us()
        ELSE (SELECT s.expires_at > dblock_now_us()
              FROM dblock_session AS s WHERE s.id = l.session) END;

-- name: lease_draw
-- in: ?1 name (blob), ?2 owner (blob)
-- out: dblock_note 0 the token; changed rows: 1 drawn, 0 the grant is not in force
-- For a grant that went from thread to thread within its client: it must not have the
-- token of the one before. Under the write lock, so above all that were committed; asked
-- for twice it skips a number.
UPDATE dblock_lease AS l
SET token = dblock_note(0, max(l.token + 1, dblock_now_us()))
WHERE l.name = ?1 AND l.owner = ?2
    AND CASE WHEN l.session IS NULL THEN l.expires_at > dblock_now_us()
        ELSE (SELECT s.expires_at > dblock_now_us()
              FROM dblock_session AS s WHERE s.id = l.session) END;

-- name: lease_look
-- in: ?1 name (blob)
-- out: one row or none: dblock_now_us(), then a grant: name, session, owner, token,
--   since, expires_at, label, host, pid, its session's expires_at or NULL (gone)
-- A read: takes no lock that a writer of the write-ahead log would meet, and waits
-- for none. One snapshot of both tables, of the newest commit. Whether the grant is
-- in force is judged by the caller with the clock of the first column, which is read
-- after the snapshot: a heartbeat between the two can only make it seem over, and
-- whoever acts on that asks again under the write lock.
SELECT dblock_now_us(), l.name, l.session, l.owner, l.token, l.since, l.expires_at,
    l.label, l.host, l.pid, s.expires_at
FROM dblock_lease AS l LEFT JOIN dblock_session AS s ON s.id = l.session
WHERE l.name = ?1;
