/* SPDX-License-Identifier: MIT */
/* raw_pgsql_gate.c - waiting for a lease on libpq: the waiters queue in an advisory lock,
 * the gate; who has it listens, and takes the row when it is told. A release tells only
 * if somebody has the gate, which its own try for it shows. What the driver's line does,
 * without its slices and without looking at a connection that may be gone. */
#include "raw_pgsql.h"

#include <poll.h>
#include <stdio.h>

enum { LOOK_MS = 5000 };

int raw_pgsql_gate_open(struct raw_pgsql *raw)
{
    char text[640];

    (void)snprintf(text, sizeof text,
        "INSERT INTO bench_waiting AS l (name, owner, fence, expires_at)"
        " SELECT '%s', pg_backend_pid(), 1, clock_timestamp() + interval '30 s'"
        " WHERE pg_try_advisory_xact_lock(%lld)"
        " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = l.fence + 1,"
        " expires_at = excluded.expires_at WHERE l.expires_at <= clock_timestamp()"
        " RETURNING fence",
        raw->name, raw->key);
    if (raw_pgsql_prepare(raw, "try", text) != 0)
        return -1;
    (void)snprintf(text, sizeof text, "SELECT pg_advisory_lock(%lld)", raw->key);
    if (raw_pgsql_prepare(raw, "gate", text) != 0)
        return -1;
    (void)snprintf(text, sizeof text,
        "WITH u AS (UPDATE bench_waiting SET expires_at = '-infinity'"
        " WHERE name = '%s' AND owner = pg_backend_pid() RETURNING name)"
        " SELECT set_config('synchronous_commit', 'off', true),"
        " CASE WHEN NOT pg_try_advisory_xact_lock(%lld)"
        " THEN pg_notify('bench_%lld', '')::text END FROM u",
        raw->name, raw->key, raw->key);
    return raw_pgsql_prepare(raw, "leave", text);
}

/* The answer of the last acquire's unlock. */
static int collect(struct raw_pgsql *raw)
{
    PGresult *result;
    int failed = 0;

    while (raw->is_unlocking && (result = PQgetResult(raw->pg)) != NULL)
        failed |= raw_pgsql_accept(raw, result, NULL);
    raw->is_unlocking = 0;
    return failed;
}

static void await_notice(struct raw_pgsql *raw)
{
    struct pollfd polled = { PQsocket(raw->pg), POLLIN, 0 };
    PGnotify *notice = PQnotifies(raw->pg);

    if (notice == NULL && poll(&polled, 1, LOOK_MS) > 0 && PQconsumeInput(raw->pg))
        notice = PQnotifies(raw->pg);
    while (notice != NULL) {
        PQfreemem(notice);
        notice = PQnotifies(raw->pg);
    }
}

int raw_pgsql_gate_acquire(void *context, int64_t *ret_token)
{
    struct raw_pgsql *raw = context;
    char text[128];
    int n_rows;

    (void)ret_token;
    if (collect(raw) != 0 || raw_pgsql_run(raw, "try", &n_rows) != 0)
        return -1;
    if (n_rows == 1)
        return ACQUIRED;
    (void)snprintf(text, sizeof text, "LISTEN bench_%lld", raw->key);
    if (raw_pgsql_run(raw, "gate", NULL) != 0 ||
        raw_pgsql_accept(raw, PQexec(raw->pg, text), NULL) != 0)
        return -1;
    for (;;) {
        if (raw_pgsql_run(raw, "take", &n_rows) != 0)
            return -1;
        if (n_rows == 1)
            break;
        await_notice(raw);
    }
    (void)snprintf(text, sizeof text, "UNLISTEN *; SELECT pg_advisory_unlock(%lld)", raw->key);
    if (!PQsendQuery(raw->pg, text))
        return complain("libpq", PQerrorMessage(raw->pg));
    raw->is_unlocking = 1;
    return ACQUIRED;
}

int raw_pgsql_gate_release(void *context)
{
    struct raw_pgsql *raw = context;

    return collect(raw) != 0 ? -1 : raw_pgsql_run(raw, "leave", NULL);
}
