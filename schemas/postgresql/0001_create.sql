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
-- drawn, for people. Purged an hour after that.
CREATE TABLE IF NOT EXISTS dblock_token (
    strategy integer NOT NULL,          -- 3 row, 4 advisory
    name bytea NOT NULL,
    token bigint NOT NULL,
    since timestamptz NOT NULL,         -- when it was drawn
    server_pid integer NOT NULL,        -- over which of the server's sessions
    PRIMARY KEY (strategy, name)
) WITH (fillfactor = 50);
