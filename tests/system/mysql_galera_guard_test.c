/* SPDX-License-Identifier: MIT */
/* mysql_galera_guard_test.c - the guard where several nodes are written to: of a guarded
 * transaction on one node and a takeover on another one at most the first of the two happens, by
 * COMMIT failing (S2); heartbeats go on beside it. Alone on galera. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <mysql.h>
#include <pthread.h>

#include <dblock/mysql.h>

#include "test_wait.h"

enum {
    N_NODES = 2,
    TTL_MS = 1000,
    BRIEF_MS = 200,  /* of a grant that is to end under a guard */
    RACE_MS = 40,    /* of one whose end and COMMIT are to meet */
    HAMMER_MS = 2000,
    WAIT_MS = 10000,
    DEADLOCK = 1213 /* a deadlock; on Galera, whoever came second at any node */
};

static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
static const char *const begins[] = {
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
};

static char urls[N_NODES][256];
static dblock_client *clients[N_NODES];
static MYSQL *connections[N_NODES];

static void must(int node, const char *sql)
{
    if (mysql_query(connections[node], sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(connections[node]));
    mysql_free_result(mysql_store_result(connections[node]));
}

/* The first column of the only row. */
static long number(int node, const char *sql)
{
    MYSQL_RES *rows;
    MYSQL_ROW row;
    long value = -1;

    if (mysql_query(connections[node], sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(connections[node]));
    rows = mysql_store_result(connections[node]);
    row = mysql_fetch_row(rows);
    if (row != NULL && row[0] != NULL)
        value = strtol(row[0], NULL, 10);
    mysql_free_result(rows);
    return value;
}

/* How often that was written, as far as any node knows. */
static long count_written(int node, int entry)
{
    char sql[120];

    (void)snprintf(sql, sizeof sql,
        "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT COUNT(*) FROM ledger WHERE entry = %d", entry);
    return number(node, sql);
}

static void begin(int isolation)
{
    must(0, begins[isolation]);
    must(0, "START TRANSACTION");
}

/* 0, or the native code. */
static unsigned int write_down(int entry)
{
    char sql[80];

    (void)snprintf(sql, sizeof sql, "INSERT INTO ledger (entry) VALUES (%d)", entry);
    return mysql_query(connections[0], sql) == 0 ? 0 : mysql_errno(connections[0]);
}

static unsigned int commit(void)
{
    return mysql_query(connections[0], "COMMIT") == 0 ? 0 : mysql_errno(connections[0]);
}

/* `ttl_ms` 0: with heartbeats. */
static dblock_status take(int node, int strategy, const char *name, uint64_t ttl_ms,
    uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    dblock_status status;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    options.ttl_ms = ttl_ms;
    options.heartbeat = ttl_ms != 0 ? DBLOCK_HEARTBEAT_OFF : DBLOCK_HEARTBEAT_ON;
    status = dblock_acquire(clients[node], name, &options, ret_lock, &error);
    if (status < 0)
        print_error("%s: %s\n", name, error.message);
    return status;
}

static dblock_lock *must_take(
    int node, int strategy, const char *name, uint64_t ttl_ms, uint64_t wait_ms)
{
    dblock_lock *lock = NULL;

    assert_int_equal(DBLOCK_OK, take(node, strategy, name, ttl_ms, wait_ms, &lock));
    return lock;
}

static void expect_guard(dblock_status expected, dblock_lock *lock)
{
    struct dblock_error error = { 0 };
    dblock_status status = dblock_mysql_guard(lock, connections[0], &error);

    if (status != expected)
        print_error("guard: %s: %s\n", dblock_status_name(status), error.message);
    assert_int_equal(expected, status);
}

/* ------------------------------------------------------------------------ cases */

static void takeover_on_another_node__fails_the_commit(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < 4; ++way) {
        dblock_lock *lock = must_take(0, strategies[way / 2], "taken-over", BRIEF_MS, WAIT_MS);
        dblock_lock *next;

        begin(way % 2);
        expect_guard(DBLOCK_OK, lock);
        assert_int_equal(0, write_down(way));
        next = must_take(1, strategies[way / 2], "taken-over", TTL_MS, WAIT_MS);
        assert_int_equal(DEADLOCK, commit());
        assert_int_equal(0, count_written(0, way));
        assert_int_equal(0, count_written(1, way));
        dblock_lock_free(next);
        dblock_lock_free(lock);
    }
}

static void guarded_commit__is_seen_by_the_next_holder(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < 4; ++way) {
        dblock_lock *lock = must_take(0, strategies[way / 2], "seen", TTL_MS, WAIT_MS);
        dblock_lock *next = NULL;

        begin(way % 2);
        expect_guard(DBLOCK_OK, lock);
        assert_int_equal(0, write_down(10 + way));
        assert_int_equal(DBLOCK_BUSY, take(1, strategies[way / 2], "seen", TTL_MS, 0, &next));
        assert_int_equal(0, commit());
        assert_int_equal(DBLOCK_OK, dblock_release(lock, NULL));
        next = must_take(1, strategies[way / 2], "seen", TTL_MS, WAIT_MS);
        assert_int_equal(1, count_written(1, 10 + way));
        dblock_lock_free(next);
        dblock_lock_free(lock);
    }
}

