-- SPDX-License-Identifier: MIT
-- many.sql - several names of lease or insert at once, all or none. What holds for one name
-- (lease.sql, insert.sql) holds for each of them.
--
-- A take is a message of three statements, one transaction: gate, take, keep. Nothing in it
-- waits for a lock that another such message holds: the gates, which are what two takers of
-- one name meet at, are only tried for. So the order of the names does not matter, and two
-- callers cannot wait for each other in a circle; if both have some of the gates, both go
-- away with nothing (AGAIN). They are given in one order, so mostly one of them has all.
-- Cut before the commit, or lost a gate: nothing happened, some numbers are skipped.
--
-- `= ANY ($1)` says to the planner what the join says, too: a table of some dozens of rows it
-- would else read whole, for whatever few names are asked for.

-- name: lease_many_gate
-- in: $1 names (bytea[]), $2 my session (bytea) or NULL: timed, $3 not_after (us since 2000),
--   $4 and $5 keys of their lines (int4[]), or NULL: not heeded
-- out: one row: my session's expires_at (NULL: over), 'mine' if all gates are mine, 'no' if
--   not, 'line' if somebody is first in a line (NULL: not tried for), the place of a name
--   that is in the way (NULL: none), 2 if it is held, 1 if its grant has ended, its grant as
--   in lease_gate, the places of all whose grants have ended (text), of all that are held, clock
-- One snapshot. Busy: nothing is tried for, written or waited for. A statement of its own,
-- for the reason that is given at lease_gate.
-- Grants that have ended are cleared before by lease_gate and lease_clear, one by one.
WITH seen AS MATERIALIZED (
    SELECT g.place, g.name, g.key1, g.key2,
        CASE WHEN g.owner IS NULL THEN 0
            WHEN CASE WHEN g.session IS NULL THEN g.expires_at > pg_catalog.clock_timestamp()
                ELSE coalesce(g.ends_at > pg_catalog.clock_timestamp(), false) END THEN 2
            ELSE 1 END AS state,
        ROW(g.l, g.ends_at) AS whole
    FROM (
        SELECT w.place, w.name, w.key1, w.key2, l, l.owner, l.session, l.expires_at,
            (SELECT s.expires_at FROM dblock_schema.dblock_session AS s
                WHERE s.id = l.session) AS ends_at
        FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($4), pg_catalog.unnest($5))
            WITH ORDINALITY AS w(name, key1, key2, place)
            LEFT JOIN dblock_schema.dblock_lease AS l ON l.name = w.name AND l.name = ANY ($1)
        OFFSET 0) AS g
), me AS MATERIALIZED (
    SELECT s.expires_at
    FROM dblock_schema.dblock_session AS s
    WHERE s.id = $2 AND s.expires_at > pg_catalog.clock_timestamp()
), may AS MATERIALIZED (
    SELECT pg_catalog.clock_timestamp() <= $3 AND ($2 IS NULL OR EXISTS (SELECT 1 FROM me))
        AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.state > 0) AS try
), lined AS MATERIALIZED (
    SELECT min(seen.place) FILTER (WHERE NOT
        pg_catalog.pg_try_advisory_xact_lock_shared(seen.key1, seen.key2)) AS place
    FROM seen
    WHERE $4 IS NOT NULL AND (SELECT may.try FROM may)
), gated AS MATERIALIZED (
    SELECT count(*) AS n, pg_catalog.bool_and(pg_catalog.pg_try_advisory_xact_lock(
        pg_catalog.hashtextextended(pg_catalog.encode(seen.name, 'hex') COLLATE "C", 7201)))
        AS is_mine
    FROM seen
    WHERE (SELECT may.try FROM may) AND (SELECT lined.place FROM lined) IS NULL
)
SELECT (SELECT me.expires_at FROM me),
    CASE WHEN lined.place IS NOT NULL THEN 'line'
        WHEN gated.n > 0 THEN pg_catalog.set_config('dblock.gate',
            CASE WHEN gated.is_mine THEN 'mine' ELSE 'no' END, true) END,
    coalesce(lined.place, way.place), way.state, way.whole,
    (SELECT pg_catalog.string_agg(seen.place::text, ',') FROM seen WHERE seen.state = 1),
    (SELECT pg_catalog.string_agg(seen.place::text, ',') FROM seen WHERE seen.state = 2),
    pg_catalog.clock_timestamp()
FROM lined CROSS JOIN gated
    LEFT JOIN (
        SELECT seen.place, seen.state, seen.whole
        FROM seen
        WHERE seen.state > 0
        ORDER BY seen.state DESC, seen.place
        LIMIT 1) AS way ON true;

-- name: lease_many_take
-- in: $1 names (bytea[]), $2 my session (bytea) or NULL: timed, $3 ttl (interval; timed),
--   $4 owners (bytea[]), $5 label, $6 host, $7 pid
-- out: name and token of each that was taken, clock
-- After lease_many_gate, and only with all gates; as lease_take for each. A row that has an
-- owner all the same (taken just before the gates were got, or by a hand without the gate)
-- is left alone, and not locked: then lease_many_keep gives all back.
INSERT INTO dblock_schema.dblock_lease AS l
    (name, session, owner, token, since, expires_at, label, host, pid)
