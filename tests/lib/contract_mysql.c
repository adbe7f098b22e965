/* SPDX-License-Identifier: MIT */
/* contract_mysql.c - the contract suite on MySQL and MariaDB: a user and a
 * database of its own, made and removed over DBLOCK_TEST_MYSQL_ADMIN. As the user
 * is nobody else's, its sessions can be ended without asking whose they are. */
#include "contract_database.h"

#include <stdlib.h>

#ifdef DBLOCK_TEST_HAS_MYSQL

#include <mysql.h>
#include <stdio.h>
#include <string.h>

#include <dblock/mysql.h>

#include "contract_silent.h"
#include "contract_sql.h"

#define SECRET "never-print-me"

/* The parts of mysql://user:password@host:port/database; all that ci/services makes. */
struct server {
    char user[64];
    char password[64];
    char host[128];
    unsigned port;
};

static struct server admin;
static struct server server;
static char tables[48];
static char urls[CONTRACT_URL_MALFORMED + 1][512];
static struct contract_sql sql = { .blob_begin = "x'",
    .blob_end = "'",
    .tables = tables,
    .two_hours = "7200000000",
    .row_time = "created" };

static int parse(const char *text, struct server *parsed)
{
    memset(parsed, 0, sizeof *parsed);
    return text != NULL && sscanf(text, "mysql://%63[^:@]:%63[^@]@%127[^:/]:%u/", parsed->user,
                               parsed->password, parsed->host, &parsed->port) == 4;
}

static MYSQL *connect_as_admin(void)
{
    MYSQL *connection = mysql_init(NULL);

    if (connection == NULL || mysql_real_connect(connection, admin.host, admin.user, admin.password,
                                  NULL, admin.port, NULL, CLIENT_MULTI_STATEMENTS) == NULL) {
        (void)fprintf(stderr, "contract_mysql: %s\n",
            connection != NULL ? mysql_error(connection) : "no memory");
        abort();
    }
    return connection;
}

static void run_on(MYSQL *connection, const char *statements)
{
    int more = mysql_query(connection, statements);

    while (more == 0) {
        mysql_free_result(mysql_store_result(connection));
        if (mysql_errno(connection) != 0)
            break;
        more = mysql_next_result(connection);
    }
    if (mysql_errno(connection) != 0) {
        (void)fprintf(stderr, "contract_mysql: %s: %s\n", statements, mysql_error(connection));
        abort();
    }
}

static void run(const char *statements)
{
    MYSQL *connection = connect_as_admin();

    run_on(connection, statements);
    mysql_close(connection);
}

/* The words of the statement in which ~ is the word of this process, and & the poor user. */
static void run_with_word(const char *format)
{
    char statement[2048];
    size_t length = 0;
    const char *part;

    for (part = format; *part != 0 && length + 64 < sizeof statement; ++part)
        if (*part == '~' || *part == '&')
            length += (size_t)snprintf(statement + length, sizeof statement - length, "%s%s",
                *part == '&' ? "p" : "", contract_word());
        else
            statement[length++] = *part;
    statement[length] = 0;
    run(statement);
}

static void make_urls(void)
{
    const char *word = contract_word();

    (void)snprintf(urls[CONTRACT_URL], sizeof urls[0], "mysql://%s:" SECRET "@%s:%u/%s", word,
        server.host, server.port, word);
    (void)snprintf(urls[CONTRACT_URL_PASSWORD], sizeof urls[0], "mysql://%s:wrong-word@%s:%u/%s",
        word, server.host, server.port, word);
    (void)snprintf(urls[CONTRACT_URL_POOR], sizeof urls[0], "mysql://p%s:" SECRET "@%s:%u/%s", word,
        server.host, server.port, word);
    (void)snprintf(urls[CONTRACT_URL_UNREACHABLE], sizeof urls[0],
        "mysql://someone:" SECRET "@127.0.0.1:1/nowhere");
    (void)snprintf(urls[CONTRACT_URL_SILENT], sizeof urls[0],
        "mysql://someone:" SECRET "@127.0.0.1:%d/nowhere", contract_silent_port());
    (void)snprintf(urls[CONTRACT_URL_MALFORMED], sizeof urls[0],
        "mysql://someone:" SECRET "@127.0.0.1:port/nowhere");
}

static void go_to_node(unsigned number)
{
    char nodes[3][256];
    struct server node;
    const char *text = getenv("DBLOCK_TEST_GALERA");
    int n = text != NULL ? sscanf(text, "%255s %255s %255s", nodes[0], nodes[1], nodes[2]) : 0;
    int i;

    for (i = 0; i < n; ++i)
        if (strcmp(nodes[i], getenv("DBLOCK_TEST_MYSQL")) == 0)
            break;
    if (i >= n || !parse(nodes[number % (unsigned)n], &node))
        return;
    server.port = node.port;
    (void)snprintf(server.host, sizeof server.host, "%s", node.host);
    make_urls();
}

static unsigned port(void)
{
    return server.port;
}

static void go_to_port(unsigned number)
{
    server.port = number;
    make_urls();
}

