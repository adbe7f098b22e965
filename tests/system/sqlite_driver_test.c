/* SPDX-License-Identifier: MIT */
/* sqlite_driver_test.c - the SQLite driver's table called directly: sessions, lease
 * and insert, listing, breaking, purging. Beside other writers of the file:
 * sqlite_writer_test.c; files and rights: sqlite_file_test.c; row and advisory:
 * sqlite_byte_test.c. Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000u
#define HOUR ((int64_t)3600 * 1000000)

static const int both[] = {DBLOCK_LEASE, DBLOCK_INSERT};
#define FOR_BOTH(index, strategy)                                                                  \
    for ((index) = 0; (index) < 2 && ((strategy) = both[index], 1); ++(index))

static struct sqlite_fixture fixture;
static struct dblock_connection *mine, *other;

static int set_up(void **state)
{
    (void)state;
    if (sqlite_fixture_open(&fixture, 1) != 0)
        return -1;
    mine = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    other = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    if (mine == NULL || other == NULL)
        return -1;
    return sqlite_begin_session(&fixture, mine, "mine", 60 * SECOND) == DBLOCK_ANSWER_YES &&
                   sqlite_begin_session(&fixture, other, "other", 60 * SECOND) == DBLOCK_ANSWER_YES
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

#define TAKE(who, strategy, name, owner, session)                                                  \
    sqlite_take(&fixture, who, strategy, name, owner, session, 30 * SECOND)
#define DROP(who, strategy, name, owner) sqlite_drop(&fixture, who, strategy, name, owner, 0)
#define LOOK(strategy, name) sqlite_look(&fixture, mine, strategy, name)

static void take__excludes_and_names_the_holder(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "job", "A", "mine"), DBLOCK_ANSWER_YES);
        token = fixture.answer.token;
        assert_true(token > 0 && token < (int64_t)1 << 53);
        assert_true(token >= fixture.answer.now_us);
        assert_in_range(fixture.answer.session_remaining_us, 40 * SECOND, 60 * SECOND);
        assert_int_equal(fixture.answer.remaining_us, fixture.answer.session_remaining_us);

        assert_int_equal(TAKE(other, strategy, "job", "B", "other"), DBLOCK_ANSWER_BUSY);
        assert_int_equal(fixture.grant.token, token);
        assert_string_equal(fixture.grant.name, "job");
        assert_string_equal(fixture.grant.owner, "41000000000000000000000000000000");
        assert_string_equal(fixture.grant.label, "a label");
        assert_string_equal(fixture.grant.host, "host.example");
        assert_int_equal(fixture.grant.pid, 4711);
        assert_int_equal(fixture.grant.strategy, strategy);
        assert_int_equal(fixture.grant.is_heartbeat, 1);
        assert_in_range(fixture.answer.remaining_us, 40 * SECOND, 60 * SECOND);

        assert_int_equal(DROP(mine, strategy, "job", "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(DROP(mine, strategy, "job", "A"), DBLOCK_ANSWER_NO);
        assert_int_equal(TAKE(other, strategy, "job", "C", "other"), DBLOCK_ANSWER_YES);
        assert_true(fixture.answer.token > token);
    }
}

static void names__are_compared_byte_by_byte(void **state)
{
    static const char *const names[] = {"Job", "job", "JOB", "job ", " job",
        "Jo\xCC\x88"
        "b",
        "J\xC3\xB6"
        "b",
        "it's \"quoted\"", "back\\slash", "100%", "a;DROP TABLE dblock_lease;--", "%", "_", "?1",
        "#12", "\x01", "caf\xC3\xA9"};
    char owner[16];
    int i, strategy;
    size_t n;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        for (n = 0; n < sizeof names / sizeof names[0]; ++n) {
            (void)snprintf(owner, sizeof owner, "o%zu", n);
            assert_int_equal(TAKE(mine, strategy, names[n], owner, "mine"), DBLOCK_ANSWER_YES);
        }
        for (n = 0; n < sizeof names / sizeof names[0]; ++n) {
            assert_int_equal(LOOK(strategy, names[n]), DBLOCK_ANSWER_YES);
            assert_string_equal(fixture.grant.name, names[n]);
        }
    }
    assert_int_equal(LOOK(DBLOCK_LEASE, "jOb"), DBLOCK_ANSWER_NO);
}

static void names__of_255_bytes_differ_in_the_last(void **state)
{
    char left[256], right[256];
    int i, strategy;

    (void)state;
    memset(left, 'x', sizeof left);
    left[255] = 0;
    memcpy(right, left, sizeof right);
    right[254] = 'y';
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, left, "A", "mine"), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, strategy, right, "B", "other"), DBLOCK_ANSWER_YES);
        assert_int_equal(LOOK(strategy, left), DBLOCK_ANSWER_YES);
        assert_string_equal(fixture.grant.name, left);
    }
}

static void timed_grants__end_by_the_clock(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "t", "A", NULL), DBLOCK_ANSWER_YES);
        token = fixture.answer.token;
        assert_int_equal(fixture.answer.remaining_us, 30 * SECOND);
        assert_int_equal(TAKE(other, strategy, "t", "B", NULL), DBLOCK_ANSWER_BUSY);
        assert_int_equal(fixture.grant.is_heartbeat, 0);
        sqlite_fixture_shift_clock(31 * SECOND);
        assert_int_equal(LOOK(strategy, "t"), DBLOCK_ANSWER_NO);
        assert_int_equal(DROP(mine, strategy, "t", "A"), DBLOCK_ANSWER_NO);
        assert_int_equal(
            sqlite_extend(&fixture, mine, strategy, "t", "A", SECOND), DBLOCK_ANSWER_NO);
        assert_int_equal(TAKE(other, strategy, "t", "C", NULL), DBLOCK_ANSWER_YES);
        assert_true(fixture.answer.token > token);
        assert_int_equal(DROP(mine, strategy, "t", "A"), DBLOCK_ANSWER_NO);
        assert_int_equal(LOOK(strategy, "t"), DBLOCK_ANSWER_YES);
        sqlite_fixture_shift_clock(0);
    }
}

static void take__ends_an_expired_session(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        const char *session = i == 0 ? "s0" : "s1";

        assert_int_equal(sqlite_begin_session(&fixture, mine, session, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(mine, strategy, "x", "A", session), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(mine, strategy, "y", "B", session), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, strategy, "x", "C", "other"), DBLOCK_ANSWER_BUSY);
        sqlite_fixture_shift_clock(2 * SECOND);
        assert_int_equal(TAKE(other, strategy, "x", "D", "other"), DBLOCK_ANSWER_YES);
        /* ended for good: also if the clock goes back, and for its other names */
        sqlite_fixture_shift_clock(0);
        assert_int_equal(sqlite_renew_session(&fixture, mine, session, SECOND), DBLOCK_ANSWER_NO);
        assert_int_equal(DROP(mine, strategy, "x", "A"), DBLOCK_ANSWER_NO);
        assert_int_equal(TAKE(other, strategy, "y", "E", "other"), DBLOCK_ANSWER_YES);
    }
}

