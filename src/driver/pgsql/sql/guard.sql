-- SPDX-License-Identifier: MIT
-- guard.sql - what runs on a connection of the application, in its open transaction.
-- What holds for every statement is said in connection.sql, but the settings of that
-- connection are the application's: isolation, search_path, limits. Operators and types would be
-- looked for in that search_path, also the one behind IN, so they are named in full. Named so they
-- all have one precedence.

-- name: lease_guard
-- in: $1 name (bytea), $2 owner (bytea), $3 token
-- out: one row: is the row pinned now; in the snapshot: its token (NULL: no row), is it the
--   grant of that owner, is it in force; does the transaction read committed
-- Pinned: FOR SHARE, so several guarded transactions of one holder run together, and who
-- takes, drops, extends or breaks skips the row and says so (lease_clear, lease_drop). The
-- heartbeat changes the session's row alone. Until the transaction ends the row has this
-- owner and token, so nobody else can be granted the name.
-- Not waited for: who stands on the row (a take that is too late, a second of ours) is skipped,
-- and it is asked again.
-- In force is told from the snapshot, and that of a session may be older than its last
-- heartbeat where the transaction does not read committed. Ended meanwhile: the taker that
-- ended the session meets the pin, and is granted nothing until this transaction is over.
-- Not read committed, and the row was changed after the snapshot: 40001 if it has this owner
-- and token there, else a smaller token.
WITH pinned AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_lease AS l
    WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
        AND l.token OPERATOR(pg_catalog.=) $3
        AND CASE WHEN l.session IS NULL
            THEN l.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                WHERE s.id OPERATOR(pg_catalog.=) l.session
                    AND s.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()) END
    FOR SHARE OF l SKIP LOCKED
)
SELECT EXISTS (SELECT 1 FROM pinned), seen.token, seen.is_own, seen.is_in_force,
    pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}')
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT l.token, coalesce(l.owner OPERATOR(pg_catalog.=) $2, false) AS is_own,
        CASE WHEN l.session IS NULL
            THEN l.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                WHERE s.id OPERATOR(pg_catalog.=) l.session
                    AND s.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp())
            END AS is_in_force
    FROM dblock_schema.dblock_lease AS l WHERE l.name OPERATOR(pg_catalog.=) $1) AS seen ON true;

-- name: insert_guard
-- in: as lease_guard
-- out: as lease_guard
-- As lease_guard.
WITH pinned AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_insert AS l
    WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
        AND l.token OPERATOR(pg_catalog.=) $3
        AND CASE WHEN l.session IS NULL
            THEN l.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                WHERE s.id OPERATOR(pg_catalog.=) l.session
                    AND s.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()) END
    FOR SHARE OF l SKIP LOCKED
)
SELECT EXISTS (SELECT 1 FROM pinned), seen.token, seen.is_own, seen.is_in_force,
    pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}')
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT l.token, coalesce(l.owner OPERATOR(pg_catalog.=) $2, false) AS is_own,
        CASE WHEN l.session IS NULL
            THEN l.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
            ELSE EXISTS (SELECT 1 FROM dblock_schema.dblock_session AS s
                WHERE s.id OPERATOR(pg_catalog.=) l.session
                    AND s.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp())
            END AS is_in_force
    FROM dblock_schema.dblock_insert AS l WHERE l.name OPERATOR(pg_catalog.=) $1) AS seen ON true;

-- name: token_guard
-- in: $1 name (bytea), $2 strategy, $3 token
-- out: as lease_guard
-- A lock that lives in a connection has no row with its owner, and whether it is still held is
-- not asked: that would be true for a moment. What is pinned is the row of the token that was
-- drawn with the grant (DBLOCK_FENCED), before anybody was told of it. Whoever is granted the
-- name with a token after that writes this row and commits before he is told (token_draw), so
--   - he came before: the row has a larger token, and this grant is over;
--   - he comes later: he skips the row, gives the lock back and asks again, so that he is
--     told of no grant until this transaction has ended, whatever became of the holder's
--     connection meanwhile.
-- Who takes the name without a token excludes nothing of this.
-- The purge leaves the row as long as the lock is held (observe.sql). Drawn after the
-- snapshot of a transaction that does not read committed: none there, or a smaller token.
WITH pinned AS MATERIALIZED (
    SELECT 1 AS one
    FROM dblock_schema.dblock_token AS t
    WHERE t.strategy OPERATOR(pg_catalog.=) $2 AND t.name OPERATOR(pg_catalog.=) $1
        AND t.token OPERATOR(pg_catalog.=) $3
    FOR SHARE OF t SKIP LOCKED
)
SELECT EXISTS (SELECT 1 FROM pinned), seen.token, true, true,
    pg_catalog.current_setting('transaction_isolation')
        OPERATOR(pg_catalog.=) ANY ('{read committed,read uncommitted}')
FROM (SELECT 1) AS one LEFT JOIN dblock_schema.dblock_token AS seen
    ON seen.strategy OPERATOR(pg_catalog.=) $2 AND seen.name OPERATOR(pg_catalog.=) $1;

-- name: lease_leave
-- in: $1 name (bytea), $2 owner (bytea), $3 and $4 key of the line
-- out: the grants that this transaction gives back: one
-- After lease_guard in the same transaction, so nobody else has changed the row or can: at
-- most another guarded transaction of the same holder is waited for. The COMMIT gives the
-- name back, with all that was written, and wakes the first in line (line.sql); a ROLLBACK
-- leaves it held. As durable as the application's commit.
UPDATE dblock_schema.dblock_lease AS l
SET session = NULL, owner = NULL, expires_at = '-infinity',
    since = pg_catalog.clock_timestamp()
WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
    THEN pg_catalog.pg_notify(pg_catalog.concat('dblock_',
        pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0'),
        pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')), '')::pg_catalog.text END;

-- name: insert_leave
-- in: as lease_leave
-- out: as lease_leave
-- As lease_leave, but the row goes.
DELETE FROM dblock_schema.dblock_insert AS l
WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
    THEN pg_catalog.pg_notify(pg_catalog.concat('dblock_',
        pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0'),
        pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')), '')::pg_catalog.text END;

-- name: lease_keep
-- in: $1 name (bytea), $2 owner (bytea), $3 and $4 key of the line, $5 another owner (bytea),
--   $6 time (interval)
-- out: as lease_leave
-- Instead of lease_leave where min_hold_ms is not over: the COMMIT leaves a timed grant of the
-- rest. Under another owner, so that for its holder it is given back all the same.
UPDATE dblock_schema.dblock_lease AS l
SET session = NULL, owner = $5,
    expires_at = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) $6
WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
    THEN pg_catalog.pg_notify(pg_catalog.concat('dblock_',
        pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0'),
        pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')), '')::pg_catalog.text END;

-- name: insert_keep
-- in: as lease_keep
-- out: as lease_leave
-- As lease_keep.
UPDATE dblock_schema.dblock_insert AS l
SET session = NULL, owner = $5,
    expires_at = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) $6
WHERE l.name OPERATOR(pg_catalog.=) $1 AND l.owner OPERATOR(pg_catalog.=) $2
RETURNING CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock_shared($3, $4)
    THEN pg_catalog.pg_notify(pg_catalog.concat('dblock_',
        pg_catalog.lpad(pg_catalog.to_hex($3), 8, '0'),
        pg_catalog.lpad(pg_catalog.to_hex($4), 8, '0')), '')::pg_catalog.text END;
