/* SPDX-License-Identifier: MIT */
/* mysql_check.c - what on this server would hurt: facts by sql/check.sql, judged here. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_observe.h"
#include "mysql_sql.h"
#include "mysql_text.h"

enum {
    RECORDED = 1 << DBLOCK_LEASE | 1 << DBLOCK_INSERT,
    LIVE = 1 << DBLOCK_ROW | 1 << DBLOCK_ADVISORY,
    ALL = RECORDED | LIVE,

    GOOD = DBLOCK_FINDING_GOOD,
    WARNING = DBLOCK_FINDING_WARNING,
    UNUSABLE = DBLOCK_FINDING_UNUSABLE
};

struct examination {
    struct dblock_connection *connection;
    const struct dblock_call *call;
    dblock_finding_fn fn;
    void *context;
    int is_over; /* `fn` wants no more */
    unsigned int code;
    struct mysql_text_answer facts; /* of the last question */
};

static void tell(struct examination *examination, int severity, uint32_t strategies,
    const char *id, const char *remedy, const char *format, ...) DBLOCK_PRINTF_(6, 7);

static void tell(struct examination *examination, int severity, uint32_t strategies,
    const char *id, const char *remedy, const char *format, ...)
{
    char text[512];
    const struct dblock_finding finding = { sizeof finding, severity, strategies, id, text,
        remedy };
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!examination->is_over)
        examination->is_over = examination->fn(&finding, examination->context) != 0;
}

/* Facts that the server does not have, or does not show to this user, are left out. What ends the
 * connection ends the examination. */
static int ask(struct examination *examination, const char *sql)
{
    if (examination->is_over || examination->code != 0)
        return 0;
    examination->code =
        mysql_text_run(examination->connection, sql, examination->call, 0, 0, &examination->facts);
    if (examination->code != 0 && !examination->connection->is_dead) {
        examination->code = 0;
        return 0;
    }
    return examination->code == 0 && examination->facts.has_row;
}

static int is(const struct examination *examination, int column, const char *value)
{
    return strcmp(examination->facts.values[column], value) == 0;
}

static long long number(const struct examination *examination, int column)
{
    return mysql_bound(strtoll(examination->facts.values[column], NULL, 10));
}

static void judge_version(struct examination *examination, const char *version)
{
    const struct dblock_connection *connection = examination->connection;
    unsigned int oldest = connection->is_mariadb ? 100300 : 50720;

    if (connection->version < oldest)
        tell(examination, UNUSABLE, ALL, "version", "upgrade the server",
            "%s is older than what dblock knows (MariaDB 10.3, MySQL 5.7.20)", version);
    else if (!connection->has_nowait)
        tell(examination, WARNING, 1 << DBLOCK_ROW, "version", "upgrade to MySQL 8 or later",
            "MySQL %s has no NOWAIT: a try for a row lock that is held takes a second", version);
    else
        tell(examination, GOOD, ALL, "version", "", "%s %s",
            connection->is_mariadb ? "MariaDB" : "MySQL", version);
}

static void judge_server(struct examination *examination)
{
    char remedy[128];
    long long used, most;

    if (!ask(examination, mysql_sql_check_server))
        return;
    judge_version(examination, examination->facts.values[0]);
    if (is(examination, 1, "0"))
        tell(examination, GOOD, ALL, "writable", "", "the server may be written to");
    else
        tell(examination, UNUSABLE, ALL, "writable",
            "connect to the primary; if this is the primary: SET GLOBAL read_only = 0",
            "the server is read-only, as a replica is: nothing can be taken, and its advisory"
            " locks exclude nobody on the primary");
    used = number(examination, 2);
    most = number(examination, 3);
    (void)snprintf(remedy, sizeof remedy, "SET GLOBAL max_connections = %lld", 2 * most);
    tell(examination, used * 5 > most * 4 ? WARNING : GOOD, ALL, "connections",
        used * 5 > most * 4 ? remedy : "", "%lld of %lld connections are in use", used, most);
    tell(examination, GOOD, ALL, "time-zone", "",
        "times are absolute: the time zone %s does not matter", examination->facts.values[4]);
}

