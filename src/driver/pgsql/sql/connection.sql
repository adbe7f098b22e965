-- SPDX-License-Identifier: MIT
-- connection.sql - what is asked of a new connection, and is it still there?
--
-- In all files of this folder:
-- "dblock_schema." stands for the schema of the tables, which is written into the
-- text when a client is opened, and what else is named is of pg_catalog: search_path decides
-- nothing. Own sessions have one of pg_catalog alone. What comes before that is set, and all that
-- runs in a transaction of the application (guard.sql, joined.sql), names operators in full.
-- Own connections run READ COMMITTED: each statement sees every commit that was
-- acknowledged before it began. Clocks are clock_timestamp(), which moves on while a
-- statement waits; now() does not.

-- name: connection_open
-- in: $1 what libpq holds for the server's process (int), $2 lock and statement
--   limit (text, ms), $3 idle seconds before keepalive (text), $4 seconds between
--   keepalives (text), $5 limit for unacknowledged data (text, ms), $6 commit mode
--   that replaces "off", or replaces any ("off") (text), $7 schema as an identifier, NULL:
--   nobody will wait for a lock of this session (text), $8 how long a transaction may idle
--   (text, ms; 0 for ever)
-- out: clock (us since 2000), is it a direct connection, in recovery, deadlock_timeout
--   (text), may the routines of those who wait be called (NULL: no), and the settings, of
--   which nobody needs the answer
-- A new process of the server knows nothing of its catalogs. So nothing is computed here that
-- the client can do as well, and routines are found by name: with a query on pg_proc this
-- takes twice as long.
-- Behind a pooler the process that answers is not the one that libpq was told of, now
-- or later. Then nothing is set, because the setting would stay behind for whoever is
-- given that process next; a message sends along what matters to it.
-- The isolation is set here, so that BEGIN need not name it: that costs more than BEGIN.
-- An acquire must be durable whatever the role's default says: a token that a crash
-- forgets is handed out twice.
SELECT pg_catalog.clock_timestamp(), o.is_direct, pg_catalog.pg_is_in_recovery(),
    pg_catalog.current_setting('deadlock_timeout'),
    CASE WHEN pg_catalog.has_schema_privilege(
            pg_catalog.to_regnamespace($7::pg_catalog.text), 'USAGE')
        THEN pg_catalog.has_function_privilege(
                pg_catalog.to_regproc(pg_catalog.concat($7::pg_catalog.text, '.dblock_stand')), 'EXECUTE')
            AND pg_catalog.has_function_privilege(
                pg_catalog.to_regproc(pg_catalog.concat($7::pg_catalog.text, '.dblock_queue')), 'EXECUTE')
            AND pg_catalog.has_function_privilege(
                pg_catalog.to_regproc(pg_catalog.concat($7::pg_catalog.text, '.dblock_wait')), 'EXECUTE')
            AND pg_catalog.has_function_privilege(
                pg_catalog.to_regproc(pg_catalog.concat($7::pg_catalog.text, '.dblock_wait_row')), 'EXECUTE')
    END,
    CASE WHEN o.is_direct THEN pg_catalog.concat(
        pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
        pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
        pg_catalog.set_config('lock_timeout', $2::pg_catalog.text, false),
        pg_catalog.set_config('statement_timeout', $2::pg_catalog.text, false),
        pg_catalog.set_config('idle_in_transaction_session_timeout', $8::pg_catalog.text, false),
        pg_catalog.set_config('tcp_keepalives_idle', $3::pg_catalog.text, false),
        pg_catalog.set_config('tcp_keepalives_interval', $4::pg_catalog.text, false),
        pg_catalog.set_config('tcp_keepalives_count', '3', false),
        pg_catalog.set_config('tcp_user_timeout', $5::pg_catalog.text, false),
        pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),
        pg_catalog.set_config('enable_seqscan', 'off', false),
        pg_catalog.set_config('jit', 'off', false))
    END,
    CASE WHEN o.is_direct
            AND ($6::pg_catalog.text OPERATOR(pg_catalog.=) 'off'
                OR pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off') THEN
        pg_catalog.set_config('synchronous_commit', $6::pg_catalog.text, false)
    END
FROM (SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::integer AS is_direct
    OFFSET 0) AS o;

-- name: connection_open_14
-- in: $1 as above, $2 how often a running statement looks after its client (text, ms)
-- out: the settings
-- PostgreSQL 14 and later: the server's session of a dead client ends although it
-- runs or waits; and an idle one is not ended for being idle.
-- Safe behind a pooler for the same reason as above: nothing is set there.
SELECT CASE WHEN pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::integer THEN pg_catalog.concat(
    pg_catalog.set_config('client_connection_check_interval', $2::pg_catalog.text, false),
    pg_catalog.set_config('idle_session_timeout', '0', false))
END;

-- name: connection_open_17
-- in: $1 as above
-- out: the setting
-- PostgreSQL 17 and later: a row lock is a transaction, which may be long.
-- Safe behind a pooler for the same reason as above: nothing is set there.
SELECT CASE WHEN pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::integer THEN
    pg_catalog.set_config('transaction_timeout', '0', false)
END;

-- name: connection_open_lent
-- in: $1 what libpq holds for the server's process (int)
-- out: clock, is it a direct connection
-- Over a connection of the application: nothing is set, now or later.
-- Reads nothing and waits for nothing.
SELECT pg_catalog.clock_timestamp(), pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::integer;

-- name: pooled_settings
-- in: $1 lock and statement limit (text, ms)
-- out: the settings
-- Behind a pooler and over a connection of the application, after BEGIN ISOLATION LEVEL READ
-- COMMITTED and before the statement proper: holds for this transaction only, so nothing stays
-- behind. Labels are UTF-8, whatever the application reads and writes.
-- A statement that lowers the commit mode for itself (lease_drop) comes after it.
SELECT pg_catalog.set_config('lock_timeout', $1::pg_catalog.text, true),
    pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
    pg_catalog.set_config('client_encoding', 'UTF8', true),
    CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
        pg_catalog.set_config('synchronous_commit', 'on', true)
    END;

-- name: ping
-- in: nothing
-- out: clock
-- Reads nothing and waits for nothing; inside a row lock's transaction it proves that
-- the transaction still stands, as an answer from a failed one is an error.
SELECT pg_catalog.clock_timestamp();

-- name: ping_advisory
-- in: $1 what libpq holds for the server's process (int)
-- out: clock, how many advisory locks this session holds (0 if it is another one)
-- Nobody but this session can take one away without ending it; a look at the server's
-- own table of locks also finds what a pooler or a hand did (DISCARD ALL).
-- Reads shared memory, waits for nothing. By the function below the view pg_locks: less to be
-- looked up by a process of the server that has not done so before.
SELECT pg_catalog.clock_timestamp(),
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_lock_status() AS l
     WHERE l.pid = pg_catalog.pg_backend_pid() AND l.pid = $1::integer
        AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.mode = 'ExclusiveLock');

