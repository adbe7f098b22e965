/* SPDX-License-Identifier: MIT */
/* pgsql_dead_test.c - a process dies while PostgreSQL is busy with a statement of it: with one of
 * dblock's that waits, or with one of its own on a connection that has locks. PITFALL(D9). Runs
 * beside others. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <dblock/check.h>

#include "application.h"
#include "processes.h"
#include "test_wait.h"

extern const struct application application_pgsql;

enum { IO_MS = 3000, LONG_MS = 60000, CHECK_MS = 300, PAUSE_MS = 1500, SLACK_MS = 3000 };

static const struct application *const application = &application_pgsql;

/* What the process does that is killed, and with which lock it dies; `held` is the parent's. */
struct scene {
    int strategy;
    char mine[64];
    char held[64];
    const char *setting; /* of the application's connection; NULL: none */
    uint64_t pause_ms;   /* of the application's statement */
};

static dblock_client *client;
static void *plain;
static dblock_lock *held;
static struct test_process process;
static struct dblock_error error;

static dblock_status open_client(dblock_client **ret_client)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    config.schema = application->database->schema();
    config.io_timeout_ms = IO_MS;
    return dblock_open(application->database->driver(), application->database->url(CONTRACT_URL),
        &config, ret_client, &error);
}

static dblock_status take(dblock_client *by, int strategy, const char *name, uint64_t wait_ms,
    dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    return dblock_acquire(by, name, &options, ret_lock, &error);
}

static void expect(dblock_status expected, dblock_status actual)
{
    if (actual != expected)
        fail_msg("%s instead of %s: %s", dblock_status_name(actual), dblock_status_name(expected),
            actual < 0 ? error.message : "");
}

/* ---------------------------------------------------------------- who is killed */

static int complain(void)
{
    (void)fprintf(stderr, "the process that is to be killed: %s\n", error.message);
    return 1;
}

/* Holds one lock, and waits for another on a connection of dblock's own. */
static int hold_and_wait(void *context, int ready_fd)
{
    const struct scene *scene = context;
    dblock_client *own = NULL;
    dblock_lock *lock = NULL, *never = NULL;

    if (open_client(&own) != DBLOCK_OK ||
        take(own, scene->strategy, scene->mine, 0, &lock) != DBLOCK_OK)
        return complain();
    process_ready(ready_fd, 1);
    (void)take(own, scene->strategy, scene->held, LONG_MS, &never);
    return 2;
}

/* The same in a transaction of the application. */
static int join_and_wait(void *context, int ready_fd)
{
    const struct scene *scene = context;
    void *connection = application->open();
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *own = NULL;

    options.strategy = scene->strategy;
    if (connection == NULL || application->run(connection, "BEGIN") != 0 ||
        open_client(&own) != DBLOCK_OK ||
        application->acquire_in(own, connection, scene->mine, &options, NULL, &error) != DBLOCK_OK)
        return complain();
    options.wait_ms = LONG_MS;
    process_ready(ready_fd, 1);
    (void)application->acquire_in(own, connection, scene->held, &options, NULL, &error);
    return 2;
}

/* Holds one over a connection of the application, and runs something else there. */
static int hold_and_run(void *context, int ready_fd)
{
    const struct scene *scene = context;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    void *connection = application->open();
    dblock_client *own = NULL;
    dblock_lock *lock = NULL;
    char sql[100];

    config.schema = application->database->schema();
    if (connection == NULL ||
        (scene->setting != NULL && application->run(connection, scene->setting) != 0) ||
        application->open_on(connection, &config, &own, &error) != DBLOCK_OK ||
        take(own, scene->strategy, scene->mine, 0, &lock) != DBLOCK_OK)
        return complain();
    process_ready(ready_fd, 1);
    application_fill(sql, sizeof sql, application->pause, "", (int64_t)scene->pause_ms);
    (void)application->number(connection, sql);
    return 2;
}

/* ------------------------------------------------------------------------ cases */

/* A session of this world waits for a lock, or sleeps. */
static int is_busy(void *context)
{
    (void)context;
    return application->number(plain,
               "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user"
               " AND state = 'active' AND wait_event_type IN ('Lock', 'Timeout')") > 0;
}

static int is_idle(void *context)
{
    return !is_busy(context);
}

static void begin(struct scene *scene, test_process_fn fn, const char *what)
{
    (void)snprintf(scene->mine, sizeof scene->mine, "dead-%s-%s-mine", what,
        dblock_strategy_name(scene->strategy));
    (void)snprintf(scene->held, sizeof scene->held, "dead-%s-%s-held", what,
        dblock_strategy_name(scene->strategy));
    expect(DBLOCK_OK, take(client, scene->strategy, scene->held, 0, &held));
    assert_int_equal(0, process_start(&process, fn, scene));
    assert_int_equal(1, process_await(&process, 20000));
    assert_true(test_until(is_busy, NULL, 5000));
    process_kill(&process);
}

/* Milliseconds until the name can be had. */
static uint64_t time_until_free(int strategy, const char *name)
{
    uint64_t begun_ms = test_now_ms();
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(client, strategy, name, LONG_MS / 2, &lock));
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    return test_now_ms() - begun_ms;
}

static void give_back(void)
{
    expect(DBLOCK_OK, dblock_release(held, &error));
    dblock_lock_free(held);
    held = NULL;
}

static const int both[] = { DBLOCK_ROW, DBLOCK_ADVISORY };

/* What it holds is free at once, whatever its other connection waits for. That one gets its turn in
 * the queue and no more; and if it never comes, it is gone at the end of its statement. */