static const char *start(void)
{
    if (!parse(getenv("DBLOCK_TEST_MYSQL"), &server) ||
        !parse(getenv("DBLOCK_TEST_MYSQL_ADMIN"), &admin))
        return "DBLOCK_TEST_MYSQL and DBLOCK_TEST_MYSQL_ADMIN name no server (ci/services)";
    make_urls();
    (void)snprintf(tables, sizeof tables, "%s.", contract_word());
    sql.run = run;
    run_with_word("CREATE DATABASE ~;"
                  "CREATE USER '~'@'%' IDENTIFIED BY '" SECRET "';"
                  "CREATE USER '&'@'%' IDENTIFIED BY '" SECRET "';"
                  "GRANT ALL ON ~.* TO '~'@'%';");
    return NULL;
}

/* Those of this name: KILL takes no subquery. The tables of this name fail on MySQL while
 * anybody's statement is not text; SHOW does not. */
static size_t list_sessions(MYSQL *connection, char (*ids)[24], size_t max)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    size_t n = 0;

    if (mysql_query(connection, "SHOW PROCESSLIST") != 0 ||
        (result = mysql_store_result(connection)) == NULL) {
        (void)fprintf(stderr, "contract_mysql: %s\n", mysql_error(connection));
        abort();
    }
    while (n < max && (row = mysql_fetch_row(result)) != NULL)
        if (strcmp(row[1], contract_word()) == 0)
            (void)snprintf(ids[n++], sizeof *ids, "%s", row[0]);
    mysql_free_result(result);
    return n;
}

/* It may have gone by itself. */
static void end_session(MYSQL *connection, const char *id)
{
    char statement[64];

    (void)snprintf(statement, sizeof statement, "KILL %s", id);
    (void)mysql_query(connection, statement);
}

static void cut(void)
{
    MYSQL *connection = connect_as_admin();
    char ids[500][24];
    size_t n = list_sessions(connection, ids, sizeof ids / sizeof ids[0]);

    while (n > 0)
        end_session(connection, ids[--n]);
    mysql_close(connection);
}

static void cut_one(unsigned number)
{
    MYSQL *connection = connect_as_admin();
    char ids[500][24];
    size_t n = list_sessions(connection, ids, sizeof ids / sizeof ids[0]);

    if (n > 0)
        end_session(connection, ids[number % n]);
    mysql_close(connection);
}

static void stop(void)
{
    run_with_word("DROP DATABASE ~; DROP USER '~'@'%', '&'@'%'");
}

static const char *url(enum contract_url which)
{
    /* rights are on tables, and go with them */
    if (which == CONTRACT_URL_POOR)
        run_with_word("CREATE TABLE IF NOT EXISTS ~.dblock_meta (id TINYINT NOT NULL PRIMARY KEY, "
                      "version INT NOT NULL) ENGINE = InnoDB;"
                      "GRANT SELECT ON ~.dblock_meta TO '&'@'%'");
    return urls[which][0] != 0 ? urls[which] : NULL;
}

static void drop_tables(void)
{
    run_with_word("DROP TABLE IF EXISTS ~.dblock_lease, ~.dblock_insert, ~.dblock_session, "
                  "~.dblock_row, ~.dblock_token, ~.dblock_floor, ~.dblock_meta");
}

/* For all users of the server but those with SUPER: there is nothing smaller. */
static void set_read_only(int is_read_only)
{
    run(is_read_only ? "SET GLOBAL read_only = 1" : "SET GLOBAL read_only = 0");
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
    MYSQL *connection = connect_as_admin();
    char blob[600];
    char statement[800];

    contract_sql_blob(&sql, name, blob, sizeof blob);
    (void)snprintf(statement, sizeof statement,
        "START TRANSACTION; SELECT token FROM %s%s name = %s LOCK IN SHARE MODE", tables,
        contract_sql_guarded(strategy), blob);
    run_on(connection, statement);
    return connection;
}

static void unguard(void *context)
{
    run_on(context, "COMMIT");
    mysql_close(context);
}

const struct contract_database contract_mysql = {
    .name = "mysql",
    .driver = dblock_mysql_driver,
    .start = start,
    .stop = stop,
    .url = url,
    .go_to_node = go_to_node,
    .port = port,
    .go_to_port = go_to_port,
    .secret = SECRET,
    .row_view = CONTRACT_VIEW_NAME,
    .advisory_view = CONTRACT_VIEW_NAME,
    .breaks_advisory = 1,
    .needs_tables_for_row = 1,
    .needs_tables_for_advisory = 0,
    .has_one_setting_for_all = 1,
    .drop_tables = drop_tables,
    .set_read_only = set_read_only,
    .cut = cut,
    .cut_one = cut_one,
    .delete_row = delete_row,
    .delete_session = delete_session,
    .plant = plant,
    .guard = guard,
    .unguard = unguard,
    .damage_token = damage_token,
    .age = age,
};

#else

static const char *start(void)
{
    return "built without the mysql driver";
}

const struct contract_database contract_mysql = { .name = "mysql", .start = start };

#endif
