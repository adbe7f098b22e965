-- SPDX-License-Identifier: MIT
-- insert.sql - a row only while the name is held: made by the grant, deleted by the
-- release. What holds for every statement is said in connection.sql and session.sql,
-- and what is in force in lease.sql, with the same statements for its table.

-- name: insert_gate
-- in: as lease_gate
-- out: as lease_gate
-- As lease_gate, on its table. The gates are the same: of two that take one name under
-- both strategies at the same instant one is told AGAIN, and gets it the next time.
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
            FROM dblock_schema.dblock_insert AS l
            WHERE l.name = $1 AND l.owner IS NOT NULL) AS other
    OFFSET 0) AS seen;

-- name: insert_clear
-- in: as lease_clear
-- out: as lease_clear
-- As lease_clear, but the row goes. FOR UPDATE, as a guard holds FOR SHARE and a deleter
-- must not wait for it.
WITH seen AS MATERIALIZED (
    SELECT g.owner, g.session, g.session IS NOT NULL AND g.ends_at IS NULL AS is_gone
    FROM (
        SELECT l.owner, l.session, l.expires_at,
            (SELECT s.expires_at FROM dblock_schema.dblock_session AS s
                WHERE s.id = l.session) AS ends_at
        FROM dblock_schema.dblock_insert AS l
        WHERE l.name = $1 AND l.owner IS NOT NULL
            AND pg_catalog.current_setting('dblock.gate', true) = 'mine'
        OFFSET 0) AS g
    WHERE CASE WHEN g.session IS NULL THEN g.expires_at <= pg_catalog.clock_timestamp()
        ELSE coalesce(g.ends_at <= pg_catalog.clock_timestamp(), true) END
), unlocked AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = (SELECT seen.owner FROM seen)
    FOR UPDATE OF l SKIP LOCKED
), ended AS (
    DELETE FROM dblock_schema.dblock_session AS s
    WHERE s.id = (SELECT seen.session FROM seen)
        AND s.expires_at <= pg_catalog.clock_timestamp()
    RETURNING 1
), cleared AS (
    DELETE FROM dblock_schema.dblock_insert AS l
    USING unlocked
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

-- name: insert_take
-- in: as lease_take
-- out: as lease_take
-- As lease_take, on its table, where a row is a grant: if there is one now, nothing is
-- taken. What the last holder's token was is not known here, and need not be: the token is
-- drawn from the sequences under the gate, and whoever deleted the row had drawn before.
-- That is so only of a row that is gone in this snapshot, which is newer than the gate: the
-- holder of one that came since the gate's own may draw again (insert_draw) and give back
-- while this is between its draw and its row, and ON CONFLICT would find no row any more.
-- So the snapshot is asked first, and nobody is waited for but a hand without the gate.
INSERT INTO dblock_schema.dblock_insert AS l
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
        AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_insert AS h WHERE h.name = $1)
    OFFSET 0) AS d
ON CONFLICT (name) DO NOTHING
RETURNING l.token, pg_catalog.clock_timestamp();

-- name: insert_drop
-- in: as lease_drop
-- out: as lease_drop
-- As lease_drop, but the row goes: nothing is left behind, and the next token is larger
-- all the same (insert_take). FOR UPDATE, as in insert_clear.
-- Commits without waiting for the disk, as lease_drop and under the same rule.
DELETE FROM dblock_schema.dblock_insert AS l
USING (
    SELECT m.session, m.expires_at,
        pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy,
        CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
            THEN pg_catalog.pg_notify('dblock_' || pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0')
                || pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0'), '')::text END AS bell
    FROM dblock_schema.dblock_insert AS m
    WHERE m.name = $1 AND m.owner = $2
    FOR UPDATE OF m SKIP LOCKED) AS mine
WHERE l.name = $1 AND l.owner = $2
RETURNING pg_catalog.clock_timestamp(),
    CASE WHEN mine.session IS NULL THEN mine.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = mine.session), false) END;

-- name: insert_extend
-- in: as lease_extend
-- out: as lease_extend
-- As lease_extend, on its table. The row stays until its time is over and somebody takes
-- the name or the purge comes.
WITH seen AS MATERIALIZED (
    SELECT CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = $2
), mine AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = $2 AND (SELECT seen.is_in_force FROM seen)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), extended AS (
    UPDATE dblock_schema.dblock_insert AS l
    SET session = NULL, expires_at = pg_catalog.clock_timestamp() + $3
    FROM mine
    WHERE l.name = $1 AND l.owner = $2
    RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($4, $5)
        THEN pg_catalog.pg_notify('dblock_' || pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')
            || pg_catalog.lpad(pg_catalog.to_hex($5), 8, '0'), '')::text END AS bell
)
SELECT pg_catalog.clock_timestamp(), EXISTS (SELECT 1 FROM extended),
    (SELECT seen.is_in_force FROM seen);

-- name: insert_look
-- in: as lease_look
-- out: as lease_look
-- As lease_look, on its table. No row means nobody.
-- One snapshot, newer than every acknowledged commit; waits for nobody.
SELECT pg_catalog.clock_timestamp(),
    CASE WHEN l.name IS NULL THEN NULL
        WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false) END,
    ROW(l, (SELECT s.expires_at FROM dblock_schema.dblock_session AS s WHERE s.id = l.session))
FROM (SELECT 1) AS one
    LEFT JOIN dblock_schema.dblock_insert AS l ON l.name = $1;

-- name: insert_end
-- in: as lease_end
-- out: as lease_end
-- As lease_end, but the row goes. Durable: a guard that compares the token finds no row.
-- Locks the grant, then the session, in the order of insert_clear.
WITH seen AS MATERIALIZED (
    SELECT l.owner, l.session,
        CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner IS NOT NULL AND ($2 = 0 OR l.token = $2)
), mine AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = (SELECT seen.owner FROM seen WHERE seen.is_in_force)
        AND ($2 = 0 OR l.token = $2)
    FOR UPDATE OF l SKIP LOCKED
), broken AS (
    DELETE FROM dblock_schema.dblock_insert AS l
    USING mine, seen
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

-- name: insert_list
-- in: as lease_list
-- out: rows as lease_look
-- As lease_list, on its table.
-- One snapshot by the primary key; waits for nobody.
SELECT pg_catalog.clock_timestamp(), g.is_in_force, ROW(g.l, g.session_expires_at)
FROM (
    SELECT l, l.name, s.expires_at AS session_expires_at,
        CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce(s.expires_at > pg_catalog.clock_timestamp(), false) END AS is_in_force
    FROM dblock_schema.dblock_insert AS l
        LEFT JOIN dblock_schema.dblock_session AS s ON s.id = l.session
    WHERE l.name >= coalesce($1, $2, ''::bytea) AND l.name > coalesce($3, ''::bytea)
        AND ($1 IS NULL OR l.name = $1)
        AND ($2 IS NULL OR pg_catalog.substr(l.name, 1, pg_catalog.octet_length($2::bytea)) = $2)
    ) AS g
WHERE $4 OR g.is_in_force
ORDER BY g.name
LIMIT $5;
