-- SPDX-License-Identifier: MIT
-- check.sql - what on this server would hurt, for dblock_check().
-- What holds for every statement is said in connection.sql.

-- name: check
-- in: $1 is there a pooler that lends sessions out (bool), $2 schema as an identifier (text),
--   $3 is it a connection of the application (bool)
-- out: rows: id, severity (0 good, 1 warning, 2 unusable), strategies (bit 1 lease, 2 insert,
--   3 row, 4 advisory), text, remedy
-- Everything is told from one snapshot of the catalogue and from shared memory; it waits for
-- nobody and changes nothing. Names no table of dblock, so it also runs where there is none.
-- What the role may not see counts as good. Settings that dblock sets for its own sessions are
-- not looked at, but where a pooler stands between they are the server's.
WITH ours AS MATERIALIZED (
    SELECT c.oid, c.relname, c.relpersistence, c.relrowsecurity, c.reloptions,
        $2 || '.' || pg_catalog.quote_ident(c.relname) AS full_name
    FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = pg_catalog.to_regnamespace($2) AND c.relkind IN ('r', 'p')
        AND c.relname IN ('dblock_meta', 'dblock_session', 'dblock_lease', 'dblock_insert',
            'dblock_row', 'dblock_token')
), expected(table_name, column_name, type_name) AS (
    VALUES ('dblock_session', 'id', 'bytea'), ('dblock_session', 'ttl_us', 'bigint'),
        ('dblock_session', 'expires_at', 'timestamp with time zone'),
        ('dblock_session', 'beat', 'bigint'), ('dblock_session', 'changed', 'bigint'),
        ('dblock_lease', 'name', 'bytea'), ('dblock_insert', 'name', 'bytea'),
        ('dblock_row', 'name', 'bytea'), ('dblock_token', 'name', 'bytea'),
        ('dblock_lease', 'owner', 'bytea'), ('dblock_insert', 'owner', 'bytea'),
        ('dblock_lease', 'session', 'bytea'), ('dblock_insert', 'session', 'bytea'),
        ('dblock_lease', 'token', 'bigint'), ('dblock_insert', 'token', 'bigint'),
        ('dblock_token', 'token', 'bigint'),
        ('dblock_lease', 'expires_at', 'timestamp with time zone'),
        ('dblock_insert', 'expires_at', 'timestamp with time zone')
), found(id, severity, strategies, text, remedy) AS (
    SELECT 'version', CASE WHEN v.number < 120000 THEN 2 WHEN v.number < 140000 THEN 1 ELSE 0 END,
        30, 'PostgreSQL ' || pg_catalog.current_setting('server_version')
        || CASE WHEN v.number < 120000 THEN ' is older than 12, the oldest that dblock knows'
            WHEN v.number < 140000 THEN ' does not notice that the client of a session that waits'
                ' or works is dead; 14 does' ELSE '' END,
        CASE WHEN v.number < 140000 THEN 'upgrade the server' ELSE '' END
    FROM (SELECT pg_catalog.current_setting('server_version_num')::integer AS number) AS v
    UNION ALL
    SELECT 'primary', CASE WHEN r.is_standby THEN 2 ELSE 0 END, 30,
        CASE WHEN r.is_standby THEN 'this server is a standby: nothing can be written, and its'
            ' advisory locks exclude nobody on the primary' ELSE 'this server is a primary' END,
        CASE WHEN r.is_standby THEN 'connect to the primary: name all hosts in the URL, and'
            ' target_session_attrs=read-write' ELSE '' END
    FROM (SELECT pg_catalog.pg_is_in_recovery() AS is_standby) AS r
    UNION ALL
    SELECT 'writable', CASE WHEN w.is_read_only THEN 2 ELSE 0 END, 6,
        CASE WHEN w.is_read_only THEN 'transactions of this role are read-only'
            ELSE 'transactions may write' END,
        CASE WHEN w.is_read_only THEN pg_catalog.format(
            'ALTER ROLE %I SET default_transaction_read_only = off', current_user) ELSE '' END
    FROM (SELECT pg_catalog.current_setting('default_transaction_read_only')::boolean
        AS is_read_only) AS w
    UNION ALL
    SELECT 'pooler', CASE WHEN $1 THEN 1 ELSE 0 END, CASE WHEN $1 THEN 24 ELSE 30 END,
        CASE WHEN $1 THEN 'a pooler that lends out sessions stands between: advisory is refused, a'
            ' row lock keeps one of the pool''s connections to its end, and who waits for a lease'
            ' or insert looks instead of being woken'
            ELSE 'the connection leads to the server itself' END,
        CASE WHEN $1 THEN 'give dblock a URL that leads to the server itself' ELSE '' END
    UNION ALL
    SELECT 'durability', CASE WHEN d.is_on THEN 0 ELSE 1 END, 6,
        CASE WHEN d.is_on THEN 'a grant is on the disk before it is told'
            ELSE 'fsync or full_page_writes is off: after a crash of the machine tokens may go'
                ' back, and two may hold one name' END,
        CASE WHEN d.is_on THEN '' ELSE 'ALTER SYSTEM SET fsync = on; ALTER SYSTEM SET'
            ' full_page_writes = on; SELECT pg_reload_conf()' END
    FROM (SELECT pg_catalog.current_setting('fsync')::boolean
        AND pg_catalog.current_setting('full_page_writes')::boolean AS is_on) AS d
    UNION ALL
    SELECT 'replication', CASE WHEN s.n > 0 AND NOT s.is_synchronous THEN 1 ELSE 0 END, 6,
        CASE WHEN s.n = 0 THEN 'no standby follows'
            WHEN s.is_synchronous THEN 'a standby has each grant before it is told'
            ELSE pg_catalog.format('%s standby(s) follow, none is waited for: a fail-over may forget'
                ' the last grants, and another may get them before their holders know', s.n) END,
        CASE WHEN s.n > 0 AND NOT s.is_synchronous THEN 'ALTER SYSTEM SET'
            ' synchronous_standby_names = ''ANY 1 (*)''; ALTER SYSTEM SET synchronous_commit = on;'
            ' SELECT pg_reload_conf()' ELSE '' END
    FROM (SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication) AS n,
        pg_catalog.current_setting('synchronous_standby_names') <> ''
        AND pg_catalog.current_setting('synchronous_commit') NOT IN ('off', 'local')
            AS is_synchronous) AS s
    UNION ALL
    SELECT 'isolation', CASE WHEN i.level = 'read committed' THEN 0 ELSE 1 END, 30,
        'transactions begin at ' || i.level || CASE WHEN i.level = 'read committed' THEN ''
            ELSE ': not dblock''s, but one of yours that began before it had the lock does not see'
                ' what the last holder wrote' END,
        CASE WHEN i.level = 'read committed' THEN '' ELSE pg_catalog.format(
            'ALTER ROLE %I SET default_transaction_isolation = ''read committed'', or take the lock'
            ' before you begin', current_user) END
    FROM (SELECT s.reset_val AS level FROM pg_catalog.pg_settings AS s
        WHERE s.name = 'default_transaction_isolation') AS i
    UNION ALL
    SELECT 'dead-client', CASE WHEN c.every = '0' THEN 1 ELSE 0 END, 16,
        CASE WHEN c.every = '0' THEN 'if this program dies while a statement of its own runs on the'
            ' connection, the server goes on with it, and keeps the connection''s advisory locks'
            ' until its end; set it on the connection, or for the role' ELSE 'a statement whose program is dead ends after at most ' || c.every
            END,
        CASE WHEN c.every = '0' THEN 'SET client_connection_check_interval = ''2s''' ELSE '' END
    FROM (SELECT pg_catalog.current_setting('client_connection_check_interval', true) AS every) AS c
    WHERE $3 AND c.every IS NOT NULL
    UNION ALL
    SELECT 'idle-transaction', CASE WHEN $1 AND t.is_set THEN 1 ELSE 0 END, 8,
        CASE WHEN $1 AND t.is_set THEN 'the server ends transactions that idle, and behind a pooler'
            ' dblock cannot switch that off: row locks end with them'
            ELSE 'a row lock''s transaction may idle' END,
        CASE WHEN $1 AND t.is_set THEN pg_catalog.format(
            'ALTER ROLE %I SET idle_in_transaction_session_timeout = 0', current_user) ELSE '' END
    FROM (SELECT pg_catalog.current_setting('idle_in_transaction_session_timeout') <> '0'
            OR coalesce(pg_catalog.current_setting('transaction_timeout', true), '0') <> '0'
        AS is_set) AS t
    UNION ALL
    SELECT 'columns', 2, 30, pg_catalog.format('%s.%s is %s and not %s: names would not be compared'
            ' byte by byte, or numbers be cut', o.full_name, e.column_name,
            pg_catalog.format_type(a.atttypid, a.atttypmod), e.type_name),
        pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I TYPE %s USING ..., or drop dblock''s tables'
            ' while nobody locks, and dblock init', o.full_name, e.column_name, e.type_name)
    FROM ours AS o JOIN expected AS e ON e.table_name = o.relname
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = o.oid AND a.attname = e.column_name
    WHERE pg_catalog.format_type(a.atttypid, a.atttypmod) <> e.type_name
    UNION ALL
    SELECT 'unlogged', 1, 30, o.full_name || ' is unlogged: a crash of the server empties it, and'
            ' what was held is free', pg_catalog.format('ALTER TABLE %s SET LOGGED', o.full_name)
    FROM ours AS o WHERE o.relpersistence = 'u'
    UNION ALL
    SELECT 'row-security', 2, 30, o.full_name || ' has row security: a row that this role may not'
            ' see would count as free',
        pg_catalog.format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', o.full_name)
    FROM ours AS o WHERE o.relrowsecurity
    UNION ALL
    SELECT 'index', 1, 6, pg_catalog.format('%s has an index more, %s: each heartbeat and grant'
            ' writes it, and the table grows', o.full_name, i.indexrelid::regclass),
        pg_catalog.format('DROP INDEX CONCURRENTLY %s', i.indexrelid::regclass)
    FROM ours AS o JOIN pg_catalog.pg_index AS i ON i.indrelid = o.oid AND NOT i.indisprimary
    UNION ALL
    SELECT 'trigger', 1, 30, pg_catalog.format('%s has a trigger, %s: it runs within each grant, and'
            ' what it raises fails it', o.full_name, t.tgname),
        pg_catalog.format('DROP TRIGGER %I ON %s', t.tgname, o.full_name)
    FROM ours AS o JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = o.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT 'bloat', 1, 6, pg_catalog.format('%s takes %s for %s rows', o.full_name,
            pg_catalog.pg_size_pretty(z.size), s.n_live_tup),
        'VACUUM FULL ' || o.full_name || ' while nobody locks; and see why vacuum was late'
    FROM ours AS o JOIN pg_catalog.pg_stat_all_tables AS s ON s.relid = o.oid,
        LATERAL (SELECT pg_catalog.pg_relation_size(o.oid) AS size OFFSET 0) AS z
    WHERE z.size > 16777216 AND z.size > 10000 * s.n_live_tup
    UNION ALL
    SELECT 'vacuum', CASE WHEN a.is_on AND a.names IS NULL THEN 0 ELSE 1 END, 6,
        CASE WHEN NOT a.is_on THEN 'autovacuum is off: the tables grow with each heartbeat'
            WHEN a.names IS NOT NULL THEN 'autovacuum is off for ' || a.names
            ELSE 'autovacuum is on' END,
        CASE WHEN NOT a.is_on THEN 'ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts'
                ' = on; SELECT pg_reload_conf()'
            WHEN a.names IS NOT NULL THEN 'ALTER TABLE ... RESET (autovacuum_enabled)' ELSE '' END
    FROM (SELECT pg_catalog.current_setting('autovacuum')::boolean
            AND pg_catalog.current_setting('track_counts')::boolean AS is_on,
        (SELECT pg_catalog.string_agg(o.full_name, ', ') FROM ours AS o
         WHERE pg_catalog.array_to_string(o.reloptions, ',') ~ 'autovacuum_enabled=(false|off|0)')
            AS names) AS a
    UNION ALL
    SELECT 'old-transaction', CASE WHEN x.pid IS NULL THEN 0 ELSE 1 END, 6,
        CASE WHEN x.pid IS NULL THEN 'no transaction keeps vacuum from cleaning up'
            ELSE pg_catalog.format('a transaction has been open since %s (process %s%s): vacuum'
                ' cannot clean up behind it, and the tables grow with each heartbeat',
                pg_catalog.to_char(x.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
                x.pid, ', ' || nullif(x.application_name, '')) END,
        CASE WHEN x.pid IS NULL THEN ''
            ELSE pg_catalog.format('SELECT pg_terminate_backend(%s)', x.pid) END
    FROM (SELECT 1) AS one LEFT JOIN (
        SELECT a.pid, a.xact_start, a.application_name FROM pg_catalog.pg_stat_activity AS a
        WHERE a.backend_xmin IS NOT NULL AND a.backend_type = 'client backend'
            AND a.xact_start < pg_catalog.clock_timestamp() - interval '1 hour'
        ORDER BY a.xact_start LIMIT 1) AS x ON true
    UNION ALL
    SELECT 'prepared-transaction', 1, 6, pg_catalog.format('the prepared transaction %L has been'
            ' open for more than an hour: vacuum cannot clean up behind it', p.gid),
        pg_catalog.format('ROLLBACK PREPARED %L', p.gid)
    FROM pg_catalog.pg_prepared_xacts AS p
    WHERE p.prepared < pg_catalog.clock_timestamp() - interval '1 hour'
    UNION ALL
    SELECT 'connections', CASE WHEN n.used * 5 > n.most * 4 THEN 1 ELSE 0 END, 30,
        pg_catalog.format('%s of %s connections are in use', n.used, n.most),
        CASE WHEN n.used * 5 > n.most * 4 THEN pg_catalog.format('ALTER SYSTEM SET max_connections ='
            ' %s, and restart the server', n.most * 2) ELSE '' END
    FROM (SELECT pg_catalog.current_setting('max_connections')::integer AS most,
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS a
         WHERE a.backend_type = 'client backend') AS used) AS n
    UNION ALL
    SELECT 'notify-queue', CASE WHEN q.used > 0.5 THEN 1 ELSE 0 END, 6,
        pg_catalog.format('the queue of NOTIFY is %s %% full', (q.used * 100)::integer)
            || CASE WHEN q.used > 0.5 THEN ': somebody who LISTENs does not end a transaction; once'
                ' it is full, who gives a lock back that is waited for gets an error' ELSE '' END,
        CASE WHEN q.used > 0.5 THEN 'the server''s log names the process to end' ELSE '' END
    FROM (SELECT pg_catalog.pg_notification_queue_usage() AS used) AS q
    UNION ALL
    SELECT 'waiting', CASE WHEN p.missing IS NULL THEN 0 ELSE 1 END, 30,
        CASE WHEN p.missing IS NULL THEN 'who waits is woken' ELSE pg_catalog.format('this role may'
            ' not call %s: who waits looks from time to time, or queues at a greater cost',
            p.missing) END,
        CASE WHEN p.missing IS NULL THEN '' ELSE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO %I',
            p.qualified, current_user) END
    FROM (SELECT pg_catalog.count(*) AS n,
            pg_catalog.string_agg(f.proname, ', ') FILTER (WHERE NOT f.may) AS missing,
            pg_catalog.string_agg($2 || '.' || f.proname, ', ') FILTER (WHERE NOT f.may) AS qualified
        FROM (SELECT r.proname::text, pg_catalog.has_function_privilege(r.oid, 'EXECUTE') AS may
            FROM pg_catalog.pg_proc AS r
            WHERE r.pronamespace = pg_catalog.to_regnamespace($2)
                AND r.proname IN ('dblock_stand', 'dblock_queue', 'dblock_wait', 'dblock_wait_row')
            ORDER BY r.proname) AS f) AS p
    WHERE p.n > 0
    UNION ALL
    SELECT 'observers', 0, 24, CASE WHEN m.may THEN 'this role sees and may end everybody''s row and'
            ' advisory locks' ELSE 'show, list and break know only this role''s own row and advisory'
            ' locks (unless GRANT pg_read_all_stats, pg_signal_backend)' END, ''
    FROM (SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'MEMBER')
        AND pg_catalog.pg_has_role('pg_signal_backend', 'MEMBER') AS may) AS m
    UNION ALL
    SELECT 'log', CASE WHEN l.is_full THEN 1 ELSE 0 END, 30,
        CASE WHEN l.is_full THEN 'the server writes each statement into its log, so each heartbeat'
            ELSE 'heartbeats leave nothing in the server''s log' END,
        CASE WHEN l.is_full THEN pg_catalog.format('ALTER ROLE %I SET log_statement = ''none''; ALTER'
            ' ROLE %1$I SET log_min_duration_statement = 1000 (as a superuser)', current_user)
            ELSE '' END
    FROM (SELECT pg_catalog.current_setting('log_statement') IN ('mod', 'all')
        OR pg_catalog.current_setting('log_min_duration_statement') = '0' AS is_full) AS l
    UNION ALL
    SELECT 'time-zone', 0, 30, 'times are absolute: the time zone '
        || pg_catalog.current_setting('TimeZone') || ' does not matter', ''
)
SELECT f.id, f.severity, f.strategies, f.text, f.remedy FROM found AS f;