static void judge_proxy(struct examination *examination)
{
    if (examination->connection->has_line)
        tell(examination, GOOD, ALL, "pooler", "", "the connection leads to the server itself");
    else
        tell(examination, WARNING, ALL, "pooler", "give dblock a URL that leads to the server itself",
            "something stands between that lends out connections of its own: advisory is refused,"
            " row locks may be somebody else's, and who waits looks instead of being woken");
}

static void judge_durability(struct examination *examination)
{
    int is_logged;

    if (!ask(examination, mysql_sql_check_durability))
        return;
    is_logged = is(examination, 2, "1");
    if (!is(examination, 0, "1"))
        tell(examination, WARNING, RECORDED, "durability",
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
            "a commit is told before it is on the disk (innodb_flush_log_at_trx_commit = %s): after"
            " a crash tokens may go back, and two may hold one name", examination->facts.values[0]);
    else if (is_logged && !is(examination, 3, "1"))
        tell(examination, WARNING, RECORDED, "durability", "SET GLOBAL sync_binlog = 1",
            "the binary log is flushed late (sync_binlog = %s): after a crash a replica may have"
            " other grants than this server", examination->facts.values[3]);
    else
        tell(examination, GOOD, RECORDED, "durability", "",
            "a grant is on the disk before it is told");
    if (is_logged && is(examination, 4, "STATEMENT"))
        tell(examination, UNUSABLE, RECORDED, "binlog-format", "SET GLOBAL binlog_format = 'ROW'",
            "binlog_format is STATEMENT: InnoDB refuses each write of a READ COMMITTED transaction"
            " (error 1665)");
}

static void judge_replication(struct examination *examination)
{
    const struct dblock_connection *connection = examination->connection;
    int is_waited_for =
        ask(examination, mysql_sql_check_semisync) && is(examination, 0, "1");
    long long n_replicas;

    if (!ask(examination, connection->is_mariadb || connection->version < 80022
                ? mysql_sql_check_dumps
                : mysql_sql_check_dumps_8))
        return;
    n_replicas = number(examination, 0);
    if (n_replicas == 0)
        tell(examination, GOOD, RECORDED, "replication", "", "no replica is seen to follow");
    else if (is_waited_for)
        tell(examination, GOOD, RECORDED, "replication", "",
            "a replica has each grant before it is told");
    else
        tell(examination, WARNING, RECORDED, "replication",
            connection->is_mariadb
                ? "SET GLOBAL rpl_semi_sync_master_enabled = 1 (and the same of the replicas)"
                : "semi-synchronous replication",
            "%lld replica(s) follow, none is waited for: a fail-over may forget the last grants, and"
            " another may get them before their holders know", n_replicas);
}

static void judge_isolation(struct examination *examination)
{
    if (!ask(examination,
            examination->connection->is_mariadb ? mysql_sql_check_isolation
                                                : mysql_sql_check_isolation_8))
        return;
    if (is(examination, 0, "READ-COMMITTED"))
        tell(examination, GOOD, ALL, "isolation", "", "transactions begin at READ COMMITTED");
    else /* the default of InnoDB: no warning, or every server would have one */
        tell(examination, GOOD, ALL, "isolation", "",
            "transactions begin at %s: not dblock's, but take the lock before you begin yours, or"
            " it does not see what the last holder wrote", examination->facts.values[0]);
    if (ask(examination, mysql_sql_check_deadlocks) && is(examination, 0, "0"))
        tell(examination, WARNING, ALL, "deadlocks", "SET GLOBAL innodb_deadlock_detect = ON",
            "deadlocks are not looked for: those who meet in one wait out their time");
}

