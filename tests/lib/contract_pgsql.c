/* SPDX-License-Identifier: MIT */
/* contract_pgsql.c - the contract suite on PostgreSQL: a role and a schema of its
 * own, made and removed over DBLOCK_TEST_PGSQL_ADMIN. As the role is nobody
 * else's, its sessions can be ended without asking whose they are. */
#include "contract_database.h"

#include <stdlib.h>

#ifdef DBLOCK_TEST_HAS_PGSQL

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include <dblock/pgsql.h>

#include "contract_silent.h"
#include "contract_sql.h"

#define SECRET "never-print-me"

static char tables[48];
static char urls[CONTRACT_URL_MALFORMED + 1][512];
static struct contract_sql sql = { .blob_begin = "'\\x",
    .blob_end = "'::bytea",
    .tables = tables,
    .two_hours = "interval '2 hours'",
    .row_time = "since" };

static PGconn *connect_as_admin(void)
{
    PGconn *connection = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));

    if (PQstatus(connection) != CONNECTION_OK) {
        (void)fprintf(stderr, "contract_pgsql: %s", PQerrorMessage(connection));
        abort();
    }
    PQclear(PQexec(connection, "SET client_min_messages = warning"));
    return connection;
}

static void run_on(PGconn *connection, const char *statement)
{
    PGresult *result = PQexec(connection, statement);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "contract_pgsql: %s: %s", statement, PQresultErrorMessage(result));
        abort();
    }
    PQclear(result);
}

static void run(const char *statement)
{
    PGconn *connection = connect_as_admin();

    run_on(connection, statement);
    PQfinish(connection);
}

/* The words of the statement in which %s is the word of this process. */
static void run_with_word(const char *format)
{
    char statement[2048];
    size_t length = 0;
    const char *part;

    for (part = format; *part != 0 && length + 64 < sizeof statement; ++part)
        if (*part == '@')
            length += (size_t)snprintf(
                statement + length, sizeof statement - length, "%s", contract_word());
        else
            statement[length++] = *part;
    statement[length] = 0;
    run(statement);
}

/* Where the server of a URL is, as the start of a connection string. */
static void find_server(const char *url, char *server, size_t size)
{
    static const char *const wanted[] = { "host", "hostaddr", "port", "dbname" };
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    PQconninfoOption *option;
    size_t length = 0;
    size_t i;

    server[0] = 0;
    for (option = options; option != NULL && option->keyword != NULL; ++option)
        for (i = 0; i < sizeof wanted / sizeof wanted[0]; ++i)
            if (strcmp(option->keyword, wanted[i]) == 0 && option->val != NULL)
                length += (size_t)snprintf(
                    server + length, size - length, "%s='%s' ", option->keyword, option->val);
    PQconninfoFree(options);
}

static void make_urls(void)
{
    const char *tcp = getenv("DBLOCK_TEST_PGSQL_TCP");
    char server[256];

    find_server(getenv("DBLOCK_TEST_PGSQL"), server, sizeof server);
    (void)snprintf(
        urls[CONTRACT_URL], sizeof urls[0], "%suser=%s password=" SECRET, server, contract_word());
    (void)snprintf(urls[CONTRACT_URL_POOR], sizeof urls[0], "%suser=%s_poor password=" SECRET,
        server, contract_word());
    if (tcp != NULL) { /* the socket may trust whoever comes */
        find_server(tcp, server, sizeof server);
        (void)snprintf(urls[CONTRACT_URL_PASSWORD], sizeof urls[0], "%suser=%s password=wrong-word",
            server, contract_word());
    }
    (void)snprintf(urls[CONTRACT_URL_UNREACHABLE], sizeof urls[0],
        "postgresql://someone:" SECRET "@127.0.0.1:1/nowhere");
    (void)snprintf(urls[CONTRACT_URL_SILENT], sizeof urls[0],
        "postgresql://someone:" SECRET "@127.0.0.1:%d/nowhere", contract_silent_port());
    (void)snprintf(urls[CONTRACT_URL_MALFORMED], sizeof urls[0],
        "postgresql://someone:" SECRET "@127.0.0.1/nowhere?nonsense=1");
}

static unsigned port(void)
{
    PQconninfoOption *options = PQconninfoParse(getenv("DBLOCK_TEST_PGSQL"), NULL);
    PQconninfoOption *option;
    unsigned number = 0;

    for (option = options; option != NULL && option->keyword != NULL; ++option)
        if (strcmp(option->keyword, "port") == 0 && option->val != NULL)
            number = (unsigned)strtoul(option->val, NULL, 10);
    PQconninfoFree(options);
    return number;
}

/* The last of two words counts. */
static void go_to_port(unsigned number)
{
    size_t length = strlen(urls[CONTRACT_URL]);

    (void)snprintf(urls[CONTRACT_URL] + length, sizeof urls[0] - length,
        " host=127.0.0.1 port=%u sslmode=disable gssencmode=disable", number);
}

