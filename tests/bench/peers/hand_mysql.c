/* SPDX-License-Identifier: MIT */
/* hand_mysql.c - MariaDB's own locks by hand, as a program in C does it: GET_LOCK by two
 * prepared statements, the least that anybody can send; and a row locked by three statements,
 * each a round trip: BEGIN; SELECT ... FOR UPDATE; COMMIT. */
#include <mysql.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"

struct hand {
    MYSQL *mysql;
    MYSQL_STMT *take, *drop;
};

static int complain(struct hand *hand, MYSQL_STMT *statement)
{
    (void)fprintf(stderr, "peers: mysql: %s\n",
        statement != NULL ? mysql_stmt_error(statement) : mysql_error(hand->mysql));
    return -1;
}

static int run(struct hand *hand, const char *text)
{
    return mysql_real_query(hand->mysql, text, (unsigned long)strlen(text)) == 0
        ? 0
        : complain(hand, NULL);
}

static int prepare(struct hand *hand, const char *text, MYSQL_STMT **ret_statement)
{
    *ret_statement = mysql_stmt_init(hand->mysql);
    if (*ret_statement != NULL &&
        mysql_stmt_prepare(*ret_statement, text, (unsigned long)strlen(text)) == 0)
        return 0;
    return complain(hand, *ret_statement);
}

static int execute(struct hand *hand, MYSQL_STMT *statement)
{
    if (mysql_stmt_execute(statement) == 0 && mysql_stmt_store_result(statement) == 0 &&
        !mysql_stmt_free_result(statement))
        return 0;
    return complain(hand, statement);
}

/* mysql://USER:PASSWORD@HOST:PORT/DATABASE without escapes: the tests' own. */
static struct hand *open_plain(const char *variable)
{
    char user[64], password[64], host[64], database[64];
    const char *url = getenv(variable);
    struct hand *hand = calloc(1, sizeof *hand);
    unsigned int port;

    if (hand == NULL || url == NULL ||
        sscanf(url, "mysql://%63[^:]:%63[^@]@%63[^:]:%u/%63[^?]", user, password, host, &port,
            database) != 5)
        return NULL;
    hand->mysql = mysql_init(NULL);
    if (hand->mysql == NULL)
        return NULL;
    if (mysql_real_connect(hand->mysql, host, user, password, database, port, NULL, 0) != NULL)
        return hand;
    (void)complain(hand, NULL);
    return NULL;
}

static void *open_three(const char *variable)
{
    struct hand *hand = open_plain(variable);

    if (hand == NULL ||
        run(hand, "CREATE TABLE IF NOT EXISTS bench_three"
                  " (name varbinary(255) PRIMARY KEY) ENGINE = InnoDB") != 0 ||
        run(hand, "INSERT IGNORE INTO bench_three VALUES ('x')") != 0 ||
        prepare(hand, "SELECT 1 FROM bench_three WHERE name = 'x' FOR UPDATE", &hand->take) != 0)
        return NULL;
    return hand;
}

static int three_pair(void *context)
{
    struct hand *hand = context;

    if (run(hand, "BEGIN") != 0 || execute(hand, hand->take) != 0)
        return -1;
    return run(hand, "COMMIT");
}

static void *open_advisory(const char *variable)
{
    struct hand *hand = open_plain(variable);

    if (hand == NULL || prepare(hand, "SELECT GET_LOCK('bench-hand', 0)", &hand->take) != 0 ||
        prepare(hand, "SELECT RELEASE_LOCK('bench-hand')", &hand->drop) != 0)
        return NULL;
    return hand;
}

static int advisory_pair(void *context)
{
    struct hand *hand = context;

    return execute(hand, hand->take) != 0 || execute(hand, hand->drop) != 0 ? -1 : 0;
}

static void about(void *context, char *ret_text, size_t size)
{
    struct hand *hand = context;
    const char *version = mysql_get_server_info(hand->mysql);

    (void)snprintf(ret_text, size, "MariaDB %.*s", (int)strcspn(version, "-"), version);
}

const struct side side_three_mysql = { open_three, three_pair, about };
const struct side side_advisory_mysql = { open_advisory, advisory_pair, about };
