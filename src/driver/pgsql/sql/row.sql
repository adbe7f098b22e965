-- SPDX-License-Identifier: MIT
-- row.sql - a row lock, held by the open transaction of its connection.
-- What holds for every statement is said in connection.sql.
--
-- FOR UPDATE, the strongest: plain SQL that locks the same row in any way is excluded
-- too. Nothing here writes what must last, so these connections commit lazily.

-- name: row_seed
-- in: $1 name (bytea)
-- out: clock
-- A transaction of its own, before the one that locks, most often over the same connection. A row
-- that is there, locked or not, is not waited for. Two that make the same one: the second waits for
-- the first one's commit, which follows at once. A lost answer, or a lazy commit that a crash
-- forgets: repeating it is harmless.
INSERT INTO dblock_schema.dblock_row AS r (name, since)
VALUES ($1, pg_catalog.clock_timestamp())
ON CONFLICT (name) DO NOTHING;

-- name: row_take
-- in: $1 name (bytea)
-- out: is it locked by this transaction now (NULL: there is no such row)
-- After BEGIN, in the same message. Never waits: a row that somebody holds is skipped.
-- A row that is committed after the snapshot is not seen: unseeded, and the next attempt
-- sees it. One that a purge deletes meanwhile counts as held; the next attempt sees that
-- it is gone.
-- Killed or cut off: the transaction ends with its connection, and the lock with it.
WITH locked AS MATERIALIZED (
    SELECT 1 AS one FROM dblock_schema.dblock_row AS r
    WHERE r.name = $1 FOR UPDATE OF r SKIP LOCKED
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM locked) THEN true
    WHEN EXISTS (SELECT 1 FROM dblock_schema.dblock_row AS r WHERE r.name = $1) THEN false END;

-- name: row_take_turn
-- in: $1 name (bytea), $2 and $3 key of the turn
-- out: as row_take
-- For who waits, or tries in order of arrival: takes it only if the turn is this session's, or
-- nobody has it or waits for it. The turn belongs to the transaction then, and what the session
-- has from standing in line is given back: whoever comes next waits for the turn, and gets it when
-- this transaction has ended.
WITH turn AS MATERIALIZED (
    SELECT pg_catalog.pg_try_advisory_xact_lock($2::integer, $3::integer) AS is_mine
), locked AS MATERIALIZED (
    SELECT 1 AS one FROM dblock_schema.dblock_row AS r
    WHERE r.name = $1 AND (SELECT t.is_mine FROM turn AS t) FOR UPDATE OF r SKIP LOCKED
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM locked) THEN pg_catalog.pg_advisory_unlock_all() IS NOT NULL
    WHEN EXISTS (SELECT 1 FROM dblock_schema.dblock_row AS r WHERE r.name = $1) THEN false END;

-- name: row_take_in_turn
-- in: $1 name (bytea), $2 and $3 key of the turn, $4 ms of a slice
-- out: as row_take
-- After BEGIN, in the same message: the first slice of a wait for the turn, which is the
-- transaction's then, and the row. false: the slice is over, or the turn is had, and who holds the
-- row came without one. The snapshot is from before the wait, which is no harm: rows are locked
-- and not changed, so who holds this one is seen in the row itself. One that was made meanwhile
-- is unseeded, and one that was deleted counts as held: the next attempt sees what there is.
-- The turn goes with the transaction, to whose end it belongs: a caller that got no row rolls back,
-- and stands in line anew. One that a cancel request ended got neither.
WITH turn AS MATERIALIZED (
    SELECT dblock_schema.dblock_wait(NULL, $2, $3, $4) = 1 AS is_mine
), locked AS MATERIALIZED (
    SELECT 1 AS one FROM dblock_schema.dblock_row AS r
    WHERE r.name = $1 AND (SELECT t.is_mine FROM turn AS t) FOR UPDATE OF r SKIP LOCKED
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM locked) THEN true
    WHEN EXISTS (SELECT 1 FROM dblock_schema.dblock_row AS r WHERE r.name = $1) THEN false END;

-- name: row_wait_in_turn
-- in: $1 schema as an identifier (text), $2 name (bytea), $3 and $4 key of the turn, $5 ms of a
--   slice
-- out: one row: 0 not yet, 1 locked by this transaction now, 2 cancelled, 3 there is no such row
-- After BEGIN, in the same message: as row_wait and row_take_turn in one, where there are the
-- procedures. What the session has from standing in line is given back.
SELECT dblock_schema.dblock_wait_row($1, $2, $3, $4, $5);

-- name: row_arm
-- in: $1 name (bytea), $2 how long (text, ms), $3 and $4 key of the turn
-- out: the settings, for the rest of this transaction
-- DO takes no parameters, so row_wait reads them here; the name as hex digits, which need
-- no quoting. Local to the transaction, which ends with the slice: nothing stays behind.
SELECT pg_catalog.set_config('dblock.name', pg_catalog.encode($1, 'hex'), true),
    pg_catalog.set_config('lock_timeout', $2::text, true),
    pg_catalog.set_config('dblock.high', $3::integer::text, true),
    pg_catalog.set_config('dblock.low', $4::integer::text, true);

