-- SPDX-License-Identifier: MIT
-- token.sql - tokens of row and advisory locks, drawn when asked for.
-- What holds for every statement is said in connection.sql.

-- name: token_draw
-- in: $1 strategy, $2 name (bytea)
-- out: clock, token
-- From the same sequences as lease_take, without a gate: the drawer holds the lock. What
-- an earlier holder drew, it drew and proved before its lock ended, so before this one
-- began: its count was smaller, its base not larger. A holder whose lock has ended may
-- draw a larger one still, but not prove it (row: the library asks the lock's connection
-- afterwards; advisory: drawn on the lock's own connection, or not at all).
-- The row is not where the token comes from. It carries the sequences' log to the disk
-- with its commit (a transaction without a write flushes nothing), and tells people.
-- Two that draw for one name: the second waits for the first one's commit, and the row
-- keeps the larger one; each is told its own.
-- Killed after the commit, or the answer lost: a number is skipped.
WITH drawn AS MATERIALIZED (
    SELECT d.count + CASE
        WHEN d.base + d.count < d.clock - 100000
            AND pg_catalog.pg_try_advisory_xact_lock(7234316452871503210)
        THEN pg_catalog.setval('dblock_schema.dblock_token_base', GREATEST(
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base'),
            d.clock - d.count))
        ELSE d.base END AS token
    FROM (
        SELECT pg_catalog.nextval('dblock_schema.dblock_token_count') AS count,
            pg_catalog.pg_sequence_last_value('dblock_schema.dblock_token_base') AS base,
            (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock
        OFFSET 0) AS d
), noted AS (
    INSERT INTO dblock_schema.dblock_token AS t (strategy, name, token, since, server_pid)
    SELECT $1, $2, drawn.token, pg_catalog.clock_timestamp(), pg_catalog.pg_backend_pid()
    FROM drawn
    ON CONFLICT (strategy, name) DO UPDATE
    SET token = GREATEST(t.token, excluded.token), since = excluded.since,
        server_pid = excluded.server_pid
    RETURNING 1
)
SELECT pg_catalog.clock_timestamp(), drawn.token FROM drawn, noted;