static void heartbeats__go_on_beside_a_guard(void **state)
{
    dblock_lock *lease = must_take(0, DBLOCK_LEASE, "beating", 0, WAIT_MS);
    dblock_lock *insert = must_take(0, DBLOCK_INSERT, "beating", 0, WAIT_MS);
    dblock_lock *next = NULL;

    (void)state;
    begin(1);
    expect_guard(DBLOCK_OK, lease);
    expect_guard(DBLOCK_OK, insert);
    assert_int_equal(0, write_down(20));
    test_pass_ms(TTL_MS * 3 / 2); /* nobody but the heartbeat keeps it */
    assert_int_equal(1, dblock_lock_is_held(lease));
    assert_int_equal(1, dblock_lock_is_held(insert));
    assert_int_equal(DBLOCK_BUSY, take(1, DBLOCK_LEASE, "beating", 0, 0, &next));
    assert_int_equal(DBLOCK_BUSY, take(1, DBLOCK_INSERT, "beating", 0, 0, &next));
    assert_int_equal(0, commit()); /* and no heartbeat has aborted it */
    assert_int_equal(1, count_written(1, 20));
    dblock_lock_free(insert);
    dblock_lock_free(lease);
}

/* From its own node a break waits for the transaction, as everywhere; from another one it ends it. */
static void broken_under_a_guard__is_one_of_the_two(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < 4; ++way) {
        int strategy = strategies[way / 2], node = way % 2;
        dblock_lock *lock = must_take(0, strategy, "broken", 0, WAIT_MS);
        struct dblock_error error = { 0 };

        begin(1);
        expect_guard(DBLOCK_OK, lock);
        assert_int_equal(0, write_down(30 + way));
        assert_int_equal(node == 0 ? DBLOCK_PENDING : DBLOCK_OK,
            dblock_break(clients[node], "broken", strategy, 0, &error));
        assert_int_equal(node == 0 ? 0 : DEADLOCK, commit());
        assert_int_equal(node == 0, count_written(0, 30 + way));
        if (node != 0) {
            begin(0);
            expect_guard(DBLOCK_LOST, lock);
            must(0, "ROLLBACK");
        }
        dblock_lock_free(lock);
    }
}

/* The second one meets the first one's change, for io_timeout_ms; then it is as it was. */
static void guarded_transactions_of_a_node__take_turns(void **state)
{
    dblock_lock *lock = must_take(0, DBLOCK_LEASE, "turns", 0, WAIT_MS);
    struct dblock_error error = { 0 };
    MYSQL *first = connections[0];
    MYSQL *second = mysql_init(NULL);

    (void)state;
    begin(1);
    expect_guard(DBLOCK_OK, lock);
    assert_non_null(mysql_real_connect(second, first->host, first->user, first->passwd, first->db,
        first->port, NULL, 0));
    connections[0] = second;
    begin(0); /* what it saw of the session would be old by the end of this */
    assert_int_equal(0, write_down(40));
    assert_int_equal(DBLOCK_E_DATABASE, dblock_mysql_guard(lock, second, &error));
    assert_non_null(strstr(error.message, "stands on its row"));
    assert_int_not_equal(0, second->server_status & SERVER_STATUS_IN_TRANS);
    assert_int_equal(0, mysql_query(first, "COMMIT"));
    expect_guard(DBLOCK_OK, lock);
    assert_int_equal(0, commit());
    assert_int_equal(1, count_written(0, 40));
    connections[0] = first;
    mysql_close(second);
    dblock_lock_free(lock);
}

/* In plain SQL: schemas/mysql. */
static void plain_guard__fails_the_commit_too(void **state)
{
    dblock_lock *lock = must_take(0, DBLOCK_LEASE, "plain", BRIEF_MS, WAIT_MS);
    dblock_lock *next;
    int64_t token = 0;
    char sql[400];

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, NULL));
    (void)snprintf(sql, sizeof sql,
        "UPDATE dblock_lease SET guards = guards + 1 WHERE name = 'plain' AND token = %lld"
        " AND owner IS NOT NULL AND (session IS NOT NULL"
        " OR expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))",
        (long long)token);
    begin(1);
    must(0, sql);
    assert_int_equal(1, mysql_affected_rows(connections[0]));
    assert_int_equal(0, write_down(50));
    next = must_take(1, DBLOCK_LEASE, "plain", TTL_MS, WAIT_MS);
    assert_int_equal(DEADLOCK, commit());
    assert_int_equal(0, count_written(1, 50));
    must(0, sql);
    assert_int_equal(0, mysql_affected_rows(connections[0]));
    dblock_lock_free(next);
    dblock_lock_free(lock);
}

