/* SPDX-License-Identifier: MIT */
/* size.c - see soak.h: how much a process and the tables take. */
#include "soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef DBLOCK_TEST_HAS_PGSQL
#include <libpq-fe.h>

static long long size_on_pgsql(void)
{
    const char *word[] = { contract_word() };
    PGconn *connection = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    PGresult *result = PQexecParams(connection,
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'",
        1, NULL, word, NULL, NULL, 0);
    long long size = PQresultStatus(result) == PGRES_TUPLES_OK && !PQgetisnull(result, 0, 0)
        ? strtoll(PQgetvalue(result, 0, 0), NULL, 10)
        : -1;

    PQclear(result);
    PQfinish(connection);
    return size;
}
#endif

#ifdef DBLOCK_TEST_HAS_MYSQL
#include <mysql.h>

static long long size_on_mysql(void)
{
    const char *url = getenv("DBLOCK_TEST_MYSQL_SOCKET");
    const char *path = url != NULL ? strstr(url, "socket=") : NULL;
    MYSQL *connection = mysql_init(NULL);
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;
    long long size = -1;
    char statement[200];

    (void)snprintf(statement, sizeof statement,
        "SELECT sum(file_size) FROM information_schema.innodb_sys_tablespaces"
        " WHERE name LIKE '%s/%%'",
        contract_word());
    if (path != NULL &&
        mysql_real_connect(connection, "localhost", "root", NULL, NULL, 0, path + 7, 0) != NULL &&
        mysql_query(connection, statement) == 0)
        result = mysql_store_result(connection);
    if (result != NULL && (row = mysql_fetch_row(result)) != NULL && row[0] != NULL)
        size = strtoll(row[0], NULL, 10);
    mysql_free_result(result);
    mysql_close(connection);
    return size;
}
#endif

long long soak_size_of_tables(size_t database)
{
    const struct contract_database *contract = soak_databases[database].contract;
    struct stat file;

#ifdef DBLOCK_TEST_HAS_PGSQL
    if (contract == &contract_pgsql)
        return size_on_pgsql();
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    if (contract == &contract_mysql)
        return size_on_mysql();
#endif
    return stat(contract->url(CONTRACT_URL) + strlen("sqlite:"), &file) == 0
        ? (long long)file.st_size
        : -1;
}

long soak_memory_of(pid_t pid)
{
    char path[64];
    FILE *file;
    long n_pages = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%*s %ld", &n_pages) != 1)
        n_pages = 0;
    (void)fclose(file);
    return n_pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int soak_descriptors_of(pid_t pid)
{
    char path[64];
    DIR *folder;
    int number = -2; /* . and .. */

    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    folder = opendir(path);
    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        ++number;
    (void)closedir(folder);
    return number;
}
