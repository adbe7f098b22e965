-- SPDX-License-Identifier: MIT
-- lease.sql - a row a name, held by naming a session (or timed); the row stays.
-- What holds for every statement is said in connection.sql and session.sql.
-- insert.sql has the same statements for its table, but for the drop.
--
-- In force: the row names a session whose row is there and has not expired, or names
-- none and has not expired itself. A row that names a session is free for a taker only
-- once the session's row is gone; a timed one from its expires_at on.
--
-- A take is a message of two statements, one transaction: lease_gate and lease_take. They
-- take a name that was given back, or that nobody had yet. If the gate tells of a grant
-- that has ended without being given back, a second message follows, with lease_clear in
-- between.
--
-- The gate of a name is an advisory lock, held to the end of the transaction that wants to
-- take the name, and only ever tried for. (Not a published advisory id: those are hashed
-- otherwise.)

-- name: lease_gate
-- in: $1 name (bytea), $2 my session (bytea) or NULL: timed, $3 not_after (us since 2000),
--   $4 also for a name that another has, as his grant has ended (bool), $5 and $6 key of the
--   line that is heeded, or NULL
-- out: one row: my session's expires_at (NULL: over), 'mine' if the gate is mine, 'no' if it
--   is not, 'line' if somebody is first in line (NULL: not tried for), somebody else's grant,
--   in force or not (NULL: none, or given back), as a record of its whole row and its
--   session's expires_at; clock, later than what was judged here
-- One column for the whole row: its ten, in the description of the answer, would cost the server
-- a third of the take. In a record, because the row's own
-- type is another one once the tables are made anew.
-- One row each of two tables, looked up by its key, whatever the planner knows of them: told to
-- join, it reads all sessions into a hash table as long as they are some dozens, at each take.
-- One snapshot. Busy: a grant in force is seen. Nothing is tried for, written or waited
-- for, and the holder is told from the same snapshot.
-- Two takers of a free name: one gets the gate, the other goes away with nothing at once
-- (AGAIN), also while the first has not committed yet.
-- Somebody stands in line: nothing is taken, and the gate not tried for (line.sql).
-- A statement of its own, because the snapshot of the next one must be newer than the
-- gate: one that got the gate just after another's commit would otherwise still see the
-- name free (lease_take).
-- My own session is checked here. If it is ended before the commit, the grant is one that
-- names a session which is gone: ended for everybody, and its client is told by its next
-- heartbeat.
SELECT seen.my_expires_at,
    CASE WHEN pg_catalog.clock_timestamp() <= $3
            AND ($2 IS NULL OR seen.my_expires_at IS NOT NULL) AND (seen.other IS NULL OR $4)
        THEN pg_catalog.set_config('dblock.gate',
            CASE WHEN $5 IS NOT NULL AND NOT pg_catalog.pg_try_advisory_xact_lock_shared($5, $6)
                THEN 'line'
                WHEN pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
                pg_catalog.encode($1, 'hex') COLLATE "C", 7201)) THEN 'mine' ELSE 'no' END,
            true) END,
    seen.other,
    pg_catalog.clock_timestamp()
FROM (
    SELECT (SELECT me.expires_at FROM dblock_schema.dblock_session AS me
            WHERE me.id = $2 AND me.expires_at > pg_catalog.clock_timestamp()) AS my_expires_at,
        (SELECT ROW(l, (SELECT s.expires_at FROM dblock_schema.dblock_session AS s
                WHERE s.id = l.session))
            FROM dblock_schema.dblock_lease AS l
            WHERE l.name = $1 AND l.owner IS NOT NULL) AS other
    OFFSET 0) AS seen;