/* ------------------------------------------------------------------------ a race */

struct race {
    int strategy;
    int entry;
    long n_seen; /* of what the old holder wrote, as the new one begins; -1: he got nothing */
};

static void *take_over(void *context)
{
    struct race *race = context;
    dblock_lock *lock = NULL;

    race->n_seen = -1;
    if (take(1, race->strategy, "raced", TTL_MS, WAIT_MS, &lock) == DBLOCK_OK)
        race->n_seen = count_written(1, race->entry);
    dblock_lock_free(lock);
    return NULL;
}

/* Whatever comes first: what the old holder wrote is there when the new one begins, or never. */
static void commit_and_takeover__are_in_one_order(void **state)
{
    uint64_t end_ms = test_now_ms() + HAMMER_MS;
    int n_committed = 0, n_refused = 0, n_late = 0, round;

    (void)state;
    for (round = 0; test_now_ms() < end_ms; ++round) {
        struct race race = { strategies[round % 2], 1000 + round, -1 };
        dblock_lock *lock = must_take(0, race.strategy, "raced", RACE_MS, WAIT_MS);
        int is_written = 0;
        pthread_t taker;

        assert_int_equal(0, pthread_create(&taker, NULL, take_over, &race));
        begin(round / 2 % 2);
        if (dblock_mysql_guard(lock, connections[0], NULL) == DBLOCK_OK) {
            test_pass_ms((uint64_t)(RACE_MS - 8 + round % 16)); /* that the end comes meanwhile */
            is_written = write_down(race.entry) == 0 && commit() == 0;
            n_committed += is_written;
            n_refused += !is_written;
        }
        if (!is_written)
            must(0, "ROLLBACK");
        assert_int_equal(0, pthread_join(taker, NULL));
        n_late += count_written(0, race.entry) != race.n_seen || race.n_seen != is_written;
        dblock_lock_free(lock);
    }
    print_message("# %d rounds: %d committed, %d refused\n", round, n_committed, n_refused);
    assert_int_equal(0, n_late);
    assert_true(n_committed > 0);
    assert_true(n_refused > 0);
}

/* ------------------------------------------------------------------------ running */

static void connect_to(int node)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    char user[64], word[64], host[64], database[64];
    struct dblock_error error = { 0 };
    unsigned int port = 0;

    config.ttl_ms = TTL_MS;
    config.io_timeout_ms = 1000;
    if (dblock_open(dblock_mysql_driver(), urls[node], &config, &clients[node], &error) !=
        DBLOCK_OK)
        fail_msg("node %d: %s", node + 1, error.message);
    assert_int_equal(5, sscanf(urls[node], "mysql://%63[^:]:%63[^@]@%63[^:]:%u/%63s", user, word,
        host, &port, database));
    connections[node] = mysql_init(NULL);
    assert_non_null(mysql_real_connect(
        connections[node], host, user, word, database, port, NULL, 0));
}

static int start(void **state)
{
    struct dblock_error error = { 0 };
    int node;

    (void)state;
    for (node = 0; node < N_NODES; ++node)
        connect_to(node);
    if (dblock_schema_install(clients[0], &error) != DBLOCK_OK)
        fail_msg("%s", error.message);
    must(0, "DROP TABLE IF EXISTS ledger");
    must(0, "CREATE TABLE ledger (entry INT NOT NULL PRIMARY KEY)");
    return 0;
}

static int stop(void **state)
{
    int node;

    (void)state;
    for (node = 0; node < N_NODES; ++node) {
        dblock_close(clients[node]);
        mysql_close(connections[node]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takeover_on_another_node__fails_the_commit),
        cmocka_unit_test(guarded_commit__is_seen_by_the_next_holder),
        cmocka_unit_test(heartbeats__go_on_beside_a_guard),
        cmocka_unit_test(broken_under_a_guard__is_one_of_the_two),
        cmocka_unit_test(guarded_transactions_of_a_node__take_turns),
        cmocka_unit_test(plain_guard__fails_the_commit_too),
        cmocka_unit_test(commit_and_takeover__are_in_one_order),
    };
    const char *text = getenv("DBLOCK_TEST_GALERA");

    if (text == NULL || sscanf(text, "%255s %255s", urls[0], urls[1]) != N_NODES) {
        (void)fprintf(stderr, "skip: DBLOCK_TEST_GALERA names no nodes (ci/services)\n");
        return 77;
    }
    return cmocka_run_group_tests_name("galera guard", tests, start, stop);
}
