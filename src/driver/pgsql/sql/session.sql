-- SPDX-License-Identifier: MIT
-- session.sql - the rows that heartbeats renew, one a client.
-- What holds for every statement is said in connection.sql.
--
-- A grant that names a session is in force as long as that row exists. Whoever wants
-- a name of an expired session deletes the row (lease_clear), with the same clock in
-- the WHERE as the heartbeat has: the two meet on the row's lock, and the second one
-- evaluates its WHERE on what the first one left. So either the heartbeat has made it
-- unexpired and the delete finds nothing, or the row is gone and the heartbeat does.

-- name: session_begin
-- in: $1 id (bytea), $2 ttl (interval), $3 ttl (us), $4 host, $5 pid, $6 label
-- out: clock
-- The id is random and inserted once: nobody else can know it, nothing to wait for.
-- A lost answer is never repeated: the client takes a new id, and this row, if it was
-- made, expires unused.
-- Waits for no disk: nothing is believed before a grant that names this row, whose commit
-- is durable and comes later in the same log, so that this one is on disk before it.
INSERT INTO dblock_schema.dblock_session
    (id, expires_at, ttl_us, host, pid, label, created)
SELECT $1, pg_catalog.clock_timestamp() + $2, $3, $4, $5, $6, pg_catalog.clock_timestamp()
FROM (SELECT pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy) AS lazy
RETURNING pg_catalog.clock_timestamp();

-- name: session_renew
-- in: $1 id (bytea), $2 ttl (interval)
-- out: clock, changed, when the server started; no row: it had expired or is gone
-- Never revives: an expired row is left to whoever ends it, although nobody has yet.
-- Guards and takers of live names lock grants, not sessions, so they are not waited
-- for. Waits for a break that counts `changed` up, or for one that ends the session.
-- Durable, unlike a release: the client goes on believing in what it was told here.
-- A lost answer: repeating it is harmless, it counts from its own clock.
UPDATE dblock_schema.dblock_session AS s
SET expires_at = pg_catalog.clock_timestamp() + $2, beat = s.beat + 1
WHERE s.id = $1 AND s.expires_at > pg_catalog.clock_timestamp()
RETURNING pg_catalog.clock_timestamp(), s.changed, pg_catalog.pg_postmaster_start_time();

-- name: session_end
-- in: $1 id (bytea)
-- out: clock; no row: it was gone
-- All that it holds is free with the commit. Rows of grants still name it, which is
-- right: the id never comes back, so they read as ended for ever.
-- A heartbeat of the same client that comes later finds no row.
-- Waits for no disk, as a release: lost in a crash, the row is there until it expires, and
-- so are the grants that name it and that nobody has taken since (a take is durable, and
-- with it this).
DELETE FROM dblock_schema.dblock_session AS s
USING (SELECT pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy) AS lazy
WHERE s.id = $1
RETURNING pg_catalog.clock_timestamp();

-- name: session_holds
-- in: $1 id (bytea)
-- out: clock, strategy, name, owner, token; one row without a name if there are none
-- One snapshot of both tables, newer than every acknowledged commit. Reads the whole
-- of both: an index on session would cost every grant its HOT update.
-- Waits for nobody: a grant that is not committed yet is missing, and the client knows
-- which of its own are under way.
SELECT pg_catalog.clock_timestamp(), g.strategy, g.name, g.owner, g.token
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT 1 AS strategy, l.name, l.owner, l.token
    FROM dblock_schema.dblock_lease AS l WHERE l.session = $1
    UNION ALL
    SELECT 2, l.name, l.owner, l.token
    FROM dblock_schema.dblock_insert AS l WHERE l.session = $1) AS g ON true;
