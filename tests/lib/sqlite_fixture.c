/* SPDX-License-Identifier: MIT */
/* sqlite_fixture.c - see sqlite_fixture.h. Asserts nothing: that is for tests. */
#define _POSIX_C_SOURCE 200809L

#include "sqlite_fixture.h"

#include "driver/sqlite/sqlite_clock.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sqlite_fixture_limit(struct sqlite_fixture *fixture, uint64_t limit_us, int cancel_fd)
{
    fixture->call.deadline_us = dblock_clock_us() + limit_us;
    fixture->call.cancel_fd = cancel_fd;
}

static void begin_step(struct sqlite_fixture *fixture)
{
    memset(&fixture->answer, 0, sizeof fixture->answer);
    memset(&fixture->error, 0, sizeof fixture->error);
}

static int end_step(struct sqlite_fixture *fixture, dblock_status status)
{
    fixture->status = status;
    return status == DBLOCK_OK ? fixture->answer.outcome : -1;
}

int sqlite_fixture_open(struct sqlite_fixture *fixture, int is_installed)
{
    struct dblock_target_config config = {.host = "host.example", .pid = 4711, .label = "client"};
    const char *base = getenv("TMPDIR");

    memset(fixture, 0, sizeof *fixture);
    fixture->driver = dblock_sqlite_driver();
    sqlite_fixture_limit(fixture, 20000000, -1);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "%s/dblock-sqlite.XXXXXX",
        base != NULL ? base : "/tmp");
    if (mkdtemp(fixture->folder) == NULL)
        return -1;
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/lock.db", fixture->folder);
    (void)snprintf(fixture->url, sizeof fixture->url, "sqlite:%s", fixture->path);
    config.url = fixture->url;
    config.connect_timeout_us = config.io_timeout_us = 5000000;
    if (fixture->driver->target_open(&config, &fixture->target, &fixture->error) != DBLOCK_OK)
        return -1;
    if (is_installed &&
        fixture->driver->install(fixture->target, &fixture->call, &fixture->error) != DBLOCK_OK)
        return -1;
    return 0;
}

static void remove_folder(const char *folder)
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    char path[512];

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlink(path) != 0)
            (void)rmdir(path);
    }
    if (stream != NULL)
        (void)closedir(stream);
    (void)rmdir(folder);
}

void sqlite_fixture_close(struct sqlite_fixture *fixture)
{
    size_t i;

    sqlite_fixture_shift_clock(0);
    for (i = 0; i < fixture->n_connections; ++i)
        fixture->driver->connection.close(fixture->connections[i], DBLOCK_CLOSE_POLITE);
    fixture->driver->target_close(fixture->target);
    remove_folder(fixture->folder);
}

void sqlite_fixture_forget(struct sqlite_fixture *fixture)
{
    fixture->n_connections = 0;
}

struct dblock_connection *sqlite_fixture_connect(struct sqlite_fixture *fixture, int role)
{
    struct dblock_connection *connection = NULL;

    begin_step(fixture);
    fixture->status = fixture->driver->connection.open(
        fixture->target, role, &fixture->call, &connection, &fixture->answer, &fixture->error);
    if (fixture->status == DBLOCK_OK && fixture->n_connections < FIXTURE_CONNECTIONS_MAX)
        fixture->connections[fixture->n_connections++] = connection;
    return connection;
}

void sqlite_fixture_disconnect(
    struct sqlite_fixture *fixture, struct dblock_connection *connection, int how)
{
    size_t i;

    for (i = 0; i < fixture->n_connections; ++i)
        if (fixture->connections[i] == connection)
            fixture->connections[i] = NULL; /* close takes NULL */
    fixture->driver->connection.close(connection, how);
}

struct dblock_subject sqlite_subject(const char *name)
{
    struct dblock_subject subject = {name, strlen(name), 0, 0};

    return subject;
}

const unsigned char *sqlite_id(const char *text)
{
    static unsigned char ids[4][DBLOCK_ID_SIZE];
    static unsigned next;
    unsigned char *id = ids[next++ % 4];

    memset(id, 0, DBLOCK_ID_SIZE);
    memcpy(id, text, strlen(text) < DBLOCK_ID_SIZE ? strlen(text) : DBLOCK_ID_SIZE);
    return id;
}

struct dblock_take sqlite_take_of(
    const char *name, const unsigned char *owner, const unsigned char *session, uint64_t ttl_us)
{
    struct dblock_take take = {.subject = sqlite_subject(name),
        .owner = owner,
        .session = session,
        .ttl_us = ttl_us,
        .not_after_us = INT64_MAX,
        .label = "a label"};

    return take;
}

