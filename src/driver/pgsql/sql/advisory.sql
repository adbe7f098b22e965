-- SPDX-License-Identifier: MIT
-- advisory.sql - the server's own named locks, held by the session of a connection.
-- What holds for every statement is said in connection.sql.
--
-- The id of a name is the first eight bytes of its SHA-256, so that plain SQL and every
-- language can take the same lock; a number that was given is the id itself. The driver makes
-- it: for the server, hashing a name is a tenth of all that a try costs.
-- On a standby such a lock excludes nobody on the primary: refused, by asking in the
-- statement itself, as a standby may be promoted under a connection.
-- Something in between may look like one session of the server when it is connected to, and
-- give the next statement to another one, which another client of it has as well: the lock
-- would be that session's, and be granted to both, as the server counts. So what takes or
-- proves one asks in the statement itself whether this is the process that libpq was told of.

-- name: advisory_take
-- in: $1 id, $2 what libpq holds for the server's process (int)
-- out: one row: 0 somebody has it, 1 it is held now, 3 a standby (NULL: this is another process,
--   and did not try)
-- Never waits. A session that has it already gets it again (the server counts), so the
-- caller compares the id with those it holds and gives the second one back.
-- Killed or cut off: the lock ends with the server's session. No snapshot outlives this.
-- In one column, as a second one makes it 3 % slower.
SELECT CASE WHEN pg_catalog.pg_backend_pid() = $2 THEN CASE WHEN pg_catalog.pg_is_in_recovery()
    THEN 3 ELSE pg_catalog.pg_try_advisory_lock($1)::integer END END;

-- name: advisory_first
-- in: $1 id, $2 what libpq holds for the server's process (int), $3 ms of a slice (int)
-- out: one row: 0 not yet, 1 it is held now, 2 cancelled, 3 a standby (NULL: this is another
--   process, and stood nowhere)
-- The first slice in the server's queue, with a snapshot as old as that; advisory_queue goes on,
-- from the end of the queue. Why slices, and why their end is caught, is said at row_wait. The lock
-- belongs to the session. A cancel request that comes right after it was got: as in advisory_queue,
-- or, once the function has returned, the statement fails, and the driver ends the session.
SELECT CASE WHEN pg_catalog.pg_backend_pid() = $2 THEN CASE WHEN pg_catalog.pg_is_in_recovery()
    THEN 3 ELSE dblock_schema.dblock_wait($1, NULL, NULL, $3) END END;

-- name: advisory_queue
-- in: $1 schema as an identifier (text), $2 name (bytea), $3 and $4 key of the line, $5 in order
--   of arrival (bool), $6 ms of a slice, $7 how many slices, and what the last call handed on:
--   $8 0, $9 ticket or NULL, $10 id; $11 what libpq holds for the server's process (int)
-- out: outcome (0 not yet, 1 held, 2 cancelled, 3 a standby), ticket, id (NULL: this is
--   another process, which was given neither name nor id, so it stood nowhere)
-- Stands in the server's queue for some slices; why slices, and why their end is caught, is
-- said at row_wait, and more at the procedure itself (0001_create.sql). It commits after each
-- slice, so it stands alone in its message. The lock belongs to the session. A cancel request
-- that comes right after it was got: then it is given back, as all that a session has that
-- waits. If it fails the driver ends the session.
CALL dblock_schema.dblock_queue($1, CASE WHEN pg_catalog.pg_backend_pid() = $11 THEN $2 END,
    $3, $4, $5, $6, $7, $8, $9, CASE WHEN pg_catalog.pg_backend_pid() = $11 THEN $10 END);

-- name: advisory_arm
-- in: $1 id, $2 what libpq holds for the server's process (int), $3 how long (text, ms)
-- out: is this that process, in recovery, and the settings, for the rest of this transaction
-- As row_arm: what advisory_wait reads. Local to the transaction, which ends with the
-- slice; of what it says only the lock itself outlives it.
SELECT pg_catalog.pg_backend_pid() = $2, pg_catalog.pg_is_in_recovery(),
    pg_catalog.set_config('dblock.id',
        CASE WHEN pg_catalog.pg_backend_pid() = $2 THEN $1::bigint::text ELSE '' END, true),
    pg_catalog.set_config('dblock.is_granted', 'no', true),
    pg_catalog.set_config('lock_timeout', $3::text, true);

-- name: advisory_wait
-- in: nothing (advisory_arm)
-- out: nothing; advisory_waited follows and tells
-- As advisory_queue, for one slice, where there are no tables and so no routines: it is
-- parsed and compiled each time. The lock belongs to the session and outlives this transaction,
-- and also a cancel request that comes right after it was got: then it is given back, as all that
-- a session has that waits. So it is held exactly if is_granted says so.
DO $dblock$
BEGIN
    IF NOT pg_catalog.pg_is_in_recovery()
        AND pg_catalog.current_setting('dblock.id') <> '' THEN
        PERFORM pg_catalog.pg_advisory_lock(pg_catalog.current_setting('dblock.id')::bigint);
        PERFORM pg_catalog.set_config('dblock.is_granted', 'yes', true);
    END IF;
EXCEPTION
    WHEN lock_not_available THEN -- and perhaps granted in that moment: dblock_queue
        IF pg_catalog.pg_try_advisory_lock(pg_catalog.current_setting('dblock.id')::bigint) THEN
            PERFORM pg_catalog.pg_advisory_unlock(pg_catalog.current_setting('dblock.id')::bigint);
            PERFORM pg_catalog.pg_advisory_unlock(pg_catalog.current_setting('dblock.id')::bigint)
            FROM pg_catalog.pg_locks AS l
            WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'advisory' AND l.granted
                AND l.objsubid = 1 AND ((l.classid::bigint << 32) | l.objid::bigint) =
                    pg_catalog.current_setting('dblock.id')::bigint;
        END IF;
    WHEN query_canceled THEN
        BEGIN
            PERFORM pg_catalog.pg_sleep(0.01);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
        PERFORM pg_catalog.pg_advisory_unlock_all();
