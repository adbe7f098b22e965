-- SPDX-License-Identifier: MIT
-- advisory.sql - the server's named locks, GET_LOCK. On connections of the role
-- ADVISORY (autocommit), except what only looks.
--
-- The lock's name at the server, for a name of ours in database D:
--   CONCAT('dblock:', LEFT(SHA2(D, 256), 12), ':', LEFT(SHA2(name, 256), 32))
-- 52 characters of lower-case ASCII: below MySQL's limit of 64, and the same whether a
-- server folds case (MySQL) or not (MariaDB). 128 bits of the name; the database is in
-- it because these locks belong to the whole server. The part before the name is read
-- once a connection (session_facts in install.sql), the rest is made by the driver: hashing it
-- here, twice for a take, is a tenth of what a pair costs. A lock that was named by a number N
-- has N in decimal as its name, so that other software can share it by GET_LOCK('N', ...).
-- "in: lock" below is that name at the server, as text.
--
-- These locks count, so a second GET_LOCK of one connection would succeed: each take
-- asks first whether this connection has it. They survive COMMIT and ROLLBACK and end
-- with RELEASE_LOCK or the connection. Galera: local to a node, so refused.


-- name: advisory_take
-- in: lock, lock
-- out: 1 taken, 0 busy, -1 this connection has it, NULL: not given
-- Waits for nothing. One round trip, in the server's memory alone. Lost answer: the
-- connection is closed, and with it goes the lock.
SELECT IF(IS_USED_LOCK(?) = CONNECTION_ID(), -1, GET_LOCK(?, 0)) AS answer;

-- name: advisory_wait
-- in: milliseconds, lock, lock, seconds; sent as text, with literals for the marks
-- out: as advisory_take; error 3024 (MySQL): not within the time; 1213 (MariaDB), 3058
--      (MySQL): each of us waits for the other; 1317 (MySQL) or NULL (MariaDB): KILL QUERY
-- The server's queue, first come first served. Reads no table: no snapshot. MariaDB
-- waits fractions of seconds; MySQL rounds them, so there the seconds are rounded up
-- and the hint ends the statement in time. Never negative (MariaDB: NULL at once).
SELECT /*+ MAX_EXECUTION_TIME(?) */
       IF(IS_USED_LOCK(?) = CONNECTION_ID(), -1, GET_LOCK(?, ?)) AS answer;

-- name: advisory_drop
-- in: lock
-- out: 1 was held until now; 0 another connection has it, NULL nobody has it
-- Ends this connection's own lock and no other's, whatever else happens meanwhile. Lost
-- answer: the connection is closed, and with it goes the lock, if it was still held.
SELECT RELEASE_LOCK(?) AS answer;

-- name: advisory_holder
-- in: lock
-- out: the holder's connection (NULL: nobody), mine, clock
-- Waits for nothing. What it says of another connection may be over when it arrives; of
-- this one's own lock it stays true until this connection says or does something else.
SELECT IS_USED_LOCK(?) AS holder, CONNECTION_ID() AS mine,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock;

-- name: advisory_connection
-- in: connection
-- out: host (and port) of a connection
-- Without the right PROCESS only connections of the same user are seen. From which table, and
-- what may fail before 8.0.22, is said at line_waiters; then it is not known.
SELECT p.host
  FROM /*M! information_schema.processlist */ /*!80022 performance_schema.processlist */ p
 WHERE p.id = ?;

-- name: advisory_list
-- in: prefix, after, from, below, limit
-- out: name, token, holder's connection (NULL: nobody), clock
-- MariaDB lists named locks nowhere (performance_schema is off by default), and the
-- server knows our hashes only. So these are the names that ever drew a token.
SELECT t.name, t.token,
       IS_USED_LOCK(IF(CONVERT(t.name USING latin1) REGEXP '^#-?[0-9]+$', SUBSTR(t.name, 2),
            CONCAT(?, LEFT(SHA2(t.name, 256), 32)))) AS holder,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
  FROM dblock_token t
 WHERE t.strategy = 4 AND t.name > ? AND t.name >= ? AND t.name < ?
 ORDER BY t.name
 LIMIT ?;

-- name: advisory_token
-- in: name
-- out: the last token drawn, or no row
-- Read without a lock, before a break: the holder of the lock is the only one who draws,
-- so a later holder has another token or none.
SELECT token FROM dblock_token WHERE strategy = 4 AND name = ?;

-- name: advisory_token_end
-- in: name, token
-- out: affected rows 1 or 0 (there is a newer one); error 1205: a guarded transaction stands on it
-- Last step of a break, after the KILL: who still goes by that token is refused by guards at
-- once, before there is a next holder. On MySQL token_probe comes first, as the UPDATE waits.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_token SET token = token + 1 WHERE strategy = 4 AND name = ? AND token = ?;
