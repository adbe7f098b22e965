-- SPDX-License-Identifier: MIT
-- check.sql - what of this server is looked at for dblock_check(). Sent as text. Each reads
-- variables or the catalogue, in a transaction of its own, changes nothing and waits for nobody.
-- A variable that this server does not know is error 1193: then there is nothing to say.

-- name: check_server
-- in: nothing
-- out: version, read-only, connections in use, the most there may be, time zone
-- Reads variables and a counter. The counter is of all users, while a processlist has those of
-- this one, and on MySQL fails if anybody's statement is not text (3854).
SELECT VERSION(), @@global.read_only,
       (SELECT variable_value
          FROM /*M! information_schema.global_status */ /*!50700 performance_schema.global_status */
         WHERE variable_name = 'Threads_connected'), @@global.max_connections,
       IF(@@global.time_zone = 'SYSTEM', @@system_time_zone, @@global.time_zone);

-- name: check_durability
-- in: nothing
-- out: how the log is flushed at a commit (1: to the disk), whether half-written pages are
--      mended, whether the binary log is written, flushed after how many commits, its format
-- Reads variables.
SELECT @@global.innodb_flush_log_at_trx_commit, @@global.innodb_doublewrite, @@global.log_bin,
       @@global.sync_binlog, @@session.binlog_format;

-- name: check_semisync
-- in: nothing
-- out: whether commits wait for a replica
-- Reads variables.
SELECT @@global.rpl_semi_sync_master_enabled;

-- name: check_dumps
-- in: nothing
-- out: how many replicas listen to this server
-- Reads what the server does at this moment.
SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%';

-- name: check_dumps_8
-- in: nothing
-- out: as check_dumps; MySQL since 8.0.22, whose other table fails as said at line_waiters
-- Reads what the server does at this moment.
SELECT COUNT(*) FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%';

-- name: check_isolation
-- in: nothing
-- out: how transactions begin, unless they say
-- Reads variables.
SELECT @@global.tx_isolation;

-- name: check_isolation_8
-- in: nothing
-- out: as check_isolation; MySQL
-- Reads variables.
SELECT @@global.transaction_isolation;

-- name: check_deadlocks
-- in: nothing
-- out: whether deadlocks are looked for
-- Reads variables.
SELECT @@global.innodb_deadlock_detect;

-- name: check_columns
-- in: nothing
-- out: the first column of another type than the schema gives it: table, column, type
-- Reads the catalogue, for the tables of this database alone.
SELECT table_name, column_name, column_type FROM information_schema.columns
 WHERE table_schema = DATABASE()
   AND table_name IN ('dblock_session', 'dblock_lease', 'dblock_insert', 'dblock_row',
        'dblock_token')
   AND (column_name = 'name'
            AND (data_type <> 'varbinary' OR character_maximum_length < 255)
        OR column_name IN ('owner', 'session', 'id')
            AND (data_type NOT IN ('binary', 'varbinary') OR character_maximum_length < 16)
        OR column_name IN ('token', 'expires_at', 'ttl_us', 'beat', 'changed', 'since')
            AND data_type <> 'bigint')
 ORDER BY table_name, ordinal_position LIMIT 1;

-- name: check_engine
-- in: nothing
-- out: the first table that is not InnoDB: table, engine
-- Reads the catalogue, for the tables of this database alone.
SELECT table_name, engine FROM information_schema.tables
 WHERE table_schema = DATABASE() AND table_name LIKE 'dblock\_%'
   AND table_name IN ('dblock_meta', 'dblock_floor', 'dblock_session', 'dblock_lease',
        'dblock_insert', 'dblock_row', 'dblock_token')
   AND engine <> 'InnoDB'
 ORDER BY table_name LIMIT 1;

-- name: check_index
-- in: nothing
-- out: the first index that the schema does not make: table, index
-- Reads the catalogue, for the tables of this database alone.
SELECT table_name, index_name FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND index_name <> 'PRIMARY'
   AND table_name IN ('dblock_session', 'dblock_lease', 'dblock_insert', 'dblock_row',
        'dblock_token')
 ORDER BY table_name LIMIT 1;

-- name: check_trigger
-- in: nothing
-- out: the first trigger on a table of dblock: table, trigger
-- Reads the catalogue, for the tables of this database alone.
SELECT event_object_table, trigger_name FROM information_schema.triggers
 WHERE event_object_schema = DATABASE() AND event_object_table LIKE 'dblock\_%'
 ORDER BY event_object_table LIMIT 1;

-- name: check_size
-- in: nothing
-- out: the largest table, its MiB, its rows (estimated), its MiB within that are free
-- Reads the catalogue, for the tables of this database alone.
SELECT table_name, ROUND((data_length + index_length) / 1048576),
       table_rows, ROUND(data_free / 1048576)
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
   AND table_name IN ('dblock_session', 'dblock_lease', 'dblock_insert', 'dblock_row',
        'dblock_token')
 ORDER BY data_length DESC LIMIT 1;

-- name: check_old_transaction
-- in: nothing
-- out: the oldest transaction that has been open for an hour: connection, since
-- Reads what the server does at this moment.
SELECT trx_mysql_thread_id, trx_started FROM information_schema.innodb_trx
 WHERE trx_started < NOW() - INTERVAL 1 HOUR ORDER BY trx_started LIMIT 1;

-- name: check_cluster
-- in: nothing
-- out: Galera: a name, whether the node is ready
-- Only a node that is part of the primary component may write. A SELECT, even of a status, would
-- wait in vain for what the others have written (wsrep_sync_wait).
SHOW GLOBAL STATUS LIKE 'wsrep_ready';

-- name: check_rights
-- in: nothing
-- out: whether this user sees the connections of others
-- Reads the catalogue.
SELECT COUNT(*) FROM information_schema.user_privileges
 WHERE privilege_type = 'PROCESS'
   AND grantee = CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''',
        SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''');
