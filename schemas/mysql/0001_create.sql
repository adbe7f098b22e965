-- SPDX-License-Identifier: MIT
-- 0001_create.sql - the tables of dblock in MySQL and MariaDB, schema version 1.
--
-- `dblock init -d mysql://USER@HOST/DATABASE` runs this; so may a migration tool,
-- or `mariadb DATABASE < 0001_create.sql`. Safe to run twice and by many at once.
-- MySQL 5.7 or MariaDB 10.5, and later. The tables live in the database that the
-- connection names; "schema" of the configuration is another database's name.
--
-- Rights. Who runs this needs
--   GRANT CREATE, SELECT, INSERT ON `database`.* TO 'user'@'host';
-- and a program that locks
--   GRANT SELECT, INSERT, UPDATE, DELETE ON `database`.* TO 'user'@'host';
-- or the same on each dblock_ table alone. Ending another user's advisory lock
-- needs CONNECTION ADMIN (MariaDB), CONNECTION_ADMIN (MySQL 8), SUPER (before). So does
-- waking at once who waits as another user, when a lock is given back or broken by a
-- process other than its holder's; without, he looks within some seconds. How many wait
-- as other users is seen with PROCESS.
--
-- Names, owners, labels and hosts are bytes (VARBINARY): no collation can make two
-- names one, and "Job", "job" and "job " are three locks. Times and tokens are
-- BIGINT, times in microseconds since 1970 UTC by the server's clock: exact, free
-- of time zones, sql_mode and INTERVAL's limits. For people:
--   SELECT CONVERT(name USING utf8mb4), FROM_UNIXTIME(since / 1000000), token,
--          CONVERT(host USING utf8mb4), pid FROM dblock_lease WHERE owner IS NOT NULL;
-- No index but the primary keys: every other column changes with each grant.
--
-- binlog_format must be ROW or MIXED (the statements run at READ COMMITTED).

