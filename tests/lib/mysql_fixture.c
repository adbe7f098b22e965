/* SPDX-License-Identifier: MIT */
/* mysql_fixture.c - see mysql_fixture.h. */
#include "mysql_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mysql.h>

#include "driver/mysql/mysql_connection.h"
#include "driver/mysql/mysql_target.h"

static const char *const tables[] = { "dblock_session", "dblock_lease", "dblock_insert",
    "dblock_row", "dblock_token" };

void mysql_fixture_limit(struct mysql_fixture *fixture, uint64_t limit_us, int cancel_fd)
{
    fixture->call.deadline_us = dblock_clock_us() + limit_us;
    fixture->call.cancel_fd = cancel_fd;
    memset(&fixture->answer, 0, sizeof fixture->answer);
    memset(&fixture->error, 0, sizeof fixture->error);
}

struct dblock_target *mysql_fixture_target(struct mysql_fixture *fixture, const char *url)
{
    struct dblock_target_config config;
    struct dblock_target *target = NULL;

    memset(&config, 0, sizeof config);
    config.url = url;
    config.host = "testhost";
    config.pid = (int64_t)getpid();
    config.label = "a test";
    config.connect_timeout_us = 3000000;
    config.io_timeout_us = 5000000;
    config.ttl_us = 30000000;
    fixture->status = fixture->driver->target_open(&config, &target, &fixture->error);
    return target;
}

static MYSQL *connect_plain(struct mysql_fixture *fixture, const char *url)
{
    struct dblock_target *target = mysql_fixture_target(fixture, url);
    MYSQL *mysql = mysql_init(NULL);

    if (target == NULL || mysql == NULL ||
        mysql_real_connect(mysql, target->host, target->user, target->password, NULL,
            target->port, target->socket, CLIENT_MULTI_STATEMENTS) == NULL) {
        (void)fprintf(stderr, "cannot connect: %s\n", mysql != NULL ? mysql_error(mysql) : "");
        exit(1);
    }
    if (fixture->target != NULL && fixture->target->database != NULL)
        (void)mysql_select_db(mysql, fixture->target->database);
    mysql_target_close(target);
    return mysql;
}

MYSQL *mysql_fixture_admin(struct mysql_fixture *fixture)
{
    const char *url = getenv("DBLOCK_TEST_MYSQL_ADMIN");

    if (url == NULL) {
        (void)fprintf(stderr, "DBLOCK_TEST_MYSQL_ADMIN is not set: a test is left out\n");
        return NULL;
    }
    return connect_plain(fixture, url);
}

MYSQL *mysql_fixture_plain(struct mysql_fixture *fixture)
{
    return connect_plain(fixture, fixture->url);
}

static unsigned int run_text(MYSQL *connection, const char *sql, int64_t *number)
{
    unsigned int code = mysql_query(connection, sql) != 0 ? mysql_errno(connection) : 0;

    while (code == 0) {
        MYSQL_RES *rows = mysql_store_result(connection);

        if (rows != NULL) {
            MYSQL_ROW row = mysql_fetch_row(rows);

            if (number != NULL && row != NULL && row[0] != NULL)
                *number = strtoll(row[0], NULL, 10);
            mysql_free_result(rows);
        } else if (mysql_errno(connection) != 0) {
            code = mysql_errno(connection);
        }
        if (code == 0 && mysql_next_result(connection) != 0) {
            code = mysql_errno(connection);
            break;
        }
    }
    return code;
}

unsigned int mysql_fixture_run(MYSQL *connection, const char *format, ...)
{
    char sql[2000];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    return run_text(connection, sql, NULL);
}

unsigned int mysql_fixture_run_on(struct dblock_connection *connection, const char *sql)
{
    return run_text(connection->mysql, sql, NULL);
}

int64_t mysql_fixture_number_on(struct dblock_connection *connection, const char *sql)
{
    int64_t number = -1;

    return run_text(connection->mysql, sql, &number) == 0 ? number : -2;
}

int64_t mysql_fixture_number(MYSQL *connection, const char *format, ...)
{
    char sql[2000];
    int64_t number = -1;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    return run_text(connection, sql, &number) == 0 ? number : -2;
}

const char *mysql_fixture_url(const struct mysql_fixture *fixture, char *buffer, const char *user,
    const char *password, const char *database)
{
    const struct dblock_target *target = fixture->target;
    char escaped[200];
    size_t n = 0;
    const char *text = password != NULL ? password : target->password;

    for (; text != NULL && *text != 0 && n + 4 < sizeof escaped; ++text)
        n += (size_t)snprintf(escaped + n, sizeof escaped - n, "%%%02x", (unsigned char)*text);
    escaped[n] = 0;
    (void)snprintf(buffer, MYSQL_FIXTURE_URL_MAX, "mysql://%s:%s@%s:%u/%s",
        user != NULL ? user : target->user, escaped, target->host != NULL ? target->host : "",
        target->port != 0 ? target->port : 3306u,
        database != NULL ? database : target->database);
    return buffer;
}

