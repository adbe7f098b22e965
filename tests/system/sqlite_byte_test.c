/* SPDX-License-Identifier: MIT */
/* sqlite_byte_test.c - row and advisory locks of the SQLite driver: bytes of the
 * side file, between connections of one process. Other processes and the file itself:
 * sqlite_side_test.c. Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u

static const int both[] = {DBLOCK_ROW, DBLOCK_ADVISORY};
#define FOR_BOTH(index, strategy)                                                                  \
    for ((index) = 0; (index) < 2 && ((strategy) = both[index], 1); ++(index))

static struct sqlite_fixture fixture;

static int set_up(void **state)
{
    (void)state;
    return sqlite_fixture_open(&fixture, 1);
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

static struct dblock_connection *connect_for(int strategy)
{
    struct dblock_connection *connection = sqlite_live_connect(&fixture, strategy);

    assert_non_null(connection);
    return connection;
}

#define STEPS(strategy) sqlite_live_steps(&fixture, strategy)
#define TAKE(connection, strategy, name) sqlite_live_take(&fixture, connection, strategy, name, 0)
#define TAKE_WAITING(connection, strategy, name, wait_us)                                          \
    sqlite_live_take(&fixture, connection, strategy, name, wait_us)
#define RUN(step, connection, name) sqlite_live_run(&fixture, step, connection, name)
#define DROP(connection, strategy, name) RUN(STEPS(strategy)->drop, connection, name)
#define PROVE(connection, strategy, name) RUN(STEPS(strategy)->prove, connection, name)

static void take__excludes_and_names_the_holder(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        struct dblock_connection *mine = connect_for(strategy);
        struct dblock_connection *other = connect_for(strategy);

        assert_int_equal(TAKE(mine, strategy, "job"), DBLOCK_ANSWER_YES);
        assert_true(fixture.answer.remaining_us == DBLOCK_NO_END);
        assert_int_equal(TAKE(other, strategy, "job"), DBLOCK_ANSWER_BUSY);
        assert_string_equal(fixture.grant.name, "job");
        assert_string_equal(fixture.grant.owner, "6a6f6200000000000000000000000000");
        assert_string_equal(fixture.grant.label, "a label");
        assert_string_equal(fixture.grant.host, "host.example");
        assert_int_equal(fixture.grant.pid, 4711);
        assert_true(fixture.grant.remaining_ms == DBLOCK_FOREVER);
        assert_int_equal(TAKE(other, strategy, "Job"), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, strategy, "job "), DBLOCK_ANSWER_YES);

        assert_int_equal(PROVE(mine, strategy, "job"), DBLOCK_ANSWER_YES);
        assert_int_equal(PROVE(other, strategy, "job"), DBLOCK_ANSWER_NO);
        assert_int_equal(DROP(other, strategy, "job"), DBLOCK_ANSWER_NO);
        assert_int_equal(DROP(mine, strategy, "job"), DBLOCK_ANSWER_YES);
        assert_int_equal(DROP(mine, strategy, "job"), DBLOCK_ANSWER_NO);
        assert_int_equal(PROVE(mine, strategy, "job"), DBLOCK_ANSWER_NO);
        assert_int_equal(TAKE(other, strategy, "job"), DBLOCK_ANSWER_YES);
    }
}

static void strategies__do_not_exclude_each_other(void **state)
{
    (void)state;
    assert_int_equal(TAKE(connect_for(DBLOCK_ROW), DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(connect_for(DBLOCK_ADVISORY), DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
}

static void seed__is_never_needed(void **state)
{
    struct dblock_connection *connection = connect_for(DBLOCK_ROW);

    (void)state;
    assert_int_equal(RUN(fixture.driver->row.seed, connection, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(connection, DBLOCK_ROW, "other"), DBLOCK_ANSWER_YES);
}

static void advisory__is_busy_to_its_own_connection(void **state)
{
    struct dblock_connection *connection = connect_for(DBLOCK_ADVISORY);

    (void)state;
    assert_int_equal(TAKE(connection, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(connection, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_BUSY);
    assert_string_equal(fixture.grant.name, "n");
    assert_int_equal(DROP(connection, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(connect_for(DBLOCK_ADVISORY), DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
}

static void advisory__by_number_is_the_name_with_that_hash(void **state)
{
    struct dblock_take numbered = sqlite_take_of("#7440995589958059143", sqlite_id("x"), NULL, 0);
    struct dblock_connection *mine = connect_for(DBLOCK_ADVISORY);
    struct dblock_connection *other = connect_for(DBLOCK_ADVISORY);
    int64_t token;

    (void)state;
    numbered.subject.has_advisory_id = 1;
    numbered.subject.advisory_id = INT64_C(7440995589958059143);
    assert_int_equal(TAKE(mine, DBLOCK_ADVISORY, "nightly-report"), DBLOCK_ANSWER_YES);
    assert_int_equal(RUN(fixture.driver->advisory.draw, mine, "nightly-report"), DBLOCK_ANSWER_YES);
    token = fixture.answer.token;
    assert_int_equal(fixture.driver->advisory.take(
                         other, &fixture.call, &numbered, NULL, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_BUSY);
    assert_int_equal(DROP(mine, DBLOCK_ADVISORY, "nightly-report"), DBLOCK_ANSWER_YES);
    assert_int_equal(fixture.driver->advisory.take(
                         other, &fixture.call, &numbered, NULL, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_YES);
    assert_int_equal(fixture.driver->advisory.draw(
                         other, &fixture.call, &numbered.subject, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_true(fixture.answer.token > token);
}

static int32_t take_number(struct dblock_connection *connection, int64_t number)
{
    struct dblock_take take = sqlite_take_of("#", sqlite_id("x"), NULL, 0);

    take.subject.has_advisory_id = 1;
    take.subject.advisory_id = number;
    assert_int_equal(fixture.driver->advisory.take(connection, &fixture.call, &take, NULL,
                         &fixture.answer, &fixture.error),
        DBLOCK_OK);
    return fixture.answer.outcome;
}

/* There are not as many bytes as numbers; the manual page says which are one lock. */
static void advisory__by_number_is_kept_modulo_2_61(void **state)
{
    struct dblock_connection *mine = connect_for(DBLOCK_ADVISORY);
    struct dblock_connection *other = connect_for(DBLOCK_ADVISORY);

    (void)state;
    assert_int_equal(take_number(mine, 1), DBLOCK_ANSWER_YES);
    assert_int_equal(take_number(other, (INT64_C(1) << 61) + 1), DBLOCK_ANSWER_BUSY);
    assert_int_equal(take_number(other, (INT64_C(1) << 60) + 1), DBLOCK_ANSWER_YES);
    assert_int_equal(take_number(other, -1), DBLOCK_ANSWER_YES);
}

