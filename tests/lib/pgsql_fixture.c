/* SPDX-License-Identifier: MIT */
/* pgsql_fixture.c - see pgsql_fixture.h. */
#include "pgsql_fixture.h"

#ifdef DBLOCK_TEST_HAS_PGSQL

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

struct pg_conn *pgsql_plain(const struct pgsql_fixture *fixture, const char *url)
{
    PGconn *plain = PQconnectdb(url != NULL ? url : fixture->url);
    char text[128];

    if (PQstatus(plain) != CONNECTION_OK) {
        (void)fprintf(stderr, "pgsql_fixture: %s", PQerrorMessage(plain));
        abort();
    }
    (void)PQsetNoticeReceiver(plain, ignore_notice, NULL);
    (void)snprintf(text, sizeof text, "SET search_path = %s", fixture->schema);
    pgsql_run(plain, text);
    return plain;
}

static PGresult *execute(PGconn *plain, const char *sql)
{
    PGresult *result = PQexec(plain, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "pgsql_fixture: %s: %s", sql, PQresultErrorMessage(result));
        abort();
    }
    return result;
}

void pgsql_run(struct pg_conn *plain, const char *sql)
{
    PQclear(execute(plain, sql));
}

int64_t pgsql_number(struct pg_conn *plain, const char *sql)
{
    PGresult *result = execute(plain, sql);
    int64_t number =
        PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : INT64_MIN;

    PQclear(result);
    return number;
}

static void clear(struct pgsql_fixture *fixture)
{
    memset(&fixture->answer, 0, sizeof fixture->answer);
    memset(&fixture->error, 0, sizeof fixture->error);
    memset(&fixture->grant, 0, sizeof fixture->grant);
    fixture->grant.struct_size = sizeof fixture->grant;
}

void pgsql_fixture_limit(struct pgsql_fixture *fixture, uint64_t limit_us, int cancel_fd)
{
    fixture->call.deadline_us = dblock_clock_us() + limit_us;
    fixture->call.cancel_fd = cancel_fd;
}

struct dblock_target *pgsql_fixture_target(
    struct pgsql_fixture *fixture, const char *url, const char *schema, uint64_t io_timeout_us)
{
    struct dblock_target_config config = { .url = url,
        .schema = schema,
        .host = "host with blank",
        .pid = getpid(),
        .label = "label",
        .connect_timeout_us = 5000000,
        .io_timeout_us = io_timeout_us,
        .ttl_us = 60000000 }; /* nobody pings here */
    struct dblock_target *target = NULL;

    clear(fixture);
    fixture->status = fixture->driver->target_open(&config, &target, &fixture->error);
    return target;
}

int pgsql_fixture_open(struct pgsql_fixture *fixture)
{
    char text[200];

    memset(fixture, 0, sizeof *fixture);
    fixture->url = getenv("DBLOCK_TEST_PGSQL");
    if (fixture->url == NULL) {
        (void)fprintf(stderr, "skipped: DBLOCK_TEST_PGSQL names no server (ci/services)\n");
        exit(77);
    }
    fixture->driver = dblock_pgsql_driver();
    (void)snprintf(fixture->schema, sizeof fixture->schema, "dblock_t%ld", (long)getpid());
    fixture->plain = pgsql_plain(fixture, NULL);
    (void)snprintf(
        text, sizeof text, "DROP SCHEMA IF EXISTS %s CASCADE", fixture->schema);
    pgsql_run(fixture->plain, text);
    fixture->target =
        pgsql_fixture_target(fixture, fixture->url, fixture->schema, 5000000);
    pgsql_fixture_limit(fixture, 20000000, -1);
    if (fixture->target != NULL)
        fixture->status =
            fixture->driver->install(fixture->target, &fixture->call, &fixture->error);
    if (fixture->status != DBLOCK_OK)
        (void)fprintf(stderr, "pgsql_fixture: %s\n", fixture->error.message);
    return fixture->status == DBLOCK_OK ? 0 : -1;
}

void pgsql_fixture_close(struct pgsql_fixture *fixture)
{
    char text[200];

    while (fixture->n_connections > 0)
        pgsql_fixture_disconnect(fixture, fixture->connections[0], DBLOCK_CLOSE_ABORT);
    fixture->driver->target_close(fixture->target);
    (void)snprintf(text, sizeof text, "DROP SCHEMA %s CASCADE", fixture->schema);
    pgsql_run(fixture->plain, text);
    PQfinish(fixture->plain);
}

struct dblock_connection *pgsql_fixture_connect_to(
    struct pgsql_fixture *fixture, struct dblock_target *target, int role)
{
    struct dblock_connection *connection = NULL;

    clear(fixture);
    fixture->status = fixture->driver->connection.open(
        target, role, &fixture->call, &connection, &fixture->answer, &fixture->error);
    if (connection != NULL && fixture->n_connections < PGSQL_FIXTURE_CONNECTIONS_MAX)
        fixture->connections[fixture->n_connections++] = connection;
    return connection;
}

struct dblock_connection *pgsql_fixture_connect(struct pgsql_fixture *fixture, int role)
{
    return pgsql_fixture_connect_to(fixture, fixture->target, role);
}

void pgsql_fixture_disconnect(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, int how)
{
    size_t i;

    for (i = 0; i < fixture->n_connections; ++i)
        if (fixture->connections[i] == connection)
            fixture->connections[i--] = fixture->connections[--fixture->n_connections];
    fixture->driver->connection.close(connection, how);
}

