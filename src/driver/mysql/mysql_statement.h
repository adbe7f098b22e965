/* SPDX-License-Identifier: MIT */
/* mysql_statement.h - the statements of sql/, prepared on first use and kept.
 *
 * Each connection has one board of inputs and one of outputs, to which every statement
 * is bound once, when it is prepared. A step writes its values to the inputs, runs the
 * statement, and reads the outputs: nothing is allocated, bound or formatted then. */
#ifndef DBLOCK_MYSQL_STATEMENT_H
#define DBLOCK_MYSQL_STATEMENT_H

#include <stdbool.h>

#include <dblock/sys/driver.h>

#include <mysql.h>

/* Whose client library it is. */
#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)
#define MYSQL_IS_MARIADB_CLIENT 1
#else
#define MYSQL_IS_MARIADB_CLIENT 0
#endif

/* What its flags are: Oracle's changed with version 8. */
#if MYSQL_IS_MARIADB_CLIENT || MYSQL_VERSION_ID < 80000
typedef my_bool mysql_flag;
#else
typedef bool mysql_flag;
#endif

/* No number of ours is beyond these, and whatever a server says can be reckoned with. */
#define MYSQL_NUMBER_MAX (INT64_C(1) << 60)

#define MYSQL_BATCH_MAX 50 /* rows of one purge */

enum mysql_statement_id {
    MYSQL_CLOCK = 0,
    MYSQL_SESSION_BEGIN,
    MYSQL_SESSION_RENEW,
    MYSQL_SESSION_END,
    MYSQL_SESSION_END_EXPIRED,
    MYSQL_SESSION_HOLDS,
    MYSQL_SESSION_CHANGED,
    MYSQL_SESSION_PURGE_CANDIDATES,
    /* lease and insert have the same in the same order: mysql_hold.h counts on it */
    MYSQL_LEASE_TAKE,
    MYSQL_LEASE_LOOK,
    MYSQL_LEASE_PROBE,
    MYSQL_LEASE_WAIT,
    MYSQL_LEASE_TAKE_ENDED,
    MYSQL_LEASE_DROP,
    MYSQL_LEASE_DROP_NOWAIT,
    MYSQL_LEASE_EXTEND,
    MYSQL_LEASE_DRAW,
    MYSQL_LEASE_BREAK,
    MYSQL_LEASE_LIST,
    MYSQL_LEASE_PURGE_CANDIDATES,
    MYSQL_LEASE_PURGE,
    MYSQL_INSERT_TAKE,
    MYSQL_INSERT_LOOK,
    MYSQL_INSERT_PROBE,
    MYSQL_INSERT_WAIT,
    MYSQL_INSERT_TAKE_ENDED,
    MYSQL_INSERT_DROP,
    MYSQL_INSERT_DROP_NOWAIT,
    MYSQL_INSERT_EXTEND,
    MYSQL_INSERT_DRAW,
    MYSQL_INSERT_BREAK,
    MYSQL_INSERT_LIST,
    MYSQL_INSERT_PURGE_CANDIDATES,
    MYSQL_INSERT_PURGE,
    MYSQL_ROW_TAKE,
    MYSQL_ROW_SEED,
    MYSQL_ROW_LIST,
    MYSQL_ROW_LIST_PROBE,
    MYSQL_ROW_PURGE_CANDIDATES,
    MYSQL_ROW_PURGE_PROBE,
    MYSQL_ROW_PURGE,
    MYSQL_TOKEN_DRAW,
    MYSQL_TOKEN_PROBE,
    MYSQL_TOKEN_KEEP,
    MYSQL_TOKEN_PURGE_CANDIDATES,
    MYSQL_TOKEN_PURGE,
    MYSQL_ADVISORY_TAKE,
    MYSQL_ADVISORY_DROP,
    MYSQL_ADVISORY_HOLDER,
    MYSQL_ADVISORY_CONNECTION,
    MYSQL_ADVISORY_LIST,
    MYSQL_ADVISORY_TOKEN,
    MYSQL_ADVISORY_TOKEN_END,
    MYSQL_LINE_WAITERS,
    MYSQL_FLOOR_RAISE,
    MYSQL_VERIFY_VERSION,
    MYSQL_VERIFY_NAMES,
    MYSQL_N_STATEMENTS
};

