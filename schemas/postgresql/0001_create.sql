-- SPDX-License-Identifier: MIT
-- 0001_create.sql - the tables of dblock in PostgreSQL, schema version 1.
--
-- `dblock init` runs this; so may a migration tool, or
--   psql -1 -v ON_ERROR_STOP=1 -f 0001_create.sql
-- Everything is made in the first schema of search_path. In one transaction (-1)
-- it is safe to run twice and by two at once. Needs PostgreSQL 12 or later.
--
-- Rights. The role that runs this owns the tables, and needs CREATE on the schema.
-- Another role that locks needs no more than
--   GRANT USAGE ON SCHEMA public TO role;
--   GRANT SELECT, INSERT, UPDATE, DELETE ON dblock_session, dblock_lease,
--       dblock_insert, dblock_row, dblock_token TO role;
--   GRANT SELECT ON dblock_meta TO role;
--   GRANT USAGE, SELECT, UPDATE ON SEQUENCE dblock_token_base, dblock_token_count TO role;
-- and EXECUTE on dblock_stand, dblock_queue, dblock_wait and dblock_wait_row, which each role has
-- unless that was revoked (without it those who wait do so at a greater cost, and not in order of
-- arrival),
-- and to see and end the row and advisory locks of other roles
--   GRANT pg_read_all_stats, pg_signal_backend TO role;
--
-- Names, owners and sessions are bytea: compared byte by byte, so "Job", "job" and
-- "job " are three locks. Times are this server's clock.
-- No CHECK on them: the server would parse and plan it anew for each statement that
-- writes, which is a sixth of all that a lease costs it. Names have 1 to 255 bytes.
-- No index but the primary keys: all that changes is outside of them, so a
-- heartbeat or a grant is a HOT update, which the free half of each page is for.

-- One installation at a time, till the end of this transaction.
SELECT pg_catalog.pg_advisory_xact_lock(7234316452871503209);

-- Which release of these tables this is. One row.
CREATE TABLE IF NOT EXISTS dblock_meta (
    id integer NOT NULL PRIMARY KEY CHECK (id = 1),
    version integer NOT NULL
);
INSERT INTO dblock_meta (id, version) VALUES (1, 1) ON CONFLICT (id) DO NOTHING;

