-- SPDX-License-Identifier: MIT
-- draw.sql - a new token for a lease or insert that goes from one thread of a client to
-- another. What holds for every statement is said in connection.sql, and what is in force
-- in lease.sql.

-- name: lease_draw
-- in: $1 name (bytea), $2 owner (bytea)
-- out: as lease_extend, and the token (NULL: not done)
-- As lease_extend in what it locks, skips and tells: a grant that has ended is not revived,
-- and nothing is waited for.
-- Drawn as in lease_take, but under the row's lock in place of the gate. Whoever takes the
-- name next has to find the row given back or clear it, so either meets this lock, and draws
-- after this commit: its count is larger, its base not smaller. Drawn before the lock was had
-- (`drawn` reads `mine`) it could be smaller than that of a grant in between. The token that
-- the grant had was drawn before its commit, which the owner has seen.
-- Durable, with the sequences' log before it. Killed or the answer lost: a number is skipped.
WITH seen AS MATERIALIZED (
    SELECT CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = $2
), mine AS MATERIALIZED (
    SELECT l.token
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name = $1 AND l.owner = $2 AND (SELECT seen.is_in_force FROM seen)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), drawn AS MATERIALIZED (
    SELECT GREATEST(d.token + 1, d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END) AS token
    FROM (
        SELECT mine.token, pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
            (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
        FROM mine
        OFFSET 0) AS d
), written AS (
    UPDATE dblock_schema.dblock_lease AS l
    SET token = drawn.token
    FROM drawn
    WHERE l.name = $1 AND l.owner = $2
    RETURNING l.token
)
SELECT pg_catalog.clock_timestamp(), EXISTS (SELECT 1 FROM written),
    (SELECT seen.is_in_force FROM seen), (SELECT written.token FROM written);

-- name: insert_draw
-- in: as lease_draw
-- out: as lease_draw
-- As lease_draw, on its table, whose row goes with the grant: whoever takes the name next
-- has to see that it is gone before he draws (insert_take), or to lock it (insert_clear).
WITH seen AS MATERIALIZED (
    SELECT CASE WHEN l.session IS NULL THEN l.expires_at > pg_catalog.clock_timestamp()
            ELSE coalesce((SELECT s.expires_at > pg_catalog.clock_timestamp()
                FROM dblock_schema.dblock_session AS s WHERE s.id = l.session), false)
            END AS is_in_force
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = $2
), mine AS MATERIALIZED (
    SELECT l.token
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name = $1 AND l.owner = $2 AND (SELECT seen.is_in_force FROM seen)
    FOR NO KEY UPDATE OF l SKIP LOCKED
), drawn AS MATERIALIZED (
    SELECT GREATEST(d.token + 1, d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END) AS token
    FROM (
        SELECT mine.token, pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
            (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
        FROM mine
        OFFSET 0) AS d
), written AS (
    UPDATE dblock_schema.dblock_insert AS l
    SET token = drawn.token
    FROM drawn
    WHERE l.name = $1 AND l.owner = $2
    RETURNING l.token
)
SELECT pg_catalog.clock_timestamp(), EXISTS (SELECT 1 FROM written),
    (SELECT seen.is_in_force FROM seen), (SELECT written.token FROM written);
