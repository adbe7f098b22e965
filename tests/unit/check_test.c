/* SPDX-License-Identifier: MIT */
/* check_test.c - what dblock_check() makes of the driver's findings, of tables and of clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/check.h>
#include <dblock/sys/driver.h>
#include <stdio.h>
#include <string.h>

#include "sim_driver.h"

#define WORLD "check_test"

static dblock_client *client;
static struct dblock_error error;
static int severity, n_findings; /* what the driver finds, and how often */
static int tells_time;

static dblock_status check(struct dblock_connection *connection, const struct dblock_call *call,
    dblock_finding_fn fn, void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_finding finding = { sizeof finding, severity, 1u << DBLOCK_ROW, "found",
        "something", "nothing" };
    int i;

    for (i = 0; i < n_findings && fn(&finding, context) == 0; ++i)
        ;
    return sim_driver()->connection.ping(connection, call, answer, reterr);
}

static dblock_status ping(struct dblock_connection *connection, const struct dblock_call *call,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    dblock_status status = sim_driver()->connection.ping(connection, call, answer, reterr);

    if (!tells_time)
        answer->now_us = 0;
    return status;
}

static dblock_driver driver;

static int begin(void **state)
{
    (void)state;
    driver = *sim_driver();
    driver.observe.check = check;
    driver.connection.ping = ping;
    severity = DBLOCK_FINDING_WARNING;
    n_findings = 1;
    tells_time = 1;
    return dblock_open(&driver, "sim:" WORLD, NULL, &client, &error) == DBLOCK_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

struct told {
    int n;
    int n_unusable;
    int stops_at;
    char clock[300];
};

static int note(const struct dblock_finding *finding, void *context)
{
    struct told *told = context;

    told->n_unusable += finding->severity == DBLOCK_FINDING_UNUSABLE;
    if (strcmp(finding->id, "clock") == 0)
        (void)snprintf(told->clock, sizeof told->clock, "%s", finding->text);
    return ++told->n == told->stops_at;
}

static dblock_status ask(struct told *told, int stops_at)
{
    memset(told, 0, sizeof *told);
    told->stops_at = stops_at;
    return dblock_check(client, note, told, &error);
}

static void tables__missing_are_a_finding(void **state)
{
    struct told told;

    (void)state;
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_int_equal(1, told.n_unusable);
    sim_world_lock(WORLD)->is_denied = 1;
    sim_world_unlock(WORLD);
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_int_equal(1, told.n_unusable);
    sim_world_lock(WORLD)->is_denied = 0;
    sim_world_unlock(WORLD);
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_int_equal(0, told.n_unusable);
    assert_int_equal(3, told.n);
    assert_int_equal(DBLOCK_OK, ask(&told, 1));
    assert_int_equal(1, told.n);
}

static void clocks__are_compared(void **state)
{
    struct told told;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_non_null(strstr(told.clock, "agrees"));
    sim_clock_step(WORLD, 5000000);
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_non_null(strstr(told.clock, "behind the database's"));
    sim_clock_step(WORLD, -10000000);
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_non_null(strstr(told.clock, "ahead of the database's"));
    tells_time = 0;
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_string_equal("", told.clock);
}

/* Of more findings than fit the first are told. */
static void many__are_told_as_far_as_there_is_room(void **state)
{
    struct told told;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    n_findings = 100;
    assert_int_equal(DBLOCK_OK, ask(&told, 0));
    assert_int_equal(64, told.n);
}

/* More often than the library asks again. */
static void fail_each_time(enum sim_step step, unsigned first)
{
    unsigned nth;

    for (nth = first; nth < first + 8; ++nth)
        sim_fail_set(WORLD, step, nth, DBLOCK_E_CONNECTION);
}

/* Where the tables cannot be asked for because of what was found, that is no failure of the check;
 * else it is. */
static void unreachable__is_a_failure_unless_it_is_explained(void **state)
{
    static const enum sim_step steps[] = { SIM_STEP_VERIFY, SIM_STEP_PING };
    static const unsigned first[] = { 1, 2 }; /* the driver's own check has pinged */
    struct told told;
    size_t i;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    for (i = 0; i < 2; ++i) {
        severity = DBLOCK_FINDING_GOOD;
        sim_fail_set(WORLD, steps[i], first[i], DBLOCK_E_DATABASE);
        assert_int_equal(DBLOCK_E_DATABASE, ask(&told, 0));
        assert_int_equal(0, told.n);
        fail_each_time(steps[i], first[i]);
        assert_int_equal(DBLOCK_E_CONNECTION, ask(&told, 0));
        sim_fault_clear(WORLD);
        severity = DBLOCK_FINDING_UNUSABLE;
        fail_each_time(steps[i], first[i]);
        assert_int_equal(DBLOCK_OK, ask(&told, 0));
        assert_true(told.n_unusable > 0);
        sim_fault_clear(WORLD);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables__missing_are_a_finding),
        TEST(clocks__are_compared),
        TEST(many__are_told_as_far_as_there_is_room),
        TEST(unreachable__is_a_failure_unless_it_is_explained),
    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