-- Where all tokens come from: base + count. Each grant counts up. The base follows
-- the clock (microseconds since 1970) and never goes back, so tokens rise although
-- rows are deleted, and also exceed those of grants that a fail-over or a restore
-- forgot. Never use setval() on the count; on the base only upwards, and only with
-- pg_advisory_xact_lock(7234316452871503210) held.
CREATE SEQUENCE IF NOT EXISTS dblock_token_base AS bigint;
CREATE SEQUENCE IF NOT EXISTS dblock_token_count AS bigint;
SELECT pg_catalog.setval('dblock_token_base',
    (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint)
FROM dblock_token_base WHERE NOT is_called;

-- One row for each client that heartbeats. It is inserted once, renewed by its
-- client alone, and never comes back: deleted by its client at the end, by whoever
-- wants a name that it holds once it has expired, or by the purge an hour later.
-- Grants name the session and are in force as long as it exists.
CREATE TABLE IF NOT EXISTS dblock_session (
    id bytea NOT NULL PRIMARY KEY,      -- 16 random bytes
    expires_at timestamptz NOT NULL,    -- without a heartbeat it may be ended from then on
    ttl_us bigint NOT NULL,             -- what each heartbeat adds to the clock
    beat bigint NOT NULL DEFAULT 0,     -- counts heartbeats
    changed bigint NOT NULL DEFAULT 0,  -- counts grants that others took away
    host text NOT NULL,                 -- of the client, for people
    pid bigint NOT NULL,
    label text NOT NULL,
    created timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Strategy lease: one row a name. It stays after the release, until the purge takes
-- it an hour later.
CREATE TABLE IF NOT EXISTS dblock_lease (
    name bytea NOT NULL PRIMARY KEY,
    session bytea,                      -- held as long as this session exists; NULL: see expires_at
    owner bytea,                        -- 16 random bytes, of this one grant; NULL: given back
    token bigint NOT NULL,              -- fencing token; only ever rises
    since timestamptz NOT NULL,         -- when it was taken or given back
    expires_at timestamptz NOT NULL,    -- without a session: held until then; -infinity: free
    label text NOT NULL,                -- of the last holder, for people
    host text NOT NULL,
    pid bigint NOT NULL,
    guards bigint NOT NULL DEFAULT 0    -- counts guarded transactions, where one must write
) WITH (fillfactor = 50);

-- Strategy insert: a row only while the name is held, or has expired and nobody took
-- it since. Same columns.
CREATE TABLE IF NOT EXISTS dblock_insert (
    name bytea NOT NULL PRIMARY KEY,
    session bytea,
    owner bytea,
    token bigint NOT NULL,
    since timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    label text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    guards bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Strategy row: something to lock with SELECT ... FOR UPDATE. Made on first use,
-- purged once it has not been locked for a while. Emptying it (DELETE, TRUNCATE) harms
-- nobody: it waits for those who hold a row, and rows are made anew. But whoever comes
-- after a TRUNCATE that waits stands behind it, so give that a lock_timeout.
CREATE TABLE IF NOT EXISTS dblock_row (
    name bytea NOT NULL PRIMARY KEY,
    since timestamptz NOT NULL          -- when it was made
) WITH (fillfactor = 50);

-- Tokens of row and advisory locks, for those that asked for one: the last that was
-- drawn, for people and for guarded transactions, which pin it. By name, or "#ID" of an
-- advisory lock that was named by its id. Purged an hour after that, once nobody has the lock.
CREATE TABLE IF NOT EXISTS dblock_token (
    strategy integer NOT NULL,          -- 3 row, 4 advisory
    name bytea NOT NULL,
    token bigint NOT NULL,
    since timestamptz NOT NULL,         -- when it was drawn
    server_pid integer NOT NULL,        -- over which of the server's sessions
    PRIMARY KEY (strategy, name)
) WITH (fillfactor = 50);

-- Binds the transaction in which it is called to a grant: until that ends, nobody else can be
-- granted the name. Of row and advisory that is so among those who acquire with DBLOCK_FENCED,
-- which has drawn their token. For programs that have a name and a token, as the child of
-- `dblock run` has $DBLOCK_NAME and $DBLOCK_TOKEN, and speak SQL by themselves:
--   BEGIN; SELECT dblock_guard('nightly-report', 1732900000000001); UPDATE ...; COMMIT;
-- An error, if that grant is over (SQLSTATE LK001), or came after the snapshot of this
-- transaction (40001; only where it does not read committed): roll back. From C,
-- dblock_pgsql_guard() does the same; the statement and why it works are in
-- src/driver/pgsql/sql/guard.sql. Needs SELECT and UPDATE on dblock_lease, dblock_insert and
-- (row and advisory) dblock_token, and SELECT on dblock_session. Waits (lock_timeout) for who
-- changes the row at this moment.
CREATE OR REPLACE FUNCTION dblock_guard(lock_name text, lock_token bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $dblock$
DECLARE
    key CONSTANT bytea := convert_to(lock_name, 'UTF8');
    is_over boolean := false;
BEGIN
    PERFORM 1 FROM dblock_lease AS l
    WHERE l.name = key AND l.token = lock_token AND l.owner IS NOT NULL
        AND CASE WHEN l.session IS NULL THEN l.expires_at > clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_session AS s
                WHERE s.id = l.session AND s.expires_at > clock_timestamp()) END
    FOR SHARE OF l;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM dblock_insert AS l
    WHERE l.name = key AND l.token = lock_token AND l.owner IS NOT NULL
        AND CASE WHEN l.session IS NULL THEN l.expires_at > clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_session AS s
                WHERE s.id = l.session AND s.expires_at > clock_timestamp()) END
    FOR SHARE OF l;
    IF FOUND THEN
        RETURN;
    END IF;
    IF has_table_privilege('dblock_token', 'SELECT')
        AND has_table_privilege('dblock_token', 'UPDATE') THEN -- row (3) and advisory (4)
        PERFORM 1 FROM dblock_token AS t
        WHERE t.strategy IN (3, 4) AND t.name = key AND t.token = lock_token
        FOR SHARE OF t;
        IF FOUND THEN
            RETURN;
        END IF;
        is_over := EXISTS (SELECT 1 FROM dblock_token AS t
            WHERE t.strategy IN (3, 4) AND t.name = key AND t.token > lock_token);
    END IF;
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
        AND NOT is_over AND NOT EXISTS (SELECT 1 FROM dblock_lease AS l WHERE l.name = key
            AND (l.token > lock_token OR l.token = lock_token AND l.owner IS NULL)
            UNION ALL SELECT 1 FROM dblock_insert AS l WHERE l.name = key
            AND (l.token > lock_token OR l.token = lock_token AND l.owner IS NULL)) THEN
        RAISE EXCEPTION 'what this transaction reads is older than the grant of "%"', lock_name
            USING ERRCODE = '40001', HINT = 'roll back, and begin again';
    END IF;
    RAISE EXCEPTION 'lock "%" is lost: token % is not in force', lock_name, lock_token
        USING ERRCODE = 'LK001', HINT = 'roll back, and stop';
END
$dblock$;

-- How those who wait stand in line (src/driver/pgsql/sql/line.sql says why it works):
-- waits until it is the first of the line of that name. The line is
-- an advisory lock, (high, low), that the first one holds and its session keeps.
--   tables      the schema of these tables, quoted: search_path of this session from now on
--   slice_ms    no transaction of it lasts longer: its snapshot would hold up CREATE INDEX
--               CONCURRENTLY and vacuum
--   n_slices    after so many, or earlier, it asks to be called again: outcome 0
--   outcome     1 the first, and LISTENs for its wake-ups (lease, insert); 4 the first, but
--               too many LISTEN already; 3 the name has been free for a slice, although
--               others come before; 2 cancelled. With 2 and 3 it has left the line.
--   ticket, seen   NULL at first; what an outcome of 0 hands on
-- Its waits end by lock_timeout or a cancel request, both caught, so that they are no
-- line in the server's log. A hundred that wait do so a hundred times a slice: what is done
-- then is what they cost, so only one of them looks whether the name is free. In order of
-- arrival it is who comes right after the first, else who has the lock (high, ~low). It
-- waits and looks by turns, each in a transaction of its own: whoever changes a table is
-- not kept waiting for a slice.
CREATE OR REPLACE PROCEDURE dblock_stand(tables text, strategy integer, lock_name bytea,
    high integer, low integer, is_fair boolean, slice_ms integer, n_slices integer,
    INOUT outcome integer, INOUT ticket integer, INOUT seen bigint)
LANGUAGE plpgsql AS $dblock$
DECLARE
    slot_class CONSTANT integer := 1684171883;
    n_slots CONSTANT integer := 8;
    ages bigint[];  -- of the two tickets before mine, by how much they are older
    before integer; -- key of the ticket right before mine
    behind integer; -- key of the ticket that is waited for; NULL: for the line itself
    is_looker boolean := is_fair;
    must_count boolean := is_fair;
    must_look boolean := false;
    seen_before bigint;
BEGIN
    outcome := 0;
    -- Only if it is not so already: before PostgreSQL 16 the end of a transaction that has
    -- set anything goes through all settings, in which a wait's end would take twice as long.
    IF current_setting('lock_timeout') <> slice_ms || 'ms'
        OR current_setting('search_path') <> tables || ', pg_temp' THEN
        PERFORM set_config('search_path', tables || ', pg_temp', false),
            set_config('lock_timeout', slice_ms::text, false);
    END IF;
    IF is_fair AND ticket IS NULL THEN
        ticket := (nextval('dblock_token_count') & 268435455)::integer;
        PERFORM pg_advisory_lock(~high, (low & -268435456) | ticket);
        COMMIT;
    END IF;
    FOR i IN 0 .. n_slices LOOP
        EXIT WHEN i = n_slices AND NOT must_look;
        BEGIN
            IF must_look THEN
                seen_before := seen;
                seen := NULL; -- stays so if somebody changes the table
                SELECT CASE WHEN CASE WHEN l.owner IS NULL THEN true
                        WHEN l.session IS NULL THEN l.expires_at <= clock_timestamp()
                        ELSE coalesce(s.expires_at <= clock_timestamp(), true) END
                    THEN coalesce(l.token, 0) END INTO seen
                FROM (SELECT 1) AS one
                    LEFT JOIN (
                        SELECT owner, session, expires_at, token FROM dblock_lease
                        WHERE name = lock_name AND strategy = 1
                        UNION ALL
                        SELECT owner, session, expires_at, token FROM dblock_insert
                        WHERE name = lock_name AND strategy = 2) AS l ON true
                    LEFT JOIN dblock_session AS s ON s.id = l.session;
                must_look := false;
                outcome := CASE WHEN seen = seen_before THEN 3 ELSE 0 END;
            ELSE
                IF must_count THEN
                    SELECT array_agg(t.age ORDER BY t.age) INTO ages
                    FROM (
                        SELECT (dblock_stand.ticket - (l.objid::bigint & 268435455)) & 268435455
                            AS age
                        FROM pg_locks AS l
                        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                            AND l.mode = 'ExclusiveLock'
                            AND l.classid::bigint = (~dblock_stand.high)::bigint & 4294967295
                            AND (l.objid::bigint # dblock_stand.low::bigint) & 4026531840 = 0
                            AND l.database = (SELECT d.oid FROM pg_database AS d
                                WHERE d.datname = current_database())
                        OFFSET 0) AS t
                    WHERE t.age BETWEEN 1 AND 134217727;
                    before := (low & -268435456) | ((ticket - ages[1]) & 268435455)::integer;
                    behind := (low & -268435456) | ((ticket - ages[2]) & 268435455)::integer;
                    must_count := false;
                END IF;
                IF behind IS NULL THEN
                    outcome := (pg_advisory_lock(high, low) IS NOT NULL)::integer;
                    IF before IS NOT NULL
                        AND NOT pg_try_advisory_xact_lock_shared(~high, before) THEN
                        PERFORM pg_advisory_unlock(high, low);
                        outcome := 0;
                        behind := before;
                    END IF;
                ELSE
                    PERFORM pg_advisory_xact_lock_shared(~high, behind);
                    must_count := true;
                END IF;
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                outcome := 0; -- what was assigned is not undone with the block
                -- Granted in the moment in which the slice ended: see dblock_queue.
                IF behind IS NULL AND pg_try_advisory_lock(high, low) THEN
                    PERFORM pg_advisory_unlock(high, low);
                    PERFORM pg_advisory_unlock(high, low) FROM pg_locks AS l
                    WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.granted
                        AND l.objsubid = 2
                        AND l.classid::bigint = dblock_stand.high::bigint & 4294967295
                        AND l.objid::bigint = dblock_stand.low::bigint & 4294967295;
                END IF;
                IF behind <> before THEN
                    must_count := pg_try_advisory_xact_lock_shared(~high, before);
                    must_look := must_count AND strategy <= 2;
                ELSIF strategy > 2 THEN
                    IF behind = before THEN -- who waits for nothing is passed
                        before := NULL;
                        behind := NULL;
                    END IF;
                ELSE
                    must_look := NOT must_look
                        AND (is_looker OR pg_try_advisory_lock(high, ~low));
                    is_looker := is_looker OR must_look;
                END IF;
            WHEN query_canceled THEN
                BEGIN -- the server signals it twice (row_wait)
                    PERFORM pg_sleep(0.01);
                EXCEPTION WHEN query_canceled THEN
                    NULL;
                END;
                outcome := 2;
        END;
        EXIT WHEN outcome <> 0;
        COMMIT;
    END LOOP;
    IF outcome IN (2, 3) THEN
        PERFORM pg_advisory_unlock_all();
    ELSIF is_looker AND NOT is_fair THEN
        PERFORM pg_advisory_unlock(high, ~low);
    END IF;
    IF outcome = 1 AND strategy <= 2 THEN
        outcome := 4;
        FOR slot IN 0 .. n_slots - 1 LOOP
            IF pg_try_advisory_lock(slot_class, (low + slot) & (n_slots - 1)) THEN
                EXECUTE concat('LISTEN dblock_', lpad(to_hex(high), 8, '0'),
                    lpad(to_hex(low), 8, '0'));
                outcome := 1;
                EXIT;
            END IF;
        END LOOP;
    END IF;
END
$dblock$;

-- The first slice of a wait, which most waits do not outlast: for the advisory lock `id`, which
-- becomes the session's, or (NULL) for (high, low), which becomes the transaction's. A function,
-- as what the server does after a wait is what a hand-over takes, and after that of a procedure
-- it does twice as much. The answer is that of dblock_queue: 0 not yet, 1 it is had, 2 cancelled.
-- What the transaction got in the block below is its own once the block has ended, and is undone
-- with the block if that fails; what the session got is not undone.
-- lock_timeout of the session is slice_ms from then on, unless the transaction is rolled back.
CREATE OR REPLACE FUNCTION dblock_wait(id bigint, high integer, low integer, slice_ms integer)
RETURNS integer LANGUAGE plpgsql AS $dblock$
BEGIN
    IF current_setting('lock_timeout') <> slice_ms || 'ms' THEN -- see dblock_stand
        PERFORM set_config('lock_timeout', slice_ms::text, false);
    END IF;
    BEGIN
        IF id IS NULL THEN
            RETURN (pg_advisory_xact_lock(high, low) IS NOT NULL)::integer;
        END IF;
        RETURN (pg_advisory_lock(id) IS NOT NULL)::integer;
    EXCEPTION
        WHEN lock_not_available THEN
            -- Granted in the moment in which the slice ended: see dblock_queue.
            IF pg_try_advisory_lock(id) THEN
                PERFORM pg_advisory_unlock(id);
                PERFORM pg_advisory_unlock(id) FROM pg_locks AS l
                WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.granted
                    AND l.objsubid = 1
                    AND ((l.classid::bigint << 32) | l.objid::bigint) = dblock_wait.id;
            END IF;
            RETURN 0;
        WHEN query_canceled THEN
            BEGIN -- the server signals it twice (row_wait)
                PERFORM pg_sleep(0.01);
            EXCEPTION WHEN query_canceled THEN
                NULL;
            END;
            PERFORM pg_advisory_unlock_all();
            RETURN 2;
    END;
END
$dblock$;

-- The same for a row, and for its turn first: both are the transaction's then. For who is the first
-- and waits for one that has the row without a turn. What comes after the wait is again what
-- counts, so the statement is made before. 3: there is no such row.
CREATE OR REPLACE FUNCTION dblock_wait_row(tables text, lock_name bytea, high integer,
    low integer, slice_ms integer) RETURNS integer LANGUAGE plpgsql AS $dblock$
DECLARE
    over_at CONSTANT timestamptz := clock_timestamp() + slice_ms * interval '1 ms';
    is_there integer;
BEGIN
    IF current_setting('lock_timeout') <> slice_ms || 'ms' THEN -- see dblock_stand
        PERFORM set_config('lock_timeout', slice_ms::text, false);
    END IF;
    BEGIN
        PERFORM pg_advisory_xact_lock(high, low);
        PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM
            over_at - clock_timestamp()) * 1000)::integer::text, true);
        EXECUTE concat('SELECT 1 FROM ', tables, '.dblock_row AS r WHERE r.name = $1 FOR UPDATE')
            INTO is_there USING lock_name;
        IF is_there IS NULL THEN
            RETURN 3;
        END IF;
        PERFORM pg_advisory_unlock_all(); -- the place in line
        RETURN 1;
    EXCEPTION
        WHEN lock_not_available THEN
            RETURN 0;
        WHEN query_canceled THEN
            BEGIN -- the server signals it twice (row_wait)
                PERFORM pg_sleep(0.01);
            EXCEPTION WHEN query_canceled THEN
                NULL;
            END;
            RETURN 2;
    END;