SELECT w.name, $2, w.owner,
    d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END,
    pg_catalog.clock_timestamp(),
    CASE WHEN $2 IS NULL THEN pg_catalog.clock_timestamp() + $3 ELSE '-infinity' END,
    $5, $6, $7
FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($4))
    WITH ORDINALITY AS w(name, owner, place)
    CROSS JOIN LATERAL (
        SELECT pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
            (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
        WHERE pg_catalog.current_setting('dblock.gate', true) = 'mine' AND w.place > 0
            AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_lease AS h
                WHERE h.name = w.name AND h.owner IS NOT NULL)
        OFFSET 0) AS d
ON CONFLICT (name) DO UPDATE
SET session = excluded.session, owner = excluded.owner,
    token = GREATEST(l.token + 1, excluded.token),
    since = excluded.since, expires_at = excluded.expires_at,
    label = excluded.label, host = excluded.host, pid = excluded.pid
WHERE l.owner IS NULL
RETURNING l.name, l.token, pg_catalog.clock_timestamp();

-- name: lease_many_keep
-- in: $1 names (bytea[]), $2 owners (bytea[]), $3 not_after (us since 2000)
-- out: a row for each that was given back
-- The end of the message: not all were taken, or it is too late by now. Then none is, and as
-- it is the same transaction nobody has seen any of them. Both are judged once, for all.
UPDATE dblock_schema.dblock_lease AS l
SET session = NULL, owner = NULL, expires_at = '-infinity',
    since = pg_catalog.clock_timestamp()
FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS w(name, owner)
WHERE l.name = w.name AND l.owner = w.owner AND l.name = ANY ($1)
    AND pg_catalog.current_setting('dblock.gate', true) = 'mine'
    AND (SELECT pg_catalog.clock_timestamp() > $3 OR pg_catalog.cardinality($1) > (
        SELECT count(*)
        FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS o(name, owner)
            JOIN dblock_schema.dblock_lease AS k ON k.name = o.name AND k.owner = o.owner
        WHERE k.name = ANY ($1)))
RETURNING 1;

-- name: lease_many_drop
-- in: $1 names (bytea[]), $2 owners (bytea[]), $3 and $4 keys of their lines (int4[])
-- out: of each that was dropped: name, clock, was the grant in force
-- As lease_drop for each, and under the same rule for the commit. Rows that somebody stands
-- on are skipped, so it waits for nobody, whatever order others have.
UPDATE dblock_schema.dblock_lease AS l
SET session = NULL, owner = NULL, expires_at = '-infinity',
    since = pg_catalog.clock_timestamp()
FROM (
    SELECT m.name, m.owner, m.session, m.expires_at,
        pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy,
        CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared(w.key1, w.key2)
            THEN pg_catalog.pg_notify('dblock_' ||
                pg_catalog.lpad(pg_catalog.to_hex(w.key1), 8, '0') ||
                pg_catalog.lpad(pg_catalog.to_hex(w.key2), 8, '0'), '')::text END AS bell
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
            pg_catalog.unnest($4))
        AS w(name, owner, key1, key2)
        JOIN dblock_schema.dblock_lease AS m ON m.name = w.name AND m.owner = w.owner
    WHERE m.name = ANY ($1)
    FOR NO KEY UPDATE OF m SKIP LOCKED) AS mine
WHERE l.name = mine.name AND l.owner = mine.owner AND l.name = ANY ($1)
RETURNING l.name, pg_catalog.clock_timestamp(),
    CASE WHEN mine.session IS NULL THEN mine.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = mine.session), false) END;

