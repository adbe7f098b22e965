/* SPDX-License-Identifier: MIT */
/* mysql_lock_test.c - row and advisory locks of the MySQL driver, on the server of
 * DBLOCK_TEST_MYSQL: tries, waits, cancelling, what ends them, tokens. Alone on its server. Also
 * on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <mysql.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u
#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY

static struct mysql_fixture fixture;
static struct dblock_connection *shorter, *rows[2], *locks[2];
static MYSQL *plain;

static int set_up(void **state)
{
    int i;

    (void)state;
    if (mysql_fixture_open(&fixture) != 0)
        return -1;
    plain = mysql_fixture_plain(&fixture);
    shorter = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    for (i = 0; i < 2; ++i) {
        rows[i] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ROW);
        locks[i] = mysql_fixture_connect(&fixture, DBLOCK_ROLE_ADVISORY);
        if (rows[i] == NULL || locks[i] == NULL)
            return -1;
    }
    return shorter != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        fixture.driver->connection.close(rows[i], DBLOCK_CLOSE_POLITE);
        fixture.driver->connection.close(locks[i], DBLOCK_CLOSE_POLITE);
    }
    fixture.driver->connection.close(shorter, DBLOCK_CLOSE_POLITE);
    mysql_close(plain);
    mysql_fixture_close(&fixture);
    return 0;
}

static int take(int strategy, struct dblock_connection *connection, const char *name,
    uint64_t wait_us)
{
    struct dblock_take taking = mysql_take_of(name, "owner", NULL, 0);

    taking.wait_us = wait_us;
    return mysql_take_as(&fixture, connection, strategy, &taking);
}

static int drop(int strategy, struct dblock_connection *connection, const char *name)
{
    return mysql_drop(&fixture, connection, strategy, name, "owner", 0);
}

static int prove(int strategy, struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = mysql_subject(name);
    const struct dblock_driver_session_lock *lock =
        strategy == DBLOCK_ROW ? &fixture.driver->row : &fixture.driver->advisory;

    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status =
        lock->prove(connection, &fixture.call, &subject, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int draw(int strategy, struct dblock_connection *connection, const char *name)
{
    struct dblock_subject subject = mysql_subject(name);
    const struct dblock_driver_session_lock *lock =
        strategy == DBLOCK_ROW ? &fixture.driver->row : &fixture.driver->advisory;

    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status =
        lock->draw(connection, &fixture.call, &subject, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int ping(struct dblock_connection *connection)
{
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    fixture.status = fixture.driver->connection.ping(
        connection, &fixture.call, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static void replace(struct dblock_connection **connection, int role, int how)
{
    fixture.driver->connection.close(*connection, how);
    *connection = mysql_fixture_connect(&fixture, role);
    assert_non_null(*connection);
}

static void row__excludes_by_an_open_transaction(void **state)
{
    (void)state;
    assert_int_equal(take(DBLOCK_ROW, rows[0], "row", 0), DBLOCK_ANSWER_UNSEEDED);
    assert_int_equal(mysql_seed(&fixture, shorter, "row"), YES);
    assert_int_equal(mysql_seed(&fixture, shorter, "row"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "row", 0), YES);
    assert_int_equal(prove(DBLOCK_ROW, rows[0], "row"), YES);
    assert_int_equal(ping(rows[0]), YES);
    assert_true(fixture.answer.now_us > 0);
    assert_int_equal(take(DBLOCK_ROW, rows[1], "row", 0), BUSY);
    assert_string_equal(fixture.grant.name, "row");
    assert_true(fixture.answer.remaining_us == DBLOCK_NO_END);
    assert_false(mysql_fixture_is_in_transaction(rows[1])); /* nothing is left open */
    assert_int_equal(prove(DBLOCK_ROW, rows[1], "row"), NO);
    /* seeding waits for nobody, also from a row connection */
    assert_int_equal(mysql_seed(&fixture, shorter, "row"), YES);
    assert_int_equal(mysql_seed(&fixture, rows[1], "row2"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[1], "row2", 0), YES);
    assert_int_equal(drop(DBLOCK_ROW, rows[1], "row2"), YES);
    assert_int_equal(drop(DBLOCK_ROW, rows[1], "row2"), NO);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "row"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[1], "row", 0), YES);
    assert_int_equal(drop(DBLOCK_ROW, rows[1], "row"), YES);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "row"), NO);
}

