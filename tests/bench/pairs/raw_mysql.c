/* SPDX-License-Identifier: MIT */
/* raw_mysql.c - pairs directly on mysql_stmt_*, with the statements of the driver, bound
 * once and executed. Needs a URL with a socket (mysql://user:password@host/db?socket=). */
#include "pairs.h"

#include <dblock/mysql.h>

#include <mysql.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mysql_sql.h"

enum { N_PARAMETERS = 20 };

struct statement {
    MYSQL_STMT *handle;
    MYSQL_BIND in[N_PARAMETERS];
    unsigned int n;
    long long answer;
    MYSQL_BIND out; /* of the first column */
    int has_row;
};

struct raw {
    MYSQL *mysql;
    struct statement take;
    struct statement drop;
    int strategy;
    unsigned char session[ID_SIZE];
    unsigned char owner[ID_SIZE];
    long long ttl_us, day_us, pid, late_us, yes;
    char name[64];
    char host[64];
    char prefix[32];
    char lock[64]; /* the server's name of an advisory lock, as long as those of the library */
    char bell[80];
};

static int complain(struct raw *raw, const struct statement *statement, const char *what)
{
    (void)fprintf(stderr, "pairs: mysql: %s: %s\n", what,
        statement != NULL && statement->handle != NULL ? mysql_stmt_error(statement->handle)
                                                       : mysql_error(raw->mysql));
    return -1;
}

static void add_bytes(
    struct statement *statement, enum enum_field_types type, void *data, size_t size)
{
    MYSQL_BIND *bind = &statement->in[statement->n++];

    memset(bind, 0, sizeof *bind);
    bind->buffer_type = data != NULL ? type : MYSQL_TYPE_NULL;
    bind->buffer = data;
    bind->buffer_length = (unsigned long)size;
    bind->length = NULL;
}

static void add_text(struct statement *statement, char *text)
{
    add_bytes(statement, MYSQL_TYPE_BLOB, text, strlen(text));
}

static void add_bell(struct statement *statement, struct raw *raw)
{
    add_bytes(statement, MYSQL_TYPE_STRING, raw->bell, strlen(raw->bell));
}

static void add_number(struct statement *statement, long long *number)
{
    add_bytes(statement, MYSQL_TYPE_LONGLONG, number, sizeof *number);
}

static int prepare(struct raw *raw, struct statement *statement, const char *sql)
{
    statement->handle = mysql_stmt_init(raw->mysql);
    if (statement->handle == NULL ||
        mysql_stmt_prepare(statement->handle, sql, (unsigned long)strlen(sql)) != 0)
        return complain(raw, statement, "prepare");
    if (mysql_stmt_param_count(statement->handle) != statement->n) {
        (void)fprintf(stderr, "pairs: mysql: a statement takes %lu values, not %u\n",
            mysql_stmt_param_count(statement->handle), statement->n);
        return -1;
    }
    statement->has_row = mysql_stmt_field_count(statement->handle) > 0;
    if (statement->n > 0 && mysql_stmt_bind_param(statement->handle, statement->in))
        return complain(raw, statement, "bind");
    statement->out.buffer_type = MYSQL_TYPE_LONGLONG;
    statement->out.buffer = &statement->answer;
    if (statement->has_row && mysql_stmt_bind_result(statement->handle, &statement->out))
        return complain(raw, statement, "bind");
    return 0;
}

/* 0; rows must change, or a row with 1 must come. */
static int run(struct raw *raw, struct statement *statement)
{
    if (mysql_stmt_execute(statement->handle) != 0)
        return complain(raw, statement, "execute");
    if (!statement->has_row) {
        if (mysql_stmt_affected_rows(statement->handle) > 0)
            return 0;
        (void)fprintf(stderr, "pairs: mysql: nothing was changed\n");
        return -1;
    }
    statement->answer = 0;
    if (mysql_stmt_fetch(statement->handle) != 0 ||
        mysql_stmt_fetch(statement->handle) != MYSQL_NO_DATA)
        return complain(raw, statement, "fetch");
    (void)mysql_stmt_free_result(statement->handle);
    if (statement->answer != 1)
        (void)fprintf(stderr, "pairs: mysql: the answer is %lld\n", statement->answer);
    return statement->answer == 1 ? 0 : -1;
}