END
$dblock$;

-- name: advisory_waited
-- in: nothing
-- out: clock, is it held now
-- In the same message as advisory_arm and advisory_wait, so in the same transaction.
-- Reads this session's own setting; waits for nothing.
SELECT pg_catalog.clock_timestamp(), pg_catalog.current_setting('dblock.is_granted') = 'yes';

-- name: advisory_drop
-- in: as advisory_take
-- out: one row: was it held until now (NULL: this is another process, and was not asked)
-- Only this session's own lock. One that it does not have: false, and a warning in the
-- server's log, which is in place, as somebody took it away by hand.
-- A lost answer: the connection is closed, and the lock with it.
SELECT CASE WHEN pg_catalog.pg_backend_pid() = $2 THEN pg_catalog.pg_advisory_unlock($1) END;

-- name: advisory_prove
-- in: as advisory_take
-- out: clock, does this session hold it
-- From the server's own table of locks, so it also finds what was done by hand.
-- Reads shared memory, waits for nothing.
SELECT pg_catalog.clock_timestamp(), EXISTS (
    SELECT 1 FROM pg_catalog.pg_lock_status() AS l
    WHERE l.pid = pg_catalog.pg_backend_pid() AND l.pid = $2::integer
        AND l.locktype = 'advisory' AND l.objsubid = 1
        AND l.granted AND l.mode = 'ExclusiveLock'
        AND ((l.classid::bigint << 32) | l.objid::bigint) = $1);

-- name: advisory_stands
-- in: $1 what libpq holds for the server's process (int)
-- out: clock, is this that process
-- advisory_prove for a lock that this session was granted a moment ago: nobody but the session
-- itself could give it back since. A process of the server that sees the other one for the first
-- time takes milliseconds for it, and a waiter's connection often has.
SELECT pg_catalog.clock_timestamp(), pg_catalog.pg_backend_pid() = $1;

-- name: advisory_holder
-- in: $1 name (bytea), as of its token (token_draw); $2 id
-- out: clock; server_pid, application_name, session's start (us since 2000), token
--   drawn by that session; all NULL as far as it is not known
-- For people. Whoever holds it, also if it is not dblock. What this role may not see of
-- other roles' sessions is NULL.
-- Reads shared memory, waits for nobody; it may be over when it is told.
SELECT pg_catalog.clock_timestamp(), h.pid, h.application_name, h.backend_start,
    (SELECT t.token FROM dblock_schema.dblock_token AS t
     WHERE t.strategy = 4 AND t.name = $1 AND t.server_pid = h.pid
        AND t.since >= h.backend_start)
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT l.pid, a.application_name, a.backend_start
    FROM pg_catalog.pg_locks AS l
        LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
            WHERE d.datname = pg_catalog.current_database())
        AND ((l.classid::bigint << 32) | l.objid::bigint) = $2
    LIMIT 1) AS h ON true;

-- name: advisory_list
-- in: $1 exactly this name or NULL, $2 prefix or NULL, $3 names above this one or NULL
--   (bytea), $4 exactly this id (bigint) or NULL, $5 at most so many
-- out: rows: clock, name, server_pid, application_name, session's start, token drawn by
--   that session
-- Of many, only sessions that dblock keeps for advisory locks (by their application_name:
-- others hold ids that are not dblock's, and its short sessions hold gates); of one name,
-- whoever holds it. The server knows numbers; names come from the tokens that were drawn,
-- or from the question.
-- Reads shared memory and the table of tokens; waits for nobody. It may be over when it
-- is told, and a session that this role may not see is missing.
SELECT pg_catalog.clock_timestamp(), g.name, g.pid, g.application_name, g.backend_start, g.token
FROM (
    SELECT coalesce(
            CASE WHEN h.id = $4::bigint OR h.id = ('x' || pg_catalog.encode(pg_catalog.substr(
                pg_catalog.sha256($1), 1, 8), 'hex'))::bit(64)::bigint THEN $1 END,
            t.name, pg_catalog.convert_to('#' || h.id, 'UTF8')) AS name,
        h.id, h.pid, h.application_name, h.backend_start,
        CASE WHEN t.server_pid = h.pid AND t.since >= h.backend_start THEN t.token END AS token
    FROM (
        SELECT (l.classid::bigint << 32) | l.objid::bigint AS id, l.pid, a.application_name,
            a.backend_start
        FROM pg_catalog.pg_locks AS l
            JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
            AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
                WHERE d.datname = pg_catalog.current_database())
            AND ($1 IS NOT NULL OR a.application_name LIKE 'dblock % advisory')
            AND l.mode = 'ExclusiveLock') AS h
        LEFT JOIN (
            SELECT n.name, n.token, n.since, n.server_pid,
                ('x' || pg_catalog.encode(pg_catalog.substr(
                    pg_catalog.sha256(n.name), 1, 8), 'hex'))::bit(64)::bigint AS id
            FROM dblock_schema.dblock_token AS n WHERE n.strategy = 4) AS t
            ON t.id = h.id OR t.name = pg_catalog.convert_to('#' || h.id, 'UTF8')
    ) AS g
WHERE g.name > coalesce($3, ''::bytea)
    AND ($1 IS NULL OR g.name = $1)
    AND ($2 IS NULL OR pg_catalog.substr(g.name, 1, pg_catalog.octet_length($2::bytea)) = $2)
ORDER BY g.name
LIMIT $5;
