-- SPDX-License-Identifier: MIT
-- joined.sql - row locks that belong to a transaction of the application; on its connection, as
-- in guard.sql. They are the rows of row.sql, so whoever locks the same name by a connection of
-- dblock's own meets them. (GET_LOCK() ends with the connection and not with a transaction:
-- there is no advisory lock of this kind.) LIMIT: sql_select_limit is the application's.

-- name: joined_row_take
-- in: name
-- out: one row: locked by this transaction. None: not seeded. Error 1205 (MariaDB), 3572
--   (MySQL 8): somebody has it
-- As row_take, but the isolation is the application's. A locking read sees what is committed at
-- any of them, and opens no snapshot: what is read after it is at least as new as the end of the
-- last holder. At REPEATABLE READ a row that is not there locks the gap, and would keep everybody
-- from making it until this transaction ends: so the driver has it made before, by another
-- connection. Busy ends the statement alone; on MariaDB with innodb_rollback_on_timeout the
-- whole transaction, which the answer's status tells. Lost answer: the transaction is over.
SELECT 1 FROM dblock_row WHERE name = ? LIMIT 1 FOR UPDATE NOWAIT;

-- name: joined_row_wait
-- in: seconds, milliseconds, name; sent as text, with literals for the marks
-- out: as joined_row_take; error 1969 (MariaDB), 3024 or 1205 (MySQL): not within the time
-- One slice in the server's queue, as row_wait; who gives up or is cancelled has none running. A
-- deadlock is seen at once, also with rows of the application: 1213, and nothing is left.
/*M! SET STATEMENT innodb_lock_wait_timeout = 100000, max_statement_time = ? FOR */
SELECT /*+ MAX_EXECUTION_TIME(?) */ 1 FROM dblock_row WHERE name = ? LIMIT 1 FOR UPDATE;
