/* SPDX-License-Identifier: MIT */
/* sqlite_stand_test.c - the steps of the SQLite driver for those who wait for lease and
 * insert, between connections of one process. Other processes: sqlite_line_test.c.
 * Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u

static const int both[] = {DBLOCK_LEASE, DBLOCK_INSERT};
#define FOR_BOTH(index, strategy)                                                                  \
    for ((index) = 0; (index) < 2 && ((strategy) = both[index], 1); ++(index))

static struct sqlite_fixture fixture;
static struct dblock_connection *shortly, *line, *other_line;

static int set_up(void **state)
{
    (void)state;
    if (sqlite_fixture_open(&fixture, 1) != 0)
        return -1;
    shortly = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    other_line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    return shortly != NULL && line != NULL && other_line != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

static int stand_for(
    struct dblock_connection *connection, int strategy, const char *name, uint64_t wait_us)
{
    struct dblock_subject subject = sqlite_subject(name);

    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status = fixture.driver->line.stand(
        connection, &fixture.call, strategy, &subject, wait_us, 0, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int stand(struct dblock_connection *connection, int strategy, uint64_t wait_us)
{
    return stand_for(connection, strategy, "n", wait_us);
}

static int rest(struct dblock_connection *connection, uint64_t limit_us)
{
    struct dblock_call call = {dblock_clock_us() + limit_us, fixture.call.cancel_fd};

    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status =
        fixture.driver->line.rest(connection, &call, "", &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static void leave(struct dblock_connection *connection)
{
    fixture.driver->line.leave(connection);
}

static int take_heeding(int strategy, const char *owner)
{
    struct dblock_take take = sqlite_take_of("n", sqlite_id(owner), NULL, 60 * SECOND);

    take.heeds_line = 1;
    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status =
        (strategy == DBLOCK_LEASE ? fixture.driver->lease.take : fixture.driver->insert.take)(
            shortly, &fixture.call, &take, &fixture.grant, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int take(int strategy, const char *owner)
{
    return sqlite_take(&fixture, shortly, strategy, "n", owner, NULL, 60 * SECOND);
}

static int drop(int strategy, const char *owner)
{
    return sqlite_drop(&fixture, shortly, strategy, "n", owner, 0);
}

static void take__heeds_the_line_if_asked(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(take_heeding(strategy, "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(take_heeding(strategy, "B"), DBLOCK_ANSWER_BUSY);
        assert_true(fixture.answer.remaining_us > 50 * SECOND);
        assert_string_equal(fixture.grant.owner, "41000000000000000000000000000000");
        assert_int_equal(drop(strategy, "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(take_heeding(strategy, "B"), DBLOCK_ANSWER_BUSY);
        assert_int_equal(fixture.answer.remaining_us, 0);
        /* of another strategy, and by the first itself */
        assert_int_equal(
            sqlite_take(&fixture, shortly, both[1 - i], "n", "C", NULL, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(
            sqlite_drop(&fixture, shortly, both[1 - i], "n", "C", 0), DBLOCK_ANSWER_YES);
        assert_int_equal(take(strategy, "B"), DBLOCK_ANSWER_YES);
        leave(line);
        assert_int_equal(drop(strategy, "B"), DBLOCK_ANSWER_YES);
        assert_int_equal(take_heeding(strategy, "D"), DBLOCK_ANSWER_YES);
        assert_int_equal(drop(strategy, "D"), DBLOCK_ANSWER_YES);
    }
}

