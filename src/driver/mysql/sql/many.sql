-- SPDX-License-Identifier: MIT
-- many.sql - several names of lease or insert at once, all or none. Sent as text: the marks
-- are @WANTED: a select of place, name and owner for each, in the order of the names, joined by
-- UNION ALL; @NAMES, @OWNERS: the names, the owners, with commas. Written for lease; insert has the same columns.
-- READ COMMITTED, autocommit. What holds for one name (lease.sql) holds for each.
--
-- A take is many_take, and many_look, which tells what came of it. Mostly many_take takes all
-- or none by itself. Only if somebody else took one of the names between its read and its
-- locks it takes a part; then that is given back at once (many_drop), and it is AGAIN. Cut in
-- between, or an answer lost: the library reads each name, and gives back what is not
-- all of them (E_UNCERTAIN promises no more).

-- name: many_take
-- in: session, ttl, pid, are there bells, prefix of bells, host, label, @WANTED, session, session, @NAMES, not_after, does
--     it go past the lines, @NAMES, prefix with the strategy's letter, not_after
-- out: affected rows: 1 for a new name, 2 for a free one; 0: none
-- Held or ended name, or somebody first in one of the lines: the reads (consistent, without a
-- lock) select nothing, so no row is locked or written, whatever guards stand on them.
-- Rows are locked in the order of the names, each with X from the start (ON DUPLICATE KEY),
-- after the floor with S. So two of these cannot wait for each other in a circle, nor with a
-- take of one name, a drop (neither waits while it has a row) or a purge (one thing at a
-- time). Should the database see one all the same (1213: a row whose insert another has
-- rolled back), the statement has no effect, and is AGAIN.
-- Waits for others' single statements at most, innodb_lock_wait_timeout in all each; not_after is
-- judged again for each row.
-- The condition is evaluated once for a row, in the first assignment; the others follow from
-- the owner, which is unique to this statement. Token: as lease_take.
-- The bells (line.sql) are locked on the way, as in lease_take. Of very many names none is:
-- then whoever waits is woken by the drop, and looks from time to time meanwhile.
INSERT INTO dblock_lease (name, token, owner, session, expires_at, since, pid, host, label)
SELECT w.name,
       GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            1 + (SELECT g.token FROM dblock_floor g WHERE g.id = 1 LOCK IN SHARE MODE)),
       w.owner, ?,
       COALESCE(me.expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       ? + 0 * IF(?, GET_LOCK(CONCAT(?, LOWER(HEX(w.owner))), 0) IS NULL, 0), ?, ?
  FROM (@WANTED) AS w
  LEFT JOIN dblock_session me ON me.id = ?
 WHERE (? IS NULL OR me.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
   AND NOT EXISTS (SELECT 1 FROM dblock_lease i
        WHERE i.name IN (@NAMES) AND (i.owner IS NOT NULL OR i.expires_at
            > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?
   AND (? OR NOT EXISTS (SELECT 1 FROM (@WANTED) AS v
        WHERE NOT IS_FREE_LOCK(CONCAT(?, LEFT(SHA2(v.name, 256), 32)))))
 ORDER BY w.name
    ON DUPLICATE KEY UPDATE
       owner = IF(dblock_lease.owner IS NULL AND dblock_lease.expires_at <= VALUES(since)
            AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?,
            VALUES(owner), dblock_lease.owner),
       token = IF(dblock_lease.owner = VALUES(owner),
            GREATEST(dblock_lease.token + 1, VALUES(since)), dblock_lease.token),
       session = IF(dblock_lease.owner = VALUES(owner), VALUES(session), dblock_lease.session),
       expires_at =
            IF(dblock_lease.owner = VALUES(owner), VALUES(expires_at), dblock_lease.expires_at),
       since = IF(dblock_lease.owner = VALUES(owner), VALUES(since), dblock_lease.since),
       pid = IF(dblock_lease.owner = VALUES(owner), VALUES(pid), dblock_lease.pid),
       host = IF(dblock_lease.owner = VALUES(owner), VALUES(host), dblock_lease.host),
       label = IF(dblock_lease.owner = VALUES(owner), VALUES(label), dblock_lease.label);

-- name: many_look
-- in: is the line wanted, prefix with the strategy's letter, @WANTED, session
-- out: of each name: its place, 1 mine / 2 in force / 3 ended / 0 free, token, is somebody
--      first in its line; clock, my session's end (NULL: gone), is the grant in force (NULL: none)
-- One snapshot, without locks, newer than every commit that was acknowledged before.
-- A gate is only looked at: who comes or goes just then makes a wait short, or a take in vain.
SELECT w.place,
       IF(l.owner = w.owner, 1,
            IF(l.owner IS NULL,
                IF(l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 2, 0),
                IF(IF(l.session IS NULL, l.expires_at, COALESCE(s.expires_at, 0))
                    > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 2, 3))),
       l.token,
       IF(?, NOT IS_FREE_LOCK(CONCAT(?, LEFT(SHA2(w.name, 256), 32))), 0),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), me.expires_at,
       IF(l.session IS NULL,
            l.expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            s.id IS NOT NULL)
  FROM (@WANTED) AS w
  LEFT JOIN dblock_lease l ON l.name = w.name
  LEFT JOIN dblock_session s ON s.id = l.session
  LEFT JOIN dblock_session me ON me.id = ?
 ORDER BY w.place;

-- name: many_drop
-- in: prefix of bells, @NAMES, @OWNERS
-- out: affected rows; error 1205: one of the rows is locked, and nothing was done
-- As lease_drop for each, after many_look has told which are in force. One that was ended in
-- between counts as given back before: its holder had stopped to believe in it.
-- MariaDB, where no row is waited for, so it does not matter what others have locked; and only
-- if this connection has all the bells, which ring before the commit.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
UPDATE dblock_lease
   SET since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
            + 0 * COALESCE(RELEASE_LOCK(CONCAT(?, LOWER(HEX(owner)))), 0),
       owner = NULL, session = NULL, expires_at = 0
 WHERE name IN (@NAMES) AND owner IN (@OWNERS)
   AND IF(session IS NULL,
            expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));

-- name: many_free
-- in: name, token, of the grant that a look found ended
-- out: affected rows 1 or 0
-- Writes that a grant has ended, as its owner would have; its session, if it named one, was
-- ended by session_end_expired. The token names the grant that was seen. A guard that stands
-- on the row was met by lease_probe before; one that is faster than this finds no session any
-- more, or makes this wait a second and fail (1205).
UPDATE dblock_lease
   SET owner = NULL, session = NULL, expires_at = 0,
       since = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE name = ? AND token = ? AND owner IS NOT NULL
   AND IF(session IS NULL,
            expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            NOT EXISTS (SELECT 1 FROM dblock_session s WHERE s.id = dblock_lease.session));