static void dead_waiter__keeps_nothing(void **state)
{
    uint64_t took_ms[2], begun_ms;
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct scene scene = { .strategy = both[i] };

        begin(&scene, hold_and_wait, "waiter");
        took_ms[0] = time_until_free(scene.strategy, scene.mine);
        give_back();
        took_ms[1] = time_until_free(scene.strategy, scene.held);
        print_message("# %s: what was held after %u ms, what was waited for after %u ms\n",
            dblock_strategy_name(scene.strategy), (unsigned)took_ms[0], (unsigned)took_ms[1]);
        assert_in_range(took_ms[0], 0, SLACK_MS);
        assert_in_range(took_ms[1], 0, SLACK_MS);

        begin(&scene, hold_and_wait, "lasting");
        begun_ms = test_now_ms();
        assert_true(test_until(is_idle, NULL, 2 * IO_MS + SLACK_MS));
        print_message("# %s: its session was gone after %u ms, I/O limit %u\n",
            dblock_strategy_name(scene.strategy), (unsigned)(test_now_ms() - begun_ms),
            (unsigned)IO_MS);
        assert_true(test_now_ms() - begun_ms < IO_MS + SLACK_MS);
        give_back();
    }
}

/* A slice of its wait later the transaction ends, with all that was joined to it. */
static void dead_waiter_in_a_transaction__keeps_nothing(void **state)
{
    uint64_t took_ms;
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct scene scene = { .strategy = both[i] };

        begin(&scene, join_and_wait, "joined");
        took_ms = time_until_free(scene.strategy, scene.mine);
        print_message("# %s: what was joined after %u ms\n", dblock_strategy_name(scene.strategy),
            (unsigned)took_ms);
        assert_in_range(took_ms, 0, 1000 + SLACK_MS);
        give_back();
        assert_in_range(time_until_free(scene.strategy, scene.held), 0, SLACK_MS);
    }
}

/* dblock leaves the connection as it is: how soon the server looks after its client is the
 * application's setting, and without it the end of the statement. */
static void lock_over_a_connection__ends_with_what_runs_there(void **state)
{
    struct scene scene = { .strategy = DBLOCK_ADVISORY, .pause_ms = PAUSE_MS };
    uint64_t took_ms;

    (void)state;
    begin(&scene, hold_and_run, "unset");
    took_ms = time_until_free(scene.strategy, scene.mine);
    print_message("# free after %u ms, the statement took %u\n", (unsigned)took_ms,
        (unsigned)PAUSE_MS);
    assert_in_range(took_ms, PAUSE_MS / 3, PAUSE_MS + SLACK_MS);
    give_back();
}

static void lock_over_a_connection_that_is_looked_after__is_free_soon(void **state)
{
    struct scene scene = { .strategy = DBLOCK_ADVISORY, .pause_ms = LONG_MS,
        .setting = "SET client_connection_check_interval = 300" };
    uint64_t took_ms;

    (void)state;
    begin(&scene, hold_and_run, "set");
    took_ms = time_until_free(scene.strategy, scene.mine);
    print_message("# free after %u ms, looked after each %u\n", (unsigned)took_ms,
        (unsigned)CHECK_MS);
    assert_in_range(took_ms, 0, CHECK_MS + SLACK_MS);
    give_back();
}

struct seen {
    int severity;
    char remedy[100];
};

static int note(const struct dblock_finding *finding, void *context)
{
    struct seen *seen = context;

    if (strcmp(finding->id, "dead-client") == 0) {
        seen->severity = finding->severity;
        (void)snprintf(seen->remedy, sizeof seen->remedy, "%s", finding->remedy);
    }
    return 0;
}

/* So it is told to who asks, over such a connection alone. */
static void check__tells_of_it(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct seen seen = { -1, "" };
    void *connection = application->open();
    dblock_client *over = NULL;

    (void)state;
    config.schema = application->database->schema();
    expect(DBLOCK_OK, application->open_on(connection, &config, &over, &error));
    expect(DBLOCK_OK, dblock_check(over, note, &seen, &error));
    assert_int_equal(DBLOCK_FINDING_WARNING, seen.severity);
    assert_non_null(strstr(seen.remedy, "client_connection_check_interval"));
    assert_int_equal(0, application->run(connection, seen.remedy));
    expect(DBLOCK_OK, dblock_check(over, note, &seen, &error));
    assert_int_equal(DBLOCK_FINDING_GOOD, seen.severity);
    dblock_close(over);
    application->close(connection);
    seen.severity = -1;
    expect(DBLOCK_OK, dblock_check(client, note, &seen, &error));
    assert_int_equal(-1, seen.severity);
}

static int open_all(void **state)
{
    (void)state;
    plain = application->open();
    return plain != NULL && open_client(&client) == DBLOCK_OK ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    process_kill(&process);
    dblock_lock_free(held);
    held = NULL;
    dblock_close(client);
    client = NULL;
    application->close(plain);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dead_waiter__keeps_nothing),
        TEST(dead_waiter_in_a_transaction__keeps_nothing),
        TEST(lock_over_a_connection__ends_with_what_runs_there),
        TEST(lock_over_a_connection_that_is_looked_after__is_free_soon),
        TEST(check__tells_of_it),
    };
    int why_not = application_start(application);
    int n_failed;

    if (why_not != 0)
        return why_not;
    n_failed = cmocka_run_group_tests_name("pgsql_dead", tests, NULL, NULL);
    application->database->stop();
    return n_failed == 0 ? 0 : 1;
}
