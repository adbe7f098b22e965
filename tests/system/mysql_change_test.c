/* SPDX-License-Identifier: MIT */
/* mysql_change_test.c - what the MySQL driver does to a lease or insert that is there: drop,
 * extend, draw, break. (One that is guarded: mysql_driver_test.c.) Alone on its server. Also on
 * oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>

#include "test_wait.h"

#define SECOND 1000000u

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY

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

static void drop__can_keep_it_taken(void **state)
{
    int i, strategy;
    int64_t token;
    char owner[40];

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "keep", "k1", "mine"), YES);
        token = fixture.answer.token;
        assert_int_equal(mysql_drop(&fixture, mine, strategy, "keep", "k1", 400000), YES);
        assert_int_equal(TAKE(other, strategy, "keep", "k2", "other"), BUSY);
        assert_true(fixture.answer.remaining_us > 0 && fixture.answer.remaining_us <= 400000);
        /* timed, and its owner's still */
        dblock_id_text(mysql_id("k1"), owner);
        assert_string_equal(fixture.grant.owner, owner);
        assert_int_equal(fixture.grant.token, token);
        assert_int_equal(fixture.grant.is_heartbeat, 0);
        assert_int_equal(mysql_drop(&fixture, mine, strategy, "keep", "k2", 40000), NO);
        test_pass_ms(450);
        assert_int_equal(mysql_drop(&fixture, mine, strategy, "keep", "k1", 400000), NO);
        assert_int_equal(TAKE(other, strategy, "keep", "k3", "other"), YES);
        assert_int_equal(mysql_drop(&fixture, mine, strategy, "keep", "k3", 20 * SECOND), YES);
        assert_int_equal(DROP(other, strategy, "keep", "k3"), YES);
        assert_int_equal(TAKE(other, strategy, "keep", "k4", "other"), YES);
        assert_int_equal(DROP(other, strategy, "keep", "k4"), YES);
    }
}

static void extend__makes_it_timed(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "extend", "t1", "mine"), YES);
        assert_int_equal(
            mysql_extend(&fixture, mine, strategy, "extend", "t2", SECOND), NO);
        assert_int_equal(
            mysql_extend(&fixture, mine, strategy, "extend", "t1", 5 * SECOND), YES);
        assert_true(fixture.answer.now_us > 0);
        assert_int_equal(LOOK(strategy, "extend"), YES);
        assert_int_equal(fixture.grant.is_heartbeat, 0);
        assert_true(fixture.answer.remaining_us > 4 * SECOND &&
            fixture.answer.remaining_us <= 5 * SECOND);
        assert_int_equal(mysql_extend(&fixture, mine, strategy, "extend", "t1", 1000), YES);
        test_pass_ms(5);
        assert_int_equal(LOOK(strategy, "extend"), NO);
        assert_int_equal(mysql_extend(&fixture, mine, strategy, "extend", "t1", SECOND), NO);
    }
}

/* A grant that goes from thread to thread within a client. */
static void draw__gives_the_grant_a_new_token(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(mysql_draw(&fixture, mine, strategy, "drawn", "d1"), NO);
        assert_int_equal(TAKE(mine, strategy, "drawn", "d1", "mine"), YES);
        token = fixture.answer.token;
        assert_int_equal(mysql_draw(&fixture, other, strategy, "drawn", "d2"), NO);
        assert_int_equal(mysql_draw(&fixture, other, strategy, "drawn", "d1"), YES);
        assert_true(fixture.answer.token > token);
        assert_int_equal(fixture.answer.now_us, fixture.answer.token);
        token = fixture.answer.token;
        assert_int_equal(LOOK(strategy, "drawn"), YES);
        assert_int_equal(fixture.grant.token, token);
        assert_int_equal(fixture.grant.is_heartbeat, 1);
        /* the clock was set back */
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET token = token + 3600000000 WHERE name = 'drawn'",
                             table_of(strategy)),
            0);
        assert_int_equal(mysql_draw(&fixture, mine, strategy, "drawn", "d1"), YES);
        assert_int_equal(fixture.answer.token, token + 3600000001);
        assert_int_equal(fixture.answer.now_us, 0);
        assert_int_equal(DROP(mine, strategy, "drawn", "d1"), YES);
        assert_int_equal(mysql_draw(&fixture, mine, strategy, "drawn", "d1"), NO);
        assert_int_equal(mysql_take(&fixture, other, strategy, "drawn", "d3", NULL, 60000), YES);
        assert_int_equal(fixture.answer.token, token + 3600000002);
        test_pass_ms(70);
        assert_int_equal(mysql_draw(&fixture, other, strategy, "drawn", "d3"), NO);
    }
}

