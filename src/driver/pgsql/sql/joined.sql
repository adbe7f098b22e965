-- SPDX-License-Identifier: MIT
-- joined.sql - row and advisory locks that belong to a transaction of the application; on
-- its connection, as in guard.sql. Whoever locks the same name by a connection of dblock's
-- own meets them, and the other way round: they are the same rows and the same ids.
-- Each ends with the transaction, with a savepoint that is rolled back to, or with the
-- connection. There is no answer whose loss leaves anything behind: then the connection,
-- and with it the transaction, is over.
--
-- What goes in the driver writes into the text: @NAME@ the name as hex digits, @ID@ the id
-- itself or NULL, @HIGH@ and @LOW@ the key of the turn, @SLICE@ ms. A message of one text costs
-- what the application's own statements do, one with parameters a tenth more; and DO takes none.

-- name: joined_row_take
-- in: @NAME@
-- out: one row: it is locked by this transaction now; none: somebody has it, or there is no
--   such row in this snapshot
-- All that a free name costs, so it is short. Never waits: a row that somebody
-- holds is skipped. One that this transaction has already is locked again, to no effect.
-- Not read committed, and the row was deleted after the snapshot (a purge): 40001.
SELECT 1 FROM dblock_schema.dblock_row
WHERE name OPERATOR(pg_catalog.=) E'\\x@NAME@'
FOR UPDATE SKIP LOCKED;

-- name: joined_row_look
-- in: @NAME@
-- out: is there such a row in this snapshot; does the transaction read committed
-- A row is made by another connection, in autocommit: made here nobody could lock it before
-- this transaction has ended. A snapshot that is older does not see it.
SELECT EXISTS (SELECT 1 FROM dblock_schema.dblock_row AS r
        WHERE r.name OPERATOR(pg_catalog.=) E'\\x@NAME@'),
    pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}');

-- name: joined_limits
-- in: nothing
-- out: ms until the server looks for a deadlock, ms that a statement may take (0: no limit)
-- Before a wait: reads settings only.
SELECT (pg_catalog.date_part('epoch',
        pg_catalog.current_setting('deadlock_timeout')::interval)
            OPERATOR(pg_catalog.*) 1000)::bigint,
    (pg_catalog.date_part('epoch',
        pg_catalog.current_setting('statement_timeout')::interval)
            OPERATOR(pg_catalog.*) 1000)::bigint;

-- name: joined_row_wait
-- in: @NAME@, @HIGH@, @LOW@, @SLICE@
-- out: one row: locked now; does the transaction read committed; none: it is not
-- One slice in the server's queue, as row_wait, which says why the turn, and why the end of a
-- slice and a cancel request are caught: it is not the transaction's failure, and the block
-- undoes what it got, also its lock_timeout. If the row is got that is set back by hand. The
-- turn then belongs to the transaction, as it does for row_take_turn.
-- The slice is longer than deadlock_timeout, other than in row_wait: this transaction may hold
-- what the holder waits for, and the server looks for that only when a wait has lasted so long.
-- A deadlock is not caught: the transaction fails, and lets go of what the other waits for.
-- The row was deleted meanwhile: ended in the same way, or the turn would stay here.
DO $dblock$
DECLARE
    before CONSTANT pg_catalog.text := pg_catalog.current_setting('lock_timeout');
    over_at CONSTANT timestamp with time zone := pg_catalog.clock_timestamp()
        OPERATOR(pg_catalog.+) (@SLICE@ OPERATOR(pg_catalog.*) interval '1 ms');
BEGIN
    PERFORM pg_catalog.set_config('lock_timeout', '@SLICE@', true);
    PERFORM pg_catalog.pg_advisory_xact_lock(@HIGH@, @LOW@);
    PERFORM pg_catalog.set_config('lock_timeout', greatest(1, extract(epoch FROM
        over_at OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 1000)::integer::pg_catalog.text, true);
    PERFORM 1 FROM dblock_schema.dblock_row AS r
    WHERE r.name OPERATOR(pg_catalog.=) E'\\x@NAME@' FOR UPDATE;
    IF NOT FOUND THEN
        RAISE lock_not_available;
    END IF;
    PERFORM pg_catalog.set_config('lock_timeout', before, true);
EXCEPTION
    WHEN lock_not_available THEN
        NULL;
    WHEN query_canceled THEN
        BEGIN
            PERFORM pg_catalog.pg_sleep(0.05);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
END
$dblock$;
SELECT true, pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}')
FROM dblock_schema.dblock_row AS r WHERE r.name OPERATOR(pg_catalog.=) E'\\x@NAME@'
FOR UPDATE SKIP LOCKED;

-- name: joined_advisory_take
-- in: @NAME@, @ID@
-- out: is it held by this transaction now (NULL: this is a standby)
-- Never waits. One that this transaction, or its session, has already is granted again, to no
-- effect. On a standby such a lock excludes nobody on the primary.
SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery()
    THEN pg_catalog.pg_try_advisory_xact_lock(coalesce(@ID@::bigint,
        pg_catalog.concat('x', pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(E'\\x@NAME@'), 1, 8), 'hex'))::bit(64)::bigint)) END;

-- name: joined_advisory_wait
-- in: @NAME@, @ID@, @SLICE@
-- out: is it held now, does the transaction read committed
-- As joined_row_wait, in the queue of the lock itself.
DO $dblock$
DECLARE
    before CONSTANT pg_catalog.text := pg_catalog.current_setting('lock_timeout');
BEGIN
    PERFORM pg_catalog.set_config('lock_timeout', '@SLICE@', true);
    PERFORM pg_catalog.pg_advisory_xact_lock(coalesce(@ID@::bigint,
        pg_catalog.concat('x', pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(E'\\x@NAME@'), 1, 8), 'hex'))::bit(64)::bigint));
    PERFORM pg_catalog.set_config('lock_timeout', before, true);
EXCEPTION
    WHEN lock_not_available THEN
        NULL;
    WHEN query_canceled THEN
        BEGIN
            PERFORM pg_catalog.pg_sleep(0.05);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
END
$dblock$;
SELECT pg_catalog.pg_try_advisory_xact_lock(coalesce(@ID@::bigint,
        pg_catalog.concat('x', pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(E'\\x@NAME@'), 1, 8), 'hex'))::bit(64)::bigint)),
    pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}');