static void renew__keeps_and_never_revives(void **state)
{
    (void)state;
    assert_int_equal(sqlite_begin_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_YES);
    sqlite_fixture_shift_clock(SECOND / 2);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(fixture.answer.changed, 0);
    sqlite_fixture_shift_clock(5 * SECOND / 4);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_YES);
    sqlite_fixture_shift_clock(3 * SECOND);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_NO);
    sqlite_fixture_shift_clock(0);
    assert_int_equal(sqlite_end_session(&fixture, mine, "s"), DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_end_session(&fixture, mine, "s"), DBLOCK_ANSWER_NO);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_NO);
}

static void session_begin__refuses_an_id_twice(void **state)
{
    (void)state;
    assert_int_equal(sqlite_begin_session(&fixture, mine, "mine", SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_E_DATABASE);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "mine", SECOND), DBLOCK_ANSWER_YES);
}

static void take__needs_a_living_session(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "n", "A", "nobody"), DBLOCK_ANSWER_SESSION);
        assert_int_equal(LOOK(strategy, "n"), DBLOCK_ANSWER_NO);
        sqlite_fixture_shift_clock(61 * SECOND);
        assert_int_equal(TAKE(mine, strategy, "n", "B", "mine"), DBLOCK_ANSWER_SESSION);
        sqlite_fixture_shift_clock(0);
        assert_int_equal(TAKE(mine, strategy, "n", "C", "mine"), DBLOCK_ANSWER_YES);
    }
}

static void take__is_not_made_after_not_after(void **state)
{
    struct dblock_take take = sqlite_take_of("late", sqlite_id("A"), NULL, SECOND);

    (void)state;
    take.not_after_us = fixture.answer.now_us - 1;
    memset(&fixture.answer, 0, sizeof fixture.answer);
    assert_int_equal(fixture.driver->lease.take(
                         mine, &fixture.call, &take, NULL, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_LATE);
    assert_int_equal(LOOK(DBLOCK_LEASE, "late"), DBLOCK_ANSWER_NO);
}

static void drop__may_keep_the_name_for_a_while(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "k", "A", "mine"), DBLOCK_ANSWER_YES);
        assert_int_equal(
            sqlite_drop(&fixture, mine, strategy, "k", "A", 2 * SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, strategy, "k", "B", "other"), DBLOCK_ANSWER_BUSY);
        assert_in_range(fixture.answer.remaining_us, SECOND, 2 * SECOND);
        assert_int_equal(fixture.grant.is_heartbeat, 0);
        sqlite_fixture_shift_clock(3 * SECOND);
        assert_int_equal(TAKE(other, strategy, "k", "C", "other"), DBLOCK_ANSWER_YES);
        sqlite_fixture_shift_clock(0);
    }
}

