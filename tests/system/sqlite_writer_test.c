/* SPDX-License-Identifier: MIT */
/* sqlite_writer_test.c - the SQLite driver while another connection writes to the
 * file: what waits, what does not, and which clock is read. Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "test_wait.h"

#define SECOND 1000000u

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

static sqlite3 *open_writer(void)
{
    sqlite3 *writer = NULL;

    assert_int_equal(sqlite3_open(fixture.path, &writer), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(writer, "CREATE TABLE IF NOT EXISTS app(x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return writer;
}

static void end_writer(sqlite3 *writer)
{
    assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(writer);
}

static void busy__is_answered_while_another_writes(void **state)
{
    int i, strategy;
    uint64_t begun_us;
    sqlite3 *writer;

    (void)state;
    FOR_BOTH(i, strategy)
    {
        assert_int_equal(TAKE(mine, strategy, "w", "A", "mine"), DBLOCK_ANSWER_YES);
        writer = open_writer();
        begun_us = dblock_clock_us();
        assert_int_equal(TAKE(other, strategy, "w", "B", "other"), DBLOCK_ANSWER_BUSY);
        assert_int_equal(TAKE(other, strategy, "w", "C", "other"), DBLOCK_ANSWER_BUSY);
        assert_true(dblock_clock_us() - begun_us < SECOND);
        end_writer(writer);
        assert_int_equal(DROP(mine, strategy, "w", "A"), DBLOCK_ANSWER_YES);
        assert_int_equal(TAKE(other, strategy, "w", "D", "other"), DBLOCK_ANSWER_YES);
    }
}

/* PITFALL(G4): no statement keeps the write lock, whatever it was answered. */
static void a_step_that_waits_in_vain__answers_again_and_leaves_nothing(void **state)
{
    sqlite3 *writer = open_writer();
    uint64_t begun_us = dblock_clock_us();

    (void)state;
    sqlite_fixture_limit(&fixture, SECOND / 10, -1);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "v", "A", "mine"), DBLOCK_ANSWER_AGAIN);
    assert_in_range(dblock_clock_us() - begun_us, SECOND / 10, SECOND);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "mine", SECOND), DBLOCK_ANSWER_AGAIN);
    assert_int_equal(sqlite_break(&fixture, mine, DBLOCK_LEASE, "v", 0), DBLOCK_ANSWER_AGAIN);
    end_writer(writer);
    sqlite_fixture_limit(&fixture, 20 * SECOND, -1);
    assert_int_equal(sqlite_fixture_run(&fixture, "BEGIN IMMEDIATE; COMMIT"), SQLITE_OK);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "v", "B", "mine"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(other, DBLOCK_LEASE, "v", "C", "other"), DBLOCK_ANSWER_BUSY);
    assert_int_equal(sqlite_fixture_run(&fixture, "BEGIN IMMEDIATE; COMMIT"), SQLITE_OK);
}

static dblock_status acquire(
    dblock_client *client, const char *name, int strategy, uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    dblock_status status;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    status = dblock_acquire(client, name, &options, &lock, &fixture.error);
    dblock_lock_free(lock);
    return status;
}

/* A file that cannot be written is no lock that somebody holds. One that is held is still BUSY. */
static void a_locked_file__is_not_told_as_a_held_lock(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *client = NULL;
    sqlite3 *writer;
    int i, strategy;

    (void)state;
    config.io_timeout_ms = 600;
    assert_int_equal(
        DBLOCK_OK, dblock_open(dblock_sqlite_driver(), fixture.url, &config, &client, NULL));
    assert_int_equal(DBLOCK_OK, acquire(client, "warm", DBLOCK_LEASE, 0)); /* it has a session */
    FOR_BOTH(i, strategy)
        assert_int_equal(TAKE(mine, strategy, "held", "x", "mine"), DBLOCK_ANSWER_YES);
    writer = open_writer();
    FOR_BOTH(i, strategy) {
        assert_int_equal(DBLOCK_BUSY, acquire(client, "held", strategy, 0));
        assert_int_equal(DBLOCK_E_DATABASE, acquire(client, "free", strategy, 0));
        assert_non_null(strstr(fixture.error.message, "keeps the file locked"));
        assert_int_equal(1, fixture.error.is_transient);
        assert_int_equal(DBLOCK_E_DATABASE, acquire(client, "free", strategy, 100));
    }
    assert_int_equal(
        DBLOCK_E_DATABASE, dblock_break(client, "held", DBLOCK_LEASE, 0, &fixture.error));
    assert_non_null(strstr(fixture.error.message, "keeps the file locked"));
    end_writer(writer);
    FOR_BOTH(i, strategy)
        assert_int_equal(DBLOCK_OK, acquire(client, "free", strategy, 5000));
    dblock_close(client);
}

static void a_wait_for_the_write_lock__is_cancelled(void **state)
{
    sqlite3 *writer = open_writer();
    uint64_t begun_us = dblock_clock_us();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    sqlite_fixture_limit(&fixture, 20 * SECOND, ends[0]);
    assert_int_equal(TAKE(mine, DBLOCK_LEASE, "c", "A", "mine"), -1);
    assert_int_equal(fixture.status, DBLOCK_CANCELLED);
    assert_true(dblock_clock_us() - begun_us < SECOND / 10);
    end_writer(writer);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void *write_for_a_while(void *context)
{
    test_pass_ms(300);
    end_writer(context);
    return NULL;
}

/* P5, PITFALL(B6): the clock is read after the wait for the write lock, so a session that ended
 * during the wait is not renewed, and a take whose not_after passed during it is not made. */
static void the_clock__is_read_after_the_wait(void **state)
{
    struct dblock_take take = sqlite_take_of("wait", sqlite_id("A"), NULL, SECOND);
    pthread_t thread;
    sqlite3 *writer;

    (void)state;
    assert_int_equal(sqlite_begin_session(&fixture, mine, "short", 100000), DBLOCK_ANSWER_YES);
    writer = open_writer();
    assert_int_equal(pthread_create(&thread, NULL, write_for_a_while, writer), 0);
    assert_int_equal(sqlite_renew_session(&fixture, mine, "short", SECOND), DBLOCK_ANSWER_NO);
    (void)pthread_join(thread, NULL);

    writer = open_writer();
    assert_int_equal(sqlite_look(&fixture, mine, DBLOCK_LEASE, "wait"), DBLOCK_ANSWER_NO);
    take.not_after_us = fixture.answer.now_us + 100000;
    assert_int_equal(pthread_create(&thread, NULL, write_for_a_while, writer), 0);
    assert_int_equal(fixture.driver->lease.take(
                         mine, &fixture.call, &take, NULL, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    (void)pthread_join(thread, NULL);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_LATE);
}

static void purge__waits_for_nobody(void **state)
{
    sqlite3 *writer = open_writer();
    uint64_t begun_us = dblock_clock_us();

    (void)state;
    assert_int_equal(
        fixture.driver->observe.purge(mine, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_true(dblock_clock_us() - begun_us < SECOND / 10);
    end_writer(writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(busy__is_answered_while_another_writes),
        TEST(a_step_that_waits_in_vain__answers_again_and_leaves_nothing),
        TEST(a_locked_file__is_not_told_as_a_held_lock),
        TEST(a_wait_for_the_write_lock__is_cancelled),
        TEST(the_clock__is_read_after_the_wait),
        TEST(purge__waits_for_nobody),
    };

    return cmocka_run_group_tests_name("sqlite_writer", tests, NULL, NULL);
}