-- name: verify
-- in: nothing
-- out: clock, version of the tables, may this role use them all
-- Names every table and column, so that one which is missing or of another type is an
-- error (42P01, 42703, 42883). The subqueries read no row. Without the routines there is no
-- version; one that this role may not call is no fault (line_stand).
-- A read of one committed row; two that verify do not meet.
SELECT pg_catalog.clock_timestamp(),
    (SELECT m.version FROM dblock_schema.dblock_meta AS m WHERE m.id = 1
        AND pg_catalog.to_regprocedure('dblock_schema.dblock_stand(text, integer, bytea, integer,'
            ' integer, boolean, integer, integer, integer, integer, bigint)') IS NOT NULL
        AND pg_catalog.to_regprocedure('dblock_schema.dblock_queue(text, bytea, integer, integer,'
            ' boolean, integer, integer, integer, integer, bigint)') IS NOT NULL
        AND pg_catalog.to_regprocedure('dblock_schema.dblock_wait(bigint, integer, integer, integer)')
            IS NOT NULL
        AND pg_catalog.to_regprocedure('dblock_schema.dblock_wait_row(text, bytea, integer, integer,'
            ' integer)') IS NOT NULL),
    pg_catalog.has_table_privilege('dblock_schema.dblock_session', 'SELECT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_session', 'INSERT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_session', 'UPDATE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_session', 'DELETE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_lease', 'INSERT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_lease', 'UPDATE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_lease', 'DELETE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_insert', 'INSERT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_insert', 'UPDATE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_insert', 'DELETE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_row', 'INSERT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_row', 'UPDATE')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_token', 'INSERT')
        AND pg_catalog.has_table_privilege('dblock_schema.dblock_token', 'UPDATE')
        AND pg_catalog.has_sequence_privilege('dblock_schema.dblock_token_base', 'SELECT')
        AND pg_catalog.has_sequence_privilege('dblock_schema.dblock_token_base', 'UPDATE')
        AND pg_catalog.has_sequence_privilege('dblock_schema.dblock_token_count', 'USAGE')
WHERE NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
        WHERE s.id = ''::bytea AND s.expires_at < s.created AND s.ttl_us + s.beat + s.changed + s.pid < 0
            AND s.host = s.label)
    AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_lease AS l
        WHERE l.name = ''::bytea AND l.session = l.owner AND l.token + l.pid + l.guards < 0
            AND l.since > l.expires_at AND l.label = l.host)
    AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_insert AS l
        WHERE l.name = ''::bytea AND l.session = l.owner AND l.token + l.pid + l.guards < 0
            AND l.since > l.expires_at AND l.label = l.host)
    AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_row AS r
        WHERE r.name = ''::bytea AND r.since IS NULL)
    AND NOT EXISTS (SELECT 1 FROM dblock_schema.dblock_token AS t
        WHERE t.strategy = 0 AND t.name = ''::bytea AND t.token < t.server_pid AND t.since IS NULL);