static void extend__makes_a_grant_timed(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "e", "A", "mine"), DBLOCK_ANSWER_YES);
        assert_int_equal(
            sqlite_extend(&fixture, mine, strategy, "e", "B", SECOND), DBLOCK_ANSWER_NO);
        assert_int_equal(
            sqlite_extend(&fixture, mine, strategy, "e", "A", 90 * SECOND), DBLOCK_ANSWER_YES);
        sqlite_fixture_shift_clock(70 * SECOND); /* past its session's end */
        assert_int_equal(LOOK(strategy, "e"), DBLOCK_ANSWER_YES);
        assert_in_range(fixture.answer.remaining_us, 15 * SECOND, 20 * SECOND);
        assert_int_equal(DROP(mine, strategy, "e", "A"), DBLOCK_ANSWER_YES);
        sqlite_fixture_shift_clock(0);
    }
}

static int note_grant(const struct dblock_grant *grant, void *context)
{
    char *text = context;

    (void)snprintf(text + strlen(text), 400 - strlen(text), "%d:%s:%.4s ", grant->strategy,
        grant->name, grant->owner);
    return 0;
}

static void session_holds__tells_all_grants(void **state)
{
    char text[400] = "";

    (void)state;
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "a", "A", "mine"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "b", "B", "mine"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(other, DBLOCK_INSERT, "c", "C", "other"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "d", "D", NULL), DBLOCK_ANSWER_YES);
    sqlite_fixture_shift_clock(61 * SECOND); /* expired or not */
    assert_int_equal(fixture.driver->session.holds(mine, &fixture.call, sqlite_id("mine"),
                         note_grant, text, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_string_equal(text, "1:a:4100 2:b:4200 ");
}

static void end__fences_and_tells_the_holder(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(sqlite_break(&fixture, other, strategy, "z", 0), DBLOCK_ANSWER_NO);
        assert_int_equal(TAKE(mine, strategy, "z", "A", "mine"), DBLOCK_ANSWER_YES);
        token = fixture.answer.token;
        assert_int_equal(sqlite_break(&fixture, other, strategy, "z", token - 1), DBLOCK_ANSWER_NO);
        assert_int_equal(sqlite_break(&fixture, other, strategy, "z", token), DBLOCK_ANSWER_YES);
        assert_int_equal(sqlite_break(&fixture, other, strategy, "z", 0), DBLOCK_ANSWER_NO);
        assert_int_equal(DROP(mine, strategy, "z", "A"), DBLOCK_ANSWER_NO);
        assert_int_equal(
            sqlite_renew_session(&fixture, mine, "mine", 60 * SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(fixture.answer.changed, i + 1);
        assert_int_equal(TAKE(other, strategy, "z", "B", "other"), DBLOCK_ANSWER_YES);
        assert_true(fixture.answer.token > token);
    }
}

/* P3, PITFALL(E13): with the clock set back an hour, tokens still rise after release, break,
 * expiry, the deletion of rows by hand, and the purge. */
static void tokens__rise_when_the_clock_is_set_back(void **state)
{
    static const char *const rows[] = {
        NULL, NULL, "DELETE FROM dblock_lease", "DELETE FROM dblock_insert"};
    int i, round, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        int64_t last = 0;

        for (round = 0; round < 8; ++round) {
            sqlite_fixture_shift_clock(-(int64_t)round * HOUR);
            assert_int_equal(TAKE(mine, strategy, "back", "A", NULL), DBLOCK_ANSWER_YES);
            assert_true(fixture.answer.token > last);
            last = fixture.answer.token;
            if (round % 4 == 0) {
                assert_int_equal(
                    sqlite_break(&fixture, other, strategy, "back", 0), DBLOCK_ANSWER_YES);
            } else {
                assert_int_equal(DROP(mine, strategy, "back", "A"), DBLOCK_ANSWER_YES);
            }
            if (rows[round % 4] != NULL)
                assert_int_equal(sqlite_fixture_run(&fixture, rows[round % 4]), SQLITE_OK);
        }
        sqlite_fixture_shift_clock(0);
    }
}

static void purge__removes_what_was_free_for_an_hour(void **state)
{
    int64_t lease_token, insert_token;

    (void)state;
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "p", "A", NULL), DBLOCK_ANSWER_YES);
    lease_token = fixture.answer.token;
    assert_int_equal(DROP(mine, DBLOCK_LEASE, "p", "A"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "p", "B", NULL), DBLOCK_ANSWER_YES);
    insert_token = fixture.answer.token;
    assert_int_equal(
        fixture.driver->observe.purge(mine, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.n_rows, 0);
    sqlite_fixture_shift_clock(2 * HOUR);
    assert_int_equal(sqlite_begin_session(&fixture, mine, "new", 60 * SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "held", "C", "new"), DBLOCK_ANSWER_YES);
    assert_int_equal(
        fixture.driver->observe.purge(mine, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.n_rows, 4); /* two sessions, a lease, an insert */
    assert_int_equal(sqlite_fixture_number(&fixture, "SELECT count(*) FROM dblock_lease"), 1);
    assert_int_equal(sqlite_fixture_number(&fixture, "SELECT count(*) FROM dblock_insert"), 0);
    sqlite_fixture_shift_clock(-2 * HOUR);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "p", "D", NULL), DBLOCK_ANSWER_YES);
    assert_true(fixture.answer.token > lease_token);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "p", "E", NULL), DBLOCK_ANSWER_YES);
    assert_true(fixture.answer.token > insert_token);
}