static void row__names_are_bytes(void **state)
{
    static const char *const names[] = { "Job", "job", "job ", "j\xc3\xb6"
                                                              "b",
        "jo\xcc\x88"
        "b",
        "'; --", "back\\slash", "100%?" };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; ++i)
        assert_int_equal(mysql_seed(&fixture, shorter, names[i]), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[0], names[0], 0), YES);
    for (i = 1; i < sizeof names / sizeof *names; ++i) {
        assert_int_equal(take(DBLOCK_ROW, rows[1], names[i], i % 2 * 100000), YES);
        assert_int_equal(drop(DBLOCK_ROW, rows[1], names[i]), YES);
    }
    assert_int_equal(drop(DBLOCK_ROW, rows[0], names[0]), YES);
}

static void assert_waited(uint64_t begun, uint64_t at_least, uint64_t at_most)
{
    uint64_t waited = test_now_ms() - begun;

    if (waited < at_least || waited > at_most)
        fail_msg("waited %llu ms, not %llu to %llu", (unsigned long long)waited,
            (unsigned long long)at_least, (unsigned long long)at_most);
}

static void check_bounded_waits(int strategy, struct dblock_connection **connections)
{
    static const unsigned int waits_ms[] = { 50, 300, 1100, 1600 };
    uint64_t begun;
    size_t i;

    assert_int_equal(take(strategy, connections[0], "wait", 0), YES);
    for (i = 0; i < sizeof waits_ms / sizeof *waits_ms; ++i) {
        begun = test_now_ms();
        assert_int_equal(take(strategy, connections[1], "wait", waits_ms[i] * 1000u), BUSY);
        assert_waited(begun, waits_ms[i] - 1, waits_ms[i] + 250);
        assert_true(fixture.driver->connection.is_alive(connections[1]));
    }
    /* other names are not in the way, and are had without a wait */
    begun = test_now_ms();
    assert_int_equal(take(strategy, connections[1], "wait2", SECOND), YES);
    assert_waited(begun, 0, 300);
    assert_int_equal(drop(strategy, connections[1], "wait2"), YES);
    assert_int_equal(drop(strategy, connections[0], "wait"), YES);
}

/* PITFALL(C14): fractions of seconds, none, and NULL. */
static void waits__end_in_time(void **state)
{
    (void)state;
    assert_int_equal(mysql_seed(&fixture, shorter, "wait"), YES);
    assert_int_equal(mysql_seed(&fixture, shorter, "wait2"), YES);
    check_bounded_waits(DBLOCK_ROW, rows);
    check_bounded_waits(DBLOCK_ADVISORY, locks);
}

struct waiter {
    struct mysql_fixture fixture;
    struct dblock_connection *connection;
    int strategy;
    int outcome;
    dblock_status status;
    uint64_t ended_ms;
};

static void *run_waiter(void *argument)
{
    struct waiter *waiter = argument;
    struct dblock_take taking = mysql_take_of("queue", "owner", NULL, 0);

    taking.wait_us = 10 * SECOND;
    waiter->outcome =
        mysql_take_as(&waiter->fixture, waiter->connection, waiter->strategy, &taking);
    waiter->status = waiter->fixture.status;
    waiter->ended_ms = test_now_ms();
    mysql_thread_end();
    return NULL;
}

