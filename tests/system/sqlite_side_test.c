/* SPDX-License-Identifier: MIT */
/* sqlite_side_test.c - the side file of the SQLite driver: holders that die or fork,
 * and the file made, shared, replaced or not ours. Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processes.h"

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

/* ------------------------------------------------------------------- processes */

static int hold_both(void *context, int ready_fd)
{
    struct dblock_connection *row = connect_for(DBLOCK_ROW);
    struct dblock_connection *advisory = connect_for(DBLOCK_ADVISORY);

    (void)context;
    if (TAKE(row, DBLOCK_ROW, "n") != DBLOCK_ANSWER_YES ||
        TAKE(advisory, DBLOCK_ADVISORY, "n") != DBLOCK_ANSWER_YES)
        return 1;
    process_ready(ready_fd, 1);
    process_stay();
    return 0;
}

static void death__frees_at_once(void **state)
{
    struct test_process process;
    int i, strategy;

    (void)state;
    assert_int_equal(process_start(&process, hold_both, NULL), 0);
    assert_int_equal(process_await(&process, 10000), 1);
    FOR_BOTH(i, strategy)
    assert_int_equal(TAKE(connect_for(strategy), strategy, "n"), DBLOCK_ANSWER_BUSY);
    process_kill(&process);
    FOR_BOTH(i, strategy)
    assert_int_equal(TAKE(connect_for(strategy), strategy, "n"), DBLOCK_ANSWER_YES);
}

