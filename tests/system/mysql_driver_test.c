/* SPDX-License-Identifier: MIT */
/* mysql_driver_test.c - the MySQL driver's table called directly, on the server of
 * DBLOCK_TEST_MYSQL: sessions, lease and insert. What is done to a grant that is there:
 * mysql_change_test.c; listing and purge: mysql_observe_test.c; connections, rights and
 * failures: mysql_connection_test.c; row and advisory: mysql_lock_test.c. Alone on its server.
 * Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_wait.h"

#define SECOND 1000000u

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY
#define PINNED DBLOCK_ANSWER_PINNED

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

/* After each test: a failed one leaves its transaction open. */
static int roll_back(void **state)
{
    (void)state;
    return (int)mysql_fixture_run(plain, "ROLLBACK");
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

/* A lock timeout is a second at least. */
#define WITHOUT_WAIT(step, expected)                                                               \
    do {                                                                                           \
        uint64_t begun_ms_ = test_now_ms();                                                        \
        assert_int_equal(step, expected);                                                          \
        assert_true(test_now_ms() - begun_ms_ < 950);                                              \
    } while (0)

/* How many statements the server has got from this connection. */
static int64_t count_questions(struct dblock_connection *connection)
{
    (void)connection;
    return mysql_fixture_number(plain,
        "SELECT variable_value FROM information_schema.global_status WHERE variable_name = "
        "'Questions'");
}

static void take__excludes_and_names_the_holder(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "exclude", "o1", "mine"), YES);
        token = fixture.answer.token;
        assert_true(token > (int64_t)1600000000 * 1000000 && token < (int64_t)1 << 53);
        assert_int_equal(fixture.answer.now_us, token);
        assert_true(fixture.answer.session_remaining_us > 55 * SECOND &&
            fixture.answer.session_remaining_us <= 60 * SECOND);
        assert_int_equal(TAKE(other, strategy, "exclude", "o2", "other"), BUSY);
        assert_int_equal(fixture.grant.token, token);
        assert_string_equal(fixture.grant.name, "exclude");
        assert_string_equal(fixture.grant.label, "a label");
        assert_string_equal(fixture.grant.host, "testhost");
        assert_int_equal(fixture.grant.is_heartbeat, 1);
        assert_int_equal(fixture.grant.strategy, strategy);
        assert_true(fixture.answer.remaining_us > 50 * SECOND);
        assert_true(fixture.answer.now_us >= token);
        /* timed takes meet the same lock, also without interest in the holder */
        assert_int_equal(TAKE(other, strategy, "exclude", "o3", NULL), BUSY);
        assert_int_equal(DROP(other, strategy, "exclude", "o2"), NO);
        assert_int_equal(DROP(mine, strategy, "exclude", "o1"), YES);
        assert_int_equal(DROP(mine, strategy, "exclude", "o1"), NO);
        assert_int_equal(TAKE(other, strategy, "exclude", "o4", NULL), YES);
        assert_true(fixture.answer.token > token);
        assert_int_equal(fixture.answer.remaining_us, 30 * SECOND);
        assert_int_equal(TAKE(mine, strategy, "exclude", "o5", "mine"), BUSY);
        assert_int_equal(fixture.grant.is_heartbeat, 0);
        assert_int_equal(DROP(other, strategy, "exclude", "o4"), YES);
    }
}

/* A token that was damaged is refused, and never wraps to a small one. */
static void take__refuses_a_token_out_of_range(void **state)
{
    int64_t token = ((int64_t)1 << 53) - 1;
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        const char *table = table_of(strategy);

        assert_int_equal(TAKE(mine, strategy, "range", "o1", NULL), YES);
        /* of an ended grant, and of a free name */
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET token = %lld, expires_at = 1 WHERE name = 'range'",
                             table, (long long)token),
            0);
        assert_int_equal(TAKE(other, strategy, "range", "o2", NULL), -1);
        assert_int_equal(fixture.status, DBLOCK_E_DATABASE);
        assert_non_null(strstr(fixture.error.hint, "2^53"));
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET owner = NULL, expires_at = 0 WHERE name = 'range'",
                             table),
            0);
        assert_int_equal(TAKE(other, strategy, "range", "o3", NULL), -1);
        assert_int_equal(fixture.status, DBLOCK_E_DATABASE);
        assert_int_equal(
            mysql_fixture_number(plain, "SELECT token FROM %s WHERE name = 'range'", table), token);
        /* the largest that is given */
        assert_int_equal(mysql_fixture_run(plain,
                             "UPDATE %s SET token = %lld WHERE name = 'range'", table,
                             (long long)token - 1),
            0);
        assert_int_equal(TAKE(other, strategy, "range", "o4", "other"), YES);
        assert_int_equal(fixture.answer.token, token);
        assert_true(fixture.answer.session_remaining_us > 50 * SECOND);
        assert_int_equal(mysql_draw(&fixture, other, strategy, "range", "o4"), -1);
        assert_int_equal(fixture.status, DBLOCK_E_DATABASE);
        assert_int_equal(
            mysql_fixture_number(plain, "SELECT token FROM %s WHERE name = 'range'", table), token);
        assert_int_equal(mysql_fixture_run(plain, "DELETE FROM %s WHERE name = 'range'", table), 0);
    }
}

