-- SPDX-License-Identifier: MIT
-- token.sql - tokens of row and advisory locks, drawn when asked for.
-- What holds for every statement is said in connection.sql.

-- name: token_draw
-- in: $1 strategy, $2 name (bytea; "#ID" of an advisory lock that was named by its id)
-- out: clock, token (NULL: the row of the last one is locked)
-- From the same sequences as lease_take: the drawer holds the lock. What an earlier holder
-- drew, it drew and proved before its lock ended, so before this one began: its count was
-- smaller, its base not larger. A holder whose lock has ended may draw a larger one still,
-- but not prove it (row: the library asks the lock's connection afterwards; advisory: drawn
-- on the lock's own connection, or not at all).
-- The row is not where the token comes from. It carries the sequences' log to the disk
-- with its commit (a transaction without a write flushes nothing), tells people, and is what
-- a guarded transaction pins (token_guard): that is skipped, so it is not waited for, and
-- nothing is drawn, not even a number. So is a row that a statement of ours has at this
-- moment (the purge, another draw): the library asks again before it believes it.
-- Two that draw the first one for a name: the second waits for the first one's commit, and
-- the row keeps the larger one; each is told its own.
-- Killed after the commit, or the answer lost: a number is skipped.
WITH gate AS MATERIALIZED (
    SELECT 1 FROM dblock_schema.dblock_token AS t WHERE t.strategy = $1 AND t.name = $2
    FOR NO KEY UPDATE SKIP LOCKED
), drawn AS MATERIALIZED (
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
        WHERE EXISTS (SELECT 1 FROM gate) OR NOT EXISTS (
            SELECT 1 FROM dblock_schema.dblock_token AS t WHERE t.strategy = $1 AND t.name = $2)
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
SELECT pg_catalog.clock_timestamp(), (SELECT drawn.token FROM drawn, noted);

-- name: token_end
-- in: $1 strategy, $2 name as token_draw, $3 token
-- out: has it gone up; is it that one still, as far as is known
-- Second step of a break, once the session that drew it has ended: who still goes by that
-- token is refused by guards at once, before there is a next holder. He draws a larger one or
-- this very number, which nobody else has for that name. If he has drawn already, the row is
-- his, and left alone. Neither: somebody stands on the row, most likely a guarded transaction
-- of the old holder; it is not waited for.
WITH raised AS (
    UPDATE dblock_schema.dblock_token AS t SET token = t.token + 1
    WHERE t.strategy = $1 AND t.name = $2 AND t.token = $3 AND EXISTS (
        SELECT 1 FROM (
            SELECT 1 FROM dblock_schema.dblock_token AS g
            WHERE g.strategy = $1 AND g.name = $2 FOR NO KEY UPDATE SKIP LOCKED) AS gate)
    RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM raised), EXISTS (
    SELECT 1 FROM dblock_schema.dblock_token AS t
    WHERE t.strategy = $1 AND t.name = $2 AND t.token = $3);
