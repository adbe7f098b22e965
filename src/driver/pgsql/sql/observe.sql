-- SPDX-License-Identifier: MIT
-- observe.sql - ending other people's sessions of the server, and the purge.
-- What holds for every statement is said in connection.sql.

-- name: session_terminate
-- in: $1 server_pid, as row_holder or advisory_holder told it
-- out: is it one of dblock's own (NULL: not visible or not there), was it told to end
-- Only a session that says it is dblock's: its locks are all that it holds. Between the
-- look and this the session may have ended and the number be in use again; the name is
-- read in this very statement, so at worst it ends another of dblock's.
-- Needs the same role or pg_signal_backend (42501). Does not wait for the end.
SELECT a.application_name LIKE 'dblock %',
    CASE WHEN a.application_name LIKE 'dblock %' THEN pg_catalog.pg_terminate_backend(a.pid) END
FROM pg_catalog.pg_stat_activity AS a
WHERE a.pid = $1;

-- name: session_is_there
-- in: $1 server_pid
-- out: clock, is there such a session
-- Asked after session_terminate until it says no: only then are the locks free.
-- Reads shared memory, waits for nobody.
SELECT pg_catalog.clock_timestamp(),
    EXISTS (SELECT 1 FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = $1);

-- name: purge
-- in: $1 how long nobody may have needed it (interval), $2 at most so many of each
-- out: clock, rows removed
-- Dead sessions, rows of lease and insert that are free, old tokens, rows to lock. Rows
-- that somebody has locked are skipped, so nothing is waited for; each is judged again
-- on its newest version before it is locked.
-- No token goes back: tokens do not come from rows (0001_create.sql). A taker that comes upon
-- a row which is just going waits, and makes it anew (lease_take); one that wanted to write
-- into it that its grant has ended finds it locked or gone, and gives up (lease_clear).
-- A row whose session is gone is judged by when it was taken: its end was not written.
-- dblock_row: whoever holds it has locked it; one that waits finds it gone and makes it
-- anew. Rows that a recent transaction locked (its number is still in the row) stay.
-- dblock_token: not that of a lock which is still held, as a guard looks for it (token_guard).
-- The token that this statement sees was drawn before, by one who had the lock: if that grant
-- stands, the server has the lock in its table when that is read, and the row of dblock_row
-- is there and locked. Drawn since: the row is newer than an hour, or the draw met the lock
-- of this statement and asks again.
-- Commits without waiting for the disk: after a crash it is done again.
WITH lazy AS MATERIALIZED (
    SELECT pg_catalog.clock_timestamp() - $1::interval AS before,
        pg_catalog.set_config('synchronous_commit', 'off', true)
), held AS (
    SELECT (l.classid::bigint << 32) | l.objid::bigint AS id
    FROM pg_catalog.pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
            WHERE d.datname = pg_catalog.current_database())
), sessions AS (
    DELETE FROM dblock_schema.dblock_session AS d WHERE d.id IN (
        SELECT s.id FROM dblock_schema.dblock_session AS s
        WHERE s.expires_at < (SELECT lazy.before FROM lazy)
        LIMIT $2 FOR UPDATE OF s SKIP LOCKED)
    RETURNING 1
), leases AS (
    DELETE FROM dblock_schema.dblock_lease AS d WHERE d.name IN (
        SELECT l.name FROM dblock_schema.dblock_lease AS l
        WHERE l.since < (SELECT lazy.before FROM lazy)
            AND CASE WHEN l.session IS NULL THEN l.expires_at < (SELECT lazy.before FROM lazy)
                ELSE NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                    WHERE s.id = l.session) END
        LIMIT $2 FOR UPDATE OF l SKIP LOCKED)
    RETURNING 1
), inserts AS (
    DELETE FROM dblock_schema.dblock_insert AS d WHERE d.name IN (
        SELECT l.name FROM dblock_schema.dblock_insert AS l
        WHERE l.since < (SELECT lazy.before FROM lazy)
            AND CASE WHEN l.session IS NULL THEN l.expires_at < (SELECT lazy.before FROM lazy)
                ELSE NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                    WHERE s.id = l.session) END
        LIMIT $2 FOR UPDATE OF l SKIP LOCKED)
    RETURNING 1
), tokens AS (
    DELETE FROM dblock_schema.dblock_token AS d WHERE d.strategy = 4 AND d.name IN (
        SELECT t.name FROM dblock_schema.dblock_token AS t
        WHERE t.strategy = 4 AND t.since < (SELECT lazy.before FROM lazy)
            AND NOT EXISTS (SELECT 1 FROM held WHERE held.id = ('x' || pg_catalog.encode(
                    pg_catalog.substr(pg_catalog.sha256(t.name), 1, 8), 'hex'))::bit(64)::bigint
                OR t.name = pg_catalog.convert_to('#' || held.id, 'UTF8'))
        LIMIT $2 FOR UPDATE OF t SKIP LOCKED)
    RETURNING 1
), row_tokens AS (
    DELETE FROM dblock_schema.dblock_token AS d WHERE d.strategy = 3 AND (d.name IN (
        SELECT t.name FROM dblock_schema.dblock_token AS t
            JOIN dblock_schema.dblock_row AS r ON r.name = t.name
        WHERE t.strategy = 3 AND t.since < (SELECT lazy.before FROM lazy)
        LIMIT $2 FOR UPDATE OF t, r SKIP LOCKED)
        OR d.name IN (
        SELECT t.name FROM dblock_schema.dblock_token AS t
        WHERE t.strategy = 3 AND t.since < (SELECT lazy.before FROM lazy)
            AND NOT EXISTS (
                SELECT 1 FROM dblock_schema.dblock_row AS r WHERE r.name = t.name)
        LIMIT $2 FOR UPDATE OF t SKIP LOCKED))
    RETURNING 1
), lockable AS (
    DELETE FROM dblock_schema.dblock_row AS d WHERE d.name IN (
        SELECT r.name FROM dblock_schema.dblock_row AS r
        WHERE r.since < (SELECT lazy.before FROM lazy)
            AND (r.xmax = '0' OR pg_catalog.age(r.xmax) > 10000)
        LIMIT $2 FOR UPDATE OF r SKIP LOCKED)
    RETURNING 1
)
SELECT pg_catalog.clock_timestamp(),
    (SELECT pg_catalog.count(*) FROM sessions) + (SELECT pg_catalog.count(*) FROM leases)
    + (SELECT pg_catalog.count(*) FROM inserts) + (SELECT pg_catalog.count(*) FROM tokens)
    + (SELECT pg_catalog.count(*) FROM row_tokens)
    + (SELECT pg_catalog.count(*) FROM lockable);
