/* SPDX-License-Identifier: MIT */
/* three_mysql.c - a row locked by three statements, each a round trip, as programs do it:
 * BEGIN; SELECT ... FOR UPDATE; COMMIT. */
#include <mysql.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"

struct three {
    MYSQL *mysql;
    MYSQL_STMT *take;
};

static int complain(struct three *three)
{
    (void)fprintf(stderr, "peers: mysql: %s\n",
        three->take != NULL && mysql_stmt_errno(three->take) != 0 ? mysql_stmt_error(three->take)
                                                                  : mysql_error(three->mysql));
    return -1;
}

static int run(struct three *three, const char *text)
{
    return mysql_real_query(three->mysql, text, (unsigned long)strlen(text)) == 0
        ? 0
        : complain(three);
}

static int set_up(struct three *three)
{
    static const char take[] = "SELECT 1 FROM bench_three WHERE name = 'x' FOR UPDATE";

    if (run(three, "CREATE TABLE IF NOT EXISTS bench_three"
                   " (name varbinary(255) PRIMARY KEY) ENGINE = InnoDB") != 0 ||
        run(three, "INSERT IGNORE INTO bench_three VALUES ('x')") != 0)
        return -1;
    three->take = mysql_stmt_init(three->mysql);
    if (three->take == NULL || mysql_stmt_prepare(three->take, take, sizeof take - 1) != 0)
        return complain(three);
    return 0;
}

/* mysql://USER:PASSWORD@HOST:PORT/DATABASE without escapes: the tests' own. */
static void *open_raw(const char *variable)
{
    char user[64], password[64], host[64], database[64];
    const char *url = getenv(variable);
    struct three *three = calloc(1, sizeof *three);
    unsigned int port;

    if (three == NULL || url == NULL ||
        sscanf(url, "mysql://%63[^:]:%63[^@]@%63[^:]:%u/%63[^?]", user, password, host, &port,
            database) != 5)
        return NULL;
    three->mysql = mysql_init(NULL);
    if (three->mysql == NULL)
        return NULL;
    if (mysql_real_connect(three->mysql, host, user, password, database, port, NULL, 0) == NULL)
        return (void)complain(three), NULL;
    return set_up(three) == 0 ? three : NULL;
}

static int pair(void *context)
{
    struct three *three = context;

    if (run(three, "BEGIN") != 0)
        return -1;
    if (mysql_stmt_execute(three->take) != 0 || mysql_stmt_store_result(three->take) != 0 ||
        mysql_stmt_free_result(three->take))
        return complain(three);
    return run(three, "COMMIT");
}

static void about(void *context, char *ret_text, size_t size)
{
    struct three *three = context;
    const char *version = mysql_get_server_info(three->mysql);

    (void)snprintf(ret_text, size, "MariaDB %.*s", (int)strcspn(version, "-"), version);
}

const struct side side_three_mysql = { open_raw, pair, about };
