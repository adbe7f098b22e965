/* SPDX-License-Identifier: MIT */
/* contenders.c - who is compared with whom. */
#include <string.h>

#include "peers.h"

#define PYTHON(kind)                                                                               \
    .words = { "/usr/bin/python3", "tests/bench/peers/peers.py", kind, NULL }
#define NODE(kind)                                                                                 \
    .words = { "node", "tests/bench/peers/peers.js", kind, NULL }
/* A side that was not built is a program that is not there. */
#define NOT_BUILT .words = { "(not built)", NULL }

#ifdef DBLOCK_TEST_HAS_SQLITE
#define OUR_SQLITE .side = &side_our_sqlite
#else
#define OUR_SQLITE NOT_BUILT
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
#define OUR_PGSQL .side = &side_our_pgsql
#define THREE_PGSQL .side = &side_three_pgsql
#define HAND_PGSQL .side = &side_advisory_pgsql
#else
#define OUR_PGSQL NOT_BUILT
#define THREE_PGSQL NOT_BUILT
#define HAND_PGSQL NOT_BUILT
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
#define OUR_MYSQL .side = &side_our_mysql
#define THREE_MYSQL .side = &side_three_mysql
#define HAND_MYSQL .side = &side_advisory_mysql
#else
#define OUR_MYSQL NOT_BUILT
#define THREE_MYSQL NOT_BUILT
#define HAND_MYSQL NOT_BUILT
#endif
#ifdef DBLOCK_BENCH_HAS_HIREDIS
#define HIREDIS .side = &side_hiredis
#else
#define HIREDIS NOT_BUILT
#endif

static const char pg[] = "PostgreSQL";
static const char my[] = "MariaDB";
static const char redis[] = "Redis";
static const char zookeeper[] = "ZooKeeper";
static const char pg_url[] = "DBLOCK_TEST_PGSQL_TCP";
static const char my_url[] = "DBLOCK_TEST_MYSQL";
static const char redis_url[] = "BENCH_REDIS";
static const char zookeeper_url[] = "BENCH_ZOOKEEPER";

/* In this order they have their turns: who is compared stands near whom. */
const struct contender peers_contenders[] = {
    { "dblock lease, SQLite", "SQLite file", "no", "TMPDIR", OUR_SQLITE, .argument = "lease",
        .is_ours = 1 },
    { "dblock lease, PostgreSQL", pg, "yes", pg_url, OUR_PGSQL, .argument = "lease",
        .is_ours = 1 },
    { "dblock lease, MariaDB", my, "yes", my_url, OUR_MYSQL, .argument = "lease", .is_ours = 1 },
    { "dblock row, PostgreSQL", pg, "no", pg_url, OUR_PGSQL, .argument = "row", .is_ours = 1 },
    { "BEGIN, SELECT FOR UPDATE, COMMIT (C), PostgreSQL", pg, "no", pg_url, THREE_PGSQL,
        .argument = pg_url },
    { "dblock row, MariaDB", my, "no", my_url, OUR_MYSQL, .argument = "row", .is_ours = 1 },
    { "BEGIN, SELECT FOR UPDATE, COMMIT (C), MariaDB", my, "no", my_url, THREE_MYSQL,
        .argument = my_url },
    { "GET_LOCK by hand (C)", my, "no", my_url, HAND_MYSQL, .argument = my_url },
    { "dblock advisory, MariaDB", my, "no", my_url, OUR_MYSQL, .argument = "advisory",
        .is_ours = 1 },
    { "SET NX PX and script (C, hiredis)", redis, "no", redis_url, HIREDIS,
        .argument = redis_url },
    { "dblock advisory, PostgreSQL", pg, "no", pg_url, OUR_PGSQL, .argument = "advisory",
        .is_ours = 1 },
    { "pg_advisory_lock by hand (C, libpq)", pg, "no", pg_url, HAND_PGSQL, .argument = pg_url },
    { "pg_advisory_lock by hand (Python, psycopg2)", pg, "no", pg_url, PYTHON("psycopg2") },
    { "pg_advisory_lock by hand (Node.js, pg)", pg, "no", pg_url, NODE("pg") },
    { "GET_LOCK by hand (Node.js, mysql2)", my, "no", my_url, NODE("mysql2") },
    { "redis-py Lock (Python)", redis, "no", redis_url, PYTHON("redis-py") },
    { "redlock (Node.js, one server)", redis, "no", redis_url, NODE("redlock") },
    { "redis-semaphore Mutex (Node.js)", redis, "no", redis_url, NODE("redis-semaphore") },
    { "tooz, Redis (Python)", redis, "no", redis_url, PYTHON("tooz-redis") },
    { "tooz, MySQL (Python)", my, "no", my_url, PYTHON("tooz-mysql") },
    { "tooz, PostgreSQL (Python)", pg, "no", pg_url, PYTHON("tooz-postgresql") },
    { "advisory-lock (Node.js)", pg, "no", pg_url, NODE("advisory-lock") },
    { "kazoo Lock (Python)", zookeeper, "yes", zookeeper_url, PYTHON("kazoo") },
    { "tooz, ZooKeeper (Python)", zookeeper, "yes", zookeeper_url, PYTHON("tooz-zookeeper") },
    { "dblock run, PostgreSQL (command)", pg, "yes", "BENCH_DBLOCK", .side = &side_program,
        .argument = "$BENCH_DBLOCK run -n -d $DBLOCK_TEST_PGSQL_TCP bench-command -- true",
        .is_ours = 1, .is_command = 1 },
    { "etcdctl lock (command)", "etcd", "yes", "BENCH_ETCD", .side = &side_program,
        .argument = "etcdctl --endpoints $BENCH_ETCD lock bench-command true", .is_command = 1 },
    { .name = NULL }
};