-- name: row_wait
-- in: nothing (row_arm)
-- out: nothing; row_take follows and tells
-- Stands in the server's queue for one slice: the turn, an advisory lock that who gets the
-- row keeps to the end of its transaction. FOR UPDATE has a queue of its own, but there one
-- statement waits twice, behind the others and for the holder, each time for the whole of
-- lock_timeout. Here the second wait has what the first one left, and is needed only if the
-- holder came without a turn (a try, plain SQL). The holder's end shows its row free before
-- it lets the turn go. Where there are the routines and no pooler, the turn is waited for by
-- row_take_in_turn, and after its slice by line_stand: it is the line of the name, and this is
-- the second wait alone.
-- The end of a slice by lock_timeout, or by the cancel request of a caller that gives up, is
-- caught here: uncaught, each would be a line in the server's log. A caught one undoes the
-- block, and with it any lock it got. The server signals a cancel request twice, to the
-- process and to its group, and on a busy machine the second comes late: that is what the
-- nap is for.
-- The slice is short and ends with its transaction, because a statement that waits holds
-- a snapshot, and CREATE INDEX CONCURRENTLY waits for those while it may hold up the
-- holder. Shorter also than deadlock_timeout, so log_lock_waits stays silent.
DO $dblock$
DECLARE
    over_at CONSTANT timestamptz := pg_catalog.clock_timestamp()
        + pg_catalog.current_setting('lock_timeout')::interval;
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.current_setting('dblock.high')::integer,
        pg_catalog.current_setting('dblock.low')::integer);
    PERFORM pg_catalog.set_config('lock_timeout', greatest(1, extract(epoch FROM
        over_at - pg_catalog.clock_timestamp()) * 1000)::integer::text, true);
    PERFORM 1 FROM dblock_schema.dblock_row AS r
    WHERE r.name = pg_catalog.decode(pg_catalog.current_setting('dblock.name'), 'hex')
    FOR UPDATE;
EXCEPTION
    WHEN lock_not_available THEN
        NULL;
    WHEN query_canceled THEN
        BEGIN
            PERFORM pg_catalog.pg_sleep(0.01);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
END
$dblock$;

-- name: row_holder
-- in: $1 name (bytea)
-- out: clock; server_pid, application_name, transaction's start (us since 2000), token
--   drawn since then; all NULL as far as it is not known
-- For people, outside of the row's transaction: the lock is in the row itself (xmax), and
-- whoever runs that transaction holds the lock on its number. What this role may not see
-- of other roles' sessions is NULL.
-- Reads shared memory and one row, waits for nobody; it may be over when it is told.
SELECT pg_catalog.clock_timestamp(), h.pid, h.application_name, h.xact_start,
    (SELECT t.token FROM dblock_schema.dblock_token AS t
     WHERE t.strategy = 3 AND t.name = $1 AND t.since >= h.xact_start)
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT l.pid, a.application_name, a.xact_start
    FROM dblock_schema.dblock_row AS r
        JOIN pg_catalog.pg_locks AS l ON l.locktype = 'transactionid'
            AND l.transactionid = r.xmax AND l.granted AND l.mode = 'ExclusiveLock'
        LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    WHERE r.name = $1
    LIMIT 1) AS h ON true;

-- name: row_list
-- in: as lease_list
-- out: rows: clock, name, is it held, server_pid, application_name, transaction's start,
--   token drawn since then
-- As row_holder for many; pg_locks is read once. For people: what it says may be over.
-- One snapshot of the names by the primary key; waits for nobody.
WITH lock AS MATERIALIZED (
    SELECT l.transactionid, l.pid FROM pg_catalog.pg_locks AS l
    WHERE l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock'
)
SELECT pg_catalog.clock_timestamp(), r.name, lock.pid IS NOT NULL, lock.pid, a.application_name,
    a.xact_start,
    (SELECT t.token FROM dblock_schema.dblock_token AS t
     WHERE t.strategy = 3 AND t.name = r.name AND t.since >= a.xact_start)
FROM dblock_schema.dblock_row AS r
    LEFT JOIN lock ON lock.transactionid = r.xmax
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = lock.pid
WHERE r.name >= coalesce($1, $2, ''::bytea) AND r.name > coalesce($3, ''::bytea)
    AND ($1 IS NULL OR r.name = $1)
    AND ($2 IS NULL OR pg_catalog.substr(r.name, 1, pg_catalog.octet_length($2::bytea)) = $2)
    AND ($4 OR lock.pid IS NOT NULL)
ORDER BY r.name
LIMIT $5;