int mysql_fixture_open(struct mysql_fixture *fixture)
{
    const char *url = getenv("DBLOCK_TEST_MYSQL");
    MYSQL *plain;
    size_t i;

    if (url == NULL) {
        (void)fprintf(stderr, "DBLOCK_TEST_MYSQL is not set: nothing to test against\n");
        exit(77);
    }
    memset(fixture, 0, sizeof *fixture);
    fixture->driver = dblock_mysql_driver();
    (void)snprintf(fixture->url, sizeof fixture->url, "%s", url);
    fixture->target = mysql_fixture_target(fixture, url);
    if (fixture->target == NULL)
        return -1;
    mysql_fixture_limit(fixture, 20000000, -1);
    fixture->status = fixture->driver->install(fixture->target, &fixture->call, &fixture->error);
    if (fixture->status != DBLOCK_OK) {
        (void)fprintf(stderr, "%s (%s)\n", fixture->error.message, fixture->error.hint);
        return -1;
    }
    plain = mysql_fixture_plain(fixture);
    for (i = 0; i < sizeof tables / sizeof *tables; ++i)
        (void)mysql_fixture_run(plain, "DELETE FROM %s", tables[i]);
    mysql_close(plain);
    return 0;
}

void mysql_fixture_close(struct mysql_fixture *fixture)
{
    fixture->driver->target_close(fixture->target);
    fixture->target = NULL;
}

struct dblock_connection *mysql_fixture_connect_to(
    struct mysql_fixture *fixture, struct dblock_target *target, int role)
{
    struct dblock_connection *connection = NULL;
    int cancel_fd = fixture->call.cancel_fd;

    mysql_fixture_limit(fixture, 20000000, cancel_fd);
    fixture->status = fixture->driver->connection.open(
        target, role, &fixture->call, &connection, &fixture->answer, &fixture->error);
    return connection;
}

struct dblock_connection *mysql_fixture_connect(struct mysql_fixture *fixture, int role)
{
    struct dblock_connection *connection =
        mysql_fixture_connect_to(fixture, fixture->target, role);

    if (connection == NULL)
        (void)fprintf(stderr, "%s (%s)\n", fixture->error.message, fixture->error.hint);
    return connection;
}

unsigned long mysql_fixture_server_id(const struct dblock_connection *connection)
{
    return connection->server_id;
}

int mysql_fixture_is_in_transaction(const struct dblock_connection *connection)
{
    return mysql_is_in_transaction(connection);
}

int mysql_fixture_is_mariadb(const struct dblock_connection *connection)
{
    return connection->is_mariadb;
}

int mysql_fixture_is_encrypted(const struct dblock_connection *connection)
{
    return mysql_get_ssl_cipher(connection->mysql) != NULL;
}

const char *mysql_fixture_password(const struct mysql_fixture *fixture)
{
    return fixture->target->password != NULL ? fixture->target->password : "";
}

const char *mysql_fixture_host(const struct mysql_fixture *fixture)
{
    return fixture->target->host != NULL ? fixture->target->host : "localhost";
}

const char *mysql_fixture_user(const struct mysql_fixture *fixture)
{
    return fixture->target->user;
}

const char *mysql_fixture_database(const struct mysql_fixture *fixture)
{
    return fixture->target->database;
}

unsigned int mysql_fixture_port(const struct mysql_fixture *fixture)
{
    return fixture->target->port != 0 ? fixture->target->port : 3306;
}

struct dblock_subject mysql_subject(const char *name)
{
    struct dblock_subject subject = { name, strlen(name), 0, 0 };

    return subject;
}

const unsigned char *mysql_id(const char *text)
{
    static unsigned char ids[8][DBLOCK_ID_SIZE];
    static unsigned int next;
    unsigned char *id = ids[next++ & 7];
    size_t size = strlen(text);

    memset(id, 0xA5, DBLOCK_ID_SIZE);
    memcpy(id, text, size < DBLOCK_ID_SIZE ? size : DBLOCK_ID_SIZE);
    return id;
}

struct dblock_take mysql_take_of(
    const char *name, const char *owner, const char *session, uint64_t ttl_us)
{
    struct dblock_take take;

    memset(&take, 0, sizeof take);
    take.subject = mysql_subject(name);
    take.owner = owner != NULL ? mysql_id(owner) : NULL;
    take.session = session != NULL ? mysql_id(session) : NULL;
    take.ttl_us = ttl_us;
    take.not_after_us = (int64_t)1 << 52;
    take.label = "a label";
    return take;
}