static const struct dblock_driver_hold *hold_of(const struct sqlite_fixture *fixture, int strategy)
{
    return strategy == DBLOCK_LEASE ? &fixture->driver->lease : &fixture->driver->insert;
}

int sqlite_begin_session(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    begin_step(fixture);
    return end_step(fixture, fixture->driver->session.begin(connection, &fixture->call,
                                 sqlite_id(session), ttl_us, &fixture->answer, &fixture->error));
}

int sqlite_renew_session(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    begin_step(fixture);
    return end_step(fixture, fixture->driver->session.renew(connection, &fixture->call,
                                 sqlite_id(session), ttl_us, &fixture->answer, &fixture->error));
}

int sqlite_end_session(
    struct sqlite_fixture *fixture, struct dblock_connection *connection, const char *session)
{
    begin_step(fixture);
    return end_step(fixture, fixture->driver->session.end(connection, &fixture->call,
                                 sqlite_id(session), &fixture->answer, &fixture->error));
}

int sqlite_take(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us)
{
    struct dblock_take take =
        sqlite_take_of(name, sqlite_id(owner), session != NULL ? sqlite_id(session) : NULL, ttl_us);

    begin_step(fixture);
    memset(&fixture->grant, 0, sizeof fixture->grant);
    return end_step(fixture, hold_of(fixture, strategy)
                                 ->take(connection, &fixture->call, &take, &fixture->grant,
                                     &fixture->answer, &fixture->error));
}

int sqlite_drop(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us)
{
    struct dblock_subject subject = sqlite_subject(name);

    begin_step(fixture);
    return end_step(fixture, hold_of(fixture, strategy)
                                 ->drop(connection, &fixture->call, &subject, sqlite_id(owner),
                                     keep_us, &fixture->answer, &fixture->error));
}

int sqlite_extend(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us)
{
    struct dblock_subject subject = sqlite_subject(name);

    begin_step(fixture);
    return end_step(fixture, hold_of(fixture, strategy)
                                 ->extend(connection, &fixture->call, &subject, sqlite_id(owner),
                                     ttl_us, &fixture->answer, &fixture->error));
}

int sqlite_look(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name)
{
    struct dblock_subject subject = sqlite_subject(name);

    begin_step(fixture);
    memset(&fixture->grant, 0, sizeof fixture->grant);
    return end_step(fixture, hold_of(fixture, strategy)
                                 ->look(connection, &fixture->call, &subject, &fixture->grant,
                                     &fixture->answer, &fixture->error));
}

int sqlite_break(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token)
{
    struct dblock_subject subject = sqlite_subject(name);

    begin_step(fixture);
    return end_step(fixture, fixture->driver->observe.end(connection, &fixture->call, strategy,
                                 &subject, token, &fixture->answer, &fixture->error));
}

struct dblock_connection *sqlite_live_connect(struct sqlite_fixture *fixture, int strategy)
{
    return sqlite_fixture_connect(
        fixture, strategy == DBLOCK_ROW ? DBLOCK_ROLE_ROW : DBLOCK_ROLE_ADVISORY);
}

const struct dblock_driver_session_lock *sqlite_live_steps(
    const struct sqlite_fixture *fixture, int strategy)
{
    return strategy == DBLOCK_ROW ? &fixture->driver->row : &fixture->driver->advisory;
}

int sqlite_live_take(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, uint64_t wait_us)
{
    struct dblock_take take = sqlite_take_of(name, sqlite_id(name), NULL, 0);

    take.wait_us = wait_us;
    begin_step(fixture);
    memset(&fixture->grant, 0, sizeof fixture->grant);
    return end_step(fixture, sqlite_live_steps(fixture, strategy)
                                 ->take(connection, &fixture->call, &take, &fixture->grant,
                                     &fixture->answer, &fixture->error));
}

int sqlite_live_run(struct sqlite_fixture *fixture, sqlite_live_fn step,
    struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = sqlite_subject(name);

    begin_step(fixture);
    return end_step(
        fixture, step(connection, &fixture->call, &subject, &fixture->answer, &fixture->error));
}

void sqlite_fixture_shift_clock(int64_t offset_us)
{
    sqlite_clock_shift(offset_us);
}

int sqlite_fixture_run(const struct sqlite_fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    int code = sqlite3_open(fixture->path, &handle);

    (void)sqlite3_busy_timeout(handle, 5000);
    if (code == SQLITE_OK)
        code = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    (void)sqlite3_close(handle);
    return code;
}

int64_t sqlite_fixture_number(const struct sqlite_fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t number = INT64_MIN;

    if (sqlite3_open(fixture->path, &handle) == SQLITE_OK &&
        sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(handle);
    return number;
}