-- name: lease_clear
-- in: $1 name (bytea)
-- out: was there none to clear, or free of locks; was it cleared; a setting: if not, lease_take
--   does nothing
-- After lease_gate, and only with the gate. Writes into the row that its grant has ended,
-- as its owner would have; if it names a session that has expired, that session is ended.
-- A grant in force, which somebody got since it was found to have ended, is not touched, and
-- its row not locked: its owner's release would find somebody on it.
-- The session: deleted unless a heartbeat came first (session.sql). Two that end one
-- session from two of its names: the second waits for the first one's commit, deletes
-- nothing, and finds it gone the next time. A session that is gone is gone for ever, so a
-- newest row that still names it is free, whatever happened to it since.
-- Locked: somebody stands on the row, most likely a guarded transaction whose grant has
-- ended. `unlocked` skips it, so there is nothing to wait for (PINNED). Then lease_take must
-- not even try: ON CONFLICT waits for the row's lock before it judges.
-- Grant first, then session: the order in which lease_end locks them, too.
WITH seen AS MATERIALIZED (
    SELECT g.owner, g.session, g.session IS NOT NULL AND g.ends_at IS NULL AS is_gone
    FROM (
        SELECT l.owner, l.session, l.expires_at,
            (SELECT s.expires_at FROM dblock_schema.dblock_session AS s
                WHERE s.id = l.session) AS ends_at
        FROM dblock_schema.dblock_lease AS l
        WHERE l.name = $1 AND l.owner IS NOT NULL
            AND pg_catalog.current_setting('dblock.gate', true) = 'mine'
        OFFSET 0) AS g
    WHERE CASE WHEN g.session IS NULL THEN g.expires_at <= pg_catalog.clock_timestamp()
        ELSE coalesce(g.ends_at <= pg_catalog.clock_timestamp(), true) END
), unlocked AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = (SELECT seen.owner FROM seen)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), ended AS (
    DELETE FROM dblock_schema.dblock_session AS s
    WHERE s.id = (SELECT seen.session FROM seen)
        AND s.expires_at <= pg_catalog.clock_timestamp()
    RETURNING 1
), cleared AS (
    UPDATE dblock_schema.dblock_lease AS l
    SET session = NULL, owner = NULL, expires_at = '-infinity',
        since = pg_catalog.clock_timestamp()
    FROM unlocked
    WHERE l.name = $1
        AND ((l.session IS NULL AND l.expires_at <= pg_catalog.clock_timestamp())
            OR (l.session = (SELECT seen.session FROM seen)
                AND ((SELECT seen.is_gone FROM seen) OR EXISTS (SELECT 1 FROM ended))))
    RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM unlocked) OR NOT EXISTS (SELECT 1 FROM seen),
    EXISTS (SELECT 1 FROM cleared),
    CASE WHEN NOT EXISTS (SELECT 1 FROM cleared)
        THEN pg_catalog.set_config('dblock.gate', 'no', true) END;

-- name: lease_take
-- in: $1 name (bytea), $2 my session (bytea) or NULL: timed, $3 not_after (us since 2000),
--   $4 owner (bytea), $5 ttl (interval; timed), $6 label, $7 host, $8 pid
-- out: token, clock; no row: not taken
-- After lease_gate, and only with the gate: while it is mine nobody else takes the name.
-- Its row was given back, or there is none, or lease_gate came just after a take: it saw
-- the name free, and got the gate when that take had committed. ON CONFLICT would lock the
-- row of that new grant whatever the snapshot says, and its owner's release would find
-- somebody on it (PENDING without a guard). So the snapshot, which is newer than the gate,
-- is asked first.
-- ON CONFLICT judges the newest row once more: `owner` is what keeps two grants from
-- overlapping, also if a hand writes these tables without the gate.
-- Waits for single statements in autocommit at most: a purge that deletes the row. Nobody
-- has a reason to stand longer on a row that was given back; lock_timeout ends it at the
-- latest (55P03: AGAIN).
-- Late: not_after is compared in lease_gate, and again after such a wait. A caller that has
-- given up gets nothing. A timed grant ends as if there had been no wait.
--
-- Token: base + count (0001_create.sql), drawn under the gate. Whoever had the name
-- before drew under the same gate and has committed, so its count was smaller and its
-- base not larger. Drawn before the gate it would go backwards. The base lags behind
-- the clock by at most 0.1 s: then the taker that can have the lock of the base (only
-- tried for) sets it to the clock; as all who set it hold that lock, none lowers it.
-- A crash: both sequences write their log before this commit does.
--
-- Killed before the commit: nothing happened, a number is skipped. After it: a grant
-- without a believer. The client gives it back when it learns of it; the owner id was
-- sent in this one statement and no other.
INSERT INTO dblock_schema.dblock_lease AS l
    (name, session, owner, token, since, expires_at, label, host, pid)
