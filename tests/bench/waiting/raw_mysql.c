/* SPDX-License-Identifier: MIT */
/* raw_mysql.c - waiting directly on mysql_stmt_*: GET_LOCK, a row, an upsert with its
 * update (the pair of a lease), and that pair inside GET_LOCK, the held gate. Names are
 * written into the statements, so there is nothing to bind. */
#include "raw_mysql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/url.h"

enum { N_STATEMENTS = 2 };

struct raw_mysql {
    MYSQL *mysql;
    MYSQL_STMT *take[N_STATEMENTS]; /* by turns; NULL from the first that is not needed */
    MYSQL_STMT *drop[N_STATEMENTS];
    int kind;
};

MYSQL *raw_mysql_connect(const char *url)
{
    char socket[256], user[64], password[64], database[64];
    MYSQL *mysql;

    if (!url_value(url, "socket", socket, sizeof socket) ||
        sscanf(url, "mysql://%63[^:]:%63[^@]@%*[^/]/%63[^?]", user, password, database) != 3) {
        (void)complain("mysql", "the URL must name a user, a database and a socket");
        return NULL;
    }
    mysql = mysql_init(NULL);
    if (mysql != NULL &&
        mysql_real_connect(mysql, NULL, user, password, database, 0, socket, 0) != NULL)
        return mysql;
    (void)complain("mysql", mysql != NULL ? mysql_error(mysql) : "out of memory");
    mysql_close(mysql);
    return NULL;
}

static int add(struct raw_mysql *raw, MYSQL_STMT **statements, const char *text)
{
    int i = statements[0] != NULL;

    statements[i] = mysql_stmt_init(raw->mysql);
    if (statements[i] != NULL &&
        mysql_stmt_prepare(statements[i], text, (unsigned long)strlen(text)) == 0)
        return 0;
    return complain("mysql", mysql_error(raw->mysql));
}

static int add_lock(struct raw_mysql *raw, const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof text, "SELECT GET_LOCK('%s', 1000)", name);
    return add(raw, raw->take, text);
}

static int add_unlock(struct raw_mysql *raw, const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof text, "SELECT RELEASE_LOCK('%s')", name);
    return add(raw, raw->drop, text);
}

static int add_row(struct raw_mysql *raw, const char *name)
{
    char text[320];

    /* looks first, since an insert waits for whoever has the row */
    (void)snprintf(text, sizeof text,
        "INSERT IGNORE INTO bench_waiting (name) SELECT '%s' FROM DUAL"
        " WHERE NOT EXISTS (SELECT 1 FROM bench_waiting WHERE name = '%s')",
        name, name);
    if (mysql_query(raw->mysql, text) != 0 || mysql_autocommit(raw->mysql, 0) != 0)
        return complain("mysql", mysql_error(raw->mysql));
    (void)snprintf(
        text, sizeof text, "SELECT 1 FROM bench_waiting WHERE name = '%s' FOR UPDATE", name);
    return add(raw, raw->take, text);
}

static int add_pair(struct raw_mysql *raw, const char *name)
{
    char text[640];

    (void)snprintf(text, sizeof text,
        "INSERT INTO bench_waiting (name, owner, fence, expires_at)"
        " VALUES ('%s', CONNECTION_ID(), 1, UTC_TIMESTAMP(6) + INTERVAL 30 SECOND)"
        " ON DUPLICATE KEY UPDATE"
        " fence = IF(expires_at <= UTC_TIMESTAMP(6), fence + 1, fence),"
        " owner = IF(expires_at <= UTC_TIMESTAMP(6), VALUES(owner), owner),"
        " expires_at = IF(expires_at <= UTC_TIMESTAMP(6), VALUES(expires_at), expires_at)",
        name);
    if (add(raw, raw->take, text) != 0)
        return -1;
    (void)snprintf(text, sizeof text,
        "UPDATE bench_waiting SET expires_at = '1970-01-01'"
        " WHERE name = '%s' AND owner = CONNECTION_ID()",
        name);
    return add(raw, raw->drop, text);
}

static int open_kind(struct raw_mysql *raw, const char *name)
{
    if (mysql_query(raw->mysql, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") != 0 ||
        mysql_query(raw->mysql, "SET innodb_lock_wait_timeout = 1000") != 0)
        return complain("mysql", mysql_error(raw->mysql));
    switch (raw->kind) {
    case RAW_ADVISORY:
        return add_lock(raw, name) != 0 ? -1 : add_unlock(raw, name);
    case RAW_ROW:
        return add_row(raw, name);
    case RAW_PAIR:
        return add_pair(raw, name);
    default:
        return add_lock(raw, name) != 0 || add_pair(raw, name) != 0 ? -1 : add_unlock(raw, name);
    }
}

void *raw_mysql_open(const struct mechanism *mechanism, const struct opening *opening)
{
    struct raw_mysql *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->kind = mechanism->kind;
    raw->mysql = raw_mysql_connect(opening->url);
    if (raw->mysql != NULL && open_kind(raw, opening->name) == 0)
        return raw;
    raw_mysql_close(raw);
    return NULL;
}

/* One number comes, which must be 1, or rows must change. */
static int run(MYSQL_STMT *statement)
{
    long long answer = 0;
    MYSQL_BIND out;

    if (mysql_stmt_execute(statement) != 0)
        return complain("mysql", mysql_stmt_error(statement));
    if (mysql_stmt_field_count(statement) == 0)
        return mysql_stmt_affected_rows(statement) > 0 ? 0 : complain("mysql", "nothing changed");
    memset(&out, 0, sizeof out);
    out.buffer_type = MYSQL_TYPE_LONGLONG;
    out.buffer = &answer;
    if (mysql_stmt_bind_result(statement, &out) || mysql_stmt_fetch(statement) != 0)
        return complain("mysql", mysql_stmt_error(statement));
    (void)mysql_stmt_free_result(statement);
    return answer == 1 ? 0 : complain("mysql", "the lock was not to be had");
}

static int run_all(MYSQL_STMT *const *statements)
{
    int i;

    for (i = 0; i < N_STATEMENTS && statements[i] != NULL; ++i)
        if (run(statements[i]) != 0)
            return -1;
    return 0;
}

int raw_mysql_acquire(void *context, int64_t *ret_token)
{
    struct raw_mysql *raw = context;

    (void)ret_token;
    return run_all(raw->take);
}

int raw_mysql_release(void *context)
{
    struct raw_mysql *raw = context;

    if (raw->kind != RAW_ROW)
        return run_all(raw->drop);
    return mysql_real_query(raw->mysql, "COMMIT", 6) == 0
        ? 0
        : complain("mysql", mysql_error(raw->mysql));
}

void raw_mysql_close(void *context)
{
    struct raw_mysql *raw = context;
    int i;

    for (i = 0; i < N_STATEMENTS; ++i) {
        if (raw->take[i] != NULL)
            (void)mysql_stmt_close(raw->take[i]);
        if (raw->drop[i] != NULL)
            (void)mysql_stmt_close(raw->drop[i]);
    }
    if (raw->mysql != NULL)
        mysql_close(raw->mysql);
    free(raw);
}
