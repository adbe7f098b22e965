-- SPDX-License-Identifier: MIT
-- line.sql - waiting for a lease or insert without asking again and again, by the server's
-- named locks. They carry order and wake-ups only: a grant is a row, and whoever takes it
-- takes it by lease_take, also the first in line.
--
-- The gate of a name: CONCAT(prefix, 'l' (insert: 'i'), LEFT(SHA2(name, 256), 32)), in
-- `prefix` as advisory.sql has it, whose own names have no such letter. The first in
-- line has it, on a connection of the role LINE that has nothing else; the others stand
-- in the server's queue for it, first come first served, and cost nothing there.
-- The bell of a grant: CONCAT(prefix, 'b', owner in hex). The connection that takes a
-- grant locks its bell in the same statement, before the grant can be seen (lease_take),
-- and unlocks it in the drop. The first in line waits for the bell of the grant that his
-- take met. Owner ids are never used twice, and so nor are bells.
-- A drop over a connection that has not the bell (of another process; of a holder of so many
-- grants that not all have one; on Galera, which may run a statement twice) tells who is
-- the first in line, and a KILL QUERY makes him look. So does a break: line_first.
--
-- Why no wake-up is lost: a bell that is not locked lets the first in line through at once,
-- so it does not matter whether it was unlocked before or after he asked. What it tells
-- is only that he should try. The drop unlocks it before its commit, which may take as
-- long as a flush of the log: if his take still meets that grant he waits for the row's
-- lock once (lease_wait), and takes. If it meets it again nobody will ring: the holder is
-- gone, or was never able to. Then he naps (line_nap), 20 ms at first and 500 at most, and
-- never past the end of that grant.
--
-- Clients that die. While a client waits here the server looks after it about twice a
-- second and ends the statement. One that is stopped or cut off when it becomes the
-- first, or is rung for, leaves a connection that idles, which its wait_timeout ends
-- after two seconds; so the one that is alive never lets it idle for so long. No
-- statement here takes a grant: nothing is ever given to a client that is gone.
-- Who waits in GET_LOCK has the gate and nothing else, and who has bells waits for no named
-- lock, so nobody waits in a circle.
-- Galera: these locks are local to a node. Whoever waits on another node than the
-- holder's naps. Two are the first in line then, of whom one takes; that is what a take
-- is for.
-- The statements are sent as text, with literals for the marks, so that they can be
-- cancelled. Their form is read back by line_waiters.

-- name: line_stand
-- in: milliseconds, prefix, letter, name, seconds
-- out: 1 the first, 0 not within the time; error 3024 (MySQL): not within the time; 1213
--      (MariaDB), 3058 (MySQL): a circle; 1317 (MySQL) or NULL (MariaDB): KILL QUERY
-- Times as in advisory_wait. Reads no table: no snapshot. Lost answer: the connection is
-- closed, and with it goes the place.
SELECT /*+ MAX_EXECUTION_TIME(?) */ GET_LOCK(CONCAT(?, ?, LEFT(SHA2(?, 256), 32)), ?) AS answer;

-- name: line_rest
-- in: milliseconds, prefix, letter, name, bell, seconds, bell
-- out: 1 rung, 0 not within the time, -1 the place is lost; errors as of line_stand
-- Waits in the server's memory: no snapshot, no lock of a table. Unlocks the bell at once,
-- as nobody else has a use for it. A bell that is not locked is got at once, so a drop that
-- came before this counts. Lost answer: as of line_stand.
SELECT /*+ MAX_EXECUTION_TIME(?) */
       IF(IS_USED_LOCK(CONCAT(?, ?, LEFT(SHA2(?, 256), 32))) = CONNECTION_ID(),
            IF(GET_LOCK(?, ?), 1 + 0 * RELEASE_LOCK(?), 0), -1) AS answer;

-- name: line_nap
-- in: prefix, letter, name, seconds
-- out: 0 slept, 1 KILL QUERY, -1 the place is lost
-- On the server, so that the connection does not idle, is looked after if its client dies,
-- and can be woken as line_first does it. Reads no table: no snapshot.
SELECT IF(IS_USED_LOCK(CONCAT(?, ?, LEFT(SHA2(?, 256), 32))) = CONNECTION_ID(),
            SLEEP(?), -1) AS answer;

-- name: line_leave
-- in: seconds, prefix, letter, name
-- out: nothing
-- The next becomes the first: the server gives him the lock while this one works. The
-- connection may idle again as others do. Harmless if it had no place. Nobody waits for the
-- answer; if this gets lost the connection does not idle on for two seconds.
SET SESSION wait_timeout =
    ? + 0 * COALESCE(RELEASE_LOCK(CONCAT(?, ?, LEFT(SHA2(?, 256), 32))), 0);

-- name: line_first
-- in: prefix, letter, name
-- out: the connection of the first in line, NULL: there is none
-- By whoever ends a grant whose bell is another connection's, after the commit. That
-- connection is one of ours, and waits or is about to: a KILL QUERY makes it look. If it
-- comes when he is not waiting it is lost, and he looks when his rest is over; if he has
-- gone on to stand in another line it costs him his place there, and no more.
SELECT IS_USED_LOCK(CONCAT(?, ?, LEFT(SHA2(?, 256), 32))) AS connection;

-- name: line_waiters
-- in: pattern, after, from, below, limit
-- out: name, how many wait
-- What the server's connections are doing: those of the same user, or all with the right
-- PROCESS. `pattern` matches the statements above for one strategy. MySQL's other table of
-- that name fails if anybody's statement is not text (3854), as most of ours, so versions
-- before 8.0.22 cannot tell. SUBSTR, as MariaDB groups an UNHEX of a text without a limit
-- wrongly.
SELECT w.name, COUNT(*) AS n_waiters
  FROM (SELECT UNHEX(SUBSTR(SUBSTRING_INDEX(SUBSTRING_INDEX(p.info, 'SHA2(x''', -1), '''', 1),
            1, 510)) AS name
          FROM /*M! information_schema.processlist */ /*!80022 performance_schema.processlist */ p
         WHERE p.state IN ('User lock', 'User sleep') AND p.info LIKE ?) w
 WHERE w.name > ? AND w.name >= ? AND w.name < ?
 GROUP BY w.name
 ORDER BY w.name
 LIMIT ?;

-- name: bell_release
-- in: eight bells, each may be named again
-- out: nothing
-- Bells of this connection's own grants that another one has given back, or that have ended.
-- It unlocks its own and no others. Too early it would only make somebody look in vain.
DO RELEASE_LOCK(?), RELEASE_LOCK(?), RELEASE_LOCK(?), RELEASE_LOCK(?),
    RELEASE_LOCK(?), RELEASE_LOCK(?), RELEASE_LOCK(?), RELEASE_LOCK(?);
