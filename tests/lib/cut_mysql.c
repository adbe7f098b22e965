/* SPDX-License-Identifier: MIT */
/* cut_mysql.c - MySQL and MariaDB for tests of cut connections. */
#include "cut_database.h"

#ifdef DBLOCK_TEST_HAS_MYSQL

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned int port(void)
{
    return (unsigned int)strtoul(getenv("DBLOCK_TEST_MYSQL_PORT"), NULL, 10);
}

static const char *proxied_url(unsigned int proxy_port)
{
    static char url[200];

    (void)snprintf(url, sizeof url, "mysql://%s:%s@127.0.0.1:%u/%s?ssl-mode=DISABLED",
        contract_word(), contract_mysql.secret, proxy_port, contract_word());
    return url;
}

static const char *tls_url(unsigned int proxy_port)
{
    static char url[200];

    (void)snprintf(url, sizeof url, "mysql://%s:%s@127.0.0.1:%u/%s?ssl-mode=REQUIRED",
        contract_word(), contract_mysql.secret, proxy_port, contract_word());
    return url;
}

static const char *socket_path(void)
{
    const char *url = getenv("DBLOCK_TEST_MYSQL_SOCKET");
    const char *path = url != NULL ? strstr(url, "socket=") : NULL;

    return path != NULL ? path + strlen("socket=") : NULL;
}

static const char *direct_url(void)
{
    static char url[300];

    (void)snprintf(url, sizeof url, "mysql://%s:%s@localhost/%s?socket=%s", contract_word(),
        contract_mysql.secret, contract_word(), socket_path());
    return url;
}

static unsigned int n_sessions(void)
{
    static MYSQL *observer;
    MYSQL_RES *result;
    MYSQL_ROW row;
    unsigned int number = 0;

    if (observer == NULL) {
        observer = mysql_init(NULL);
        (void)mysql_real_connect(
            observer, "localhost", "root", NULL, NULL, 0, socket_path(), 0);
    }
    /* the tables of this name fail on MySQL while anybody's statement is not text */
    result = mysql_query(observer, "SHOW PROCESSLIST") == 0 ? mysql_store_result(observer) : NULL;
    if (result == NULL) {
        (void)fprintf(stderr, "cut_mysql: %s\n", mysql_error(observer));
        abort();
    }
    while ((row = mysql_fetch_row(result)) != NULL)
        number += strcmp(row[1], contract_word()) == 0 && row[2] != NULL &&
            strncmp(row[2], "127.", 4) == 0;
    mysql_free_result(result);
    return number;
}

const struct cut_database cut_mysql = { &contract_mysql, PROXY_WIRE_MYSQL, port, proxied_url,
    tls_url, direct_url, n_sessions, "DBLOCK_TEST_MYSQL_PIDFILE" };

#else

typedef int cut_mysql_needs_the_mysql_driver;

#endif