const struct rivalry peers_rivalries[] = {
    { "dblock row, PostgreSQL", "BEGIN, SELECT FOR UPDATE, COMMIT (C), PostgreSQL", 0.85 },
    { "dblock row, MariaDB", "BEGIN, SELECT FOR UPDATE, COMMIT (C), MariaDB", 0.70 },
    { "dblock advisory, PostgreSQL", "SET NX PX and script (C, hiredis)", 0.90 },
    { "dblock advisory, MariaDB", "SET NX PX and script (C, hiredis)", 0.90 },
    { "dblock advisory, PostgreSQL", "pg_advisory_lock by hand (C, libpq)", 0 },
    { "dblock advisory, MariaDB", "GET_LOCK by hand (C)", 0 },
    { "pg_advisory_lock by hand (C, libpq)", "SET NX PX and script (C, hiredis)", 0 },
    { "GET_LOCK by hand (C)", "SET NX PX and script (C, hiredis)", 0 },
    { "dblock advisory, PostgreSQL", "pg_advisory_lock by hand (Python, psycopg2)", 0.90 },
    { "dblock advisory, PostgreSQL", "pg_advisory_lock by hand (Node.js, pg)", 0.70 },
    { "dblock advisory, MariaDB", "GET_LOCK by hand (Node.js, mysql2)", 0 },
    { "dblock advisory, PostgreSQL", "redis-py Lock (Python)", 0.60 },
    { "dblock advisory, PostgreSQL", "redlock (Node.js, one server)", 0.75 },
    { "dblock advisory, PostgreSQL", "redis-semaphore Mutex (Node.js)", 0 },
    { "dblock advisory, PostgreSQL", "tooz, Redis (Python)", 0 },
    { "dblock advisory, MariaDB", "tooz, MySQL (Python)", 0 },
    { "dblock advisory, PostgreSQL", "tooz, PostgreSQL (Python)", 0.02 },
    { "dblock advisory, PostgreSQL", "advisory-lock (Node.js)", 0.02 },
    { "dblock lease, PostgreSQL", "kazoo Lock (Python)", 0 },
    { "dblock lease, PostgreSQL", "tooz, ZooKeeper (Python)", 0 },
    { "dblock lease, PostgreSQL", "SET NX PX and script (C, hiredis)", 0 },
    { "dblock run, PostgreSQL (command)", "etcdctl lock (command)", 0.50 },
    { NULL, NULL, 0 }
};

int peers_find(const char *name)
{
    int i;

    for (i = 0; peers_contenders[i].name != NULL; ++i)
        if (strcmp(peers_contenders[i].name, name) == 0)
            return i;
    return -1;
}