static void insert__leaves_no_row(void **state)
{
    (void)state;
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "gone", "A", "mine"), DBLOCK_ANSWER_YES);
    assert_int_equal(DROP(mine, DBLOCK_INSERT, "gone", "A"), DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_fixture_number(&fixture, "SELECT count(*) FROM dblock_insert"), 0);
}

static void list_page(struct dblock_page *page, char text[400])
{
    text[0] = 0;
    assert_int_equal(fixture.driver->observe.list(mine, &fixture.call, page, note_grant, text,
                         &fixture.answer, &fixture.error),
        DBLOCK_OK);
}

static void list__pages_in_byte_order(void **state)
{
    struct dblock_page page = {.limit = 100};
    char text[400];
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        char all[100], some[100];

        page = (struct dblock_page){.strategy = strategy, .limit = 100};
        (void)snprintf(
            all, sizeof all, "%d:B:0000 %d:a:4100 %d:ab:4200 ", strategy, strategy, strategy);
        assert_int_equal(TAKE(mine, strategy, "ab", "B", "mine"), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(mine, strategy, "a", "A", NULL), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(mine, strategy, "B", "", "mine"), DBLOCK_ANSWER_YES);
        list_page(&page, text);
        assert_string_equal(text, all);
        page.prefix = "a";
        page.limit = 1;
        list_page(&page, text);
        (void)snprintf(some, sizeof some, "%d:a:4100 ", strategy);
        assert_string_equal(text, some);
        page.after = "a";
        list_page(&page, text);
        (void)snprintf(some, sizeof some, "%d:ab:4200 ", strategy);
        assert_string_equal(text, some);
        page = (struct dblock_page){.strategy = strategy, .limit = 100, .name = "a"};
        list_page(&page, text);
        (void)snprintf(some, sizeof some, "%d:a:4100 ", strategy);
        assert_string_equal(text, some);
        /* what nobody holds is seen only if asked for, and then without an owner */
        sqlite_fixture_shift_clock(31 * SECOND);
        list_page(&page, text);
        assert_string_equal(text, "");
        page.is_idle = 1;
        list_page(&page, text);
        (void)snprintf(some, sizeof some, "%d:a: ", strategy);
        assert_string_equal(text, some);
        sqlite_fixture_shift_clock(0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(take__excludes_and_names_the_holder),
        TEST(names__are_compared_byte_by_byte),
        TEST(names__of_255_bytes_differ_in_the_last),
        TEST(timed_grants__end_by_the_clock),
        TEST(take__ends_an_expired_session),
        TEST(renew__keeps_and_never_revives),
        TEST(session_begin__refuses_an_id_twice),
        TEST(take__needs_a_living_session),
        TEST(take__is_not_made_after_not_after),
        TEST(drop__may_keep_the_name_for_a_while),
        TEST(extend__makes_a_grant_timed),
        TEST(session_holds__tells_all_grants),
        TEST(end__fences_and_tells_the_holder),
        TEST(tokens__rise_when_the_clock_is_set_back),
        TEST(purge__removes_what_was_free_for_an_hour),
        TEST(insert__leaves_no_row),
        TEST(list__pages_in_byte_order),
    };

    return cmocka_run_group_tests_name("sqlite_driver", tests, NULL, NULL);
}