-- name: insert_many_gate
-- in: as lease_many_gate
-- out: as lease_many_gate
-- As lease_many_gate, on its table, where a row is a grant.
WITH seen AS MATERIALIZED (
    SELECT g.place, g.name, g.key1, g.key2,
        CASE WHEN g.owner IS NULL THEN 0
            WHEN CASE WHEN g.session IS NULL THEN g.expires_at > pg_catalog.clock_timestamp()
                ELSE coalesce(g.ends_at > pg_catalog.clock_timestamp(), false) END THEN 2
            ELSE 1 END AS state,
        ROW(g.l, g.ends_at) AS whole
    FROM (
        SELECT w.place, w.name, w.key1, w.key2, l, l.owner, l.session, l.expires_at,
            (SELECT s.expires_at FROM dblock_schema.dblock_session AS s
                WHERE s.id = l.session) AS ends_at
        FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($4), pg_catalog.unnest($5))
            WITH ORDINALITY AS w(name, key1, key2, place)
            LEFT JOIN dblock_schema.dblock_insert AS l ON l.name = w.name AND l.name = ANY ($1)
        OFFSET 0) AS g
), me AS MATERIALIZED (
    SELECT s.expires_at
    FROM dblock_schema.dblock_session AS s
    WHERE s.id = $2 AND s.expires_at > pg_catalog.clock_timestamp()
), may AS MATERIALIZED (
    SELECT pg_catalog.clock_timestamp() <= $3 AND ($2 IS NULL OR EXISTS (SELECT 1 FROM me))
        AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.state > 0) AS try
), lined AS MATERIALIZED (
    SELECT min(seen.place) FILTER (WHERE NOT
        pg_catalog.pg_try_advisory_xact_lock_shared(seen.key1, seen.key2)) AS place
    FROM seen
    WHERE $4 IS NOT NULL AND (SELECT may.try FROM may)
), gated AS MATERIALIZED (
    SELECT count(*) AS n, pg_catalog.bool_and(pg_catalog.pg_try_advisory_xact_lock(
        pg_catalog.hashtextextended(pg_catalog.encode(seen.name, 'hex') COLLATE "C", 7201)))
        AS is_mine
    FROM seen
    WHERE (SELECT may.try FROM may) AND (SELECT lined.place FROM lined) IS NULL
)
SELECT (SELECT me.expires_at FROM me),
    CASE WHEN lined.place IS NOT NULL THEN 'line'
        WHEN gated.n > 0 THEN pg_catalog.set_config('dblock.gate',
            CASE WHEN gated.is_mine THEN 'mine' ELSE 'no' END, true) END,
    coalesce(lined.place, way.place), way.state, way.whole,
    (SELECT pg_catalog.string_agg(seen.place::text, ',') FROM seen WHERE seen.state = 1),
    (SELECT pg_catalog.string_agg(seen.place::text, ',') FROM seen WHERE seen.state = 2),
    pg_catalog.clock_timestamp()
FROM lined CROSS JOIN gated
    LEFT JOIN (
        SELECT seen.place, seen.state, seen.whole
        FROM seen
        WHERE seen.state > 0
        ORDER BY seen.state DESC, seen.place
        LIMIT 1) AS way ON true;

-- name: insert_many_take
-- in: as lease_many_take
-- out: as lease_many_take
-- As lease_many_take, and as insert_take for each.
INSERT INTO dblock_schema.dblock_insert AS l
    (name, session, owner, token, since, expires_at, label, host, pid)
SELECT w.name, $2, w.owner,
    d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END,
    pg_catalog.clock_timestamp(),
    CASE WHEN $2 IS NULL THEN pg_catalog.clock_timestamp() + $3 ELSE '-infinity' END,
    $5, $6, $7
FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($4))
    WITH ORDINALITY AS w(name, owner, place)
    CROSS JOIN LATERAL (
        SELECT pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
            (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
        WHERE pg_catalog.current_setting('dblock.gate', true) = 'mine' AND w.place > 0
            AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_insert AS h WHERE h.name = w.name)
        OFFSET 0) AS d
ON CONFLICT (name) DO NOTHING
RETURNING l.name, l.token, pg_catalog.clock_timestamp();

-- name: insert_many_keep
-- in: as lease_many_keep
-- out: as lease_many_keep
-- As lease_many_keep, but the rows go.
DELETE FROM dblock_schema.dblock_insert AS l
USING ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS w(name, owner)
WHERE l.name = w.name AND l.owner = w.owner AND l.name = ANY ($1)
    AND pg_catalog.current_setting('dblock.gate', true) = 'mine'
    AND (SELECT pg_catalog.clock_timestamp() > $3 OR pg_catalog.cardinality($1) > (
        SELECT count(*)
        FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS o(name, owner)
            JOIN dblock_schema.dblock_insert AS k ON k.name = o.name AND k.owner = o.owner
        WHERE k.name = ANY ($1)))
RETURNING 1;

-- name: insert_many_drop
-- in: as lease_many_drop
-- out: as lease_many_drop
-- As lease_many_drop, but the rows go, as in insert_drop.
DELETE FROM dblock_schema.dblock_insert AS l
USING (
    SELECT m.name, m.owner, m.session, m.expires_at,
        pg_catalog.set_config('synchronous_commit', 'off', true) AS is_lazy,
        CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared(w.key1, w.key2)
            THEN pg_catalog.pg_notify('dblock_' ||
                pg_catalog.lpad(pg_catalog.to_hex(w.key1), 8, '0') ||
                pg_catalog.lpad(pg_catalog.to_hex(w.key2), 8, '0'), '')::text END AS bell
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
            pg_catalog.unnest($4))
        AS w(name, owner, key1, key2)
        JOIN dblock_schema.dblock_insert AS m ON m.name = w.name AND m.owner = w.owner
    WHERE m.name = ANY ($1)
    FOR UPDATE OF m SKIP LOCKED) AS mine
WHERE l.name = mine.name AND l.owner = mine.owner AND l.name = ANY ($1)
RETURNING l.name, pg_catalog.clock_timestamp(),
    CASE WHEN mine.session IS NULL THEN mine.expires_at > pg_catalog.clock_timestamp()
        ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
            FROM dblock_schema.dblock_session AS s WHERE s.id = mine.session), false) END;
