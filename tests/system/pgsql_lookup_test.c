/* SPDX-License-Identifier: MIT */
/* pgsql_lookup_test.c - what the statements of one name, or of a few, read: a row of each table, by
 * its key, also where the planner has seen small tables and would rather read all of them.
 * Runs beside others. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES

enum { SECOND = 1000000, N_ROUNDS = 50, READS_MAX = 6 /* of a round */ };
enum { BREAK_READS_MAX = 30, MANY_READS_MAX = 20 }; /* of a round, names and sessions */

static struct pgsql_fixture f;

static int64_t count_read(void)
{
    return pgsql_number(f.plain,
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables"
        " WHERE relid = 'dblock_session'::regclass");
}

static int64_t count_read_all(void)
{
    return pgsql_number(f.plain,
        "SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_user_tables WHERE relid IN"
        " ('dblock_session'::regclass, 'dblock_lease'::regclass, 'dblock_insert'::regclass)");
}

/* The server's process of a connection tells what it has read as it ends. */
static int is_told(void *before)
{
    return count_read() >= *(const int64_t *)before + N_ROUNDS;
}

static int is_told_all(void *before)
{
    return count_read_all() >= *(const int64_t *)before + N_ROUNDS;
}

static void clear_tables(void)
{
    pgsql_run(f.plain, "TRUNCATE dblock_session, dblock_lease, dblock_insert");
}

/* Rows that nobody needs; the planner is not told. */
static void fill(int n_names)
{
    char sql[300];

    pgsql_run(f.plain,
        "INSERT INTO dblock_session (id, expires_at, ttl_us, host, pid, label, created)"
        " SELECT decode(lpad(to_hex(i), 32, '0'), 'hex'), 'infinity', 1, '', 1, '', now()"
        " FROM generate_series(1, 80) AS i");
    (void)snprintf(sql, sizeof sql,
        "INSERT INTO dblock_lease (name, token, since, expires_at, label, host, pid)"
        " SELECT ('old-' || i)::bytea, i, now(), '-infinity', '', '', 1"
        " FROM generate_series(1, %d) AS i",
        n_names);
    pgsql_run(f.plain, sql);
    pgsql_run(f.plain, "INSERT INTO dblock_insert SELECT * FROM dblock_lease WHERE owner IS NULL");
}

static void tell_planner(void)
{
    pgsql_run(f.plain, "ANALYZE dblock_session, dblock_lease, dblock_insert");
}

static void one_name__needs_a_row_of_each_table(void **state)
{
    static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    struct dblock_connection *a;
    int64_t before;
    size_t k;
    int i;

    (void)state;
    clear_tables();
    fill(3);
    tell_planner();
    for (k = 0; k < 2; ++k) {
        a = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
        assert_non_null(a);
        assert_int_equal(YES, pgsql_begin(&f, a, k == 0 ? "s-0" : "s-1", 60 * SECOND));
        before = count_read();
        for (i = 0; i < N_ROUNDS; ++i) {
            assert_int_equal(
                YES, pgsql_take(&f, a, both[k], "read", "o", k == 0 ? "s-0" : "s-1", 0));
            assert_int_equal(YES, pgsql_look(&f, a, both[k], "read"));
            assert_int_equal(YES, pgsql_extend(&f, a, both[k], "read", "o", 60 * SECOND));
            assert_int_equal(YES, pgsql_draw_for(&f, a, both[k], "read", "o"));
            assert_int_equal(YES, pgsql_drop(&f, a, both[k], "read", "o", 0));
        }
        pgsql_fixture_disconnect(&f, a, DBLOCK_CLOSE_POLITE);
        assert_true(test_until(is_told, &before, 10000));
        (void)printf("strategy %d: %d rows of sessions in %d rounds\n", both[k],
            (int)(count_read() - before), (int)N_ROUNDS);
        assert_in_range(count_read() - before, N_ROUNDS, N_ROUNDS * READS_MAX);
    }
}

