-- SPDX-License-Identifier: MIT
-- install.sql - is this file empty, and are our tables in it?

-- name: install_count
-- in: nothing
-- out: the number of tables, views and triggers in the file
-- 0: a new file, which is ours to set up. Two that install at once may both see 0:
-- both ask for the write-ahead log then, which is the same as once.
SELECT count(*) FROM sqlite_master;

-- name: verify_tables
-- in: nothing
-- out: schema version, 1 if the floor's row is there, number of our triggers
-- Preparing it needs every table and column that a statement of ours mentions; the
-- joins have no rows (ON 0), so nothing is read but the three answers.
SELECT m.version,
    (SELECT count(*) FROM dblock_floor AS f WHERE f.id = 1 AND f.token >= 0),
    (SELECT count(*) FROM sqlite_master AS t WHERE t.type = 'trigger'
     AND t.name IN ('dblock_lease_gone', 'dblock_insert_gone', 'dblock_token_gone')),
    s.id, s.expires_at, s.ttl_us, s.beat, s.changed, s.host, s.pid, s.label, s.created,
    l.name, l.session, l.owner, l.token, l.since, l.expires_at, l.label, l.host, l.pid, l.guards,
    i.name, i.session, i.owner, i.token, i.since, i.expires_at, i.label, i.host, i.pid, i.guards,
    t.strategy, t.name, t.token, t.since
FROM dblock_meta AS m
    LEFT JOIN dblock_session AS s ON 0
    LEFT JOIN dblock_lease AS l ON 0
    LEFT JOIN dblock_insert AS i ON 0
    LEFT JOIN dblock_token AS t ON 0
WHERE m.id = 1;

-- name: ping
-- in: nothing
-- out: the clock
-- A read, which waits for no writer. It touches a page of the file, so that one that
-- went bad is noticed.
SELECT dblock_now_us(), (SELECT count(*) FROM sqlite_master WHERE rowid = 1);