static uint64_t hand_over(int strategy, struct dblock_connection **connections)
{
    struct waiter waiter = { fixture, connections[1], strategy, 0, 0, 0 };
    uint64_t freed;
    pthread_t id;

    waiter.fixture.call.cancel_fd = -1;
    assert_int_equal(take(strategy, connections[0], "queue", 0), YES);
    assert_int_equal(pthread_create(&id, NULL, run_waiter, &waiter), 0);
    test_pass_ms(300);
    freed = test_now_ms();
    assert_int_equal(drop(strategy, connections[0], "queue"), YES);
    (void)pthread_join(id, NULL);
    assert_int_equal(waiter.outcome, YES);
    assert_int_equal(take(strategy, connections[0], "queue", 0), BUSY);
    assert_int_equal(prove(strategy, connections[1], "queue"), YES);
    assert_int_equal(drop(strategy, connections[1], "queue"), YES);
    return waiter.ended_ms - freed;
}

static void check_hand_over(int strategy, struct dblock_connection **connections)
{
    uint64_t took_ms = hand_over(strategy, connections);
    int n;

    for (n = 1; n < 5 && took_ms >= 200; ++n) /* a busy machine makes one late, but not each */
        took_ms = hand_over(strategy, connections);
    assert_in_range(took_ms, 0, 199);
}

static void check_cancel(int strategy, struct dblock_connection **connections)
{
    struct waiter waiter = { fixture, connections[1], strategy, 0, 0, 0 };
    uint64_t cancelled;
    int ends[2];
    pthread_t id;

    assert_int_equal(pipe(ends), 0);
    waiter.fixture.call.cancel_fd = ends[0];
    assert_int_equal(take(strategy, connections[0], "queue", 0), YES);
    assert_int_equal(pthread_create(&id, NULL, run_waiter, &waiter), 0);
    test_pass_ms(300);
    cancelled = test_now_ms();
    assert_int_equal(write(ends[1], "x", 1), 1);
    (void)pthread_join(id, NULL);
    assert_int_equal(waiter.status, DBLOCK_CANCELLED);
    /* a connection of its own ends it, maybe with TLS, on a busy machine; the wait is far longer */
    assert_true(waiter.ended_ms - cancelled < 1000);
    (void)close(ends[0]);
    (void)close(ends[1]);
    /* nothing of it is left in the queue, and the connection is as good as before */
    assert_int_equal(drop(strategy, connections[0], "queue"), YES);
    assert_int_equal(take(strategy, connections[0], "queue", 0), YES);
    assert_int_equal(drop(strategy, connections[0], "queue"), YES);
    assert_true(fixture.driver->connection.is_alive(connections[1]));
    assert_int_equal(take(strategy, connections[1], "queue", 0), YES);
    assert_int_equal(drop(strategy, connections[1], "queue"), YES);
}

static void waits__are_handed_over_and_cancelled(void **state)
{
    (void)state;
    assert_int_equal(mysql_seed(&fixture, shorter, "queue"), YES);
    check_hand_over(DBLOCK_ROW, rows);
    check_hand_over(DBLOCK_ADVISORY, locks);
    check_cancel(DBLOCK_ROW, rows);
    check_cancel(DBLOCK_ADVISORY, locks);
}

static void row__ends_with_its_connection(void **state)
{
    (void)state;
    assert_int_equal(mysql_seed(&fixture, shorter, "killed"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "killed", 0), YES);
    assert_int_equal(mysql_fixture_run(plain, "KILL CONNECTION %lu", mysql_fixture_server_id(rows[0])), 0);
    assert_int_equal(take(DBLOCK_ROW, rows[1], "killed", 2 * SECOND), YES);
    assert_int_equal(prove(DBLOCK_ROW, rows[0], "killed"), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    assert_false(fixture.driver->connection.is_alive(rows[0]));
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "killed"), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    replace(&rows[0], DBLOCK_ROLE_ROW, DBLOCK_CLOSE_ABORT);
    /* abort frees the lock at once */
    replace(&rows[1], DBLOCK_ROLE_ROW, DBLOCK_CLOSE_ABORT);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "killed", 2 * SECOND), YES);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "killed"), YES);
}

