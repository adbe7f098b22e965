/* SPDX-License-Identifier: MIT */
/* mysql_fixture.h - the database of DBLOCK_TEST_MYSQL, with empty tables, and short ways to
 * call the driver's steps on it. Tests of this fixture run alone. */
#ifndef DBLOCK_TEST_MYSQL_FIXTURE_H
#define DBLOCK_TEST_MYSQL_FIXTURE_H

#include <dblock/mysql.h>
#include <dblock/sys/driver.h>

#include <mysql.h>

#define MYSQL_FIXTURE_URL_MAX 400

struct mysql_fixture {
    const struct dblock_driver *driver;
    char url[MYSQL_FIXTURE_URL_MAX];
    struct dblock_target *target;
    struct dblock_call call; /* 20 s from the last mysql_fixture_limit() */
    /* of the last step */
    dblock_status status;
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblock_grant grant;
};

/* Exits with 77, after saying why, if DBLOCK_TEST_MYSQL is not set. Else the tables are
 * there and empty: 0. */
int mysql_fixture_open(struct mysql_fixture *fixture);
void mysql_fixture_close(struct mysql_fixture *fixture);
void mysql_fixture_limit(struct mysql_fixture *fixture, uint64_t limit_us, int cancel_fd);
/* The URL with other parts; NULL leaves one. `buffer` of MYSQL_FIXTURE_URL_MAX. */
const char *mysql_fixture_url(const struct mysql_fixture *fixture, char *buffer, const char *user,
    const char *password, const char *database);
/* Of another URL, and of this process's configuration. NULL: see `error`. */
struct dblock_target *mysql_fixture_target(struct mysql_fixture *fixture, const char *url);

/* NULL: see `status` and `error`. */
struct dblock_connection *mysql_fixture_connect(struct mysql_fixture *fixture, int role);
struct dblock_connection *mysql_fixture_connect_to(
    struct mysql_fixture *fixture, struct dblock_target *target, int role);

/* The admin's own connection to the same database, or NULL if DBLOCK_TEST_MYSQL_ADMIN is not
 * set. Each test that needs it says so and passes without. */
MYSQL *mysql_fixture_admin(struct mysql_fixture *fixture);
/* A plain client's connection of the test's own user; READ COMMITTED is not set. */
MYSQL *mysql_fixture_plain(struct mysql_fixture *fixture);
/* 0 or the native code; results are dropped. */
unsigned int mysql_fixture_run(MYSQL *connection, const char *format, ...)
    DBLOCK_PRINTF_(2, 3);
int64_t mysql_fixture_number(MYSQL *connection, const char *format, ...)
    DBLOCK_PRINTF_(2, 3);

/* What the server calls the connection, and whether its last answer said "in a
 * transaction". */
unsigned long mysql_fixture_server_id(const struct dblock_connection *connection);
/* As mysql_fixture_run and _number, on a connection of the driver, between its steps. */
unsigned int mysql_fixture_run_on(struct dblock_connection *connection, const char *sql);
int64_t mysql_fixture_number_on(struct dblock_connection *connection, const char *sql);
int mysql_fixture_is_in_transaction(const struct dblock_connection *connection);
int mysql_fixture_is_mariadb(const struct dblock_connection *connection);
int mysql_fixture_is_encrypted(const struct dblock_connection *connection);
/* Parts of the fixture's own URL. */
const char *mysql_fixture_user(const struct mysql_fixture *fixture);
const char *mysql_fixture_password(const struct mysql_fixture *fixture);
const char *mysql_fixture_host(const struct mysql_fixture *fixture);
const char *mysql_fixture_database(const struct mysql_fixture *fixture);
unsigned int mysql_fixture_port(const struct mysql_fixture *fixture);

struct dblock_subject mysql_subject(const char *name);
/* 16 bytes that begin with the text and are the same for the same text. They live until
 * the seventh next call. */
const unsigned char *mysql_id(const char *text);
struct dblock_take mysql_take_of(
    const char *name, const char *owner, const char *session, uint64_t ttl_us);

/* The outcome, or -1 if the step failed. */
int mysql_begin(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int mysql_renew(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int mysql_end(
    struct mysql_fixture *fixture, struct dblock_connection *connection, const char *session);
/* `session` NULL: timed, for ttl_us. */
int mysql_take(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us);
int mysql_take_as(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const struct dblock_take *take);
/* The row of the strategy row. */
int mysql_seed(
    struct mysql_fixture *fixture, struct dblock_connection *connection, const char *name);
int mysql_drop(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us);
int mysql_extend(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us);
/* LEASE, INSERT: a new token of the grant that is there. */
int mysql_draw(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner);
int mysql_look(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name);
int mysql_break(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token);

/* Timed, for a minute, and lets those pass who wait. */
int mysql_take_heeding(struct mysql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner);
int mysql_stand(struct mysql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us);
/* `owner` NULL: not known. */
int mysql_rest(struct mysql_fixture *fixture, struct dblock_connection *connection,
    const char *owner, uint64_t limit_us);

#endif
