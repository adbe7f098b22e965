/* SPDX-License-Identifier: MIT */
/* sqlite_fixture.h - a SQLite file in a folder of its own, and short ways to call
 * the driver's steps on it. */
#ifndef DBLOCK_TEST_SQLITE_FIXTURE_H
#define DBLOCK_TEST_SQLITE_FIXTURE_H

#include <dblock/sqlite.h>
#include <dblock/sys/driver.h>

#define FIXTURE_CONNECTIONS_MAX 64

struct sqlite_fixture {
    const struct dblock_driver *driver;
    char folder[200];
    char path[256]; /* of the database */
    char url[280];
    struct dblock_target *target;
    struct dblock_connection *connections[FIXTURE_CONNECTIONS_MAX]; /* closed at the end */
    size_t n_connections;
    struct dblock_call call; /* 20 s from sqlite_fixture_limit() on */
    /* of the last step */
    dblock_status status;
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblock_grant grant;
};

/* 0, or the fixture is not usable. `is_installed`: with file and tables. */
int sqlite_fixture_open(struct sqlite_fixture *fixture, int is_installed);
void sqlite_fixture_close(struct sqlite_fixture *fixture);
/* For a child process: forgets the parent's connections, without closing any. */
void sqlite_fixture_forget(struct sqlite_fixture *fixture);

/* All steps below get so long from now on; heeding `cancel_fd`. */
void sqlite_fixture_limit(struct sqlite_fixture *fixture, uint64_t limit_us, int cancel_fd);

/* NULL if it cannot be opened: `status` and `error` say why. */
struct dblock_connection *sqlite_fixture_connect(struct sqlite_fixture *fixture, int role);
void sqlite_fixture_disconnect(
    struct sqlite_fixture *fixture, struct dblock_connection *connection, int how);

struct dblock_subject sqlite_subject(const char *name);
/* 16 bytes that begin with the text. They live until the third next call. */
const unsigned char *sqlite_id(const char *text);
/* With an end far away, and without wait. */
struct dblock_take sqlite_take_of(
    const char *name, const unsigned char *owner, const unsigned char *session, uint64_t ttl_us);

/* The outcome, or -1 if the step failed. */
int sqlite_begin_session(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int sqlite_renew_session(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    const char *session, uint64_t ttl_us);
int sqlite_end_session(
    struct sqlite_fixture *fixture, struct dblock_connection *connection, const char *session);
/* `session` NULL: timed, for ttl_us. strategy: DBLOCK_LEASE or DBLOCK_INSERT. */
int sqlite_take(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, const char *session, uint64_t ttl_us);
int sqlite_drop(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, const char *owner, uint64_t keep_us);
int sqlite_extend(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, const char *owner, uint64_t ttl_us);
int sqlite_look(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name);
int sqlite_break(struct sqlite_fixture *fixture, struct dblock_connection *connection, int strategy,
    const char *name, int64_t token);

/* strategy: DBLOCK_ROW or DBLOCK_ADVISORY, here and below. */
struct dblock_connection *sqlite_live_connect(struct sqlite_fixture *fixture, int strategy);
const struct dblock_driver_session_lock *sqlite_live_steps(
    const struct sqlite_fixture *fixture, int strategy);
/* The owner id is made of the name. */
int sqlite_live_take(struct sqlite_fixture *fixture, struct dblock_connection *connection,
    int strategy, const char *name, uint64_t wait_us);
typedef dblock_status (*sqlite_live_fn)(struct dblock_connection *, const struct dblock_call *,
    const struct dblock_subject *, struct dblock_answer *, struct dblock_error *);
int sqlite_live_run(struct sqlite_fixture *fixture, sqlite_live_fn step,
    struct dblock_connection *connection, const char *name);

/* The wall clock of this process as the driver sees it is off by so much. */
void sqlite_fixture_shift_clock(int64_t offset_us);

/* Plain SQL beside the driver; a handle of its own each time. 0, or SQLite's code. */
int sqlite_fixture_run(const struct sqlite_fixture *fixture, const char *sql);
int64_t sqlite_fixture_number(const struct sqlite_fixture *fixture, const char *sql);

#endif