/* A connection plans a statement once: here while there was one row to be read, and no reason to
 * look for it by its key. */
static void small_when_planned__and_large_since(void **state)
{
    static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    struct dblock_connection *a;
    int64_t before = 0;
    size_t k;
    int i;

    (void)state;
    for (k = 0; k < 2; ++k) {
        clear_tables();
        a = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
        assert_non_null(a);
        assert_int_equal(YES, pgsql_begin(&f, a, "s", 60 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, a, both[k], "read", "o", "s", 0));
        tell_planner();
        assert_int_equal(YES, pgsql_drop(&f, a, both[k], "read", "o", 0));
        for (i = 0; i <= N_ROUNDS; ++i) {
            assert_int_equal(YES, pgsql_take(&f, a, both[k], "read", "ended", NULL, 1));
            assert_int_equal(YES, pgsql_take(&f, a, both[k], "read", "o", "s", 0));
            assert_int_equal(YES, pgsql_break(&f, a, both[k], "read", 0));
            if (i > 0)
                continue;
            fill(80);
            before = count_read_all();
        }
        pgsql_fixture_disconnect(&f, a, DBLOCK_CLOSE_POLITE);
        assert_true(test_until(is_told_all, &before, 10000));
        (void)printf("strategy %d: %d rows in %d rounds\n", both[k],
            (int)(count_read_all() - before), (int)N_ROUNDS);
        assert_in_range(count_read_all() - before, N_ROUNDS, N_ROUNDS * BREAK_READS_MAX);
    }
}

static void take_and_drop_two(struct dblock_connection *connection, int strategy)
{
    const struct dblock_driver_hold *hold =
        strategy == DBLOCK_LEASE ? &f.driver->lease : &f.driver->insert;
    struct dblock_subject subjects[2] = { pgsql_subject("read-1"), pgsql_subject("read-2") };
    const unsigned char *owners[2] = { pgsql_id("o1"), pgsql_id("o2") };
    struct dblock_take terms = pgsql_take_of("read-1", "o1", NULL, 60 * SECOND);
    int64_t tokens[2] = { 0, 0 };
    int32_t outcomes[2] = { 0, 0 };
    struct dblock_many many = { 2, subjects, owners, tokens, outcomes };
    size_t place = 0;

    pgsql_fixture_limit(&f, 20 * SECOND, -1);
    assert_int_equal(DBLOCK_OK,
        hold->take_many(connection, &f.call, &terms, &many, &place, NULL, &f.answer, &f.error));
    assert_int_equal(YES, f.answer.outcome);
    assert_int_equal(
        DBLOCK_OK, hold->drop_many(connection, &f.call, &many, &f.answer, &f.error));
    assert_int_equal(YES, outcomes[0]);
    assert_int_equal(YES, outcomes[1]);
}

static void a_few_names__need_a_row_each(void **state)
{
    static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    struct dblock_connection *a;
    int64_t before;
    size_t k;
    int i;

    (void)state;
    clear_tables();
    fill(50);
    tell_planner();
    for (k = 0; k < 2; ++k) {
        a = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
        assert_non_null(a);
        before = count_read_all();
        for (i = 0; i < N_ROUNDS; ++i)
            take_and_drop_two(a, both[k]);
        pgsql_fixture_disconnect(&f, a, DBLOCK_CLOSE_POLITE);
        assert_true(test_until(is_told_all, &before, 10000));
        (void)printf("strategy %d: %d rows in %d rounds of two names\n", both[k],
            (int)(count_read_all() - before), (int)N_ROUNDS);
        assert_in_range(count_read_all() - before, N_ROUNDS, N_ROUNDS * MANY_READS_MAX);
    }
}

static int open_fixture(void **state)
{
    (void)state;
    return pgsql_fixture_open(&f);
}

static int close_fixture(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_name__needs_a_row_of_each_table),
        cmocka_unit_test(small_when_planned__and_large_since),
        cmocka_unit_test(a_few_names__need_a_row_each),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