-- Which release of these tables this is. One row.
CREATE TABLE IF NOT EXISTS dblock_meta (
    id TINYINT NOT NULL PRIMARY KEY,
    version INT NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO dblock_meta (id, version) VALUES (1, 1);

-- The largest token of all rows that the purge deleted, one row a strategy (1 lease,
-- 2 insert, 3 row, 4 advisory). A statement that may insert a name reads it with a
-- shared lock and begins above it, so tokens rise although rows go. Never deleted.
CREATE TABLE IF NOT EXISTS dblock_floor (
    id TINYINT NOT NULL PRIMARY KEY,
    token BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO dblock_floor (id, token) VALUES (1, 0), (2, 0), (3, 0), (4, 0);

-- One row for each client that heartbeats and each ttl that it uses. Inserted once,
-- renewed by its client alone, and never coming back. It is deleted by its client at
-- the end, by whoever wants a name that it holds once it has expired, or by the
-- purge an hour later. Grants name the session and are in force as long as it exists.
CREATE TABLE IF NOT EXISTS dblock_session (
    id BINARY(16) NOT NULL PRIMARY KEY,  -- random
    expires_at BIGINT NOT NULL,          -- without a heartbeat it may be ended from then on
    ttl_us BIGINT NOT NULL,              -- what each heartbeat adds to the clock
    beat BIGINT NOT NULL DEFAULT 0,      -- counts heartbeats
    changed BIGINT NOT NULL DEFAULT 0,   -- counts grants that others took away
    host VARBINARY(255) NOT NULL,        -- of the client, for people
    pid BIGINT NOT NULL,
    label VARBINARY(255) NOT NULL,
    created BIGINT NOT NULL
) ENGINE = InnoDB;

-- Guarded writes in plain SQL, for programs that have a name and a token, as the child of
-- `dblock run` has $DBLOCK_NAME and $DBLOCK_TOKEN: in the transaction that writes, as its
-- first statement,
--   SELECT 1 FROM dblock_lease AS l WHERE l.name = 'nightly-report' AND l.token = 1732900000000001
--      AND l.owner IS NOT NULL AND IF(l.session IS NULL,
--          l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
--          EXISTS (SELECT 1 FROM dblock_session AS s WHERE s.id = l.session AND s.expires_at
--              > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
--      LOCK IN SHARE MODE;
-- One row: until this transaction ends nobody else can be granted the name. None: that grant is
-- over (or seems so, where `SET timestamp` has set the session's clock), roll back. It must be the first, as at REPEATABLE READ what was read before it may be
-- older than the grant. On Galera and Group Replication locks of rows exclude nobody on other
-- nodes; there it is a change, 1 row affected or roll back, and only the COMMIT's success counts
-- (error 1213 there or before: all was rolled back, begin again):
--   UPDATE dblock_lease SET guards = guards + 1 WHERE name = 'nightly-report'
--      AND token = 1732900000000001 AND owner IS NOT NULL AND (session IS NOT NULL
--          OR expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)));
-- Strategy insert: the same with dblock_insert. Row (3) and advisory (4), whose token was drawn
-- with the grant (DBLOCK_FENCED, which all must use who write under such a lock):
--   SELECT 1 FROM dblock_token WHERE strategy = 3 AND name = 'nightly-report'
--      AND token = 1732900000000001 LOCK IN SHARE MODE;
-- From C: dblock_mysql_guard().

-- Strategy lease: one row a name. It stays after the release, free and with its
-- token, until the purge takes it an hour later.
CREATE TABLE IF NOT EXISTS dblock_lease (
    name VARBINARY(255) NOT NULL PRIMARY KEY,
    session BINARY(16) NULL,             -- held as long as this session exists; NULL: see expires_at
    owner BINARY(16) NULL,               -- random, of this one grant; NULL: given back
    token BIGINT NOT NULL,               -- fencing token; only ever rises
    since BIGINT NOT NULL,               -- when it was taken or given back
    expires_at BIGINT NOT NULL,          -- without a session: held until then; 0: free.
                                         -- With one: when that was to expire at the grant
    label VARBINARY(255) NOT NULL,       -- of the last holder, for people
    host VARBINARY(255) NOT NULL,
    pid BIGINT NOT NULL,
    guards BIGINT NOT NULL DEFAULT 0     -- counts guarded transactions, where one must write
) ENGINE = InnoDB;

-- Strategy insert: the same. InnoDB has no source of rising numbers that survives a
-- deleted row, so here too the row stays until the purge.
CREATE TABLE IF NOT EXISTS dblock_insert (
    name VARBINARY(255) NOT NULL PRIMARY KEY,
    session BINARY(16) NULL,
    owner BINARY(16) NULL,
    token BIGINT NOT NULL,
    since BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    label VARBINARY(255) NOT NULL,
    host VARBINARY(255) NOT NULL,
    pid BIGINT NOT NULL,
    guards BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- Strategy row: what SELECT ... FOR UPDATE locks. One row a name, made when the name
-- is first used; the purge takes rows that are an hour old and not locked just then.
-- Emptying it (DELETE, TRUNCATE) harms nobody: it waits for those who hold a row, and
-- rows are made anew. But whoever comes after a TRUNCATE that waits finds all names
-- busy, so give that a lock_wait_timeout.
CREATE TABLE IF NOT EXISTS dblock_row (
    name VARBINARY(255) NOT NULL PRIMARY KEY,
    created BIGINT NOT NULL
) ENGINE = InnoDB;

-- Tokens of row and advisory locks, for those that asked for one. Row: by name.
-- Advisory: by name, or by "#NUMBER" for a lock that was named by its number.
-- Guarded transactions pin the row. Purged an hour after the last one was drawn, once
-- nobody has the lock.
CREATE TABLE IF NOT EXISTS dblock_token (
    strategy TINYINT NOT NULL,           -- 3 row, 4 advisory
    name VARBINARY(255) NOT NULL,
    token BIGINT NOT NULL,
    since BIGINT NOT NULL,               -- when it was drawn
    PRIMARY KEY (strategy, name)
) ENGINE = InnoDB;
