-- SPDX-License-Identifier: MIT
-- install.sql - what a connection sets and asks when it opens, and whether the tables
-- are those of this release. (The tables themselves: schemas/mysql.)

-- name: session_settings
-- in: sent as text, with literals for the marks: seconds that a lock of a row is waited
--     for, seconds for a table's lock, seconds that the connection may idle, seconds
--     that a statement may take (MariaDB; 0: no limit)
-- out: nothing
-- One message, so that a half-made connection is never used. Strict mode: a value that
-- is too long is an error and never cut. Isolation as a variable: tx_isolation in
-- MariaDB, transaction_isolation since MySQL 5.7.20. completion_type: a COMMIT that chains
-- begins a transaction that nobody ends, and what is granted in it is never committed; with
-- RELEASE it ends the connection. timestamp: it stands still once it was set (by init-command,
-- say), and is our clock. Limits of how many rows a statement may look at, answer or change,
-- and of how long a transaction may idle, are meant for others: a row is held by idling in one,
-- and wait_timeout ends that. With unique_checks off an INSERT may look for what is there later.
SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',
    autocommit = 1, completion_type = 0, timestamp = DEFAULT, sql_safe_updates = 0,
    sql_select_limit = 18446744073709551615, sql_big_selects = 1, unique_checks = 1,
    innodb_lock_wait_timeout = ?, lock_wait_timeout = ?, wait_timeout = ?
    /*M! , tx_isolation = 'READ-COMMITTED', max_statement_time = ?,
    idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0,
    idle_write_transaction_timeout = 0 */
    /*!50720 , transaction_isolation = 'READ-COMMITTED', max_execution_time = 0 */;

-- name: session_facts
-- in: nothing
-- out: clock, version, read-only, prefix of named locks ("": no database), the server's
--      own number of this connection
-- Facts of the server that do not change while a connection lives; read_only may, and
-- then writes fail by themselves. The number is another than at the handshake if
-- something in between lends out connections of its own.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock,
       VERSION() AS version, @@global.read_only AS is_read_only,
       COALESCE(CONCAT('dblock:', LEFT(SHA2(DATABASE(), 256), 12), ':'), '') AS prefix,
       CONNECTION_ID() AS own_id;

-- name: has_wsrep
-- in: nothing
-- out: 1: a node of Galera. Error 1193: this server does not know it
-- MariaDB. Reads a variable. A node that is alone now may get company later.
SELECT @@wsrep_on;

-- name: is_single_primary
-- in: nothing
-- out: 0 and 1: Group Replication with several primaries. Error 1193: no such plugin
-- MySQL. Reads variables: the mode, and whether a group was ever named.
SELECT @@group_replication_single_primary_mode, @@group_replication_group_name <> '';

-- name: sync_reads
-- in: nothing
-- out: nothing
-- Galera: reads of this connection wait until what other nodes committed is here.
SET SESSION wsrep_sync_wait = 1;

-- name: loan_settings_mysql
-- in: nothing
-- out: default database (NULL: none), LAST_INSERT_ID(), the session's clock, microseconds that
--      it is behind the server's, and settings under their own names, as they are to be put back
-- Of a connection of the application, before a step. Reads this session alone, begins no
-- transaction and waits for nothing. Our settings are those of session_settings. NOW() follows
-- `SET timestamp`, SYSDATE() does not. LIMIT: sql_select_limit may be 0.
SELECT DATABASE(), LAST_INSERT_ID(), @@timestamp,
       TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)),
       @@sql_mode AS sql_mode, @@time_zone AS time_zone, @@completion_type AS completion_type,
       @@sql_safe_updates AS sql_safe_updates, @@sql_select_limit AS sql_select_limit,
       @@sql_big_selects AS sql_big_selects, @@unique_checks AS unique_checks,
       @@innodb_lock_wait_timeout AS innodb_lock_wait_timeout,
       @@lock_wait_timeout AS lock_wait_timeout,
       @@transaction_isolation AS transaction_isolation,
       @@max_execution_time AS max_execution_time LIMIT 1;

-- name: loan_settings_mariadb
-- in: nothing
-- out: as loan_settings_mysql
-- The same of MariaDB.
SELECT DATABASE(), LAST_INSERT_ID(), @@timestamp,
       TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)),
       @@sql_mode AS sql_mode, @@time_zone AS time_zone, @@completion_type AS completion_type,
       @@sql_safe_updates AS sql_safe_updates, @@sql_select_limit AS sql_select_limit,
       @@sql_big_selects AS sql_big_selects, @@unique_checks AS unique_checks,
       @@innodb_lock_wait_timeout AS innodb_lock_wait_timeout,
       @@lock_wait_timeout AS lock_wait_timeout, @@tx_isolation AS tx_isolation,
       @@max_statement_time AS max_statement_time LIMIT 1;

-- name: loan_settings_galera
-- in: nothing
-- out: as loan_settings_mysql
-- The same of a node of Galera, where a read may have to wait for what others committed.
SELECT DATABASE(), LAST_INSERT_ID(), @@timestamp,
       TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)),
       @@sql_mode AS sql_mode, @@time_zone AS time_zone, @@completion_type AS completion_type,
       @@sql_safe_updates AS sql_safe_updates, @@sql_select_limit AS sql_select_limit,
       @@sql_big_selects AS sql_big_selects, @@unique_checks AS unique_checks,
       @@innodb_lock_wait_timeout AS innodb_lock_wait_timeout,
       @@lock_wait_timeout AS lock_wait_timeout, @@tx_isolation AS tx_isolation,
       @@max_statement_time AS max_statement_time, @@wsrep_sync_wait AS wsrep_sync_wait
 LIMIT 1;

-- name: loan_clock
-- in: nothing
-- out: the session's clock
-- After loan_settings_mysql: the same again, if and only if it stands still.
SELECT @@timestamp LIMIT 1;

-- name: verify_version
-- in: nothing
-- out: version
-- Read without a lock; a migration that is under way shows as the version before it.
SELECT version FROM dblock_meta WHERE id = 1;

-- name: verify_names
-- in: nothing
-- out: how many name columns compare bytes, how many tables are InnoDB (4 and 7 expected)
-- Reads the catalogue, for the tables of this database alone.
SELECT (SELECT COUNT(*) FROM information_schema.columns
         WHERE table_schema = DATABASE() AND column_name = 'name' AND data_type = 'varbinary'
           AND character_maximum_length >= 255
           AND table_name IN ('dblock_lease', 'dblock_insert', 'dblock_row', 'dblock_token'))
       AS n_names,
       (SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND engine = 'InnoDB'
           AND table_name IN ('dblock_meta', 'dblock_floor', 'dblock_session', 'dblock_lease',
                'dblock_insert', 'dblock_row', 'dblock_token')) AS n_tables;
