/* SPDX-License-Identifier: MIT */
/* pgsql_lookup_test.c - what the statements of one name read: a row of each table, by its key,
 * also where the planner has seen small tables and would rather read all of them.
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

static struct pgsql_fixture f;

static int64_t count_read(void)
{
    return pgsql_number(f.plain,
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables"
        " WHERE relid = 'dblock_session'::regclass");
}

/* The server's process of a connection tells what it has read as it ends. */
static int is_told(void *before)
{
    return count_read() >= *(const int64_t *)before + N_ROUNDS;
}

static void make_sessions(void)
{
    pgsql_run(f.plain,
        "INSERT INTO dblock_session (id, expires_at, ttl_us, host, pid, label, created)"
        " SELECT decode(lpad(to_hex(i), 32, '0'), 'hex'), 'infinity', 1, '', 1, '', now()"
        " FROM generate_series(1, 80) AS i");
    pgsql_run(f.plain,
        "INSERT INTO dblock_lease (name, token, since, expires_at, label, host, pid)"
        " SELECT ('old-' || i)::bytea, i, now(), '-infinity', '', '', 1 FROM generate_series(1, 3) AS i");
    pgsql_run(f.plain, "INSERT INTO dblock_insert SELECT * FROM dblock_lease");
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
    make_sessions();
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
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
