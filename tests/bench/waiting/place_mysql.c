/* SPDX-License-Identifier: MIT */
/* place_mysql.c - MariaDB: what is compared there, and what its server tells. */
#include <dblock/mysql.h>

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "process_cpu.h"
#include "raw_mysql.h"

static const char pid_variable[] = "DBLOCK_TEST_MYSQL_PIDFILE";

struct watch {
    MYSQL *mysql;
    double n_own; /* questions of our own, besides the one that is asking */
};

static int run_alone(const char *url, const char *text)
{
    MYSQL *mysql = raw_mysql_connect(url);
    int failed = mysql == NULL || mysql_query(mysql, text) != 0;

    if (failed)
        (void)fprintf(stderr, "waiting: mysql: %s\n",
            mysql != NULL ? mysql_error(mysql) : complaint());
    if (mysql != NULL)
        mysql_close(mysql);
    return failed ? -1 : 0;
}

static int begin(const char *url, const char *folder)
{
    (void)folder;
    if (run_alone(url, "DROP TABLE IF EXISTS bench_waiting") != 0)
        return -1;
    return run_alone(url,
        "CREATE TABLE bench_waiting (name varchar(64) CHARACTER SET latin1 PRIMARY KEY,"
        " owner bigint, fence bigint, expires_at datetime(6)) ENGINE=InnoDB");
}

static void end(const char *url, const char *folder)
{
    (void)folder;
    (void)run_alone(url, "DROP TABLE bench_waiting");
}

/* The number in the last column of the first row. */
static int ask(MYSQL *mysql, const char *text, double *ret_value)
{
    MYSQL_RES *rows = mysql_query(mysql, text) == 0 ? mysql_store_result(mysql) : NULL;
    MYSQL_ROW row = rows != NULL ? mysql_fetch_row(rows) : NULL;
    int failed = row == NULL || row[mysql_num_fields(rows) - 1] == NULL;

    if (!failed)
        *ret_value = strtod(row[mysql_num_fields(rows) - 1], NULL);
    if (rows != NULL)
        mysql_free_result(rows);
    return failed ? -1 : 0;
}

static int is_durable(const char *url)
{
    MYSQL *mysql = raw_mysql_connect(url);
    double value = 0;

    if (mysql == NULL)
        return 0;
    (void)ask(mysql, "SELECT @@innodb_flush_log_at_trx_commit", &value);
    mysql_close(mysql);
    return value == 1.0;
}

static void *watch_open(const char *url, const struct stage *stage)
{
    struct watch *watch = calloc(1, sizeof *watch);

    (void)stage;
    if (watch == NULL || (watch->mysql = raw_mysql_connect(url)) != NULL)
        return watch;
    (void)fprintf(stderr, "waiting: mysql: %s\n", complaint());
    free(watch);
    return NULL;
}

static void watch_close(void *context)
{
    struct watch *watch = context;

    mysql_close(watch->mysql);
    free(watch);
}

static int watch_read(void *context, struct reading *ret_reading)
{
    struct watch *watch = context;
    long pid = place_pid(pid_variable);

    /* the time that looking takes is in it: some 0.1 ms each */
    if (ask(watch->mysql, "SHOW GLOBAL STATUS LIKE 'Questions'", &ret_reading->statements) != 0) {
        (void)fprintf(stderr, "waiting: mysql: %s\n", mysql_error(watch->mysql));
        return -1;
    }
    ret_reading->statements -= ++watch->n_own;
    ret_reading->snapshot_ms = -1;
    ret_reading->cpu_ms = pid != 0 ? process_tree_cpu_ms((pid_t)pid, 0) : -1;
    ret_reading->log_lines = place_log_lines(pid_variable);
    return 0;
}

#define RAW(text, kind)                                                                            \
    { text, 0, kind, raw_mysql_open, NULL, raw_mysql_acquire, raw_mysql_release, raw_mysql_close }

/* What is compared stands near what it is compared with, as turns are in this order. */
enum { ADVISORY, AGAIN, OUR_ADVISORY, ROW, OUR_ROW, GATE };

const struct place waiting_mysql = {
    .name = "MariaDB",
    .variable = "DBLOCK_TEST_MYSQL_SOCKET",
    .pid_variable = pid_variable,
    .driver = dblock_mysql_driver,
    .contenders = {
        [ADVISORY] = { .mechanism = RAW("raw GET_LOCK", RAW_ADVISORY), .against = -1,
            .melee_against = -1 },
        [AGAIN] = { .mechanism = RAW("raw GET_LOCK again", RAW_ADVISORY), .against = ADVISORY,
            .melee_against = ADVISORY },
        [OUR_ADVISORY] = { .mechanism = THROUGH_LIBRARY("advisory", DBLOCK_ADVISORY),
            .against = ADVISORY, .melee_against = ADVISORY, .goal = 1.15 },
        [ROW] = { .mechanism = RAW("raw row", RAW_ROW), .against = -1, .melee_against = -1 },
        [OUR_ROW] = { .mechanism = THROUGH_LIBRARY("row", DBLOCK_ROW), .against = ROW,
            .melee_against = ROW, .goal = 1.15 },
        [GATE] = { .mechanism = RAW("raw held gate", RAW_GATE), .against = -1,
            .melee_against = -1, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("lease", DBLOCK_LEASE), .against = GATE,
            .melee_against = GATE, .goal = 1.5, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("insert", DBLOCK_INSERT), .against = GATE,
            .melee_against = GATE, .goal = 1.5, .is_lasting = 1 },
    },
    .durable_pair = RAW("raw durable pair", RAW_PAIR),
    .settle_ms = 2000,
    .begin = begin,
    .end = end,
    .is_durable = is_durable,
    .watch_open = watch_open,
    .watch_read = watch_read,
    .watch_close = watch_close,
};