static int run_once(struct raw *raw, struct statement *statement, const char *sql)
{
    int failed = prepare(raw, statement, sql);

    if (!failed)
        failed = run(raw, statement);
    if (statement->handle != NULL)
        (void)mysql_stmt_close(statement->handle);
    return failed;
}

static int prepare_hold(struct raw *raw)
{
    int is_lease = raw->strategy == DBLOCK_LEASE;
    unsigned char *session = is_lease ? raw->session : NULL;
    struct statement begin;

    memset(&begin, 0, sizeof begin);
    add_bytes(&begin, MYSQL_TYPE_BLOB, raw->session, ID_SIZE);
    add_number(&begin, &raw->day_us);
    add_number(&begin, &raw->day_us);
    add_text(&begin, raw->host);
    add_number(&begin, &raw->pid);
    add_text(&begin, raw->host);
    if (is_lease && run_once(raw, &begin, mysql_sql_session_begin) != 0)
        return -1;
    add_text(&raw->take, raw->name);
    add_bytes(&raw->take, MYSQL_TYPE_BLOB, raw->owner, ID_SIZE);
    add_number(&raw->take, &raw->ttl_us);
    add_number(&raw->take, &raw->pid);
    add_number(&raw->take, &raw->yes);
    add_bell(&raw->take, raw);
    add_text(&raw->take, raw->host);
    add_text(&raw->take, raw->host);
    add_bytes(&raw->take, MYSQL_TYPE_BLOB, session, ID_SIZE);
    add_text(&raw->take, raw->name);
    add_bytes(&raw->take, MYSQL_TYPE_BLOB, session, ID_SIZE);
    add_number(&raw->take, &raw->late_us);
    add_number(&raw->take, &raw->yes);
    add_bell(&raw->take, raw);
    add_text(&raw->take, raw->name);
    add_number(&raw->take, &raw->late_us);
    add_number(&raw->drop, &raw->yes);
    add_bell(&raw->drop, raw);
    add_bell(&raw->drop, raw);
    add_text(&raw->drop, raw->name);
    add_text(&raw->drop, raw->name);
    add_bytes(&raw->drop, MYSQL_TYPE_BLOB, raw->owner, ID_SIZE);
    if (prepare(raw, &raw->take, is_lease ? mysql_sql_lease_take : mysql_sql_insert_take) != 0)
        return -1;
    return prepare(raw, &raw->drop, is_lease ? mysql_sql_lease_drop : mysql_sql_insert_drop);
}

static int prepare_advisory(struct raw *raw)
{
    add_bytes(&raw->take, MYSQL_TYPE_STRING, raw->lock, strlen(raw->lock));
    add_bytes(&raw->take, MYSQL_TYPE_STRING, raw->lock, strlen(raw->lock));
    add_bytes(&raw->drop, MYSQL_TYPE_STRING, raw->lock, strlen(raw->lock));
    if (prepare(raw, &raw->take, mysql_sql_advisory_take) != 0)
        return -1;
    return prepare(raw, &raw->drop, mysql_sql_advisory_drop);
}

static int prepare_row(struct raw *raw)
{
    struct statement seed;

    memset(&seed, 0, sizeof seed);
    add_text(&seed, raw->name);
    add_text(&seed, raw->name);
    if (run_once(raw, &seed, mysql_sql_row_seed) != 0)
        return -1;
    if (mysql_autocommit(raw->mysql, 0) != 0)
        return complain(raw, NULL, "turn autocommit off");
    add_text(&raw->take, raw->name);
    return prepare(raw, &raw->take, mysql_sql_row_take);
}

static void raw_close(void *context)
{
    struct raw *raw = context;

    if (raw->take.handle != NULL)
        (void)mysql_stmt_close(raw->take.handle);
    if (raw->drop.handle != NULL)
        (void)mysql_stmt_close(raw->drop.handle);
    mysql_close(raw->mysql);
    free(raw);
}

/* USER:PASSWORD@HOST/DATABASE and socket=; no escapes, as these are the tests' own URLs.
 * NULL: failed, and said why. */