static void tokens__rise_for_row_and_advisory(void **state)
{
    int64_t token, ahead;
    int i;
    static const int both[] = { DBLOCK_ROW, DBLOCK_ADVISORY };

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct dblock_connection *drawer = both[i] == DBLOCK_ROW ? shorter : locks[0];

        assert_int_equal(draw(both[i], drawer, "token"), YES);
        token = fixture.answer.token;
        assert_true(token > (int64_t)1600000000 * 1000000);
        assert_int_equal(draw(both[i], drawer, "token"), YES);
        assert_true(fixture.answer.token > token);
        ahead = fixture.answer.token + (int64_t)86400 * 1000000;
        assert_int_equal(
            mysql_fixture_run(plain,
                "UPDATE dblock_token SET token = %lld, since = since - 7200000000 "
                "WHERE strategy = %d",
                (long long)ahead, both[i]),
            0);
        mysql_fixture_limit(&fixture, 20 * SECOND, -1);
        assert_int_equal(fixture.driver->observe.purge(
                             shorter, &fixture.call, &fixture.answer, &fixture.error),
            DBLOCK_OK);
        assert_true(fixture.answer.n_rows >= 1);
        assert_int_equal(mysql_fixture_number(plain,
                             "SELECT COUNT(*) FROM dblock_token WHERE strategy = %d", both[i]),
            0);
        assert_int_equal(draw(both[i], drawer, "token"), YES);
        assert_int_equal(fixture.answer.token, ahead + 1);
        assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_floor SET token = 0"), 0);
        assert_int_equal(mysql_fixture_run(plain, "DELETE FROM dblock_token"), 0);
    }
    assert_int_equal(draw(DBLOCK_ROW, rows[0], "token"), -1); /* it would join the transaction */
}

static void advisory__excludes_and_knows_its_own(void **state)
{
    char longest[256];

    (void)state;
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "adv", 0), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "adv", 0), BUSY);
    assert_int_equal(fixture.grant.server_pid, (int64_t)mysql_fixture_server_id(locks[0]));
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "adv", 300000), BUSY);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "adv", 0), BUSY);
    assert_int_equal(fixture.grant.server_pid, (int64_t)mysql_fixture_server_id(locks[0]));
    assert_string_equal(fixture.grant.host, "127.0.0.1");
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "Adv", 0), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "adv ", 0), YES);
    assert_int_equal(prove(DBLOCK_ADVISORY, locks[0], "adv"), YES);
    assert_int_equal(prove(DBLOCK_ADVISORY, locks[1], "adv"), NO);
    assert_int_equal(ping(locks[0]), YES);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[1], "adv"), NO);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], "adv"), YES);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], "adv"), NO);
    /* a wait and a try mean the same lock */
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "adv", SECOND), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "adv", 0), BUSY);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], "adv"), YES);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[1], "Adv"), YES);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[1], "adv "), YES);
    memset(longest, 'a', 255);
    longest[255] = 0;
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], longest, 0), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], longest, 0), BUSY);
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], longest), YES);
}

static void advisory__has_the_published_name(void **state)
{
    (void)state;
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "na'me", 0), YES);
    assert_int_equal(
        mysql_fixture_number(plain,
            "SELECT IS_USED_LOCK(CONCAT('dblock:', LEFT(SHA2(DATABASE(), 256), 12), ':', "
            "LEFT(SHA2('na''me', 256), 32)))"),
        (int64_t)mysql_fixture_server_id(locks[0]));
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], "na'me"), YES);
}