static void break__ends_and_tells_the_session(void **state)
{
    int i, strategy;
    int64_t token;
    uint64_t changed;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(mysql_break(&fixture, other, strategy, "break", 0), NO);
        assert_int_equal(mysql_renew(&fixture, mine, "mine", 60 * SECOND), YES);
        assert_true(fixture.answer.now_us > 0);
        changed = fixture.answer.changed;
        assert_int_equal(TAKE(mine, strategy, "break", "b1", "mine"), YES);
        token = fixture.answer.token;
        assert_int_equal(mysql_break(&fixture, other, strategy, "break", token - 1), NO);
        assert_int_equal(mysql_break(&fixture, other, strategy, "break", token), YES);
        assert_int_equal(LOOK(strategy, "break"), NO);
        assert_int_equal(mysql_break(&fixture, other, strategy, "break", token), NO);
        assert_int_equal(DROP(mine, strategy, "break", "b1"), NO);
        assert_int_equal(mysql_renew(&fixture, mine, "mine", 60 * SECOND), YES);
        assert_int_equal(fixture.answer.changed, changed + 1);
        assert_int_equal(TAKE(other, strategy, "break", "b2", NULL), YES);
        assert_true(fixture.answer.token > token + 1);
        assert_int_equal(mysql_break(&fixture, mine, strategy, "break", 0), YES);
    }
}

/* A server may not tell the insert id of a statement that ran a trigger. */
static void trigger__hides_no_token(void **state)
{
    MYSQL *admin = mysql_fixture_admin(&fixture);
    int64_t token = 0;
    int i, strategy, n;

    (void)state;
    if (admin == NULL)
        skip();
    FOR_BOTH (i, strategy) {
        const char *table = strategy == DBLOCK_LEASE ? "dblock_lease" : "dblock_insert";
        int64_t tokens[3];

        assert_int_equal(mysql_fixture_run(admin,
                             "CREATE TRIGGER dblock_test_trigger BEFORE UPDATE ON %s FOR EACH ROW "
                             "SET NEW.label = NEW.label",
                             table),
            0);
        for (n = 0; n < 3; ++n) {
            tokens[n] = -1;
            if (n == 1)
                (void)mysql_draw(&fixture, mine, strategy, "trigger", "t0");
            else if (TAKE(mine, strategy, "trigger", n == 0 ? "t0" : "t2", n == 0 ? "mine" : NULL) != YES)
                break;
            tokens[n] = fixture.answer.token;
            if (n == 1 && mysql_extend(&fixture, mine, strategy, "trigger", "t0", 60 * SECOND) != YES)
                break;
            if (n != 0 && DROP(mine, strategy, "trigger", n == 1 ? "t0" : "t2") != YES)
                break;
        }
        assert_int_equal(mysql_fixture_run(admin, "DROP TRIGGER dblock_test_trigger"), 0);
        assert_int_equal(n, 3);
        assert_true(tokens[0] > token && tokens[1] > tokens[0] && tokens[2] > tokens[1]);
    }
    mysql_close(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drop__can_keep_it_taken),
        cmocka_unit_test(extend__makes_it_timed),
        cmocka_unit_test(draw__gives_the_grant_a_new_token),
        cmocka_unit_test(break__ends_and_tells_the_session),
        cmocka_unit_test(trigger__hides_no_token),
    };

    return cmocka_run_group_tests_name("mysql_change", tests, set_up, tear_down);
}
