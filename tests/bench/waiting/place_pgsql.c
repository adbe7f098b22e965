/* SPDX-License-Identifier: MIT */
/* place_pgsql.c - PostgreSQL: what is compared there, and what its server tells.
 *
 * The server is watched from another of its databases, so that looking is not among the
 * transactions that are counted. */
#include <dblock/pgsql.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "process_cpu.h"
#include "raw_pgsql.h"

static const char pid_variable[] = "DBLOCK_TEST_PGSQL_PIDFILE";

struct watch {
    PGconn *pg;
    char database[64];
};

static int run_one(PGconn *pg, const char *text)
{
    PGresult *result = PQexec(pg, text);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    (void)fprintf(stderr, "waiting: libpq: %s", PQerrorMessage(pg));
    return -1;
}

static int run_alone(const char *url, const char *text)
{
    PGconn *pg = PQconnectdb(url);
    int failed = run_one(pg, text);

    PQfinish(pg);
    return failed;
}

static int begin(const char *url, const char *folder)
{
    (void)folder;
    return run_alone(url,
        "SET client_min_messages = warning;"
        "DROP TABLE IF EXISTS bench_waiting;"
        "CREATE TABLE bench_waiting (name text PRIMARY KEY, owner int, fence bigint,"
        " expires_at timestamptz) WITH (fillfactor = 50)");
}

static void end(const char *url, const char *folder)
{
    (void)folder;
    (void)run_alone(url, "DROP TABLE bench_waiting");
}

static int is_durable(const char *url)
{
    PGconn *pg = PQconnectdb(url);
    PGresult *result = PQexec(pg,
        "SELECT current_setting('fsync') = 'on'"
        " AND current_setting('synchronous_commit') <> 'off'");
    int answer = PQresultStatus(result) == PGRES_TUPLES_OK && PQgetvalue(result, 0, 0)[0] == 't';

    PQclear(result);
    PQfinish(pg);
    return answer;
}

static void watch_close(void *context)
{
    struct watch *watch = context;

    PQfinish(watch->pg);
    free(watch);
}

static void *watch_open(const char *url, const struct stage *stage)
{
    /* the first dbname is the whole URL, the second overrules what it says of that */
    const char *keys[] = { "dbname", "dbname", NULL };
    const char *values[] = { url, "postgres", NULL };
    struct watch *watch = calloc(1, sizeof *watch);
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    PQconninfoOption *option;

    (void)stage;
    if (watch == NULL)
        return NULL;
    for (option = options; option != NULL && option->keyword != NULL; ++option)
        if (strcmp(option->keyword, "dbname") == 0 && option->val != NULL)
            (void)snprintf(watch->database, sizeof watch->database, "%s", option->val);
    PQconninfoFree(options);
    watch->pg = PQconnectdbParams(keys, values, 1);
    if (PQstatus(watch->pg) == CONNECTION_OK)
        return watch;
    (void)fprintf(stderr, "waiting: libpq: %s", PQerrorMessage(watch->pg));
    watch_close(watch);
    return NULL;
}

static int watch_read(void *context, struct reading *ret_reading)
{
    struct watch *watch = context;
    const char *values[] = { watch->database };
    long pid = place_pid(pid_variable);
    PGresult *result = PQexecParams(watch->pg,
        "SELECT (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1),"
        " (SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)) * 1000, 0)"
        "  FROM pg_stat_activity WHERE datname = $1 AND backend_xmin IS NOT NULL)",
        1, NULL, values, NULL, NULL, 0);
    int failed = PQresultStatus(result) != PGRES_TUPLES_OK;

    if (failed) {
        (void)fprintf(stderr, "waiting: libpq: %s", PQerrorMessage(watch->pg));
    } else {
        ret_reading->statements = strtod(PQgetvalue(result, 0, 0), NULL);
        ret_reading->snapshot_ms = strtod(PQgetvalue(result, 0, 1), NULL);
    }
    PQclear(result);
    ret_reading->cpu_ms =
        pid != 0 ? process_tree_cpu_ms((pid_t)pid, (pid_t)PQbackendPID(watch->pg)) : -1;
    ret_reading->log_lines = place_log_lines(pid_variable);
    return failed ? -1 : 0;
}

#define RAW(text, kind)                                                                            \
    { text, 0, kind, raw_pgsql_open, NULL, raw_pgsql_acquire, raw_pgsql_release, raw_pgsql_close }

/* What is compared stands near what it is compared with, as turns are in this order. */
enum { ADVISORY, AGAIN, OUR_ADVISORY, ROW, OUR_ROW, GATE };

const struct place waiting_pgsql = {
    .name = "PostgreSQL",
    .variable = "DBLOCK_TEST_PGSQL",
    .pid_variable = pid_variable,
    .driver = dblock_pgsql_driver,
    .contenders = {
        [ADVISORY] = { .mechanism = RAW("raw advisory", RAW_ADVISORY), .against = -1,
            .melee_against = -1 },
        [AGAIN] = { .mechanism = RAW("raw advisory again", RAW_ADVISORY), .against = ADVISORY,
            .melee_against = ADVISORY },
        [OUR_ADVISORY] = { .mechanism = THROUGH_LIBRARY("advisory", DBLOCK_ADVISORY),
            .against = ADVISORY, .melee_against = ADVISORY, .goal = 1.15 },
        [ROW] = { .mechanism = RAW("raw row", RAW_ROW), .against = -1, .melee_against = -1 },
        [OUR_ROW] = { .mechanism = THROUGH_LIBRARY("row", DBLOCK_ROW), .against = ROW,
            .melee_against = ROW, .goal = 1.15 },
        [GATE] = { .mechanism = { "raw gate", 0, RAW_GATE, raw_pgsql_open, NULL,
                       raw_pgsql_gate_acquire, raw_pgsql_gate_release, raw_pgsql_close },
            .against = -1, .melee_against = -1, .is_melee_only = 1, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("lease", DBLOCK_LEASE), .against = ADVISORY,
            .melee_against = GATE, .goal = 2.2, .goal_durable = 5, .goal_growth = 1.5,
            .goal_cpu_growth = 1.6, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("insert", DBLOCK_INSERT), .against = ADVISORY,
            .melee_against = GATE, .goal = 2.2, .goal_durable = 5, .goal_growth = 1.5,
            .goal_cpu_growth = 1.6, .is_lasting = 1 },
    },
    .durable_pair = RAW("raw durable pair", RAW_PAIR),
    .is_idle_by_cpu = 1,
    /* a session that has become idle tells of its last transactions after 10 s */
    .settle_ms = 11000,
    .begin = begin,
    .end = end,
    .is_durable = is_durable,
    .watch_open = watch_open,
    .watch_read = watch_read,
    .watch_close = watch_close,
};
