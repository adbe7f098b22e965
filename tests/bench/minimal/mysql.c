/* SPDX-License-Identifier: MIT */
/* mysql.c - see minimal.h: on MariaDB's or MySQL's client library, over a local socket. */
#include "bench/minimal/minimal.h"

#include <mysql.h>
#include <stdlib.h>
#include <string.h>

static const char create[] =
    "CREATE TABLE IF NOT EXISTS bench_start (name VARBINARY(255) PRIMARY KEY,"
    " owner VARBINARY(16), expires_at DATETIME(6) NOT NULL) ENGINE = InnoDB";
static const char lease_take[] =
    "INSERT INTO bench_start VALUES ('x', 'me', UTC_TIMESTAMP(6) + INTERVAL 30 SECOND)"
    " ON DUPLICATE KEY UPDATE"
    " owner = IF(expires_at <= UTC_TIMESTAMP(6), VALUES(owner), owner),"
    " expires_at = IF(expires_at <= UTC_TIMESTAMP(6), VALUES(expires_at), expires_at)";
static const char lease_drop[] =
    "UPDATE bench_start SET expires_at = '1970-01-01' WHERE name = 'x' AND owner = 'me'";
static const char advisory_take[] = "SELECT GET_LOCK('bench_start', 0)";
static const char advisory_drop[] = "SELECT RELEASE_LOCK('bench_start')";

/* A row is changed or a 1 comes back, or the lock is not ours. */
static int ask(MYSQL *mysql, const char *statement)
{
    MYSQL_RES *rows;
    MYSQL_ROW row;
    int is_good;

    if (mysql_query(mysql, statement) != 0)
        return minimal_fail(statement, mysql_error(mysql));
    rows = mysql_store_result(mysql);
    if (rows == NULL)
        return mysql_affected_rows(mysql) > 0 ? 0 : minimal_fail(statement, "no row was changed");
    row = mysql_fetch_row(rows);
    is_good = row != NULL && row[0] != NULL && strcmp(row[0], "1") == 0;
    mysql_free_result(rows);
    return is_good ? 0 : minimal_fail(statement, "somebody else has it");
}

/* mysql://USER:PASSWORD@HOST/DATABASE?socket=PATH, without encoded characters. */
static int connect_to(MYSQL *mysql, const char *url)
{
    char user[64], password[64], database[64], socket[256];

    if (url == NULL || sscanf(url, "mysql://%63[^:]:%63[^@]@%*[^/]/%63[^?]?socket=%255s", user,
                           password, database, socket) != 4)
        return minimal_fail("DBLOCK_URL", "must name a user, a database and a socket");
    if (mysql_real_connect(mysql, NULL, user, password, database, 0, socket, 0) == NULL)
        return minimal_fail("connect", mysql_error(mysql));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "lease";
    int is_advisory = strcmp(what, "advisory") == 0;
    MYSQL *mysql = mysql_init(NULL);
    int result;

    if (mysql == NULL)
        return minimal_fail("connect", "out of memory");
    result = connect_to(mysql, getenv("DBLOCK_URL"));
    if (result == 0 && strcmp(what, "init") == 0) {
        if (mysql_query(mysql, create) != 0)
            result = minimal_fail(create, mysql_error(mysql));
    } else if (result == 0) {
        result = ask(mysql, is_advisory ? advisory_take : lease_take);
        if (result == 0)
            result = minimal_run();
        if (result == 0)
            result = ask(mysql, is_advisory ? advisory_drop : lease_drop);
    }
    mysql_close(mysql);
    return result;
}
