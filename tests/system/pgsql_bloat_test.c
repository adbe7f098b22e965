/* SPDX-License-Identifier: MIT */
/* pgsql_bloat_test.c - what a day of heartbeats and grants leaves in the tables:
 * nothing. Pages and dead rows are counted, not argued about. Alone on its server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "pgsql_fixture.h"

enum { SECOND = 1000000, N_BEATS = 100000, N_GRANTS = 2000, PAGES_MAX = 4 };

static struct pgsql_fixture f;
static struct dblock_connection *a;

/* Of a table with its index; a page is 8 KiB. */
static int64_t count_pages(const char *table)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql,
        "SELECT (pg_relation_size('%s') + pg_relation_size('%s_pkey')) / 8192", table, table);
    return pgsql_number(f.plain, sql);
}

/* At the default ttl of 30 s a heartbeat comes every 10 s: these are those of eleven days. */
static void heartbeats__leave_no_pages_and_no_dead_rows_behind(void **state)
{
    int64_t pages_before;
    int i;

    (void)state;
    assert_int_equal(DBLOCK_ANSWER_YES, pgsql_begin(&f, a, "s-bloat", 60 * SECOND));
    pages_before = count_pages("dblock_session");
    for (i = 0; i < N_BEATS; ++i) {
        if (i % 1000 == 0)
            pgsql_fixture_limit(&f, 20 * SECOND, -1);
        assert_int_equal(DBLOCK_ANSWER_YES, pgsql_renew(&f, a, "s-bloat", 60 * SECOND));
    }
    assert_in_range(count_pages("dblock_session"), pages_before, PAGES_MAX);
    /* what is dead is what the last page of them holds */
    pgsql_run(f.plain, "VACUUM (VERBOSE false) dblock_session");
    assert_in_range(count_pages("dblock_session"), 1, PAGES_MAX);
}

static void grants_of_one_name__leave_no_pages_behind(void **state)
{
    static const struct {
        int strategy;
        const char *table;
    } both[] = { { DBLOCK_LEASE, "dblock_lease" }, { DBLOCK_INSERT, "dblock_insert" } };
    size_t k;
    int i;

    (void)state;
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < N_GRANTS; ++i) {
            if (i % 1000 == 0)
                pgsql_fixture_limit(&f, 20 * SECOND, -1);
            assert_int_equal(DBLOCK_ANSWER_YES,
                pgsql_take(&f, a, both[k].strategy, "bloat", "o", NULL, 60 * SECOND));
            assert_int_equal(
                DBLOCK_ANSWER_YES, pgsql_drop(&f, a, both[k].strategy, "bloat", "o", 0));
        }
        (void)printf("%d grants of one name: %d pages of %s and its index\n", (int)N_GRANTS,
            (int)count_pages(both[k].table), both[k].table);
        /* insert deletes its row: the index keeps what was deleted until the page is full */
        assert_in_range(count_pages(both[k].table), 1,
            both[k].strategy == DBLOCK_LEASE ? PAGES_MAX : 100 * PAGES_MAX);
    }
}

static int open_fixture(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    a = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    return a != NULL ? 0 : -1;
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
        cmocka_unit_test(heartbeats__leave_no_pages_and_no_dead_rows_behind),
        cmocka_unit_test(grants_of_one_name__leave_no_pages_behind),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
