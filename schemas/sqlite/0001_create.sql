-- SPDX-License-Identifier: MIT
-- 0001_create.sql - the tables of dblock in a SQLite file, schema version 1.
--
-- `dblock init -d sqlite:PATH` runs this; so may a migration tool, or
-- `sqlite3 -bail PATH < 0001_create.sql`. Safe to run twice and by many at once.
-- Needs SQLite 3.35 or later. In a file of its own dblock also turns on the
-- write-ahead log (PRAGMA journal_mode = WAL, which stays in the file); the
-- journal mode of a file that has other tables is left as it is.
--
-- Rights. SQLite has no roles: a program that locks needs to write the file, and
-- to write its folder, for PATH-wal, PATH-shm and PATH-dblock. Users that share
-- one file share a group:
--   chgrp GROUP FOLDER PATH; chmod 2775 FOLDER; chmod 664 PATH
-- PATH-wal, PATH-shm and PATH-dblock take owner and mode after PATH.
--
-- Files. In a file with no other tables PATH-wal (up to 256 KiB) and PATH-shm stay
-- when the last program ends, as that saves each short one four flushes of the disk.
-- They belong to PATH: move or remove the three together.
--
-- Names, owners and sessions are BLOBs: compared byte by byte, so "Job", "job"
-- and "job " are three locks. A text 'job' would be a fourth key, so it is
-- refused. All times are microseconds since 1970 UTC by this machine's clock.
-- Tables are WITHOUT ROWID: one tree each, so a grant dirties one page.
--
-- There is no table for the strategies row and advisory: SQLite has no row locks
-- to hold. They are held by the kernel on PATH-dblock, a byte for each name.

-- Which release of these tables this is. One row.
CREATE TABLE IF NOT EXISTS dblock_meta (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
);
INSERT INTO dblock_meta (id, version) VALUES (1, 1) ON CONFLICT (id) DO NOTHING;

-- The largest token of every row that was deleted. Each new row begins above it,
-- so tokens rise although rows go. One row, never deleted.
CREATE TABLE IF NOT EXISTS dblock_floor (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    token INTEGER NOT NULL
);
INSERT INTO dblock_floor (id, token) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;

-- One row for each client that heartbeats. It is inserted once, renewed by its
-- client alone, and never comes back: deleted by its client at the end, by
-- whoever wants a name that it holds once it has expired, or by the purge an hour
-- later. Grants name the session and are in force as long as it exists.
CREATE TABLE IF NOT EXISTS dblock_session (
    id BLOB NOT NULL PRIMARY KEY CHECK (typeof(id) = 'blob'), -- 16 random bytes
    expires_at INTEGER NOT NULL,        -- without a heartbeat it may be ended from then on
    ttl_us INTEGER NOT NULL,            -- what each heartbeat adds to the clock
    beat INTEGER NOT NULL DEFAULT 0,    -- counts heartbeats
    changed INTEGER NOT NULL DEFAULT 0, -- counts grants that others took away
    host TEXT NOT NULL,                 -- of the client, for people
    pid INTEGER NOT NULL,
    label TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;

-- Guarded writes in plain SQL, for programs that have a name and a token, as the child of
-- `dblock run` has $DBLOCK_NAME and $DBLOCK_TOKEN: in the transaction that writes,
--   BEGIN IMMEDIATE;
--   SELECT 1 FROM dblock_lease AS l WHERE l.name = CAST('nightly-report' AS BLOB)
--      AND l.token = 1732900000000001 AND l.owner IS NOT NULL
--      AND CASE WHEN l.session IS NULL THEN l.expires_at
--              ELSE (SELECT s.expires_at FROM dblock_session AS s WHERE s.id = l.session) END
--          > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
-- One row: until this transaction ends nobody else can be granted the name. None: that grant is
-- over, roll back. IMMEDIATE makes this the file's only writer, which is what the guard is made
-- of. Strategy insert: the same with dblock_insert. Row (3), whose token was drawn with the grant
-- (DBLOCK_FENCED, which all must use who write under such a lock):
--   SELECT 1 FROM dblock_token WHERE strategy = 3 AND name = CAST('nightly-report' AS BLOB)
--      AND token = 1732900000000001;
-- Advisory: from C alone, as the row has a number for a name. From C: dblock_sqlite_guard().

-- Strategy lease: one row a name. It stays after the release, free and with its
-- token, until the purge takes it an hour later.
CREATE TABLE IF NOT EXISTS dblock_lease (
    name BLOB NOT NULL PRIMARY KEY
        CHECK (typeof(name) = 'blob' AND length(name) BETWEEN 1 AND 255),
    session BLOB,                       -- held as long as this session exists; NULL: see expires_at
    owner BLOB,                         -- 16 random bytes, of this one grant; NULL: given back
    token INTEGER NOT NULL,             -- fencing token; only ever rises
    since INTEGER NOT NULL,             -- when it was taken or given back
    expires_at INTEGER NOT NULL,        -- without a session: held until then; 0: free
    label TEXT NOT NULL,                -- of the last holder, for people
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    guards INTEGER NOT NULL DEFAULT 0   -- counts guarded transactions, where one must write
) WITHOUT ROWID;

-- Strategy insert: a row only while the name is held, or has expired and nobody
-- took it since. Same columns.
CREATE TABLE IF NOT EXISTS dblock_insert (
    name BLOB NOT NULL PRIMARY KEY
        CHECK (typeof(name) = 'blob' AND length(name) BETWEEN 1 AND 255),
    session BLOB,
    owner BLOB,
    token INTEGER NOT NULL,
    since INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    label TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    guards INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Tokens of row and advisory locks, for those that asked for one. Row: by name;
-- advisory: by the lock's number, as the text "#NUMBER". Guarded transactions look for
-- theirs. Purged an hour after the last one was drawn, once nobody has the lock.
CREATE TABLE IF NOT EXISTS dblock_token (
    strategy INTEGER NOT NULL,          -- 3 row, 4 advisory
    name BLOB NOT NULL CHECK (typeof(name) = 'blob'),
    token INTEGER NOT NULL,
    since INTEGER NOT NULL,             -- when it was drawn
    PRIMARY KEY (strategy, name)
) WITHOUT ROWID;

-- A row that goes, for whatever reason and by whoever's hand, leaves its token in
-- the floor, in the same transaction. One that was damaged does not, as in the floor it would be
-- every name's.
CREATE TRIGGER IF NOT EXISTS dblock_lease_gone AFTER DELETE ON dblock_lease
BEGIN
    UPDATE dblock_floor SET token = old.token WHERE id = 1 AND token < old.token
        AND old.token < 9007199254740991;
END;
CREATE TRIGGER IF NOT EXISTS dblock_insert_gone AFTER DELETE ON dblock_insert
BEGIN
    UPDATE dblock_floor SET token = old.token WHERE id = 1 AND token < old.token
        AND old.token < 9007199254740991;
END;
CREATE TRIGGER IF NOT EXISTS dblock_token_gone AFTER DELETE ON dblock_token
BEGIN
    UPDATE dblock_floor SET token = old.token WHERE id = 1 AND token < old.token
        AND old.token < 9007199254740991;
END;