static void steps__are_single_round_trips(void **state)
{
    int64_t before;
    int i, strategy;

    (void)state;
    if (count_questions(mine) < 0)
        return; /* MySQL keeps this elsewhere */
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "trips", "t1", "mine"), YES);
        assert_int_equal(TAKE(other, strategy, "trips", "t2", "other"), BUSY);
        assert_int_equal(DROP(mine, strategy, "trips", "t1"), YES);
        before = count_questions(mine);
        assert_int_equal(TAKE(mine, strategy, "trips", "t3", "mine"), YES);
        assert_int_equal(count_questions(mine) - before, 2); /* and the counting itself */
        before = count_questions(mine);
        assert_int_equal(TAKE(other, strategy, "trips", "t4", "other"), BUSY);
        assert_int_equal(count_questions(mine) - before, 3);
        before = count_questions(mine);
        assert_int_equal(DROP(mine, strategy, "trips", "t3"), YES);
        assert_int_equal(count_questions(mine) - before, 2);
    }
    before = count_questions(mine);
    assert_int_equal(mysql_renew(&fixture, mine, "mine", 60 * SECOND), YES);
    assert_int_equal(count_questions(mine) - before, 2);
}

static void take__follows_an_expired_timed_grant(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(
            mysql_take(&fixture, mine, strategy, "expire", "e1", NULL, 500000), YES);
        token = fixture.answer.token;
        assert_int_equal(fixture.answer.remaining_us, 500000);
        assert_int_equal(LOOK(strategy, "expire"), YES);
        test_pass_ms(510);
        assert_int_equal(LOOK(strategy, "expire"), NO);
        assert_int_equal(TAKE(other, strategy, "expire", "e2", "other"), YES);
        assert_true(fixture.answer.token > token);
        assert_int_equal(DROP(mine, strategy, "expire", "e1"), NO);
        assert_int_equal(mysql_extend(&fixture, mine, strategy, "expire", "e1", SECOND), NO);
        assert_int_equal(LOOK(strategy, "expire"), YES);
        assert_int_equal(DROP(other, strategy, "expire", "e2"), YES);
    }
}

static void take__ends_an_expired_session(void **state)
{
    int i, strategy;
    int64_t token;
    char id[20];

    (void)state;
    FOR_BOTH (i, strategy) {
        (void)snprintf(id, sizeof id, "short%d", strategy);
        assert_int_equal(mysql_begin(&fixture, mine, id, 200000), YES);
        assert_int_equal(TAKE(mine, strategy, "over", "x1", id), YES);
        token = fixture.answer.token;
        assert_true(fixture.answer.session_remaining_us <= 200000);
        assert_int_equal(TAKE(mine, strategy, "over2", "x2", id), YES);
        test_pass_ms(210);
        assert_int_equal(mysql_renew(&fixture, mine, id, SECOND), NO);
        /* nobody has ended the session, and yet it is over */
        assert_int_equal(LOOK(strategy, "over"), NO);
        assert_int_equal(TAKE(other, strategy, "over", "x3", "other"), YES);
        assert_true(fixture.answer.token > token);
        assert_true(fixture.answer.session_remaining_us > 50 * SECOND);
        /* all that the session held is free */
        assert_int_equal(LOOK(strategy, "over2"), NO);
        assert_int_equal(DROP(mine, strategy, "over2", "x2"), NO);
        assert_int_equal(TAKE(other, strategy, "over2", "x4", NULL), YES);
        assert_int_equal(mysql_renew(&fixture, mine, id, SECOND), NO);
        assert_int_equal(mysql_end(&fixture, mine, id), NO);
        assert_int_equal(DROP(other, strategy, "over", "x3"), YES);
        assert_int_equal(DROP(other, strategy, "over2", "x4"), YES);
    }
}