struct dblock_subject pgsql_subject(const char *name)
{
    struct dblock_subject subject = { name, strlen(name), 0, 0 };

    return subject;
}

const unsigned char *pgsql_id(const char *text)
{
    static unsigned char ids[4][DBLOCK_ID_SIZE];
    static unsigned next;
    unsigned char *id = ids[next++ % 4];

    memset(id, 0, DBLOCK_ID_SIZE);
    memcpy(id, text, strlen(text) < DBLOCK_ID_SIZE ? strlen(text) : DBLOCK_ID_SIZE);
    return id;
}

struct dblock_take pgsql_take_of(
    const char *name, const char *owner, const char *session, uint64_t ttl_us)
{
    struct dblock_take take = { .subject = pgsql_subject(name),
        .owner = pgsql_id(owner),
        .session = session != NULL ? pgsql_id(session) : NULL,
        .ttl_us = ttl_us,
        .not_after_us = INT64_MAX,
        .label = "label of the grant" };

    return take;
}

static int outcome(struct pgsql_fixture *fixture, dblock_status status)
{
    fixture->status = status;
    return status == DBLOCK_OK ? fixture->answer.outcome : -1;
}

#define STEP(fixture, step, ...)                                                                   \
    (clear(fixture),                                                                               \
        outcome((fixture),                                                                         \
            (fixture)->driver->step(connection, &(fixture)->call, __VA_ARGS__,                     \
                &(fixture)->answer, &(fixture)->error)))

int pgsql_begin(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    return STEP(fixture, session.begin, pgsql_id(session), ttl_us);
}

int pgsql_renew(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    return STEP(fixture, session.renew, pgsql_id(session), ttl_us);
}

int pgsql_end(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, const char *session)
{
    return STEP(fixture, session.end, pgsql_id(session));
}

int pgsql_take_as(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const struct dblock_take *take)
{
    switch (strategy) {
    case DBLOCK_LEASE:
        return STEP(fixture, lease.take, take, &fixture->grant);
    case DBLOCK_INSERT:
        return STEP(fixture, insert.take, take, &fixture->grant);
    case DBLOCK_ROW:
        return STEP(fixture, row.take, take, &fixture->grant);
    default:
        return STEP(fixture, advisory.take, take, &fixture->grant);
    }
}

int pgsql_take(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us)
{
    struct dblock_take take = pgsql_take_of(name, owner, session, ttl_us);

    return pgsql_take_as(fixture, connection, strategy, &take);
}

int pgsql_drop(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_LEASE)
        return STEP(fixture, lease.drop, &subject, pgsql_id(owner), keep_us);
    return STEP(fixture, insert.drop, &subject, pgsql_id(owner), keep_us);
}

int pgsql_extend(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_LEASE)
        return STEP(fixture, lease.extend, &subject, pgsql_id(owner), ttl_us);
    return STEP(fixture, insert.extend, &subject, pgsql_id(owner), ttl_us);
}

int pgsql_draw_for(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_LEASE)
        return STEP(fixture, lease.draw, &subject, pgsql_id(owner));
    return STEP(fixture, insert.draw, &subject, pgsql_id(owner));
}

int pgsql_look(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_LEASE)
        return STEP(fixture, lease.look, &subject, &fixture->grant);
    return STEP(fixture, insert.look, &subject, &fixture->grant);
}

int pgsql_break(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token)
{
    struct dblock_subject subject = pgsql_subject(name);

    return STEP(fixture, observe.end, strategy, &subject, token);
}

int pgsql_lock(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us)
{
    struct dblock_take take = pgsql_take_of(name, "unused", NULL, 0);

    take.wait_us = wait_us;
    return pgsql_take_as(fixture, connection, strategy, &take);
}

int pgsql_unlock(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_ROW)
        return STEP(fixture, row.drop, &subject);
    return STEP(fixture, advisory.drop, &subject);
}

int pgsql_prove(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_ROW)
        return STEP(fixture, row.prove, &subject);
    return STEP(fixture, advisory.prove, &subject);
}

int pgsql_draw(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name)
{
    struct dblock_subject subject = pgsql_subject(name);

    if (strategy == DBLOCK_ROW)
        return STEP(fixture, row.draw, &subject);
    return STEP(fixture, advisory.draw, &subject);
}

int pgsql_stand(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us, int is_fair)
{
    struct dblock_subject subject = pgsql_subject(name);

    return STEP(fixture, line.stand, strategy, &subject, wait_us, is_fair);
}

int pgsql_rest(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, uint64_t within_us)
{
    const struct dblock_call call = { dblock_clock_us() + within_us, fixture->call.cancel_fd };

    clear(fixture);
    return outcome(fixture,
        fixture->driver->line.rest(
            connection, &call, "", &fixture->answer, &fixture->error));
}

int pgsql_take_heeding(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us)
{
    struct dblock_take take = pgsql_take_of(name, owner, NULL, ttl_us);

    take.heeds_line = 1;
    return pgsql_take_as(fixture, connection, strategy, &take);
}

int pgsql_seed(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = pgsql_subject(name);

    return STEP(fixture, row.seed, &subject);
}

int pgsql_purge(struct pgsql_fixture *fixture, struct dblock_connection *connection)
{
    clear(fixture);
    return outcome(fixture,
        fixture->driver->observe.purge(
            connection, &fixture->call, &fixture->answer, &fixture->error));
}

#else

typedef int pgsql_fixture_needs_the_pgsql_driver;

#endif