static void judge_tables(struct examination *examination)
{
    char remedy[400];
    const char *table = examination->facts.values[0];
    const char *what = examination->facts.values[1];

    if (ask(examination, mysql_sql_check_columns))
        tell(examination, UNUSABLE, ALL, "columns",
            "drop the dblock_ tables while nobody locks, and run: dblock init",
            "%s.%s is %s: names would not be compared byte by byte, or numbers be cut", table,
            what, examination->facts.values[2]);
    if (ask(examination, mysql_sql_check_engine)) {
        (void)snprintf(remedy, sizeof remedy, "ALTER TABLE %s ENGINE = InnoDB", table);
        tell(examination, UNUSABLE, ALL, "engine", remedy,
            "%s is %s: it has no transactions, and no locks of rows", table, what);
    }
    if (ask(examination, mysql_sql_check_index)) {
        (void)snprintf(remedy, sizeof remedy, "DROP INDEX `%s` ON %s", what, table);
        tell(examination, WARNING, RECORDED, "index", remedy,
            "%s has an index more, %s: each grant or heartbeat writes it, and takes may meet in"
            " deadlocks", table, what);
    }
    if (ask(examination, mysql_sql_check_trigger)) {
        (void)snprintf(remedy, sizeof remedy, "DROP TRIGGER `%s`", what);
        tell(examination, WARNING, RECORDED, "trigger", remedy,
            "%s has a trigger, %s: it runs within each grant, what it raises fails it, and the token may"
            " take a second statement", table, what);
    }
    if (ask(examination, mysql_sql_check_size)) {
        long long size_mib = number(examination, 1);

        (void)snprintf(remedy, sizeof remedy, "OPTIMIZE TABLE %s while nobody locks", table);
        if (size_mib > 16 && size_mib > number(examination, 2) / 100)
            tell(examination, WARNING, RECORDED, "bloat", remedy,
                "%s takes %lld MiB for about %s rows", table, size_mib,
                examination->facts.values[2]);
    }
}

static void judge_old_transaction(struct examination *examination)
{
    char remedy[160];

    if (!ask(examination, mysql_sql_check_old_transaction))
        return;
    (void)snprintf(remedy, sizeof remedy, "KILL %s", examination->facts.values[0]);
    tell(examination, WARNING, RECORDED, "old-transaction", remedy,
        "connection %s has had a transaction open since %s UTC: old versions of rows are kept for"
        " it, and each heartbeat and grant makes some",
        examination->facts.values[0], examination->facts.values[1]);
}

static void judge_cluster(struct examination *examination)
{
    const char *name = examination->connection->multi_writer;

    if (!examination->connection->is_multi_writer)
        return;
    tell(examination, WARNING, LIVE, "cluster", "use strategy lease or insert",
        "this is a node of %s: row and advisory are refused, as they exclude nobody on the other"
        " nodes", name);
    tell(examination, WARNING, RECORDED, "cluster-clocks",
        "let all nodes follow one time server (NTP); a skew must stay below an eighth of the ttl",
        "each node of %s judges by its own clock", name);
    if (examination->connection->is_mariadb && ask(examination, mysql_sql_check_cluster) &&
        !is(examination, 1, "ON"))
        tell(examination, UNUSABLE, ALL, "cluster-ready",
            "look at wsrep_cluster_status, and let the node join again",
            "this node is not ready: it is cut off from the cluster, or is still joining it");
}

static void judge_rights(struct examination *examination)
{
    if (!ask(examination, mysql_sql_check_rights))
        return;
    if (number(examination, 0) > 0)
        tell(examination, GOOD, 1 << DBLOCK_ADVISORY, "observers", "",
            "this user sees the connections of others");
    else
        tell(examination, GOOD, 1 << DBLOCK_ADVISORY, "observers", "",
            "show and list do not tell the host of other users' advisory locks (unless GRANT"
            " PROCESS)");
}

dblock_status mysql_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    static void (*const judges[])(struct examination *) = { judge_server, judge_proxy,
        judge_durability, judge_replication, judge_isolation, judge_cluster, judge_tables,
        judge_old_transaction, judge_rights };
    struct examination examination = { .connection = connection, .call = call, .fn = fn,
        .context = context };
    size_t i;

    for (i = 0; i < sizeof judges / sizeof judges[0]; ++i)
        judges[i](&examination);
    if (examination.code != 0)
        return mysql_fail(connection, reterr, "cannot look at the server");
    answer->outcome = DBLOCK_ANSWER_YES;
    return DBLOCK_OK;
}