static int tell(struct mysql_fixture *fixture)
{
    if (fixture->status != DBLOCK_OK) {
        if (getenv("DBLOCK_TEST_VERBOSE") != NULL)
            (void)fprintf(stderr, "%d: %s (%s)\n", fixture->status, fixture->error.message,
                fixture->error.hint);
        return -1;
    }
    return fixture->answer.outcome;
}

#define LIMIT() mysql_fixture_limit(fixture, 20000000, fixture->call.cancel_fd)
#define REST &fixture->answer, &fixture->error

int mysql_begin(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    LIMIT();
    fixture->status = fixture->driver->session.begin(
        connection, &fixture->call, mysql_id(session), ttl_us, REST);
    return tell(fixture);
}

int mysql_renew(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us)
{
    LIMIT();
    fixture->status = fixture->driver->session.renew(
        connection, &fixture->call, mysql_id(session), ttl_us, REST);
    return tell(fixture);
}

int mysql_end(
    struct mysql_fixture *fixture, struct dblock_connection *connection, const char *session)
{
    LIMIT();
    fixture->status =
        fixture->driver->session.end(connection, &fixture->call, mysql_id(session), REST);
    return tell(fixture);
}

static const struct dblock_driver_hold *find_hold(
    const struct mysql_fixture *fixture, int strategy)
{
    return strategy == DBLOCK_INSERT ? &fixture->driver->insert : &fixture->driver->lease;
}

int mysql_take_as(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const struct dblock_take *take)
{
    LIMIT();
    memset(&fixture->grant, 0, sizeof fixture->grant);
    if (strategy == DBLOCK_ROW || strategy == DBLOCK_ADVISORY)
        fixture->status = (strategy == DBLOCK_ROW ? &fixture->driver->row
                                                  : &fixture->driver->advisory)
                              ->take(connection, &fixture->call, take, &fixture->grant, REST);
    else
        fixture->status = find_hold(fixture, strategy)
                              ->take(connection, &fixture->call, take, &fixture->grant, REST);
    return tell(fixture);
}

int mysql_take(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us)
{
    struct dblock_take take = mysql_take_of(name, owner, session, ttl_us);

    return mysql_take_as(fixture, connection, strategy, &take);
}

int mysql_seed(
    struct mysql_fixture *fixture, struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    fixture->status = fixture->driver->row.seed(connection, &fixture->call, &subject, REST);
    return tell(fixture);
}

int mysql_drop(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    if (strategy == DBLOCK_ROW || strategy == DBLOCK_ADVISORY)
        fixture->status = (strategy == DBLOCK_ROW ? &fixture->driver->row
                                                  : &fixture->driver->advisory)
                              ->drop(connection, &fixture->call, &subject, REST);
    else
        fixture->status = find_hold(fixture, strategy)
                              ->drop(connection, &fixture->call, &subject, mysql_id(owner),
                                  keep_us, REST);
    return tell(fixture);
}

int mysql_extend(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    fixture->status =
        find_hold(fixture, strategy)
            ->extend(connection, &fixture->call, &subject, mysql_id(owner), ttl_us, REST);
    return tell(fixture);
}

int mysql_draw(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    fixture->status = find_hold(fixture, strategy)
                          ->draw(connection, &fixture->call, &subject, mysql_id(owner), REST);
    return tell(fixture);
}

int mysql_look(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    memset(&fixture->grant, 0, sizeof fixture->grant);
    fixture->status = find_hold(fixture, strategy)
                          ->look(connection, &fixture->call, &subject, &fixture->grant, REST);
    return tell(fixture);
}

int mysql_break(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    fixture->status = fixture->driver->observe.end(
        connection, &fixture->call, strategy, &subject, token, REST);
    return tell(fixture);
}

int mysql_take_heeding(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner)
{
    struct dblock_take take = mysql_take_of(name, owner, NULL, 60000000);

    take.heeds_line = 1;
    return mysql_take_as(fixture, connection, strategy, &take);
}

int mysql_stand(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us)
{
    struct dblock_subject subject = mysql_subject(name);

    LIMIT();
    fixture->status = fixture->driver->line.stand(
        connection, &fixture->call, strategy, &subject, wait_us, 0, REST);
    return tell(fixture);
}

int mysql_rest(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *owner, uint64_t limit_us)
{
    char text[40] = "";

    if (owner != NULL)
        dblock_id_text(mysql_id(owner), text);
    mysql_fixture_limit(fixture, limit_us, fixture->call.cancel_fd);
    fixture->status = fixture->driver->line.rest(connection, &fixture->call, text, REST);
    return tell(fixture);
}
