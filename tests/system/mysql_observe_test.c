/* SPDX-License-Identifier: MIT */
/* mysql_observe_test.c - the MySQL driver's table called directly, on the server of
 * DBLOCK_TEST_MYSQL: what a session holds, listing, and the purge. Alone on its server. Also on
 * oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>
#include <string.h>

#include "test_wait.h"

#define SECOND 1000000u
#define HOUR ((int64_t)3600 * 1000000)

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO

static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
#define FOR_BOTH(index, strategy)                                                                  \
    for ((index) = 0; (index) < 2 && ((strategy) = both[index], 1); ++(index))

static struct mysql_fixture fixture;
static struct dblock_connection *mine, *other;
static MYSQL *plain;

static const char *table_of(int strategy)
{
    return strategy == DBLOCK_INSERT ? "dblock_insert" : "dblock_lease";
}

static int set_up(void **state)
{
    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    mine = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    other = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    if (mine == NULL || other == NULL)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    return mysql_begin(&fixture, mine, "mine", 60 * SECOND) == YES &&
            mysql_begin(&fixture, other, "other", 60 * SECOND) == YES
        ? 0
        : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mysql_close(plain);
    fixture.driver->connection.close(mine, DBLOCK_CLOSE_POLITE);
    fixture.driver->connection.close(other, DBLOCK_CLOSE_POLITE);
    mysql_fixture_close(&fixture);
    return 0;
}

#define TAKE(who, strategy, name, owner, session)                                                  \
    mysql_take(&fixture, who, strategy, name, owner, session, 30 * SECOND)
#define DROP(who, strategy, name, owner) mysql_drop(&fixture, who, strategy, name, owner, 0)
#define LOOK(strategy, name) mysql_look(&fixture, mine, strategy, name)

struct heard {
    int n;
    int stop_after;
    struct dblock_grant grants[20];
};

static int hear(const struct dblock_grant *grant, void *context)
{
    struct heard *heard = context;

    if (heard->n < 20)
        heard->grants[heard->n] = *grant;
    ++heard->n;
    return heard->n == heard->stop_after;
}

static void holds__tells_what_names_the_session(void **state)
{
    struct heard heard = { 0 };

    (void)state;
    assert_int_equal(mysql_begin(&fixture, mine, "holder", 200000), YES);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "held1", "h1", "holder"), YES);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "held2", "h2", "holder"), YES);
    assert_int_equal(TAKE(mine, DBLOCK_INSERT, "held3", "h3", NULL), YES);
    test_pass_ms(210);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->session.holds(mine, &fixture.call, mysql_id("holder"), hear,
                         &heard, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(heard.n, 2);
    assert_int_equal(heard.grants[0].strategy, DBLOCK_LEASE);
    assert_string_equal(heard.grants[0].name, "held1");
    assert_int_equal(heard.grants[1].strategy, DBLOCK_INSERT);
    assert_string_equal(heard.grants[1].name, "held2");
    assert_true(heard.grants[1].token > 0);
    assert_memory_equal(heard.grants[0].owner, "6831", 4); /* h1 */
    assert_int_equal(mysql_end(&fixture, mine, "holder"), YES);
    assert_int_equal(DROP(mine, DBLOCK_INSERT, "held3", "h3"), YES);
}

static int list(struct dblock_page *page, struct heard *heard)
{
    memset(heard, 0, sizeof *heard);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    if (page->limit == 0)
        page->limit = 100;
    fixture.status = fixture.driver->observe.list(
        mine, &fixture.call, page, hear, heard, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? heard->n : -1;
}

static void list__goes_in_the_order_of_bytes(void **state)
{
    struct dblock_page page;
    struct heard heard;
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "li%st/b", "a1", "mine"), YES);
        assert_int_equal(TAKE(mine, strategy, "li%st/a", "a2", "mine"), YES);
        assert_int_equal(TAKE(mine, strategy, "li%st/\xc3\xa9", "a3", "mine"), YES);
        assert_int_equal(TAKE(mine, strategy, "li%st/idle", "a4", "mine"), YES);
        assert_int_equal(DROP(mine, strategy, "li%st/idle", "a4"), YES);
        assert_int_equal(TAKE(mine, strategy, "lixst/b", "a5", "mine"), YES);
        memset(&page, 0, sizeof page);
        page.strategy = strategy;
        page.prefix = "li%st/";
        assert_int_equal(list(&page, &heard), 3);
        assert_string_equal(heard.grants[0].name, "li%st/a");
        assert_string_equal(heard.grants[1].name, "li%st/b");
        assert_string_equal(heard.grants[2].name, "li%st/\xc3\xa9");
        assert_int_equal(heard.grants[0].is_heartbeat, 1);
        assert_true(heard.grants[0].remaining_ms > 50000);
        page.after = "li%st/a";
        assert_int_equal(list(&page, &heard), 2);
        page.is_idle = 1;
        assert_int_equal(list(&page, &heard), 3);
        assert_string_equal(heard.grants[1].name, "li%st/idle");
        assert_string_equal(heard.grants[1].owner, "");
        page.limit = 1;
        assert_int_equal(list(&page, &heard), 1);
        memset(&page, 0, sizeof page);
        page.strategy = strategy;
        page.name = "li%st/b";
        assert_int_equal(list(&page, &heard), 1);
        page.name = "li%st/";
        assert_int_equal(list(&page, &heard), 0);
        assert_int_equal(DROP(mine, strategy, "li%st/b", "a1"), YES);
        assert_int_equal(DROP(mine, strategy, "li%st/a", "a2"), YES);
        assert_int_equal(DROP(mine, strategy, "li%st/\xc3\xa9", "a3"), YES);
        assert_int_equal(DROP(mine, strategy, "lixst/b", "a5"), YES);
    }
}

