-- SPDX-License-Identifier: MIT
-- observe.sql - listing, breaking and purging of lease and insert.
-- What holds for every statement is said in session.sql.

-- name: lease_list
-- in: ?1 names above this one (blob) or NULL, ?2 names from this one on (blob) or NULL,
--   ?3 1: also what nobody holds, ?4 at most so many
-- out: rows as lease_look
-- One snapshot, in the byte order of names, by the primary key. The caller stops at
-- the first name that does not begin with the prefix it asked for.
SELECT dblock_now_us(), l.name, l.session, l.owner, l.token, l.since, l.expires_at,
    l.label, l.host, l.pid, s.expires_at
FROM dblock_lease AS l LEFT JOIN dblock_session AS s ON s.id = l.session
WHERE l.name > coalesce(?1, x'') AND l.name >= coalesce(?2, x'')
    AND (?3 OR CASE WHEN l.session IS NULL THEN l.expires_at ELSE s.expires_at END
        > dblock_now_us())
ORDER BY l.name
LIMIT ?4;

-- name: insert_list
-- in: ?1 names above this one (blob) or NULL, ?2 names from this one on (blob) or NULL,
--   ?3 1: also what nobody holds, ?4 at most so many
-- out: rows as insert_look
-- One snapshot, in the byte order of names, by the primary key. The caller stops at
-- the first name that does not begin with the prefix it asked for.
SELECT dblock_now_us(), l.name, l.session, l.owner, l.token, l.since, l.expires_at,
    l.label, l.host, l.pid, s.expires_at
FROM dblock_insert AS l LEFT JOIN dblock_session AS s ON s.id = l.session
WHERE l.name > coalesce(?1, x'') AND l.name >= coalesce(?2, x'')
    AND (?3 OR CASE WHEN l.session IS NULL THEN l.expires_at ELSE s.expires_at END
        > dblock_now_us())
ORDER BY l.name
LIMIT ?4;

-- name: lease_end
-- in: ?1 name (blob), ?2 token
-- out: changed rows: 1 ended, 0 that grant is not there any more
-- In one transaction with lease_look, which found the grant in force, and with
-- session_touch. Its token goes up at once, so that whoever compares tokens sees the
-- end before there is a next holder.
UPDATE dblock_lease
SET session = NULL, owner = NULL, expires_at = 0, since = dblock_now_us(), token = token + 1
WHERE name = ?1 AND token = ?2;

-- name: insert_end
-- in: ?1 name (blob), ?2 token
-- out: changed rows: 1 ended, 0 that grant is not there any more
-- As lease_end. The trigger raises the floor to the token in the same statement, so
-- the next grant's is larger although the row is gone.
DELETE FROM dblock_insert WHERE name = ?1 AND token = ?2;

-- name: session_purge
-- in: ?1 a time (us)
-- out: changed rows
-- Sessions that expired before that time: nobody renews them (session_renew) and
-- nobody wanted a name of theirs. Names that they hold are free with this commit.
DELETE FROM dblock_session
WHERE id IN (SELECT id FROM dblock_session WHERE expires_at < ?1 LIMIT 100);

-- name: lease_purge
-- in: ?1 a time (us)
-- out: changed rows
-- Rows free since before that time; the trigger raises the floor to their tokens in
-- the same statement. A row whose session is gone is judged by when it was taken: its
-- end was not written down.
DELETE FROM dblock_lease
WHERE name IN (
    SELECT l.name FROM dblock_lease AS l
    WHERE l.since < ?1 AND CASE WHEN l.session IS NULL THEN l.expires_at < ?1
        ELSE NOT EXISTS (SELECT 1 FROM dblock_session AS s WHERE s.id = l.session) END
    LIMIT 100);

-- name: insert_purge
-- in: ?1 a time (us)
-- out: changed rows
-- Rows that expired before that time, or whose session is gone; as lease_purge. What
-- a taker of the same name finds is either the row, free, or no row and the floor.
DELETE FROM dblock_insert
WHERE name IN (
    SELECT l.name FROM dblock_insert AS l
    WHERE l.since < ?1 AND CASE WHEN l.session IS NULL THEN l.expires_at < ?1
        ELSE NOT EXISTS (SELECT 1 FROM dblock_session AS s WHERE s.id = l.session) END
    LIMIT 100);

-- name: token_purge
-- in: ?1 a time (us)
-- out: changed rows
-- The next token of the name comes from the floor, which the trigger has raised. Not that of
-- a lock that is still held, as a guard looks for it. dblock_is_held() asks the kernel, while
-- this statement is the file's only writer: whoever drew the token that is seen had the lock
-- then, so if nobody has it now, that grant is over; a later one draws after this commit.
DELETE FROM dblock_token
WHERE (strategy, name) IN (
    SELECT strategy, name FROM dblock_token
    WHERE since < ?1 AND NOT dblock_is_held(strategy, name) LIMIT 100);