static void draw__rises_and_needs_the_lock_for_advisory(void **state)
{
    struct dblock_connection *control = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_CONTROL);
    struct dblock_connection *advisory = connect_for(DBLOCK_ADVISORY);
    int64_t last = 0;
    int round;

    (void)state;
    assert_int_equal(RUN(fixture.driver->advisory.draw, advisory, "n"), DBLOCK_ANSWER_NO);
    for (round = 0; round < 4; ++round) {
        sqlite_fixture_shift_clock(-(int64_t)round * 3600 * SECOND);
        assert_int_equal(RUN(fixture.driver->row.draw, control, "n"), DBLOCK_ANSWER_YES);
        assert_true(fixture.answer.token > last);
        last = fixture.answer.token;
        if (round == 1)
            assert_int_equal(sqlite_fixture_run(&fixture, "DELETE FROM dblock_token"), 0);
    }
}

static void wait__ends_with_its_time(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        struct dblock_connection *waiter = connect_for(strategy);
        uint64_t begun_us = dblock_clock_us();

        assert_int_equal(TAKE(connect_for(strategy), strategy, "n"), DBLOCK_ANSWER_YES);
        begun_us = dblock_clock_us();
        assert_int_equal(TAKE_WAITING(waiter, strategy, "n", SECOND / 20), DBLOCK_ANSWER_BUSY);
        assert_in_range(dblock_clock_us() - begun_us, SECOND / 20, SECOND / 2);
        assert_string_equal(fixture.grant.name, "n");
        /* the call's own limit is the nearer one */
        sqlite_fixture_limit(&fixture, SECOND / 20, -1);
        assert_int_equal(TAKE_WAITING(waiter, strategy, "n", UINT64_MAX), DBLOCK_ANSWER_BUSY);
        sqlite_fixture_limit(&fixture, 20 * SECOND, -1);
        /* and nothing is left in the queue */
        assert_int_equal(PROVE(waiter, strategy, "n"), DBLOCK_ANSWER_NO);
    }
}

