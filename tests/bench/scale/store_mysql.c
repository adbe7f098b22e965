/* SPDX-License-Identifier: MIT */
/* store_mysql.c - MariaDB, beside the driver. */
#include <dblock/mysql.h>

#include <inttypes.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/url.h"
#include "scale.h"

struct raw {
    MYSQL *mysql;
    MYSQL_STMT *update;
};

static int complain(struct raw *raw)
{
    (void)fprintf(stderr, "scale: mysql: %s\n",
        raw->update != NULL && mysql_stmt_errno(raw->update) != 0 ? mysql_stmt_error(raw->update)
                                                                  : mysql_error(raw->mysql));
    return -1;
}

static int run(struct raw *raw, const char *text)
{
    return mysql_real_query(raw->mysql, text, (unsigned long)strlen(text)) == 0 ? 0
                                                                                : complain(raw);
}

/* USER:PASSWORD@HOST/DATABASE and socket=; no escapes, as these are the tests' own URLs. */
static MYSQL *connect_plain(const char *url)
{
    char socket[256], user[64], password[64], database[64];
    MYSQL *mysql = mysql_init(NULL);

    if (mysql != NULL && url_value(url, "socket", socket, sizeof socket) &&
        sscanf(url, "mysql://%63[^:]:%63[^@]@%*[^/]/%63[^?]", user, password, database) == 3 &&
        mysql_real_connect(mysql, NULL, user, password, database, 0, socket, 0) != NULL)
        return mysql;
    (void)fprintf(stderr, "scale: mysql: cannot connect\n");
    mysql_close(mysql);
    return NULL;
}

static void close_raw(void *context)
{
    struct raw *raw = context;

    if (raw->update != NULL)
        (void)mysql_stmt_close(raw->update);
    raw->update = NULL;
    if (raw->mysql != NULL)
        (void)run(raw, "DROP TABLE IF EXISTS bench_scale");
    mysql_close(raw->mysql);
    free(raw);
}

static int set_up(struct raw *raw)
{
    static const char text[] = "UPDATE bench_scale SET n = n + 1 WHERE id = 'x'";

    if (run(raw, "DROP TABLE IF EXISTS bench_scale") != 0 ||
        run(raw, "CREATE TABLE bench_scale (id varbinary(16) PRIMARY KEY, n bigint)"
                 " ENGINE = InnoDB") != 0 ||
        run(raw, "INSERT INTO bench_scale VALUES ('x', 0)") != 0)
        return -1;
    raw->update = mysql_stmt_init(raw->mysql);
    return raw->update != NULL && mysql_stmt_prepare(raw->update, text, sizeof text - 1) == 0
        ? 0
        : complain(raw);
}

static void *open_raw(const char *url)
{
    struct raw *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->mysql = connect_plain(url);
    if (raw->mysql != NULL && set_up(raw) == 0)
        return raw;
    close_raw(raw);
    return NULL;
}

static int update(void *context)
{
    struct raw *raw = context;

    return mysql_stmt_execute(raw->update) == 0 ? 0 : complain(raw);
}

static int64_t ask(struct raw *raw, const char *text)
{
    int64_t value = -1;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    if (run(raw, text) != 0 || (rows = mysql_store_result(raw->mysql)) == NULL)
        return -1;
    row = mysql_fetch_row(rows);
    if (row != NULL && row[0] != NULL)
        value = strtoll(row[0], NULL, 10);
    mysql_free_result(rows);
    return value;
}

#define DIGIT                                                                                      \
    "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4"   \
    " UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8"                 \
    " UNION ALL SELECT 9)"

static int leave(void *context, long n, int64_t *ret_token)
{
    struct raw *raw = context;
    char text[2048];

    /* a minute ahead of the clock: only the floor keeps later tokens above it */
    *ret_token = ask(
        raw, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000");
    (void)snprintf(text, sizeof text,
        "INSERT INTO dblock_lease (name, token, since, expires_at, label, host, pid)"
        " SELECT CONCAT('bench-left-', i), %" PRId64 ", %" PRId64 " - 7260000000, 0, '', 'bench', 1"
        " FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS i"
        " FROM " DIGIT " AS f, " DIGIT " AS e, " DIGIT " AS d, " DIGIT " AS c, " DIGIT
        " AS b, " DIGIT " AS a) AS s WHERE i < %ld",
        *ret_token, *ret_token, n);
    return *ret_token < 0 ? -1 : run(raw, text);
}

static const char left[] = "name >= 'bench-left-' AND name < 'bench-left.'";

static long count_left(void *raw)
{
    char text[256];

    (void)snprintf(text, sizeof text, "SELECT count(*) FROM dblock_lease WHERE %s", left);
    return (long)ask(raw, text);
}

static int forget(void *raw)
{
    char text[256];

    (void)snprintf(text, sizeof text, "DELETE FROM dblock_lease WHERE %s", left);
    return run(raw, text);
}

const struct store scale_mysql = {
    .name = "MariaDB",
    .variable = "DBLOCK_TEST_MYSQL_SOCKET",
    .driver = dblock_mysql_driver,
    .open = open_raw,
    .close = close_raw,
    .update = update,
    .leave = leave,
    .count_left = count_left,
    .forget = forget,
};