/* A text or bytes of bounded length, with what the client library needs beside it. */
struct mysql_bytes {
    unsigned long size;
    mysql_flag is_null;
    char data[260]; /* outputs: zero-terminated after a fetch */
};

struct mysql_number {
    long long value;
    mysql_flag is_null;
};

/* Numbers and texts that statements take or give, by what they mean. */
enum mysql_number_id {
    MYSQL_N_CLOCK = 0,
    MYSQL_N_TTL,
    MYSQL_N_NOT_AFTER,
    MYSQL_N_TOKEN,
    MYSQL_N_PID,
    MYSQL_N_STRATEGY,
    MYSQL_N_LIMIT,
    MYSQL_N_IDLE,
    MYSQL_N_SESSION_END,
    MYSQL_N_MY_END,
    MYSQL_N_EXPIRES,
    MYSQL_N_SINCE,
    MYSQL_N_ANSWER, /* advisory; a connection; a count */
    MYSQL_N_MINE,
    MYSQL_N_RINGS,  /* whether there is a bell */
    MYSQL_N_PASSES, /* whether a take goes past those who wait */
    MYSQL_N_NUMBERS
};

enum mysql_bytes_id {
    MYSQL_B_NAME = 0,
    MYSQL_B_OWNER,
    MYSQL_B_SESSION,
    MYSQL_B_HOST,
    MYSQL_B_LABEL,
    MYSQL_B_LOCK, /* the name of an advisory lock at the server */
    MYSQL_B_PREFIX,
    MYSQL_B_BELL,    /* mysql_bell.h */
    MYSQL_B_PATTERN, /* of LIKE */
    MYSQL_B_AFTER,
    MYSQL_B_FROM,
    MYSQL_B_BELOW,
    MYSQL_N_BYTES
};

struct mysql_board {
    struct mysql_number numbers[MYSQL_N_NUMBERS];
    struct mysql_bytes bytes[MYSQL_N_BYTES];
};

/* What an execution left behind. */
struct mysql_result {
    uint64_t affected_rows;
    uint64_t insert_id; /* 0: LAST_INSERT_ID() was not evaluated */
};

struct dblock_connection;

void mysql_in_number(struct dblock_connection *connection, enum mysql_number_id id, int64_t value);
/* NULL is NULL. Cuts at 260 bytes; names and the like are shorter by contract. */
void mysql_in_bytes(struct dblock_connection *connection, enum mysql_bytes_id id, const void *data,
    size_t size);
void mysql_in_text(
    struct dblock_connection *connection, enum mysql_bytes_id id, const char *text);
int64_t mysql_bound(int64_t number); /* within MYSQL_NUMBER_MAX */
int64_t mysql_out_number(const struct dblock_connection *connection, enum mysql_number_id id);
int mysql_out_is_null(const struct dblock_connection *connection, enum mysql_number_id id);
const struct mysql_bytes *mysql_out_bytes(
    const struct dblock_connection *connection, enum mysql_bytes_id id);

/* Prepares (unless it is) and runs. 0, or the native code: mysql_fail() tells the rest.
 * Rows, if any, wait for mysql_fetch(). Never sends after the deadline. */
unsigned int mysql_run(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call, struct mysql_result *ret_result);
/* After an INSERT ... SELECT that changed nothing: whether it may have come to a row. */
int mysql_has_selected(const struct dblock_connection *connection);
/* Runs a statement that gives at most one row and fetches it into the outputs.
 * `*ret_has_row` may be NULL if one always comes. */
unsigned int mysql_run_row(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call, int *ret_has_row);
/* Runs and reads all rows into memory, so that the connection is free again. */
unsigned int mysql_run_rows(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call);
/* The next row of mysql_run_rows() into the outputs: 1, or 0 when there is none. */
int mysql_fetch(struct dblock_connection *connection, enum mysql_statement_id id);
size_t mysql_count_rows(const struct dblock_connection *connection, enum mysql_statement_id id);
/* Frees what mysql_run_rows() read; also after a listing that was stopped. */
void mysql_end_rows(struct dblock_connection *connection, enum mysql_statement_id id);
/* Prepares only: the server checks tables, columns and rights. 0 or the native code. */
unsigned int mysql_prepare(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call);

#endif