static void advisory__shares_numbers_with_other_software(void **state)
{
    struct dblock_take taking = mysql_take_of("#-12345", "owner", NULL, 0);

    (void)state;
    taking.subject.has_advisory_id = 1;
    taking.subject.advisory_id = -12345;
    assert_int_equal(mysql_fixture_number(plain, "SELECT GET_LOCK('-12345', 0)"), 1);
    assert_int_equal(mysql_take_as(&fixture, locks[0], DBLOCK_ADVISORY, &taking), BUSY);
    taking.wait_us = 200000;
    assert_int_equal(mysql_take_as(&fixture, locks[0], DBLOCK_ADVISORY, &taking), BUSY);
    assert_int_equal(mysql_fixture_number(plain, "SELECT RELEASE_LOCK('-12345')"), 1);
    assert_int_equal(mysql_take_as(&fixture, locks[0], DBLOCK_ADVISORY, &taking), YES);
    assert_int_equal(mysql_fixture_number(plain, "SELECT GET_LOCK('-12345', 0)"), 0);
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    assert_int_equal(fixture.driver->advisory.drop(locks[0], &fixture.call, &taking.subject,
                         &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, YES);
}

static void *run_second(void *argument)
{
    struct waiter *waiter = argument;
    struct dblock_take taking = mysql_take_of("dead2", "owner", NULL, 0);

    taking.wait_us = 10 * SECOND;
    waiter->outcome =
        mysql_take_as(&waiter->fixture, waiter->connection, DBLOCK_ADVISORY, &taking);
    waiter->status = waiter->fixture.status;
    mysql_thread_end();
    return NULL;
}

/* PITFALL(C15) */
static void advisory__answers_again_to_a_deadlock(void **state)
{
    struct waiter waiter = { fixture, locks[0], DBLOCK_ADVISORY, 0, 0, 0 };
    pthread_t id;
    int outcome;

    (void)state;
    waiter.fixture.call.cancel_fd = -1;
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "dead1", 0), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "dead2", 0), YES);
    assert_int_equal(pthread_create(&id, NULL, run_second, &waiter), 0);
    test_pass_ms(200);
    outcome = take(DBLOCK_ADVISORY, locks[1], "dead1", 5 * SECOND);
    if (outcome == DBLOCK_ANSWER_AGAIN)
        assert_int_equal(drop(DBLOCK_ADVISORY, locks[1], "dead2"), YES); /* kept until then */
    (void)pthread_join(id, NULL);
    if (outcome == DBLOCK_ANSWER_AGAIN)
        assert_int_equal(waiter.outcome, YES);
    else
        assert_int_equal(waiter.outcome, DBLOCK_ANSWER_AGAIN);
    replace(&locks[0], DBLOCK_ROLE_ADVISORY, DBLOCK_CLOSE_POLITE);
    replace(&locks[1], DBLOCK_ROLE_ADVISORY, DBLOCK_CLOSE_POLITE);
}

static void advisory__can_be_broken(void **state)
{
    (void)state;
    assert_int_equal(mysql_break(&fixture, shorter, DBLOCK_ADVISORY, "broken", 0), NO);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "broken", 0), YES);
    assert_int_equal(mysql_break(&fixture, shorter, DBLOCK_ADVISORY, "broken", 7), NO);
    assert_int_equal(draw(DBLOCK_ADVISORY, locks[0], "broken"), YES);
    assert_int_equal(
        mysql_break(&fixture, shorter, DBLOCK_ADVISORY, "broken", fixture.answer.token), YES);
    assert_int_equal(take(DBLOCK_ADVISORY, locks[1], "broken", 2 * SECOND), YES);
    assert_int_equal(prove(DBLOCK_ADVISORY, locks[0], "broken"), -1);
    assert_false(fixture.driver->connection.is_alive(locks[0]));
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[1], "broken"), YES);
    replace(&locks[0], DBLOCK_ROLE_ADVISORY, DBLOCK_CLOSE_ABORT);
    assert_int_equal(mysql_break(&fixture, shorter, DBLOCK_ROW, "broken", 0), -1);
    assert_int_equal(fixture.status, DBLOCK_E_UNSUPPORTED);
}

struct heard {
    int n;
    struct dblock_grant grants[20];
};

static int hear(const struct dblock_grant *grant, void *context)
{
    struct heard *heard = context;

    if (heard->n < 20)
        heard->grants[heard->n] = *grant;
    ++heard->n;
    return 0;
}

static int list(int strategy, const char *name, const char *prefix, int is_idle,
    struct heard *heard)
{
    struct dblock_page page;