static void a_wake_up_before_the_rest__counts(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(take(strategy, "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(take(strategy, "B"), DBLOCK_ANSWER_BUSY);
        assert_int_equal(drop(strategy, "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(rest(line, 10 * SECOND), DBLOCK_ANSWER_YES);
        /* once */
        assert_int_equal(rest(line, SECOND / 20), DBLOCK_ANSWER_NO);
        leave(line);
    }
}

static void breaking_and_shortening__wake(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(take(strategy, "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(sqlite_break(&fixture, shortly, strategy, "n", 0), DBLOCK_ANSWER_YES);
        assert_int_equal(rest(line, 10 * SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(take(strategy, "B"), DBLOCK_ANSWER_YES);
        assert_int_equal(
            sqlite_drop(&fixture, shortly, strategy, "n", "B", SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(rest(line, 10 * SECOND), DBLOCK_ANSWER_YES);
        /* a transaction of the application may have given it back before, without a bell */
        assert_int_equal(drop(strategy, "X"), DBLOCK_ANSWER_NO);
        assert_int_equal(rest(line, 10 * SECOND), DBLOCK_ANSWER_YES);
        /* another name wakes nobody */
        assert_int_equal(
            sqlite_take(&fixture, shortly, strategy, "m", "C", NULL, SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(sqlite_drop(&fixture, shortly, strategy, "m", "C", 0), DBLOCK_ANSWER_YES);
        assert_int_equal(rest(line, SECOND / 20), DBLOCK_ANSWER_NO);
        leave(line);
    }
}

static void waiting__ends_with_its_time(void **state)
{
    uint64_t begun_us;

    (void)state;
    assert_int_equal(stand(line, DBLOCK_LEASE, 0), DBLOCK_ANSWER_YES);
    begun_us = dblock_clock_us();
    assert_int_equal(stand(other_line, DBLOCK_LEASE, SECOND / 20), DBLOCK_ANSWER_BUSY);
    assert_in_range(dblock_clock_us() - begun_us, SECOND / 20, SECOND / 2);
    assert_int_equal(stand(other_line, DBLOCK_LEASE, 0), DBLOCK_ANSWER_BUSY);
    sqlite_fixture_limit(&fixture, SECOND / 20, -1);
    assert_int_equal(stand(other_line, DBLOCK_LEASE, UINT64_MAX), DBLOCK_ANSWER_BUSY);
    sqlite_fixture_limit(&fixture, 20 * SECOND, -1);
    begun_us = dblock_clock_us();
    assert_int_equal(rest(line, SECOND / 20), DBLOCK_ANSWER_NO);
    assert_in_range(dblock_clock_us() - begun_us, SECOND / 20, SECOND / 2);
    /* it is the first still, and who gave up is nowhere */
    assert_int_equal(rest(other_line, SECOND), DBLOCK_ANSWER_AGAIN);
    assert_int_equal(stand(other_line, DBLOCK_LEASE, SECOND / 20), DBLOCK_ANSWER_BUSY);
    leave(line);
    assert_int_equal(take_heeding(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
}

static void waiting__is_cancelled(void **state)
{
    uint64_t begun_us = dblock_clock_us();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    sqlite_fixture_limit(&fixture, 20 * SECOND, ends[0]);
    assert_int_equal(stand(other_line, DBLOCK_LEASE, 10 * SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_CANCELLED);
    assert_int_equal(rest(line, 10 * SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_CANCELLED);
    assert_true(dblock_clock_us() - begun_us < SECOND / 2);
    /* again with the same descriptor, and once it is not readable any more */
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(rest(line, 10 * SECOND), -1);
    assert_int_equal(read(ends[0], &begun_us, sizeof begun_us), 1);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(rest(line, SECOND / 20), DBLOCK_ANSWER_NO);
    /* both have left before */
    sqlite_fixture_limit(&fixture, 20 * SECOND, -1);
    leave(line);
    assert_int_equal(take_heeding(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void *cancel_later(void *context)
{
    test_pass_ms(50);
    return write(*(int *)context, "x", 1) == 1 ? NULL : context;
}

static void a_later_cancel__wakes_the_first(void **state)
{
    uint64_t begun_us = dblock_clock_us();
    pthread_t thread;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    sqlite_fixture_limit(&fixture, 20 * SECOND, ends[0]);
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &ends[1]), 0);
    assert_int_equal(rest(line, 10 * SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_CANCELLED);
    assert_in_range(dblock_clock_us() - begun_us, SECOND / 20, SECOND);
    (void)pthread_join(thread, NULL);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void leaving__makes_way(void **state)
{
    int i, strategy;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        leave(line);
        leave(line); /* nothing more to leave */
        assert_int_equal(stand(other_line, strategy, SECOND), DBLOCK_ANSWER_YES);
        /* standing anew is leaving, too */
        assert_int_equal(stand_for(other_line, strategy, "m", SECOND), DBLOCK_ANSWER_YES);
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        sqlite_fixture_disconnect(&fixture, line, DBLOCK_CLOSE_POLITE);
        line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
        assert_int_equal(stand(line, strategy, SECOND), DBLOCK_ANSWER_YES);
        leave(line);
        leave(other_line);
    }
}

/* More than there are lines: those that nobody stands in serve other names. */
static void many_names__share_the_lines(void **state)
{
    char name[32];
    int i;

    (void)state;
    assert_int_equal(stand_for(other_line, DBLOCK_LEASE, "kept", SECOND), DBLOCK_ANSWER_YES);
    for (i = 0; i < 3000; ++i) {
        (void)snprintf(name, sizeof name, "name %d", i);
        assert_int_equal(stand_for(line, DBLOCK_LEASE, name, SECOND), DBLOCK_ANSWER_YES);
        leave(line);
    }
    assert_int_equal(stand_for(line, DBLOCK_LEASE, "kept", 0), DBLOCK_ANSWER_BUSY);
}

static void side_path(char path[300])
{
    (void)snprintf(path, 300, "%s-dblock", fixture.path);
}

static void a_replaced_side_file__is_noticed(void **state)
{
    char path[300];

    (void)state;
    side_path(path);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rest(line, SECOND / 20), DBLOCK_ANSWER_AGAIN);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    assert_int_equal(fixture.driver->connection.is_alive(line), 0);
    line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_YES);
    /* a connection that had the old one open looks at the new one soon */
    test_pass_ms(60); /* sleeps because it looks no more often than every 50 ms */
    assert_int_equal(take(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
    assert_int_equal(drop(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
    assert_int_equal(rest(line, 10 * SECOND), DBLOCK_ANSWER_YES);
}

/* Nothing there to be mapped: locks work, and nobody is woken. */
static void a_side_file_without_lines__says_no(void **state)
{
    struct dblock_connection *row, *other;
    char path[300];

    (void)state;
    side_path(path);
    sqlite_fixture_disconnect(&fixture, line, DBLOCK_CLOSE_POLITE);
    sqlite_fixture_disconnect(&fixture, other_line, DBLOCK_CLOSE_POLITE);
    assert_int_equal(truncate(path, 4096), 0);
    line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    assert_non_null(line);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_NO);
    assert_int_equal(stand(line, DBLOCK_LEASE, SECOND), DBLOCK_ANSWER_NO);
    assert_int_equal(take_heeding(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
    assert_int_equal(drop(DBLOCK_LEASE, "A"), DBLOCK_ANSWER_YES);
    row = sqlite_live_connect(&fixture, DBLOCK_ROW);
    other = sqlite_live_connect(&fixture, DBLOCK_ROW);
    assert_int_equal(sqlite_live_take(&fixture, row, DBLOCK_ROW, "n", 0), DBLOCK_ANSWER_YES);
    assert_int_equal(
        sqlite_live_take(&fixture, other, DBLOCK_ROW, "n", SECOND / 20), DBLOCK_ANSWER_BUSY);
    assert_int_equal(
        sqlite_live_run(&fixture, fixture.driver->row.drop, row, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(
        sqlite_live_take(&fixture, other, DBLOCK_ROW, "n", SECOND / 20), DBLOCK_ANSWER_YES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(take__heeds_the_line_if_asked),
        TEST(a_wake_up_before_the_rest__counts),
        TEST(breaking_and_shortening__wake),
        TEST(waiting__ends_with_its_time),
        TEST(waiting__is_cancelled),
        TEST(a_later_cancel__wakes_the_first),
        TEST(leaving__makes_way),
        TEST(many_names__share_the_lines),
        TEST(a_replaced_side_file__is_noticed),
        TEST(a_side_file_without_lines__says_no),
    };

    return cmocka_run_group_tests_name("sqlite_stand", tests, NULL, NULL);
}