END
$dblock$;

-- How those who wait for an advisory lock stand in the server's queue for it: in slices, as
-- above, which lose their place in it. So those who want to be served in order of arrival
-- stand in a line first, and only the first of that in the queue.
--   id          of the lock; NULL: that of the name (advisory.sql), and without one outcome 0
--   outcome     0 not yet; 1 this session has the lock; 2 cancelled, and it has none at all;
--               3 nothing can be locked on a standby
--   ticket      NULL at first; what an outcome of 0 hands on, and is still held
-- Between two calls it is first in no line, so one that does not call again is passed.
-- lock_timeout of the session is slice_ms from then on.
CREATE OR REPLACE PROCEDURE dblock_queue(tables text, lock_name bytea, high integer,
    low integer, is_fair boolean, slice_ms integer, n_slices integer, INOUT outcome integer,
    INOUT ticket integer, INOUT id bigint)
LANGUAGE plpgsql AS $dblock$
DECLARE
    seen bigint;
BEGIN
    IF id IS NULL THEN
        id := ('x' || encode(substr(sha256(lock_name), 1, 8), 'hex'))::bit(64)::bigint;
    END IF;
    IF id IS NULL THEN
        outcome := 0;
        RETURN;
    END IF;
    IF pg_is_in_recovery() THEN
        outcome := 3;
        RETURN;
    END IF;
    IF is_fair THEN
        PERFORM set_config('search_path', tables || ', pg_temp', false);
        CALL dblock_stand(tables, 4, lock_name, high, low, true, slice_ms, n_slices, outcome,
            ticket, seen);
        IF outcome <> 1 THEN
            RETURN;
        END IF;
        COMMIT;
    END IF;
    IF current_setting('lock_timeout') <> slice_ms || 'ms' THEN -- see dblock_stand
        PERFORM set_config('lock_timeout', slice_ms::text, false);
    END IF;
    outcome := 0;
    FOR i IN 1 .. n_slices LOOP
        BEGIN
            outcome := (pg_advisory_lock(id) IS NOT NULL)::integer;
        EXCEPTION
            WHEN lock_not_available THEN
                outcome := 0; -- as there
                -- Granted in the moment in which the slice ended, it would stay, as a session's
                -- lock outlives what is undone here, and be held twice after the next slice.
                IF pg_try_advisory_lock(id) THEN
                    PERFORM pg_advisory_unlock(id);
                    PERFORM pg_advisory_unlock(id) FROM pg_locks AS l
                    WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.granted
                        AND l.objsubid = 1
                        AND ((l.classid::bigint << 32) | l.objid::bigint) = dblock_queue.id;
                END IF;
            WHEN query_canceled THEN
                BEGIN
                    PERFORM pg_sleep(0.01);
                EXCEPTION WHEN query_canceled THEN
                    NULL;
                END;
                PERFORM pg_advisory_unlock_all();
                outcome := 2;
        END;
        EXIT WHEN outcome <> 0;
        COMMIT;
    END LOOP;
    IF is_fair AND outcome <> 2 THEN
        IF outcome = 1 THEN
            PERFORM pg_advisory_unlock(~high, (low & -268435456) | ticket);
        END IF;
        PERFORM pg_advisory_unlock(high, low);
    END IF;
END
$dblock$;