/* The grandchild stays until the test closes its end of the pipe. */
static int hold_and_fork(void *context, int ready_fd)
{
    struct dblock_connection *row = connect_for(DBLOCK_ROW);
    const int *ends = context;
    char byte;

    if (TAKE(row, DBLOCK_ROW, "n") != DBLOCK_ANSWER_YES)
        return 1;
    (void)close(ends[1]);
    if (fork() == 0) {
        process_ready(ready_fd, 1);
        (void)close(ready_fd);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    process_ready(ready_fd, 1);
    process_stay();
    return 0;
}

/* PITFALL(H7): a forked child shares the open file, and must not keep a dead holder's lock. */
static void a_forked_child__does_not_keep_the_lock(void **state)
{
    struct test_process process;
    struct dblock_connection *other = connect_for(DBLOCK_ROW);
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(process_start(&process, hold_and_fork, ends), 0);
    assert_int_equal(process_await(&process, 10000), 1);
    assert_int_equal(process_await(&process, 10000), 1); /* the grandchild's */
    assert_int_equal(TAKE(other, DBLOCK_ROW, "n"), DBLOCK_ANSWER_BUSY);
    process_kill(&process);
    assert_int_equal(TAKE_WAITING(other, DBLOCK_ROW, "n", 5 * SECOND), DBLOCK_ANSWER_YES);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int close_inherited(void *context, int ready_fd)
{
    (void)ready_fd;
    fixture.driver->connection.close(context, DBLOCK_CLOSE_FORKED);
    return 0;
}

static void close_forked__does_no_harm_to_the_parent(void **state)
{
    struct dblock_connection *row = connect_for(DBLOCK_ROW);
    struct dblock_connection *shortly = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    struct test_process process;

    (void)state;
    assert_int_equal(TAKE(row, DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(process_start(&process, close_inherited, row), 0);
    assert_int_equal(process_wait(&process, 10000), 0);
    assert_int_equal(process_start(&process, close_inherited, shortly), 0);
    assert_int_equal(process_wait(&process, 10000), 0);
    assert_int_equal(PROVE(row, DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(TAKE(connect_for(DBLOCK_ROW), DBLOCK_ROW, "n"), DBLOCK_ANSWER_BUSY);
    assert_int_equal(
        sqlite_take(&fixture, shortly, DBLOCK_LEASE, "n", "A", NULL, SECOND), DBLOCK_ANSWER_YES);
}

static int open_again(void *context, int ready_fd)
{
    (void)context;
    (void)ready_fd;
    if (sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT) != NULL)
        return 1;
    return fixture.status == DBLOCK_E_UNSUPPORTED && fixture.error.hint[0] != 0 ? 0 : 2;
}

static void a_forked_child__may_not_open_what_was_open(void **state)
{
    struct dblock_connection *shortly = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    struct test_process process;

    (void)state;
    assert_non_null(shortly);
    assert_int_equal(process_start(&process, open_again, NULL), 0);
    assert_int_equal(process_wait(&process, 10000), 0);
}

/* --------------------------------------------------------------------- the file */

static void a_replaced_side_file__is_noticed(void **state)
{
    struct dblock_connection *holder = connect_for(DBLOCK_ROW);
    struct dblock_connection *other = connect_for(DBLOCK_ROW);
    char path[300];

    (void)state;
    (void)snprintf(path, sizeof path, "%s-dblock", fixture.path);
    assert_int_equal(TAKE(holder, DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(TAKE(other, DBLOCK_ROW, "m"), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    assert_int_equal(fixture.driver->connection.is_alive(other), 0);
    assert_int_equal(TAKE(connect_for(DBLOCK_ROW), DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    /* the old holder learns of it with the next thing that it asks */
    assert_int_equal(
        fixture.driver->connection.ping(holder, &fixture.call, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    assert_int_equal(fixture.answer.outcome, DBLOCK_ANSWER_NO);
    assert_int_equal(PROVE(holder, DBLOCK_ROW, "n"), DBLOCK_ANSWER_NO);
    assert_int_equal(DROP(holder, DBLOCK_ROW, "n"), DBLOCK_ANSWER_NO);
}

static void the_side_file__has_the_mode_of_the_database(void **state)
{
    struct stat database, side;
    char path[300];
    mode_t mask;

    (void)state;
    (void)snprintf(path, sizeof path, "%s-dblock", fixture.path);
    assert_int_equal(chmod(fixture.path, 0660), 0);
    assert_int_equal(unlink(path), 0);
    mask = umask(077);
    (void)connect_for(DBLOCK_ROW);
    (void)umask(mask);
    assert_int_equal(stat(fixture.path, &database), 0);
    assert_int_equal(stat(path, &side), 0);
    assert_int_equal(side.st_mode & 0777, 0660);
    assert_int_equal(side.st_uid, database.st_uid);
    assert_int_equal(side.st_gid, database.st_gid);
}

static void a_foreign_side_file__is_refused(void **state)
{
    char path[300];
    FILE *stream;

    (void)state;
    (void)snprintf(path, sizeof path, "%s-dblock", fixture.path);
    assert_int_equal(unlink(path), 0);
    stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs("my diary, which is longer than that", stream) >= 0);
    assert_int_equal(fclose(stream), 0);
    assert_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_ROW));
    assert_int_equal(fixture.status, DBLOCK_E_DATABASE);
    assert_non_null(strstr(fixture.error.message, "-dblock"));
}

static size_t count_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    size_t n_entries = 0;

    assert_non_null(stream);
    while (readdir(stream) != NULL)
        ++n_entries;
    (void)closedir(stream);
    return n_entries;
}

static void descriptors__are_not_leaked(void **state)
{
    struct dblock_connection *holder = connect_for(DBLOCK_ROW);
    size_t n_before;
    int round;

    (void)state;
    assert_int_equal(TAKE(holder, DBLOCK_ROW, "n"), DBLOCK_ANSWER_YES);
    n_before = count_descriptors();
    for (round = 0; round < 50; ++round) {
        struct dblock_connection *row = connect_for(DBLOCK_ROW);
        struct dblock_connection *shortly = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);

        assert_int_equal(TAKE_WAITING(row, DBLOCK_ROW, "n", 1000), DBLOCK_ANSWER_BUSY);
        sqlite_fixture_disconnect(&fixture, row, DBLOCK_CLOSE_POLITE);
        sqlite_fixture_disconnect(&fixture, shortly, DBLOCK_CLOSE_ABORT);
        fixture.n_connections = 1;
    }
    assert_int_equal(count_descriptors(), n_before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(death__frees_at_once),
        TEST(a_forked_child__does_not_keep_the_lock),
        TEST(close_forked__does_no_harm_to_the_parent),
        TEST(a_forked_child__may_not_open_what_was_open),
        TEST(a_replaced_side_file__is_noticed),
        TEST(the_side_file__has_the_mode_of_the_database),
        TEST(a_foreign_side_file__is_refused),
        TEST(descriptors__are_not_leaked),
    };

    return cmocka_run_group_tests_name("sqlite_side", tests, NULL, NULL);
}