SELECT $1, $2, $4,
    d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END,
    pg_catalog.clock_timestamp(),
    CASE WHEN $2 IS NULL THEN pg_catalog.clock_timestamp() + $5 ELSE '-infinity' END,
    $6, $7, $8
FROM (
    SELECT pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
        pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
        (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
    WHERE pg_catalog.current_setting('dblock.gate', true) = 'mine'
        AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_lease AS h
            WHERE h.name = $1 AND h.owner IS NOT NULL)
    OFFSET 0) AS d
ON CONFLICT (name) DO UPDATE
SET session = excluded.session, owner = excluded.owner,
    token = GREATEST(l.token + 1, excluded.token),
    since = excluded.since, expires_at = excluded.expires_at,
    label = excluded.label, host = excluded.host, pid = excluded.pid
WHERE l.owner IS NULL AND pg_catalog.clock_timestamp() <= $3
RETURNING l.token, pg_catalog.clock_timestamp();

-- name: lease_drop
-- in: $1 name (bytea), $2 owner (bytea), $3 and $4 key of the line
-- out: clock, was the grant in force; no row: no such grant, or somebody stands on its row
-- The owner id is of this one grant, so nobody else's is touched, also when the
-- statement comes late or twice. A grant that has ended is written to have ended.
-- `mine` locks the newest row that has the owner, and UPDATE meets that. A row that
-- somebody stands on is skipped, so nothing is waited for; then the caller looks again
-- (lease_look) to tell a locked row from one that is not mine (any more).
-- Wakes the first in line, if there is one (line.sql).
-- Commits without waiting for the disk: after a crash the grant may be back, until its
-- session or its time ends. So: in autocommit only, never together with a take, and
-- never inside an application's transaction, whose commit it would weaken.
UPDATE dblock_schema.dblock_lease AS l
SET session = NULL, owner = NULL, expires_at = '-infinity',
    since = pg_catalog.clock_timestamp()
FROM (
    SELECT m.session, m.expires_at,
        pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy,
        CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
            THEN pg_catalog.pg_notify('dblock_' || pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0')
                || pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0'), '')::text END AS bell
    FROM dblock_schema.dblock_lease AS m
    WHERE m.name = $1 AND m.owner = $2
    FOR NO KEY UPDATE OF m SKIP LOCKED) AS mine
WHERE l.name = $1 AND l.owner = $2
RETURNING pg_catalog.clock_timestamp(),
    CASE WHEN mine.session IS NULL THEN mine.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = mine.session), false) END;

-- name: lease_extend
-- in: $1 name (bytea), $2 owner (bytea), $3 time (interval), $4 and $5 key of the line
-- out: one row: clock, was it done, was the grant in force (NULL: no such grant)
-- Serves extend, detach and a release that keeps the name a while: the grant is timed
-- from now on and no longer depends on a session. A grant that has ended is not revived; one that
-- ends while this is between its snapshot and the row's lock is, if nobody has cleared it away.
-- As lease_drop, but durable: the caller believes in it. The first in line is woken, because
-- the grant may end sooner now than it was told.
-- No such grant in the snapshot: NO, for good. One in force to which it was not done:
-- either somebody stands on the row (skipped, so nothing is waited for), or it was taken
-- away since the snapshot; the caller looks again to tell these apart.
WITH seen AS MATERIALIZED (
    SELECT CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = $2
), mine AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = $2 AND (SELECT seen.is_in_force FROM seen)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), extended AS (
    UPDATE dblock_schema.dblock_lease AS l
    SET session = NULL, expires_at = pg_catalog.clock_timestamp() + $3
    FROM mine
    WHERE l.name = $1 AND l.owner = $2
    RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($4, $5)
        THEN pg_catalog.pg_notify('dblock_' || pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')
            || pg_catalog.lpad(pg_catalog.to_hex($5), 8, '0'), '')::text END AS bell
)
SELECT pg_catalog.clock_timestamp(), EXISTS (SELECT 1 FROM extended),
    (SELECT seen.is_in_force FROM seen);