static void session__end_frees_all(void **state)
{
    (void)state;
    assert_int_equal(mysql_begin(&fixture, mine, "ends", 60 * SECOND), YES);
    assert_true(fixture.answer.now_us > 0);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "ends", "n1", "ends"), YES);
    assert_int_equal(mysql_end(&fixture, mine, "ends"), YES);
    assert_int_equal(mysql_end(&fixture, mine, "ends"), NO);
    assert_int_equal(LOOK(DBLOCK_LEASE, "ends"), NO);
    assert_int_equal(DROP(mine, DBLOCK_LEASE, "ends", "n1"), NO);
    assert_int_equal(TAKE(other, DBLOCK_LEASE, "ends", "n2", "other"), YES);
    assert_int_equal(DROP(other, DBLOCK_LEASE, "ends", "n2"), YES);
}

/* PITFALL(S6) */
/* S17: this server counts the rows that it changed, not those that it found. Two heartbeats within
 * the same microsecond write the same end. */
static void heartbeat__that_finds_its_own_time_is_one(void **state)
{
    int i;

    (void)state;
    assert_int_equal(0, mysql_fixture_run_on(mine, "SET timestamp = UNIX_TIMESTAMP()"));
    assert_int_equal(mysql_begin(&fixture, mine, "same time", 60 * 1000000), YES);
    for (i = 0; i < 3; ++i)
        assert_int_equal(mysql_renew(&fixture, mine, "same time", 60 * 1000000), YES);
    assert_int_equal(0, mysql_fixture_run_on(mine, "SET timestamp = DEFAULT"));
    assert_int_equal(mysql_end(&fixture, mine, "same time"), YES);
}

static void take__needs_a_session_of_its_own(void **state)
{
    int i, strategy;

    (void)state;
    assert_int_equal(mysql_begin(&fixture, mine, "gone", 20000), YES);
    FOR_BOTH (i, strategy)
        assert_int_equal(
            TAKE(mine, strategy, "session", "s1", "never begun"), DBLOCK_ANSWER_SESSION);
    test_pass_ms(30);
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "session", "s2", "gone"), DBLOCK_ANSWER_SESSION);
        assert_int_equal(LOOK(strategy, "session"), NO);
    }
}

static void take__is_not_made_too_late(void **state)
{
    struct dblock_take take;
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        take = mysql_take_of("late", "l1", "mine", 0);
        assert_int_equal(LOOK(strategy, "late"), NO);
        take.not_after_us = fixture.answer.now_us - 1;
        assert_int_equal(mysql_take_as(&fixture, mine, strategy, &take), DBLOCK_ANSWER_LATE);
        assert_int_equal(LOOK(strategy, "late"), NO);
        /* the same for a name that has a row */
        assert_int_equal(TAKE(mine, strategy, "late", "l2", "mine"), YES);
        assert_int_equal(DROP(mine, strategy, "late", "l2"), YES);
        take.owner = mysql_id("l3");
        assert_int_equal(mysql_take_as(&fixture, mine, strategy, &take), DBLOCK_ANSWER_LATE);
        /* and for one whose holder has ended */
        assert_int_equal(mysql_take(&fixture, mine, strategy, "late", "l4", NULL, 1000), YES);
        test_pass_ms(5);
        take.owner = mysql_id("l5");
        assert_int_equal(mysql_take_as(&fixture, mine, strategy, &take), DBLOCK_ANSWER_LATE);
        take.owner = mysql_id("l6");
        take.session = mysql_id("mine");
        take.not_after_us = fixture.answer.now_us + 60 * (int64_t)SECOND;
        assert_int_equal(mysql_take_as(&fixture, mine, strategy, &take), YES);
        assert_int_equal(DROP(mine, strategy, "late", "l6"), YES);
    }
}

struct take_thread {
    struct mysql_fixture fixture;
    struct dblock_take take;
    int strategy;
    int outcome;
};

static void *run_take(void *argument)
{
    struct take_thread *thread = argument;
    struct dblock_connection *connection =
        mysql_fixture_connect(&thread->fixture, DBLOCK_ROLE_SHORT);

    thread->outcome =
        mysql_take_as(&thread->fixture, connection, thread->strategy, &thread->take);
    thread->fixture.driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    mysql_thread_end();
    return NULL;
}

