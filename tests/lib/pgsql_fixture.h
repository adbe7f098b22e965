/* SPDX-License-Identifier: MIT */
/* pgsql_fixture.h - a schema of its own on the server of DBLOCK_TEST_PGSQL, and short
 * ways to call the driver's steps on it. */
#ifndef DBLOCK_TEST_PGSQL_FIXTURE_H
#define DBLOCK_TEST_PGSQL_FIXTURE_H

#include <dblock/pgsql.h>
#include <dblock/sys/driver.h>

struct pg_conn;

#define PGSQL_FIXTURE_CONNECTIONS_MAX 32

struct pgsql_fixture {
    const struct dblock_driver *driver;
    const char *url;
    char schema[48];
    struct dblock_target *target;
    struct pg_conn *plain; /* a client of its own, with search_path on the schema */
    struct dblock_connection *connections[PGSQL_FIXTURE_CONNECTIONS_MAX]; /* closed at the end */
    size_t n_connections;
    struct dblock_call call; /* 20 s from pgsql_fixture_limit() on */
    /* of the last step */
    dblock_status status;
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblock_grant grant;
};

/* 0, or it has said why not (no server is named: the program exits with 77). */
int pgsql_fixture_open(struct pgsql_fixture *fixture);
void pgsql_fixture_close(struct pgsql_fixture *fixture);
/* All steps below get so long from now on; heeding `cancel_fd`. */
void pgsql_fixture_limit(struct pgsql_fixture *fixture, uint64_t limit_us, int cancel_fd);

/* A target of another URL, with these limits; NULL: see `status` and `error`. */
struct dblock_target *pgsql_fixture_target(
    struct pgsql_fixture *fixture, const char *url, const char *schema, uint64_t io_timeout_us);
/* NULL if it cannot be opened: see `status` and `error`. */
struct dblock_connection *pgsql_fixture_connect(struct pgsql_fixture *fixture, int role);
struct dblock_connection *pgsql_fixture_connect_to(
    struct pgsql_fixture *fixture, struct dblock_target *target, int role);
void pgsql_fixture_disconnect(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, int how);

struct dblock_subject pgsql_subject(const char *name);
/* 16 bytes that begin with the text; they live until the fourth next call. */
const unsigned char *pgsql_id(const char *text);
/* With an end far away, and without wait. */
struct dblock_take pgsql_take_of(
    const char *name, const char *owner, const char *session, uint64_t ttl_us);

/* The outcome, or -1 if the step failed. `session` NULL: timed. strategy: LEASE or INSERT. */
int pgsql_begin(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int pgsql_renew(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int pgsql_end(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, const char *session);
int pgsql_take(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us);
int pgsql_take_as(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const struct dblock_take *take);
int pgsql_drop(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us);
int pgsql_extend(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us);
/* LEASE, INSERT: a new token of the grant that is there. */
int pgsql_draw_for(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner);
int pgsql_look(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name);
int pgsql_break(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token);
/* Row and advisory. */
int pgsql_lock(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us);
int pgsql_unlock(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name);
int pgsql_prove(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name);
int pgsql_draw(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name);
/* In the line of lease or insert; a rest ends after `within_us`. */
int pgsql_stand(struct pgsql_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, uint64_t wait_us, int is_fair);
int pgsql_rest(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, uint64_t within_us);
/* A take that heeds the line, timed. */
int pgsql_take_heeding(struct pgsql_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us);
int pgsql_seed(
    struct pgsql_fixture *fixture, struct dblock_connection *connection, const char *name);
int pgsql_purge(struct pgsql_fixture *fixture, struct dblock_connection *connection);

/* Plain SQL beside the driver, on `plain` or another connection; aborts if it fails. */
struct pg_conn *pgsql_plain(const struct pgsql_fixture *fixture, const char *url);
void pgsql_run(struct pg_conn *plain, const char *sql);
int64_t pgsql_number(struct pg_conn *plain, const char *sql);

#endif
