/* SPDX-License-Identifier: MIT */
/* observe_test.c - listing more than a page, what a database cannot list, and locks whose name is a
 * number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <stdio.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "observe_test"

static dblock_driver driver;
static dblock_client *client;
static struct dblock_error error;
static unsigned unsupported; /* strategies that cannot be listed: 1 << DBLOCK_LEASE ... */
static int exceeds;          /* goes on after a page is full, until it is told to stop */

static dblock_status list(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_page *page, dblock_grant_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_page asked = *page;

    if ((unsupported >> page->strategy & 1u) != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, NULL, "nobody can see these here");
    if (exceeds)
        asked.limit = 1000;
    return sim_driver()->observe.list(connection, call, &asked, fn, context, answer, reterr);
}

static int begin(void **state)
{
    (void)state;
    driver = *sim_driver();
    driver.observe.list = list;
    unsupported = 0;
    exceeds = 0;
    return sim_open(&driver, "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

struct seen {
    int n;
    int stops_at;
    char last[DBLOCK_NAME_MAX + 1];
};

static int see(const struct dblock_grant *grant, void *context)
{
    struct seen *seen = context;

    if (strcmp(seen->last, grant->name) >= 0)
        seen->n = -1000; /* not in order, or twice */
    (void)snprintf(seen->last, sizeof seen->last, "%s", grant->name);
    return ++seen->n == seen->stops_at;
}

static dblock_lock *take(const char *name, int strategy, int64_t id)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    options.has_advisory_id = id != 0;
    options.advisory_id = id;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    return lock;
}

/* As many as fit into some pages exactly, and one more; stopped at the end of one. */
static void pages__are_joined(void **state)
{
    enum { N = 257 };
    static dblock_lock *locks[N];
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    int i;

    (void)state;
    filter.strategy = DBLOCK_LEASE;
    for (i = 0; i < N; ++i) {
        struct seen seen = { 0, 0, "" };
        char name[20];

        (void)snprintf(name, sizeof name, "name-%03d", i);
        locks[i] = take(name, DBLOCK_LEASE, 0);
        if ((i + 1) % 32 > 1)
            continue;
        assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
        assert_int_equal(i + 1, seen.n);
        seen = (struct seen){ 0, i, "" };
        assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
        assert_int_equal(i == 0 ? 1 : i, seen.n);
        filter.limit = (uint64_t)i;
        seen = (struct seen){ 0, 0, "" };
        assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
        assert_int_equal(i == 0 ? 1 : i, seen.n); /* a limit of 0 is none */
        filter.limit = 0;
        exceeds = 1; /* what is more than a page is left for the next one */
        seen = (struct seen){ 0, 0, "" };
        assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
        assert_int_equal(i + 1, seen.n);
        exceeds = 0;
    }
    for (i = 0; i < N; ++i)
        dblock_lock_free(locks[i]);
}

/* Asked for all, what cannot be listed is left out; asked for nothing else, or with nothing else
 * there, it is a failure. */
static void unsupported__is_left_out_of_all(void **state)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct seen seen = { 0, 0, "" };
    dblock_lock *lock = take("x", DBLOCK_LEASE, 0);

    (void)state;
    unsupported = 1u << DBLOCK_ADVISORY | 1u << DBLOCK_ROW;
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
    assert_int_equal(1, seen.n);
    filter.strategy = DBLOCK_ROW;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_list(client, &filter, see, &seen, &error));
    filter.strategy = 0;
    unsupported = 1u << DBLOCK_LEASE | 1u << DBLOCK_INSERT;
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
    unsupported = ~0u;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_list(client, &filter, see, &seen, &error));
    dblock_lock_free(lock);
}

static void number__is_a_name_of_a_lock_without_one(void **state)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct seen seen = { 0, 0, "" };
    dblock_lock *lock = take("anything", DBLOCK_ADVISORY, -42);

    (void)state;
    filter.name = "#-42";
    filter.strategy = DBLOCK_ADVISORY;
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
    assert_int_equal(1, seen.n);
    filter.name = "#43"; /* by name and by number: nobody has it */
    seen = (struct seen){ 0, 0, "" };
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
    assert_int_equal(0, seen.n);
    filter.name = "#-042"; /* a name like any other */
    seen = (struct seen){ 0, 0, "" };
    assert_int_equal(DBLOCK_OK, dblock_list(client, &filter, see, &seen, &error));
    assert_int_equal(0, seen.n);
    assert_int_equal(
        DBLOCK_NOT_HELD, dblock_break(client, "#43", DBLOCK_ADVISORY, 0, &error));
    assert_int_equal(DBLOCK_NOT_HELD, dblock_break(client, "x", DBLOCK_ADVISORY, 0, &error));
    assert_int_equal(DBLOCK_OK, dblock_break(client, "#-42", DBLOCK_ADVISORY, 0, &error));
    assert_int_equal(DBLOCK_LOST, dblock_confirm(lock, &error));
    dblock_lock_free(lock);
}

/* A break that is in somebody's way for now goes on by itself, with the token that it had then. */
static int is_free(void *context)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    if (dblock_acquire(client, context, &options, &lock, NULL) != DBLOCK_OK)
        return 0;
    dblock_lock_free(lock);
    return 1;
}

static void guard(const char *name, int by)
{
    (void)sim_hold_guard(sim_world_lock(WORLD), DBLOCK_LEASE, name, by);
    sim_world_unlock(WORLD);
}

static void answer_pinned(void)
{
    unsigned nth;

    for (nth = 1; nth <= 30; ++nth)
        sim_answer_set(WORLD, SIM_STEP_BREAK, nth, DBLOCK_ANSWER_PINNED);
}

static void pinned__is_broken_later(void **state)
{
    static char x[] = "x", y[] = "y";
    dblock_lock *first = take(x, DBLOCK_LEASE, 0), *second = take(y, DBLOCK_LEASE, 0);
    int64_t token;

    (void)state;
    guard(x, 1);
    guard(y, 1);
    assert_int_equal(DBLOCK_OK, dblock_lock_token(second, &token, &error));
    assert_int_equal(DBLOCK_PENDING, dblock_break(client, x, DBLOCK_LEASE, 0, &error));
    assert_int_equal(DBLOCK_PENDING, dblock_break(client, y, DBLOCK_LEASE, token, &error));
    sim_fail_set(WORLD, SIM_STEP_BREAK, 1, DBLOCK_E_DATABASE); /* the keeper tries again */
    guard(x, -1);
    assert_true(test_until(is_free, x, 5000));
    guard(y, -1);
    assert_true(test_until(is_free, y, 5000));
    /* pinned until the library asks no more, and the holder cannot be named: gone meanwhile */
    answer_pinned();
    assert_int_equal(DBLOCK_NOT_HELD, dblock_break(client, "z", DBLOCK_LEASE, 0, &error));
    sim_fault_clear(WORLD);
    answer_pinned();
    sim_fail_set(WORLD, SIM_STEP_LIST, 1, DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_DATABASE, dblock_break(client, "z", DBLOCK_LEASE, 0, &error));
    sim_fault_clear(WORLD);
    /* one that is never done does not keep the client from closing */
    answer_pinned();
    assert_int_equal(DBLOCK_PENDING, dblock_break(client, "w", DBLOCK_LEASE, 5, &error));
    dblock_lock_free(first);
    dblock_lock_free(second);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages__are_joined),
        TEST(unsupported__is_left_out_of_all),
        TEST(number__is_a_name_of_a_lock_without_one),
        TEST(pinned__is_broken_later),
    };

    return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