void *raw_mysql_connect(const char *url)
{
    char socket[256], user[64], password[64], database[64];
    MYSQL *mysql = NULL;

    if (!url_value(url, "socket", socket, sizeof socket) ||
        sscanf(url, "mysql://%63[^:]:%63[^@]@%*[^/]/%63[^?]", user, password, database) != 3) {
        (void)fprintf(stderr, "pairs: mysql: the URL must name a user, a database and a socket\n");
        return NULL;
    }
    mysql = mysql_init(NULL);
    if (mysql != NULL &&
        mysql_real_connect(mysql, NULL, user, password, database, 0, socket, 0) != NULL)
        return mysql;
    (void)fprintf(stderr, "pairs: mysql: connect: %s\n",
        mysql != NULL ? mysql_error(mysql) : "out of memory");
    mysql_close(mysql);
    return NULL;
}

static int open_connection(struct raw *raw, const char *url)
{
    raw->mysql = raw_mysql_connect(url);
    if (raw->mysql == NULL)
        return -1;
    if (mysql_set_character_set(raw->mysql, "utf8mb4") != 0 ||
        mysql_query(raw->mysql,
            "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
            " innodb_lock_wait_timeout = 1, lock_wait_timeout = 10, wait_timeout = 28800") != 0 ||
        mysql_query(raw->mysql, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") != 0)
        return complain(raw, NULL, "connect");
    if (raw->strategy == DBLOCK_ROW)
        return prepare_row(raw);
    if (raw->strategy == DBLOCK_ADVISORY)
        return prepare_advisory(raw);
    return prepare_hold(raw);
}

static void *raw_open(const char *url, int strategy)
{
    struct raw *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->strategy = strategy;
    raw->ttl_us = 30ll * 1000000;
    raw->day_us = 86400ll * 1000000;
    raw->late_us = 1ll << 60;
    raw->pid = getpid();
    raw->yes = 1; /* there is a bell; and the gate is not asked for */
    memset(raw->session, 's', sizeof raw->session);
    raw->session[0] = (unsigned char)getpid();
    raw->session[1] = (unsigned char)(getpid() >> 8);
    raw->session[2] = (unsigned char)bench_now_ns();
    raw->session[3] = (unsigned char)(bench_now_ns() >> 8);
    memset(raw->owner, 'o', sizeof raw->owner);
    (void)gethostname(raw->host, sizeof raw->host - 1);
    (void)snprintf(raw->name, sizeof raw->name, "bench-raw--%ld-%s", (long)getpid(),
        dblock_strategy_name(strategy));
    (void)snprintf(raw->prefix, sizeof raw->prefix, "dblock:0123456789ab:");
    (void)snprintf(raw->lock, sizeof raw->lock, "%s%032ld", raw->prefix, (long)getpid());
    (void)snprintf(raw->bell, sizeof raw->bell, "%sb%032ld", raw->prefix, (long)getpid());
    if (open_connection(raw, url) == 0)
        return raw;
    raw_close(raw);
    return NULL;
}

static int raw_pair(void *context)
{
    struct raw *raw = context;

    ++raw->owner[0];
    if (run(raw, &raw->take) != 0)
        return -1;
    if (raw->strategy != DBLOCK_ROW)
        return run(raw, &raw->drop);
    return mysql_real_query(raw->mysql, "COMMIT", 6) == 0 ? 0 : complain(raw, NULL, "commit");
}

static double count_updates(const char *url)
{
    MYSQL *mysql = raw_mysql_connect(url);
    MYSQL_RES *rows;
    MYSQL_ROW row;
    double n = 0;

    if (mysql == NULL)
        return 0;
    if (mysql_query(mysql, "SHOW GLOBAL STATUS LIKE 'Handler_update'") == 0 &&
        (rows = mysql_store_result(mysql)) != NULL) {
        row = mysql_fetch_row(rows);
        if (row != NULL && row[1] != NULL)
            n = strtod(row[1], NULL);
        mysql_free_result(rows);
    }
    mysql_close(mysql);
    return n;
}

const struct database bench_mysql = {
    .name = "MariaDB",
    .variable = "DBLOCK_TEST_MYSQL_SOCKET",
    .driver = dblock_mysql_driver,
    .open = raw_open,
    .pair = raw_pair,
    .close = raw_close,
    .count_updates = count_updates,
    .goals = { 0, 1.10, 1.10, 1.10, 1.10 },
};