static void take__judges_not_after_again_after_a_wait(void **state)
{
    struct take_thread thread;
    pthread_t id;
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "wait", "w1", "mine"), YES);
        assert_int_equal(DROP(mine, strategy, "wait", "w1"), YES);
        /* somebody has the free row locked, for 0.4 s */
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain,
                             "SELECT * FROM %s WHERE name = 'wait' FOR UPDATE",
                             table_of(strategy)),
            0);
        assert_int_equal(LOOK(strategy, "wait"), NO);
        thread.fixture = fixture;
        thread.take = mysql_take_of("wait", "w2", "mine", 0);
        thread.take.not_after_us = fixture.answer.now_us + 200000;
        thread.strategy = strategy;
        assert_int_equal(pthread_create(&id, NULL, run_take, &thread), 0);
        test_pass_ms(400);
        assert_int_equal(mysql_fixture_run(plain, "COMMIT"), 0);
        (void)pthread_join(id, NULL);
        assert_int_equal(thread.outcome, DBLOCK_ANSWER_LATE);
        assert_int_equal(LOOK(strategy, "wait"), NO);
    }
}

static void guarded_row__answers_pinned_at_once(void **state)
{
    int i, strategy;
    int64_t token;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "guard", "g1", "mine"), YES);
        token = fixture.answer.token;
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain,
                             "SELECT token FROM %s WHERE name = 'guard' LOCK IN SHARE MODE",
                             table_of(strategy)),
            0);
        WITHOUT_WAIT(TAKE(other, strategy, "guard", "g2", "other"), BUSY);
        WITHOUT_WAIT(DROP(mine, strategy, "guard", "g1"), PINNED);
        WITHOUT_WAIT(mysql_extend(&fixture, mine, strategy, "guard", "g1", SECOND), PINNED);
        WITHOUT_WAIT(mysql_draw(&fixture, mine, strategy, "guard", "g1"), PINNED);
        WITHOUT_WAIT(mysql_break(&fixture, other, strategy, "guard", 0), PINNED);
        WITHOUT_WAIT(mysql_renew(&fixture, mine, "mine", 60 * SECOND), YES);
        /* nothing of that had an effect */
        assert_int_equal(LOOK(strategy, "guard"), YES);
        assert_int_equal(fixture.grant.token, token);
        assert_int_equal(mysql_fixture_run(plain, "COMMIT"), 0);
        assert_int_equal(DROP(mine, strategy, "guard", "g1"), YES);

        /* a guard that stands on a holder that has ended */
        assert_int_equal(mysql_take(&fixture, mine, strategy, "guard", "g3", NULL, 300000), YES);
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain,
                             "SELECT token FROM %s WHERE name = 'guard' LOCK IN SHARE MODE",
                             table_of(strategy)),
            0);
        test_pass_ms(310);
        WITHOUT_WAIT(TAKE(other, strategy, "guard", "g4", "other"), PINNED);
        assert_int_equal(fixture.grant.is_pinned, 1);
        assert_int_equal(mysql_fixture_run(plain, "COMMIT"), 0);
        assert_int_equal(TAKE(other, strategy, "guard", "g5", "other"), YES);
        assert_int_equal(DROP(other, strategy, "guard", "g5"), YES);
    }
}

/* PITFALL(S16) */
static void busy_take__waits_for_no_lock_at_all(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH (i, strategy) {
        assert_int_equal(TAKE(mine, strategy, "nolock", "q1", "mine"), YES);
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain, "SELECT * FROM %s FOR UPDATE", table_of(strategy)),
            0);
        assert_int_equal(mysql_fixture_run(plain, "SELECT * FROM dblock_session FOR UPDATE"), 0);
        assert_int_equal(mysql_fixture_run(plain, "SELECT * FROM dblock_floor FOR UPDATE"), 0);
        WITHOUT_WAIT(TAKE(other, strategy, "nolock", "q2", "other"), BUSY);
        assert_int_equal(mysql_fixture_run(plain, "ROLLBACK"), 0);
        assert_int_equal(DROP(mine, strategy, "nolock", "q1"), YES);
    }
}

static void names__are_bytes(void **state)
{
    static const char *const names[] = { "Job", "job", "JOB", "job ", " job", "j\xc3\xb6"
                                                                               "b",
        "jo\xcc\x88"
        "b",
        "100%", "'; DROP TABLE dblock_lease; --", "\"quoted\"", "back\\slash", "a\\'b", "x%_x",
        "\xf0\x9f\x98\x80", "line\nbreak", "#5" };
    char longest[256];
    char owner[20];
    int i, strategy;
    size_t n;

    (void)state;
    FOR_BOTH (i, strategy) {
        for (n = 0; n < sizeof names / sizeof *names; ++n) {
            (void)snprintf(owner, sizeof owner, "name%zu", n);
            assert_int_equal(TAKE(mine, strategy, names[n], owner, "mine"), YES);
            assert_int_equal(TAKE(other, strategy, names[n], "other", "other"), BUSY);
            assert_string_equal(fixture.grant.name, names[n]);
        }
        for (n = 0; n < sizeof names / sizeof *names; ++n) {
            (void)snprintf(owner, sizeof owner, "name%zu", n);
            assert_int_equal(DROP(mine, strategy, names[n], owner), YES);
        }
        memset(longest, 'n', 255);
        longest[255] = 0;
        assert_int_equal(TAKE(mine, strategy, longest, "n1", "mine"), YES);
        longest[254] = 'm';
        assert_int_equal(TAKE(mine, strategy, longest, "n2", "mine"), YES);
        assert_int_equal(LOOK(strategy, longest), YES);
        assert_string_equal(fixture.grant.name, longest);
        assert_int_equal(DROP(mine, strategy, longest, "n2"), YES);
    }
}