-- name: lease_look
-- in: $1 name (bytea)
-- out: one row: clock, is the grant in force (NULL: no row), and the grant as in
--   lease_gate
-- One snapshot of both tables, newer than every acknowledged commit; waits for nobody.
-- An expired session is told as "nobody" although it could still be ended or renewed by
-- no one else: whoever acts on that asks again (lease_clear).
SELECT pg_catalog.clock_timestamp(),
    CASE WHEN l.name IS NULL THEN NULL
        WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false) END,
    ROW(l, (SELECT s.expires_at FROM dblock_schema.dblock_session AS s WHERE s.id = l.session))
FROM (SELECT 1) AS one
    LEFT JOIN dblock_schema.dblock_lease AS l ON l.name = $1;

-- name: lease_end
-- in: $1 name (bytea), $2 token; 0: any; $3 and $4 key of the line
-- out: as lease_extend, and the owner that was seen
-- Break: as lease_extend, for whoever has it in the snapshot. Durable. `changed` of the
-- holder's session counts up, so that its next heartbeat reads back what it still has.
-- The token is compared once more under the lock: the same owner may have another by then, with
-- a grant that went to the next thread (lease_draw), and that one was not meant.
-- Wakes the first in line, if there is one (line.sql).
-- Locks the grant, then the session, in the order of lease_clear: no deadlock. Waits for a
-- heartbeat of that session that is just committing.
-- The next grant draws a larger token.
WITH seen AS MATERIALIZED (
    SELECT l.owner, l.session,
        CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner IS NOT NULL AND ($2 = 0 OR l.token = $2)
), mine AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = (SELECT seen.owner FROM seen WHERE seen.is_in_force)
        AND ($2 = 0 OR l.token = $2)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), broken AS (
    UPDATE dblock_schema.dblock_lease AS l
    SET session = NULL, owner = NULL, expires_at = '-infinity',
        since = pg_catalog.clock_timestamp()
    FROM mine, seen
    WHERE l.name = $1 AND l.owner = seen.owner
    RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
        THEN pg_catalog.pg_notify('dblock_' || pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0')
            || pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0'), '')::text END AS bell
), told AS (
    UPDATE dblock_schema.dblock_session AS s
    SET changed = s.changed + 1
    WHERE s.id = (SELECT seen.session FROM seen, broken)
    RETURNING 1
)
SELECT pg_catalog.clock_timestamp(), EXISTS (SELECT 1 FROM broken),
    (SELECT seen.is_in_force FROM seen), (SELECT seen.owner FROM seen);

-- name: lease_list
-- in: $1 exactly this name or NULL, $2 prefix or NULL, $3 names above this one or NULL
--   (bytea), $4 also what nobody holds (bool), $5 at most so many
-- out: rows as lease_look
-- One snapshot, in the byte order of names, by the primary key. Waits for nobody.
-- Two pages are two snapshots: a name that is taken in between may be missed.
SELECT pg_catalog.clock_timestamp(), g.is_in_force, ROW(g.l, g.session_expires_at)
FROM (
    SELECT l, l.name, s.expires_at AS session_expires_at,
        CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce(s.expires_at > pg_catalog.clock_timestamp(), false) END AS is_in_force
    FROM dblock_schema.dblock_lease AS l
        LEFT JOIN dblock_schema.dblock_session AS s ON s.id = l.session
    WHERE l.name >= coalesce($1, $2, ''::bytea) AND l.name > coalesce($3, ''::bytea)
        AND ($1 IS NULL OR l.name = $1)
        AND ($2 IS NULL OR pg_catalog.substr(l.name, 1, pg_catalog.octet_length($2::bytea)) = $2)
    ) AS g
WHERE $4 OR g.is_in_force
ORDER BY g.name
LIMIT $5;
