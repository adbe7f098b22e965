-- SPDX-License-Identifier: MIT
-- watch.sql - finding the application's connection again, to end what runs there
-- (mysql_watch.c). A number names a connection of one run of one server only; these
-- statements make sure that it is still that server, that run and that connection. (SHA2: MySQL
-- 9.7 has no SHA1() any more.)

-- name: watch_whom
-- in: nothing; on the application's connection
-- out: the server's own number of it, which server it is
-- Reads variables. The number is another than at the handshake if something in between
-- lends out connections of its own.
SELECT CONNECTION_ID(),
       LEFT(SHA2(CONCAT(@@hostname, ':', @@port, ':', @@datadir), 256), 40);

-- name: watch_find
-- in: which server, number
-- out: 1 if it is that server, else 0; who is connected under that number (NULL: nobody,
--      or this user may not see it), 1 if a statement runs there
-- Reads the server's list of connections; waits for nothing. What it says may be over
-- when the KILL arrives: then that meets nothing, or a statement begun meanwhile.
SELECT LEFT(SHA2(CONCAT(@@hostname, ':', @@port, ':', @@datadir), 256), 40) = ?,
       CONCAT(p.USER, '@', p.HOST), p.COMMAND NOT IN ('Sleep', 'Killed')
  FROM (SELECT 1) AS one LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = ?;

-- name: watch_age
-- in: nothing
-- out: 'Uptime', seconds
-- A server that was started since the watch began counts its connections anew.
SHOW GLOBAL STATUS LIKE 'Uptime';