/* PITFALL(S5):
 * The other half of mysql_observe_test.c's purge__waits_for_takes_that_read_the_floor. */
static void take__holds_the_floor_until_it_commits(void **state)
{
    struct take_thread thread;
    MYSQL *third = mysql_fixture_plain(&fixture);
    pthread_t id;
    int i, strategy;

    (void)state;
    assert_int_equal(mysql_fixture_run(third, "SET innodb_lock_wait_timeout = 1"), 0);
    FOR_BOTH (i, strategy) {
        /* an insert of that name that is not committed: the take queues behind it */
        assert_int_equal(mysql_fixture_run(plain, "BEGIN"), 0);
        assert_int_equal(mysql_fixture_run(plain,
                             "INSERT INTO %s(name, token, since, expires_at, label, host, pid) "
                             "VALUES('behind', 1, 0, 0, '', '', 0)",
                             table_of(strategy)),
            0);
        thread.fixture = fixture;
        thread.take = mysql_take_of("behind", "v1", "mine", 0);
        thread.strategy = strategy;
        assert_int_equal(pthread_create(&id, NULL, run_take, &thread), 0);
        test_pass_ms(300);
        assert_int_equal(mysql_fixture_run(third,
                             "SELECT token FROM dblock_floor WHERE id = %d FOR UPDATE NOWAIT",
                             strategy),
            mysql_fixture_number(third, "SELECT IF(VERSION() LIKE '%%MariaDB%%', 1205, 3572)"));
        assert_int_equal(mysql_fixture_run(plain, "ROLLBACK"), 0);
        (void)pthread_join(id, NULL);
        assert_int_equal(thread.outcome, YES);
        assert_int_equal(mysql_fixture_run(
                             third, "SELECT token FROM dblock_floor WHERE id = %d FOR UPDATE NOWAIT",
                             strategy),
            0);
        assert_int_equal(DROP(mine, strategy, "behind", "v1"), YES);
    }
    mysql_close(third);
}

static void rows_by_hand__are_noticed(void **state)
{
    (void)state;
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "hand", "y1", "mine"), YES);
    assert_int_equal(mysql_fixture_run(plain, "DELETE FROM dblock_lease WHERE name = 'hand'"), 0);
    assert_int_equal(LOOK(DBLOCK_LEASE, "hand"), NO);
    assert_int_equal(DROP(mine, DBLOCK_LEASE, "hand", "y1"), NO);
    assert_int_equal(mysql_extend(&fixture, mine, DBLOCK_LEASE, "hand", "y1", SECOND), NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(take__excludes_and_names_the_holder, roll_back),
        cmocka_unit_test(take__refuses_a_token_out_of_range),
        cmocka_unit_test_teardown(steps__are_single_round_trips, roll_back),
        cmocka_unit_test_teardown(take__follows_an_expired_timed_grant, roll_back),
        cmocka_unit_test_teardown(take__ends_an_expired_session, roll_back),
        cmocka_unit_test_teardown(session__end_frees_all, roll_back),
        cmocka_unit_test_teardown(heartbeat__that_finds_its_own_time_is_one, roll_back),
        cmocka_unit_test_teardown(take__needs_a_session_of_its_own, roll_back),
        cmocka_unit_test_teardown(take__is_not_made_too_late, roll_back),
        cmocka_unit_test_teardown(take__judges_not_after_again_after_a_wait, roll_back),
        cmocka_unit_test_teardown(guarded_row__answers_pinned_at_once, roll_back),
        cmocka_unit_test_teardown(busy_take__waits_for_no_lock_at_all, roll_back),
        cmocka_unit_test_teardown(names__are_bytes, roll_back),
        cmocka_unit_test_teardown(take__holds_the_floor_until_it_commits, roll_back),
        cmocka_unit_test_teardown(rows_by_hand__are_noticed, roll_back),
    };

    return cmocka_run_group_tests_name("mysql_driver", tests, set_up, tear_down);
}
