/* SPDX-License-Identifier: MIT */
/* cut_pgsql.c - PostgreSQL for tests of cut connections. */
#include "cut_database.h"

#ifdef DBLOCK_TEST_HAS_PGSQL

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned int port(void)
{
    return (unsigned int)strtoul(getenv("DBLOCK_TEST_PGSQL_PORT"), NULL, 10);
}

static const char *proxied_url(unsigned int proxy_port)
{
    static char url[200];

    (void)snprintf(url, sizeof url,
        "postgresql://%s:%s@127.0.0.1:%u/dblock_test?sslmode=disable&gssencmode=disable",
        contract_word(), contract_pgsql.secret, proxy_port);
    return url;
}

static const char *tls_url(unsigned int proxy_port)
{
    static char url[200];

    (void)snprintf(url, sizeof url, "postgresql://%s:%s@127.0.0.1:%u/dblock_test?sslmode=require",
        contract_word(), contract_pgsql.secret, proxy_port);
    return url;
}

static const char *direct_url(void)
{
    return contract_pgsql.url(CONTRACT_URL);
}

static unsigned int n_sessions(void)
{
    static PGconn *observer;
    char statement[200];
    PGresult *result;
    unsigned int number;

    if (observer == NULL)
        observer = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    (void)snprintf(statement, sizeof statement,
        "SELECT count(*) FROM pg_stat_activity WHERE usename = '%s' AND client_addr IS NOT NULL",
        contract_word());
    result = PQexec(observer, statement);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "cut_pgsql: %s", PQerrorMessage(observer));
        abort();
    }
    number = (unsigned int)strtoul(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

const struct cut_database cut_pgsql = { &contract_pgsql, PROXY_WIRE_PGSQL, port, proxied_url,
    tls_url, direct_url, n_sessions, "DBLOCK_TEST_PGSQL_PIDFILE" };

#else

typedef int cut_pgsql_needs_the_pgsql_driver;

#endif