static const char *start(void)
{
    if (getenv("DBLOCK_TEST_PGSQL") == NULL || getenv("DBLOCK_TEST_PGSQL_ADMIN") == NULL)
        return "DBLOCK_TEST_PGSQL and DBLOCK_TEST_PGSQL_ADMIN name no server (ci/services)";
    make_urls();
    (void)snprintf(tables, sizeof tables, "%s.", contract_word());
    sql.run = run;
    run_with_word("CREATE ROLE @ LOGIN PASSWORD '" SECRET "';"
                  "CREATE ROLE @_poor LOGIN PASSWORD '" SECRET "';"
                  "CREATE SCHEMA @ AUTHORIZATION @; GRANT USAGE ON SCHEMA @ TO @_poor");
    return NULL;
}

static void cut(void)
{
    run_with_word("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                  "WHERE usename IN ('@', '@_poor')");
}

static unsigned n_waiting(void)
{
    const char *word[] = { contract_word() };
    PGconn *connection = connect_as_admin();
    PGresult *result = PQexecParams(connection,
        "SELECT count(DISTINCT l.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
        " WHERE NOT l.granted AND a.usename = $1",
        1, NULL, word, NULL, NULL, 0);
    unsigned number = PQresultStatus(result) == PGRES_TUPLES_OK
        ? (unsigned)strtoul(PQgetvalue(result, 0, 0), NULL, 10)
        : 0;

    PQclear(result);
    PQfinish(connection);
    return number;
}

static void cut_one(unsigned number)
{
    char statement[400];

    (void)snprintf(statement, sizeof statement,
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid, row_number() OVER (ORDER BY pid) AS n,"
        " count(*) OVER () AS total FROM pg_stat_activity WHERE usename = '@') AS s"
        " WHERE n = 1 + %u %% total", number % 1000000);
    run_with_word(statement);
}

static void stop(void)
{
    cut();
    run_with_word("DROP SCHEMA @ CASCADE; DROP OWNED BY @, @_poor; DROP ROLE @, @_poor");
}

static const char *url(enum contract_url which)
{
    return urls[which][0] != 0 ? urls[which] : NULL;
}

static const char *schema(void)
{
    return contract_word();
}

static void drop_tables(void)
{
    run_with_word("DROP SCHEMA @ CASCADE; CREATE SCHEMA @ AUTHORIZATION @;"
                  "GRANT USAGE ON SCHEMA @ TO @_poor");
}

static void set_read_only(int is_read_only)
{
    run_with_word(is_read_only ? "ALTER ROLE @ SET default_transaction_read_only = on"
                               : "ALTER ROLE @ RESET default_transaction_read_only");
}

static void delete_row(int strategy, const char *name)
{
    contract_sql_delete_row(&sql, strategy, name);
}

static void delete_session(int strategy, const char *name)
{
    contract_sql_delete_session(&sql, strategy, name);
}

static void plant(int strategy, const char *name, const char *like)
{
    contract_sql_plant(&sql, strategy, name, like);
}

static void damage_token(const char *name)
{
    contract_sql_damage_token(&sql, name);
}

static void age(const char *name)
{
    contract_sql_age(&sql, name);
}

static void *guard(int strategy, const char *name)
{
    PGconn *connection = connect_as_admin();
    char blob[600];
    char statement[800];

    contract_sql_blob(&sql, name, blob, sizeof blob);
    (void)snprintf(statement, sizeof statement,
        "BEGIN; SELECT token FROM %s%s name = %s FOR SHARE", tables,
        contract_sql_guarded(strategy), blob);
    run_on(connection, statement);
    return connection;
}

static void unguard(void *context)
{
    run_on(context, "COMMIT");
    PQfinish(context);
}

const struct contract_database contract_pgsql = {
    .name = "pgsql",
    .driver = dblock_pgsql_driver,
    .start = start,
    .stop = stop,
    .url = url,
    .schema = schema,
    .port = port,
    .go_to_port = go_to_port,
    .secret = SECRET,
    .row_view = CONTRACT_VIEW_HOLDER,
    .advisory_view = CONTRACT_VIEW_HOLDER,
    .breaks_row = 1,
    .breaks_advisory = 1,
    .needs_tables_for_row = 1,
    .needs_tables_for_advisory = 0,
    .drop_tables = drop_tables,
    .set_read_only = set_read_only,
    .cut = cut,
    .cut_one = cut_one,
    .delete_row = delete_row,
    .delete_session = delete_session,
    .plant = plant,
    .n_waiting = n_waiting,
    .guard = guard,
    .unguard = unguard,
    .damage_token = damage_token,
    .age = age,
};

#else

static const char *start(void)
{
    return "built without the pgsql driver";
}

const struct contract_database contract_pgsql = { .name = "pgsql", .start = start };

#endif
