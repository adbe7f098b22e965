-- SPDX-License-Identifier: MIT
-- line.sql - the lines of those who wait for lease or insert, and how the first is woken.
-- What holds for every statement is said in connection.sql.
--
-- The line of a (schema, strategy, name) is an advisory lock of the server, W. Its key is a
-- 64-bit hash that the driver makes, as two integers: the space of two keys has nothing of
-- dblock's in it but lines, who looks after them, and the turns of rows (row_wait). The first in
-- line holds W, and LISTENs on a channel of that name; the others wait for W. Two names with one
-- key share a line: that costs time.
--   A take that heeds the line (lease_gate) tries W in SHARED mode. It fails if somebody
--   holds W or waits for it, and then does not take. A first one and a plain try do not ask.
--   Whatever frees a name (lease_drop, lease_extend, lease_end) tries W in SHARED mode, too,
--   and sends a NOTIFY only if that fails. Both keep W to the end of their transaction.
-- Shared, so that those who only ask do not stand in each other's way: only who is or wants
-- to be first makes a try fail. A try never waits, and jumps no queue.
--
-- Why no wake-up is lost. F is first: it got W, then its LISTEN was committed, then it takes,
-- and rests if the name is not free. D frees the name.
--   D's try succeeded: D keeps W until its commit can be seen, and F cannot get W before.
--   So F's take comes later than that, and sees it.
--   D's try failed, and D is committed before F's LISTEN: F's take comes later, and sees it.
--   D's try failed, and D is committed after F's LISTEN: F hears its NOTIFY, which the server
--   sends after the commit can be seen; and if that was before F rested, it lies in F's
--   socket. F's take may have run while D was not committed: it never waits for D's row, but
--   answers from what is committed (BUSY, and F hears the NOTIFY) or that somebody stands on
--   the row (PINNED or AGAIN, and it is repeated soon).
-- A grant that ends by itself wakes nobody: the library rests no longer than that.
--
-- A first one that dies loses W with its session; that of a dead client is ended within the
-- check interval (connection_open_14), that of a dead host by keepalive. One that is stopped
-- keeps W: then one of the others sees the name free with the same token over a whole slice,
-- and takes it past him. Cancelled, or gone wrong in whatever way: the session ends, or leaves.
--
-- In order of arrival on request: each draws a ticket and locks it before it looks at those
-- of others, so a ticket that exists is of a living session. pg_locks shows them. Who has
-- one older ticket before him waits for W; who has more waits for that of the second before
-- him, so that one is waiting for W while another one holds it, and nobody who comes later
-- gets between two. A ticket that goes, also in the midst, lets the next look again. Who
-- gets W although the one before has not left (he was slower in coming to wait for it)
-- gives W up again, and waits for his ticket.
-- A stopped first one is passed in order, too: by the second after one slice in which the name
-- was free, then by the third after another one. So is who was stopped between two statements,
-- and has a ticket without waiting.

-- name: line_stand
-- in: $1 schema as an identifier (text), $2 strategy, $3 name (bytea), $4 and $5 key of the
--   line, $6 in order of arrival (bool), $7 ms of a slice, $8 how many slices at most, and what
--   the last call handed on: $9 0, $10 ticket or NULL, $11 seen or NULL (bigint)
-- out: outcome (0 not yet, 1 first, 2 cancelled, 3 may pass, 4 first without a bell), ticket,
--   seen
-- The procedure commits after each slice, so it stands alone in its message. Its waits end
-- by lock_timeout or by a cancel request, which it catches: uncaught, each would be a line
-- in the server's log (row_wait). A slice is shorter than deadlock_timeout, so nothing
-- is checked or logged for it. The locks that it got belong to the session; if it fails
-- the driver ends that, and if it is cancelled it has given them back.
-- Outcome 4: eight others LISTEN in this database. Each NOTIFY of the database, also those of
-- the application, wakes all that listen, so there is a limit; without a bell one looks.
CALL dblock_schema.dblock_stand($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: line_leave
-- in: nothing
-- out: nothing
-- What a session of this kind holds is its place in one line: the next in line gets W at
-- once, and becomes first. A lost answer: the connection is lost, and the place with it.
SELECT pg_catalog.pg_advisory_unlock_all();

-- name: line_leave_ticket
-- in: $1 and $2 key of the ticket, which the session holds
-- out: nothing
-- As line_leave, but the ticket goes first: who gets W looks whether it is gone.
SELECT pg_catalog.pg_advisory_unlock($1, $2), pg_catalog.pg_advisory_unlock_all();

-- name: line_unlisten
-- in: nothing
-- out: nothing
-- After line_leave in the same message. Between the two one more than eight may LISTEN.
-- What rang meanwhile is dropped when the answer is read: it was for a place that is left.
UNLISTEN *;

-- name: line_count
-- in: $1 and $2 key of the line
-- out: how many stand in it
-- Who holds W or waits for it, or has a ticket. One who is between two slices is missed.
-- Reads shared memory, waits for nobody; it may be over when it is told.
SELECT pg_catalog.count(DISTINCT l.pid)
FROM pg_catalog.pg_locks AS l
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.mode = 'ExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
        WHERE d.datname = pg_catalog.current_database())
    AND ((l.classid::bigint = $1::bigint & 4294967295 AND l.objid::bigint = $2::bigint & 4294967295)
        OR (l.classid::bigint = (~$1)::bigint & 4294967295
            AND (l.objid::bigint # $2::bigint) & 4026531840 = 0));
