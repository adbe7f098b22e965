/* SPDX-License-Identifier: MIT */
/* sqlite_file_test.c - the SQLite driver and its file: URLs, what is refused and
 * why, installing (also by many at once), rights, and a file that is taken away.
 * Runs beside others. */
#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processes.h"
#include "test_wait.h"

#define SECOND 1000000u
#define N_INSTALLERS 16

static struct sqlite_fixture fixture;

static int set_up(void **state)
{
    (void)state;
    return sqlite_fixture_open(&fixture, 1);
}

static int set_up_without_file(void **state)
{
    (void)state;
    return sqlite_fixture_open(&fixture, 0);
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

static dblock_status parse(const char *url, const char *schema)
{
    struct dblock_target_config config = {
        .url = url, .schema = schema, .host = "h", .pid = 1, .label = ""};
    struct dblock_target *target = NULL;
    dblock_status status;

    memset(&fixture.error, 0, sizeof fixture.error);
    status = dblock_sqlite_driver()->target_open(&config, &target, &fixture.error);
    dblock_sqlite_driver()->target_close(target);
    assert_null(strstr(fixture.error.message, "s3cret"));
    return status;
}

static void urls__are_checked(void **state)
{
    (void)state;
    assert_int_equal(parse("sqlite:lock.db", NULL), DBLOCK_OK);
    assert_int_equal(parse("sqlite:/tmp/lock.db", NULL), DBLOCK_OK);
    assert_int_equal(parse("sqlite:///tmp/lock%20.db", "main"), DBLOCK_OK);
    assert_int_equal(parse("sqlite:", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("sqlite://", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("sqlite://me:s3cret@host/lock.db", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("sqlite:lock.db?password=s3cret", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("sqlite:/tmp/", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("postgresql://me:s3cret@x", NULL), DBLOCK_E_ARGUMENT);
    assert_int_equal(parse("sqlite::memory:?key=s3cret", NULL), DBLOCK_E_UNSUPPORTED);
    assert_non_null(strstr(fixture.error.message, "memory"));
    assert_int_equal(parse("sqlite:lock.db", "other"), DBLOCK_E_UNSUPPORTED);
}

static dblock_status open_url(const char *url, int is_installing)
{
    struct dblock_target_config config = {.url = url, .host = "h", .pid = 1, .label = ""};
    struct dblock_target *target = NULL;
    struct dblock_connection *connection = NULL;
    struct dblock_answer answer = {0};
    const struct dblock_driver *driver = fixture.driver;
    dblock_status status = driver->target_open(&config, &target, &fixture.error);

    if (status == DBLOCK_OK && is_installing)
        status = driver->install(target, &fixture.call, &fixture.error);
    if (status == DBLOCK_OK)
        status = driver->connection.open(
            target, DBLOCK_ROLE_SHORT, &fixture.call, &connection, &answer, &fixture.error);
    if (status == DBLOCK_OK)
        status = driver->connection.verify(connection, &fixture.call, &answer, &fixture.error);
    driver->connection.close(connection, DBLOCK_CLOSE_POLITE);
    driver->target_close(target);
    return status;
}

/* A URL of something in the fixture's folder. */
static const char *url_of(const char *name)
{
    static char url[800];

    (void)snprintf(url, sizeof url, "sqlite:%s/%s", fixture.folder, name);
    return url;
}

static void a_missing_file__is_not_made_by_opening(void **state)
{
    (void)state;
    assert_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT));
    assert_int_equal(fixture.status, DBLOCK_E_SCHEMA);
    assert_non_null(strstr(fixture.error.hint, "dblock init"));
    assert_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_ROW));
    assert_int_equal(fixture.status, DBLOCK_E_SCHEMA);
    assert_int_not_equal(access(fixture.path, F_OK), 0);
}

/* One cause, one answer, whether the file is to be made or only to be opened. */
static void a_wrong_path__is_the_same_to_all(void **state)
{
    char long_name[300];
    int is_install;

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    assert_int_equal(symlink("loop", url_of("loop") + strlen("sqlite:")), 0);
    for (is_install = 0; is_install < 2; ++is_install) {
        assert_int_equal(open_url(url_of("no/such/lock.db"), is_install), DBLOCK_E_SCHEMA);
        assert_non_null(strstr(fixture.error.message, "no such folder"));
        assert_non_null(strstr(fixture.error.hint, "make its folder"));
        assert_int_equal(open_url(url_of("lock.db/lock.db"), is_install), DBLOCK_E_SCHEMA);
        assert_int_equal(open_url(url_of("loop"), is_install), DBLOCK_E_SCHEMA);
        assert_int_equal(open_url(url_of(long_name), is_install), DBLOCK_E_SCHEMA);
        assert_int_equal(open_url(url_of("."), is_install), DBLOCK_E_SCHEMA);
    }
}

static void a_folder_or_another_file__is_refused(void **state)
{
    FILE *stream;

    (void)state;
    assert_int_equal(open_url(url_of("../"), 0), DBLOCK_E_ARGUMENT);
    assert_int_equal(open_url(url_of("."), 0), DBLOCK_E_SCHEMA);
    assert_non_null(strstr(fixture.error.message, "folder"));
    stream = fopen(fixture.path, "w");
    assert_non_null(stream);
    assert_true(fputs("This is not a database, but a text of more than a hundred bytes, so that "
                      "SQLite does not take it for an empty file.",
                    stream) >= 0);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(open_url(fixture.url, 0), DBLOCK_E_SCHEMA);
    assert_non_null(strstr(fixture.error.message, "not a database"));
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_E_SCHEMA);
}

/* Opening waits for who has the file locked, and that wait can be ended like any other. */
static void opening__that_is_cancelled_is_no_connection(void **state)
{
    struct dblock_target_config config = {
        .url = fixture.url, .host = "h", .pid = 1, .label = ""
    };
    struct dblock_call call = { dblock_clock_us() + 5000000, -1 };
    struct dblock_target *target = NULL;
    struct dblock_connection *connection = NULL;
    struct dblock_answer answer = {0};
    sqlite3 *other = NULL;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    call.cancel_fd = ends[0];
    assert_int_equal(sqlite3_open(fixture.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA journal_mode = DELETE; CREATE TABLE app(x);"
                                         "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        fixture.driver->target_open(&config, &target, &fixture.error), DBLOCK_OK);
    assert_int_equal(fixture.driver->connection.open(target, DBLOCK_ROLE_SHORT, &call,
                         &connection, &answer, &fixture.error), DBLOCK_CANCELLED);
    assert_int_equal(fixture.driver->install(target, &call, &fixture.error), DBLOCK_CANCELLED);
    fixture.driver->target_close(target);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A folder of the system in which no file can be made. */
static void a_place_that_takes_no_file__is_named(void **state)
{
    (void)state;
    assert_int_equal(open_url("sqlite:/proc/dblock.db", 1), DBLOCK_E_SCHEMA);
    assert_string_equal(fixture.error.hint, "name another path");
}

static void a_file_without_tables__says_what_to_do(void **state)
{
    struct dblock_connection *connection;

    (void)state;
    assert_int_equal(sqlite_fixture_run(&fixture, "CREATE TABLE app(x)"), SQLITE_OK);
    assert_int_equal(open_url(fixture.url, 0), DBLOCK_E_SCHEMA);
    assert_string_equal(fixture.error.hint, "run: dblock init");
    connection = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    assert_int_equal(sqlite_take(&fixture, connection, DBLOCK_LEASE, "n", "A", NULL, SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_E_SCHEMA);
    assert_string_equal(fixture.error.hint, "run: dblock init");
    assert_int_equal(fixture.driver->connection.is_alive(connection), 1);
    /* PITFALL(C7): mended while it runs, the next attempt works */
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(
        sqlite_take(&fixture, connection, DBLOCK_LEASE, "n", "A", NULL, SECOND), DBLOCK_ANSWER_YES);
}

static int64_t read_journal_mode(void)
{
    /* text in a column that is read as a number: compared in SQL instead */
    return sqlite_fixture_number(&fixture, "SELECT journal_mode = 'wal' FROM pragma_journal_mode");
}

static void a_dropped_table__is_noticed_and_mended(void **state)
{
    struct dblock_connection *connection = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);

    (void)state;
    assert_int_equal(sqlite_take(&fixture, connection, DBLOCK_INSERT, "n", "A", NULL, SECOND),
        DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_fixture_run(&fixture, "DROP TABLE dblock_insert"), SQLITE_OK);
    assert_int_equal(sqlite_take(&fixture, connection, DBLOCK_INSERT, "m", "B", NULL, SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_E_SCHEMA);
    assert_int_equal(open_url(fixture.url, 0), DBLOCK_E_SCHEMA);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(sqlite_take(&fixture, connection, DBLOCK_INSERT, "m", "C", NULL, SECOND),
        DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_fixture_run(&fixture, "DROP TRIGGER dblock_lease_gone"), SQLITE_OK);
    assert_int_equal(open_url(fixture.url, 0), DBLOCK_E_SCHEMA);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(
        sqlite_fixture_run(&fixture, "UPDATE dblock_meta SET version = 99"), SQLITE_OK);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_E_SCHEMA);
    assert_non_null(strstr(fixture.error.message, "99"));
}

static void install__turns_the_log_on_in_a_new_file_only(void **state)
{
    (void)state;
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(read_journal_mode(), 1);
    assert_int_equal(unlink(fixture.path), 0);
    assert_int_equal(sqlite_fixture_run(&fixture, "CREATE TABLE app(x)"), SQLITE_OK);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(read_journal_mode(), 0);
}

/* Everything works beside an application that keeps a rollback journal. */
static void a_rollback_journal__works_too(void **state)
{
    struct dblock_connection *mine, *other;

    (void)state;
    assert_int_equal(sqlite_fixture_run(&fixture, "CREATE TABLE app(x)"), SQLITE_OK);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    mine = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    other = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    assert_int_equal(sqlite_begin_session(&fixture, mine, "s", SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(
        sqlite_take(&fixture, mine, DBLOCK_LEASE, "n", "A", "s", 0), DBLOCK_ANSWER_YES);
    assert_int_equal(
        sqlite_take(&fixture, other, DBLOCK_LEASE, "n", "B", NULL, SECOND), DBLOCK_ANSWER_BUSY);
    sqlite_fixture_shift_clock(2 * SECOND);
    assert_int_equal(
        sqlite_take(&fixture, other, DBLOCK_LEASE, "n", "C", NULL, SECOND), DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_drop(&fixture, other, DBLOCK_LEASE, "n", "C", 0), DBLOCK_ANSWER_YES);
    assert_int_equal(sqlite_fixture_run(&fixture, "INSERT INTO app VALUES(1)"), SQLITE_OK);
}

static int install_once(void *context, int ready_fd)
{
    char byte;

    (void)ready_fd;
    if (read(*(int *)context, &byte, 1) != 1) /* all begin when the test writes */
        return 2;
    return open_url(fixture.url, 1) == DBLOCK_OK ? 0 : 1;
}

static void install__by_many_at_once(void **state)
{
    struct test_process processes[N_INSTALLERS];
    int ends[2];
    int round, i;

    (void)state;
    for (round = 0; round < 5; ++round) {
        assert_int_equal(pipe(ends), 0);
        for (i = 0; i < N_INSTALLERS; ++i) {
            int go[2] = {ends[0], ends[1]};

            assert_int_equal(process_start(&processes[i], install_once, go), 0);
        }
        assert_int_equal(write(ends[1], "0123456789abcdef", N_INSTALLERS), N_INSTALLERS);
        for (i = 0; i < N_INSTALLERS; ++i)
            assert_int_equal(process_wait(&processes[i], 30000), 0);
        (void)close(ends[0]);
        (void)close(ends[1]);
        assert_int_equal(open_url(fixture.url, 0), DBLOCK_OK);
        assert_int_equal(read_journal_mode(), 1);
        assert_int_equal(unlink(fixture.path), 0);
    }
}

static int try_as_nobody(void *context, int ready_fd)
{
    const dblock_status *expected = context;
    dblock_status status;

    (void)ready_fd;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 77;
    status = open_url(fixture.url, 0);
    return status == *expected && fixture.error.hint[0] != 0 ? 0 : 1;
}

static void rights__are_named(void **state)
{
    static const struct {
        mode_t mode;
        dblock_status status;
    } cases[] = {{0644, DBLOCK_E_READ_ONLY}, {0600, DBLOCK_E_PERMISSION}};
    struct test_process process;
    size_t i;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs a second user */
    assert_int_equal(chmod(fixture.folder, 0755), 0);
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        dblock_status expected = cases[i].status;

        assert_int_equal(chmod(fixture.path, cases[i].mode), 0);
        assert_int_equal(process_start(&process, try_as_nobody, &expected), 0);
        assert_int_equal(process_wait(&process, 10000), 0);
    }
}

/* Two names of one file would have two side files. */
static void hard_links__are_refused(void **state)
{
    char second[300];

    (void)state;
    (void)snprintf(second, sizeof second, "%s/second.db", fixture.folder);
    assert_int_equal(link(fixture.path, second), 0);
    assert_int_equal(open_url(url_of("second.db"), 0), DBLOCK_E_UNSUPPORTED);
    assert_int_equal(unlink(second), 0);
    assert_int_equal(open_url(fixture.url, 0), DBLOCK_OK);
}

static void symbolic_links__lead_to_one_side_file(void **state)
{
    char second[300];
    struct stat side;

    (void)state;
    (void)snprintf(second, sizeof second, "%s/second.db", fixture.folder);
    assert_int_equal(symlink(fixture.path, second), 0);
    assert_int_equal(open_url(url_of("second.db"), 0), DBLOCK_OK);
    (void)snprintf(second, sizeof second, "%s/second.db-dblock", fixture.folder);
    assert_int_not_equal(stat(second, &side), 0);
}

/* A connection to a file that was deleted or replaced is of no use, and says so. */
static void a_replaced_file__is_noticed(void **state)
{
    struct dblock_connection *connection = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    char name[300];

    (void)state;
    assert_int_equal(
        sqlite_begin_session(&fixture, connection, "s", 60 * SECOND), DBLOCK_ANSWER_YES);
    (void)snprintf(name, sizeof name, "%s/away", fixture.folder);
    assert_int_equal(rename(fixture.path, name), 0);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    test_pass_ms(100); /* it is asked for at most every 50 ms */
    assert_int_equal(sqlite_renew_session(&fixture, connection, "s", SECOND), -1);
    assert_int_equal(fixture.status, DBLOCK_E_CONNECTION);
    assert_int_equal(fixture.driver->connection.is_alive(connection), 0);
}

/* ---------------------------------------------------------------------- the log */

/* -1: it is not there. */
static long size_of_log(void)
{
    struct stat file;
    char name[300];

    (void)snprintf(name, sizeof name, "%s-wal", fixture.path);
    return stat(name, &file) == 0 ? (long)file.st_size : -1;
}

/* Its token. */
static int64_t grant_once_and_close(mode_t mode_of_log)
{
    struct dblock_connection *connection = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    int64_t token;
    char name[300];

    assert_int_equal(sqlite_take(&fixture, connection, DBLOCK_LEASE, "n", "me", NULL, SECOND),
        DBLOCK_ANSWER_YES);
    token = fixture.answer.token;
    assert_int_equal(
        sqlite_drop(&fixture, connection, DBLOCK_LEASE, "n", "me", 0), DBLOCK_ANSWER_YES);
    assert_true(size_of_log() > 0);
    (void)snprintf(name, sizeof name, "%s-wal", fixture.path);
    if (mode_of_log != 0)
        assert_int_equal(chmod(name, mode_of_log), 0);
    sqlite_fixture_disconnect(&fixture, connection, DBLOCK_CLOSE_POLITE);
    return token;
}

/* A copy of the file alone has the tables after init. */
static void install__leaves_no_log(void **state)
{
    (void)state;
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(size_of_log(), -1);
    assert_int_equal(open_url(fixture.url, 1), DBLOCK_OK);
    assert_int_equal(size_of_log(), -1);
}

static void the_log__stays_beside_our_tables_while_it_is_short(void **state)
{
    int64_t token = 0;
    int n_copied = 0;
    int i;

    (void)state;
    for (i = 0; i < 200; ++i) {
        int64_t next = grant_once_and_close(0);

        assert_true(size_of_log() <= 256 * 1024);
        assert_true(next > token);
        token = next;
        n_copied += size_of_log() < 0;
    }
    assert_in_range(n_copied, 1, 20);
}

/* Its owner may copy or move his file when nobody uses it. */
static void the_log__goes_from_a_file_with_other_tables(void **state)
{
    (void)state;
    assert_int_equal(sqlite_fixture_run(&fixture, "CREATE VIEW app AS SELECT 1"), SQLITE_OK);
    (void)grant_once_and_close(0);
    assert_int_equal(size_of_log(), -1);
    assert_int_equal(sqlite_fixture_run(&fixture, "DROP VIEW app"), SQLITE_OK);
    (void)grant_once_and_close(0);
    assert_true(size_of_log() > 0);
}

/* Others may write the file; one that they may not write must not be left to them. */
static void the_log__goes_if_its_rights_are_not_the_file_s(void **state)
{
    (void)state;
    assert_int_equal(chmod(fixture.path, 0664), 0);
    (void)grant_once_and_close(0644);
    assert_int_equal(size_of_log(), -1);
    if (geteuid() == 0) { /* a file of somebody else: SQLite makes the log his */
        assert_int_equal(chown(fixture.path, 65534, 65534), 0);
        (void)grant_once_and_close(0);
        assert_true(size_of_log() > 0);
    }
}

/* No descriptor left is not the fault of the file. */
static void too_many_files__is_said(void **state)
{
    struct rlimit before, tight;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    assert_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT));
    assert_int_equal(fixture.status, DBLOCK_E_SYSTEM);
    assert_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_ROW));
    assert_int_equal(fixture.status, DBLOCK_E_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_non_null(sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_WITHOUT_FILE(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, set_up_without_file, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITHOUT_FILE(urls__are_checked),
        TEST_WITHOUT_FILE(a_missing_file__is_not_made_by_opening),
        TEST(a_wrong_path__is_the_same_to_all),
        TEST_WITHOUT_FILE(a_folder_or_another_file__is_refused),
        TEST_WITHOUT_FILE(opening__that_is_cancelled_is_no_connection),
        TEST_WITHOUT_FILE(a_place_that_takes_no_file__is_named),
        TEST_WITHOUT_FILE(a_file_without_tables__says_what_to_do),
        TEST_WITHOUT_FILE(install__turns_the_log_on_in_a_new_file_only),
        TEST_WITHOUT_FILE(a_rollback_journal__works_too),
        TEST_WITHOUT_FILE(install__by_many_at_once),
        TEST(a_dropped_table__is_noticed_and_mended),
        TEST(rights__are_named),
        TEST(hard_links__are_refused),
        TEST(symbolic_links__lead_to_one_side_file),
        TEST(a_replaced_file__is_noticed),
        TEST(too_many_files__is_said),
        TEST_WITHOUT_FILE(install__leaves_no_log),
        TEST(the_log__stays_beside_our_tables_while_it_is_short),
        TEST(the_log__goes_from_a_file_with_other_tables),
        TEST(the_log__goes_if_its_rights_are_not_the_file_s),
    };

    return cmocka_run_group_tests_name("sqlite_file", tests, NULL, NULL);
}