static void wait__is_cancelled(void **state)
{
    struct dblock_connection *holder = connect_for(DBLOCK_ADVISORY);
    struct dblock_connection *waiter = connect_for(DBLOCK_ADVISORY);
    uint64_t begun_us;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(TAKE(holder, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(write(ends[1], "x", 1), 1);
    sqlite_fixture_limit(&fixture, 20 * SECOND, ends[0]);
    begun_us = dblock_clock_us();
    assert_int_equal(TAKE_WAITING(waiter, DBLOCK_ADVISORY, "n", 10 * SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_CANCELLED);
    assert_true(dblock_clock_us() - begun_us < SECOND / 10);
    assert_int_equal(DROP(holder, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(holder, DBLOCK_ADVISORY, "n"), DBLOCK_ANSWER_YES);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

struct delayed_drop {
    struct dblock_connection *connection;
    int strategy;
};

static void *drop_later(void *context)
{
    struct delayed_drop *delayed = context;
    struct dblock_subject subject = sqlite_subject("n");
    struct dblock_answer answer;
    struct dblock_error error;

    test_pass_ms(50);
    memset(&answer, 0, sizeof answer);
    (void)STEPS(delayed->strategy)
        ->drop(delayed->connection, &fixture.call, &subject, &answer, &error);
    return NULL;
}

static void wait__is_granted_by_the_release(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        struct delayed_drop delayed = {connect_for(strategy), strategy};
        struct dblock_connection *waiter = connect_for(strategy);
        uint64_t begun_us = dblock_clock_us();
        pthread_t thread;

        assert_int_equal(TAKE(delayed.connection, strategy, "n"), DBLOCK_ANSWER_YES);
        assert_int_equal(pthread_create(&thread, NULL, drop_later, &delayed), 0);
        assert_int_equal(TAKE_WAITING(waiter, strategy, "n", 10 * SECOND), DBLOCK_ANSWER_YES);
        (void)pthread_join(thread, NULL);
        assert_true(dblock_clock_us() - begun_us < 2 * SECOND);
        assert_int_equal(PROVE(waiter, strategy, "n"), DBLOCK_ANSWER_YES);
    }
}

static void a_late_grant__is_not_made(void **state)
{
    struct dblock_take late = sqlite_take_of("n", sqlite_id("x"), NULL, 0);
    struct dblock_connection *connection = connect_for(DBLOCK_ROW);

    (void)state;
    late.not_after_us = 1;
    assert_int_equal(fixture.driver->row.take(
                         connection, &fixture.call, &late, NULL, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_LATE);
    assert_int_equal(TAKE(connect_for(DBLOCK_ROW), DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
}

static int count_grants(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static int count_listed(struct dblock_connection *connection, struct dblock_page *page)
{
    int n_grants = 0;

    assert_int_equal(fixture.driver->observe.list(connection, &fixture.call, page, count_grants,
                         &n_grants, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    return n_grants;
}

static int note_grant(const struct dblock_grant *grant, void *context)
{
    *(struct dblock_grant *)context = *grant;
    return 0;
}

static void list__shows_the_living_with_their_tokens(void **state)
{
    struct dblock_connection *shortly = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        struct dblock_page page = {.strategy = strategy, .limit = 10};
        struct dblock_connection *connection = connect_for(strategy);
        struct dblock_grant grant;

        assert_int_equal(count_listed(shortly, &page), 0);
        assert_int_equal(TAKE(connection, strategy, "b"), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(connection, strategy, "a"), DBLOCK_ANSWER_YES);
        assert_int_equal(RUN(STEPS(strategy)->draw, connection, "b"), DBLOCK_ANSWER_YES);
        assert_int_equal(count_listed(shortly, &page), 2);
        page.limit = 1;
        assert_int_equal(fixture.driver->observe.list(shortly, &fixture.call, &page, note_grant,
                             &grant, &fixture.answer, &fixture.error),
            DBLOCK_OK);
        assert_string_equal(grant.name, "a");
        assert_int_equal(grant.token, 0);
        page.after = "a";
        assert_int_equal(fixture.driver->observe.list(shortly, &fixture.call, &page, note_grant,
                             &grant, &fixture.answer, &fixture.error),
            DBLOCK_OK);
        assert_string_equal(grant.name, "b");
        assert_true(grant.token > 0);
        /* whoever holds it is told, and nothing is done to that process */
        assert_int_equal(sqlite_break(&fixture, shortly, strategy, "b", 0), -1);
        assert_int_equal(fixture.status, DBLOCK_E_UNSUPPORTED);
        assert_non_null(strstr(fixture.error.hint, "4711"));
        assert_int_equal(sqlite_break(&fixture, shortly, strategy, "b", 7), DBLOCK_ANSWER_NO);
        assert_int_equal(sqlite_break(&fixture, shortly, strategy, "c", 0), DBLOCK_ANSWER_NO);
        sqlite_fixture_disconnect(&fixture, connection, DBLOCK_CLOSE_ABORT);
        page = (struct dblock_page){.strategy = strategy, .limit = 10};
        assert_int_equal(count_listed(shortly, &page), 0);
    }
}

static void many_locks__share_one_descriptor(void **state)
{
    struct dblock_connection *connection = connect_for(DBLOCK_ADVISORY);
    struct dblock_connection *other = connect_for(DBLOCK_ADVISORY);
    struct dblock_page page = {.strategy = DBLOCK_ADVISORY, .limit = 10000};
    char name[32];
    int i;

    (void)state;
    for (i = 0; i < 1000; ++i) {
        (void)snprintf(name, sizeof name, "name %d", i);
        assert_int_equal(TAKE(connection, DBLOCK_ADVISORY, name), DBLOCK_ANSWER_YES);
    }
    assert_int_equal(count_listed(connection, &page), 1000);
    for (i = 0; i < 1000; i += 3) {
        (void)snprintf(name, sizeof name, "name %d", i);
        assert_int_equal(TAKE(other, DBLOCK_ADVISORY, name), DBLOCK_ANSWER_BUSY);
        assert_string_equal(fixture.grant.name, name);
        assert_int_equal(DROP(connection, DBLOCK_ADVISORY, name), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, DBLOCK_ADVISORY, name), DBLOCK_ANSWER_YES);
    }
    assert_int_equal(count_listed(other, &page), 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(take__excludes_and_names_the_holder),
        TEST(strategies__do_not_exclude_each_other),
        TEST(seed__is_never_needed),
        TEST(advisory__is_busy_to_its_own_connection),
        TEST(advisory__by_number_is_the_name_with_that_hash),
        TEST(advisory__by_number_is_kept_modulo_2_61),
        TEST(draw__rises_and_needs_the_lock_for_advisory),
        TEST(wait__ends_with_its_time),
        TEST(wait__is_cancelled),
        TEST(wait__is_granted_by_the_release),
        TEST(a_late_grant__is_not_made),
        TEST(list__shows_the_living_with_their_tokens),
        TEST(many_locks__share_one_descriptor),
    };

    return cmocka_run_group_tests_name("sqlite_byte", tests, NULL, NULL);
}