static int purge(struct dblock_connection *connection)
{
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status = fixture.driver->observe.purge(
        connection, &fixture.call, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? (int)fixture.answer.n_rows : -1;
}

static void purge__keeps_tokens_rising(void **state)
{
    int i, strategy;
    int64_t token, ahead;

    (void)state;
    while (purge(mine) > 0)
        ;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "purge", "p1", "mine"), YES);
        assert_int_equal(TAKE(mine, strategy, "purge2", "p2", "mine"), YES);
        assert_int_equal(DROP(mine, strategy, "purge", "p1"), YES);
        assert_int_equal(purge(mine), 0); /* not an hour yet */
        /* the clock was a day ahead when that token was drawn, and has been set back */
        ahead = fixture.answer.now_us;
        assert_int_equal(LOOK(strategy, "purge"), NO);
        ahead = fixture.answer.now_us + 24 * HOUR;
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET since = since - 7200000000, token = %lld "
                             "WHERE name = 'purge'",
                             table_of(strategy), (long long)ahead),
            0);
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET since = since - 7200000000 WHERE name = 'purge2'",
                             table_of(strategy)),
            0);
        assert_int_equal(purge(mine), 1); /* purge2 is held */
        assert_int_equal(mysql_fixture_number(plain,
                             "SELECT COUNT(*) FROM %s WHERE name = 'purge'", table_of(strategy)),
            0);
        assert_int_equal(TAKE(mine, strategy, "purge", "p3", "mine"), YES);
        token = fixture.answer.token;
        assert_int_equal(token, ahead + 1);
        assert_int_equal(fixture.answer.now_us, 0); /* the token is not the clock here */
        assert_int_equal(DROP(mine, strategy, "purge", "p3"), YES);
        assert_int_equal(TAKE(mine, strategy, "purge", "p4", NULL), YES);
        assert_int_equal(fixture.answer.token, ahead + 2);
        assert_int_equal(DROP(mine, strategy, "purge", "p4"), YES);
        assert_int_equal(DROP(mine, strategy, "purge2", "p2"), YES);
        assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_floor SET token = 0"), 0);
    }
}

static void purge__takes_dead_sessions_and_what_they_held(void **state)
{
    (void)state;
    while (purge(mine) > 0)
        ;
    assert_int_equal(mysql_begin(&fixture, mine, "dead", 1000), YES);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "dead", "d1", "mine"), YES);
    assert_int_equal(mysql_fixture_run(plain,
                         "UPDATE dblock_lease SET session = (SELECT id FROM dblock_session WHERE "
                         "LEFT(id, 4) = 'dead') WHERE name = 'dead'"),
        0);
    test_pass_ms(5);
    assert_int_equal(purge(mine), 0);
    assert_int_equal(mysql_fixture_run(plain,
                         "UPDATE dblock_session SET expires_at = expires_at - 7200000000 "
                         "WHERE LEFT(id, 4) = 'dead'"),
        0);
    assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_lease SET since = since - 7200000000 "
                                              "WHERE name = 'dead'"),
        0);
    assert_int_equal(purge(mine), 2);
    assert_int_equal(LOOK(DBLOCK_LEASE, "dead"), NO);
}

/* A take that has read the floor before a purge raises it must not insert below it. */
static void purge__waits_for_takes_that_read_the_floor(void **state)
{
    uint64_t begun;

    (void)state;
    assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
    assert_int_equal(
        mysql_fixture_run(plain, "SELECT token FROM dblock_floor WHERE id = 1 LOCK IN SHARE MODE"),
        0);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "floor", "f1", "mine"), YES);
    assert_int_equal(DROP(mine, DBLOCK_LEASE, "floor", "f1"), YES);
    assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_lease SET since = since - 7200000000 "
                                              "WHERE name = 'floor'"),
        0);
    assert_int_equal(mysql_fixture_run(plain, "COMMIT"), 0);
    assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
    assert_int_equal(
        mysql_fixture_run(plain, "SELECT token FROM dblock_floor WHERE id = 1 LOCK IN SHARE MODE"),
        0);
    begun = test_now_ms();
    assert_int_equal(purge(mine), 0);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_AGAIN);
    assert_true(test_now_ms() - begun >= 900);
    assert_int_equal(mysql_fixture_number(plain,
                         "SELECT COUNT(*) FROM dblock_lease WHERE name = 'floor'"),
        1);
    assert_int_equal(mysql_fixture_run(plain, "COMMIT"), 0);
    assert_int_equal(purge(mine), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds__tells_what_names_the_session),
        cmocka_unit_test(list__goes_in_the_order_of_bytes),
        cmocka_unit_test(purge__keeps_tokens_rising),
        cmocka_unit_test(purge__takes_dead_sessions_and_what_they_held),
        cmocka_unit_test(purge__waits_for_takes_that_read_the_floor),
    };

    return cmocka_run_group_tests_name("mysql_observe", tests, set_up, tear_down);
}