    memset(&page, 0, sizeof page);
    memset(heard, 0, sizeof *heard);
    page.strategy = strategy;
    page.name = name;
    page.prefix = prefix;
    page.is_idle = (uint32_t)is_idle;
    page.limit = 100;
    mysql_fixture_limit(&fixture, 5 * SECOND, -1);
    fixture.status = fixture.driver->observe.list(
        shorter, &fixture.call, &page, hear, heard, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? heard->n : -1;
}

static void lists__show_what_the_server_tells(void **state)
{
    struct heard heard;

    (void)state;
    assert_int_equal(mysql_seed(&fixture, shorter, "list1"), YES);
    assert_int_equal(mysql_seed(&fixture, shorter, "list2"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "list2", 0), YES);
    assert_int_equal(list(DBLOCK_ROW, NULL, "list", 0, &heard), 1);
    assert_string_equal(heard.grants[0].name, "list2");
    assert_int_equal(list(DBLOCK_ROW, NULL, "list", 1, &heard), 2);
    assert_int_equal(list(DBLOCK_ROW, "list1", NULL, 0, &heard), 0);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "list2"), YES);

    assert_int_equal(take(DBLOCK_ADVISORY, locks[0], "list1", 0), YES);
    assert_int_equal(list(DBLOCK_ADVISORY, NULL, "list", 0, &heard), 0); /* no token yet */
    assert_int_equal(list(DBLOCK_ADVISORY, "list1", NULL, 0, &heard), 1);
    assert_int_equal(heard.grants[0].server_pid, (int64_t)mysql_fixture_server_id(locks[0]));
    assert_int_equal(draw(DBLOCK_ADVISORY, locks[0], "list1"), YES);
    assert_int_equal(list(DBLOCK_ADVISORY, NULL, "list", 0, &heard), 1);
    assert_true(heard.grants[0].token > 0);
    assert_string_equal(heard.grants[0].host, "127.0.0.1");
    assert_int_equal(drop(DBLOCK_ADVISORY, locks[0], "list1"), YES);
    assert_int_equal(list(DBLOCK_ADVISORY, NULL, "list", 0, &heard), 0);
    assert_int_equal(list(DBLOCK_ADVISORY, NULL, "list", 1, &heard), 1);
}

/* PITFALL(C8) */
static void purge__leaves_rows_that_are_locked(void **state)
{
    (void)state;
    assert_int_equal(mysql_seed(&fixture, shorter, "old1"), YES);
    assert_int_equal(mysql_seed(&fixture, shorter, "old2"), YES);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "old1", 0), YES);
    assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_row SET created = created - 7200000000 "
                                              "WHERE name = 'old2'"),
        0);
    /* old1 is locked, so it cannot be aged; the purge takes old2 alone */
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    assert_int_equal(
        fixture.driver->observe.purge(shorter, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.n_rows, 1);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "old1"), YES);
    assert_int_equal(mysql_fixture_run(plain, "UPDATE dblock_row SET created = created - 7200000000 "
                                              "WHERE name = 'old1'"),
        0);
    assert_int_equal(take(DBLOCK_ROW, rows[0], "old1", 0), YES);
    mysql_fixture_limit(&fixture, 20 * SECOND, -1);
    assert_int_equal(
        fixture.driver->observe.purge(shorter, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.n_rows, 0);
    assert_int_equal(drop(DBLOCK_ROW, rows[0], "old1"), YES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row__excludes_by_an_open_transaction),
        cmocka_unit_test(row__names_are_bytes),
        cmocka_unit_test(waits__end_in_time),
        cmocka_unit_test(waits__are_handed_over_and_cancelled),
        cmocka_unit_test(row__ends_with_its_connection),
        cmocka_unit_test(tokens__rise_for_row_and_advisory),
        cmocka_unit_test(advisory__excludes_and_knows_its_own),
        cmocka_unit_test(advisory__has_the_published_name),
        cmocka_unit_test(advisory__shares_numbers_with_other_software),
        cmocka_unit_test(advisory__answers_again_to_a_deadlock),
        cmocka_unit_test(advisory__can_be_broken),
        cmocka_unit_test(lists__show_what_the_server_tells),
        cmocka_unit_test(purge__leaves_rows_that_are_locked),
    };

    return cmocka_run_group_tests_name("mysql_lock", tests, set_up, tear_down);
}
