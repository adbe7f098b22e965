/* SPDX-License-Identifier: MIT */
/* borrowed_test.c - a client over a connection of the application, on each database: the same
 * answers as from a client with connections of its own, nothing that becomes a part of a transaction
 * of the application, and refusals with the reason. What is left on the connection is looked at in
 * X_borrowed_test.c. Runs beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/many.h>

#include "application.h"
#include "test_wait.h"

enum { CASES_MAX = 160, DATABASES_MAX = 4, WAIT_MS = 10000, TTL_MS = 20000 };

/* `mine` is over `connection`; `other` has its own. */
static struct world {
    const struct application *application;
    int strategy;
    void *connection;
    dblock_client *mine, *other;
    struct dblock_error error;
    char name[64];
} world;

static void expect_at(dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s, %s: line %d: %s instead of %s: %s\n", world.application->database->name,
        dblock_strategy_name(world.strategy), line, dblock_status_name(actual),
        dblock_status_name(expected), actual < 0 ? world.error.message : "");
    _fail(__FILE__, line);
}

#define expect(expected, actual) expect_at(expected, actual, __LINE__)

static int is_recorded(void)
{
    return world.strategy == DBLOCK_LEASE || world.strategy == DBLOCK_INSERT;
}

static struct dblock_options options_of(uint64_t wait_ms)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = world.strategy;
    options.wait_ms = wait_ms;
    options.ttl_ms = TTL_MS;
    if (is_recorded())
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    return options;
}

static dblock_status take(dblock_client *client, uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = options_of(wait_ms);

    return dblock_acquire(client, world.name, &options, ret_lock, &world.error);
}

static void give_back(dblock_lock *lock)
{
    expect(DBLOCK_OK, dblock_release(lock, &world.error));
    dblock_lock_free(lock);
}

static void expect_free_for(dblock_client *client)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(client, 0, &lock));
    give_back(lock);
}

static void run(const char *sql)
{
    if (world.application->run(world.connection, sql) != 0) {
        print_error("%s: %s\n", world.application->database->name, sql);
        fail();
    }
}

static int64_t balance(void)
{
    return world.application->number(
        world.connection, "SELECT balance FROM account WHERE id = 1");
}

static dblock_status open_mine(const char *keeper_url)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    const struct contract_database *database = world.application->database;

    dblock_close(world.mine);
    world.mine = NULL;
    config.schema = database->schema != NULL ? database->schema() : NULL;
    config.keeper_url = keeper_url;
    config.label = "borrower";
    return world.application->open_on(world.connection, &config, &world.mine, &world.error);
}

/* ------------------------------------------------------------------------ cases */

static void grants__exclude_those_of_others(void)
{
    struct dblock_options options = options_of(0);
    struct dblock_grant busy = DBLOCK_GRANT_INIT;
    dblock_lock *lock = NULL, *second = NULL;

    options.busy = &busy;
    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect(DBLOCK_BUSY, take(world.other, 0, &second));
    expect(DBLOCK_BUSY, take(world.mine, 0, &second));
    expect(DBLOCK_OK, dblock_confirm(lock, &world.error));
    give_back(lock);
    expect(DBLOCK_OK, take(world.other, 0, &lock));
    expect(DBLOCK_BUSY,
        dblock_acquire(world.mine, world.name, &options, &second, &world.error));
    assert_string_equal(world.name, busy.name);
    assert_int_equal(world.strategy, busy.strategy);
    give_back(lock);
    expect_free_for(world.mine);
}

static void tokens__rise_over_both(void)
{
    dblock_client *const clients[] = { world.other, world.mine, world.other, world.mine };
    struct dblock_options options = options_of(0);
    dblock_lock *lock = NULL;
    int64_t last = 0, token;
    size_t i;

    options.flags = DBLOCK_FENCED;
    for (i = 0; i < 4; ++i) {
        expect(DBLOCK_OK,
            dblock_acquire(clients[i], world.name, &options, &lock, &world.error));
        expect(DBLOCK_OK, dblock_lock_token(lock, &token, &world.error));
        assert_true(token > last);
        last = token;
        give_back(lock);
    }
}

static void waits__end_with_the_release_of_the_other(void)
{
    dblock_lock *lock = NULL, *second = NULL;
    uint64_t begun_ms = test_now_ms();
    struct dblock_options options = options_of(0);

    expect(DBLOCK_OK, take(world.other, 0, &lock));
    expect(DBLOCK_BUSY, take(world.mine, 120, &second));
    assert_true(test_now_ms() - begun_ms >= 120);
    give_back(lock);
    if (is_recorded()) {
        options.ttl_ms = 150;
        expect(DBLOCK_OK,
            dblock_acquire(world.other, world.name, &options, &lock, &world.error));
        expect(DBLOCK_OK, take(world.mine, WAIT_MS, &second)); /* it had run out */
        expect(DBLOCK_LOST, dblock_release(lock, &world.error));
        dblock_lock_free(lock);
        give_back(second);
    }
    expect_free_for(world.mine);
}

static void cancelled_wait__leaves_nothing(void)
{
    struct dblock_options options = options_of(WAIT_MS);
    dblock_lock *lock = NULL, *second = NULL;

    expect(DBLOCK_OK, dblock_canceller_new(&options.canceller, &world.error));
    dblock_cancel(options.canceller);
    expect(DBLOCK_OK, take(world.other, 0, &lock));
    expect(DBLOCK_CANCELLED,
        dblock_acquire(world.mine, world.name, &options, &second, &world.error));
    dblock_canceller_free(options.canceller);
    give_back(lock);
    expect_free_for(world.other);
}

static int is_extended(const struct dblock_options *options, dblock_lock **ret_lock)
{
    if (dblock_acquire(world.mine, world.name, options, ret_lock, &world.error) != DBLOCK_OK)
        return 0;
    if (dblock_extend(*ret_lock, TTL_MS, &world.error) == DBLOCK_OK)
        return 1;
    dblock_lock_free(*ret_lock);
    *ret_lock = NULL;
    return 0;
}

static void timed_grant__ends_and_is_extended(void)
{
    struct dblock_options options = options_of(0);
    dblock_lock *lock = NULL, *second = NULL;
    int n_late = 0;

    options.ttl_ms = 100;
    while (!is_extended(&options, &lock)) /* in time; a busy machine may be late */
        assert_true(++n_late < 10);
    test_pass_ms(120);
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect(DBLOCK_OK, dblock_confirm(lock, &world.error));
    expect(DBLOCK_OK, dblock_extend(lock, 300, &world.error));
    expect(DBLOCK_OK, take(world.other, WAIT_MS, &second));
    assert_int_equal(0, dblock_lock_is_held(lock));
    expect(DBLOCK_LOST, dblock_confirm(lock, &world.error));
    dblock_lock_free(lock);
    give_back(second);
}

static void inspect_and_break__see_the_same(void)
{
    struct dblock_grant seen[2] = { DBLOCK_GRANT_INIT, DBLOCK_GRANT_INIT };
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    expect(DBLOCK_OK,
        dblock_inspect(world.mine, world.name, world.strategy, &seen[0], &world.error));
    expect(DBLOCK_OK,
        dblock_inspect(world.other, world.name, world.strategy, &seen[1], &world.error));
    assert_string_equal(seen[0].owner, seen[1].owner);
    assert_string_equal(dblock_lock_owner(lock), seen[1].owner);
    assert_string_equal("borrower", seen[1].label);
    assert_int_equal(seen[0].token, seen[1].token);
    assert_int_equal(seen[0].expires_us, seen[1].expires_us);
    expect(DBLOCK_OK,
        dblock_break(world.other, world.name, world.strategy, 0, &world.error));
    expect(DBLOCK_LOST, dblock_confirm(lock, &world.error));
    dblock_lock_free(lock);
    expect(DBLOCK_OK, take(world.other, 0, &lock));
    expect(DBLOCK_OK, dblock_break(world.mine, world.name, world.strategy, 0, &world.error));
    expect(DBLOCK_LOST, dblock_release(lock, &world.error));
    dblock_lock_free(lock);
    expect(DBLOCK_OK, dblock_ping(world.mine, &world.error));
}

static void several_names__all_or_none(void)
{
    static const char *const names[] = { "many-b", "many-a" };
    struct dblock_options options = options_of(0);
    dblock_lock *locks[2] = { NULL, NULL };
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK,
        dblock_acquire_many(world.mine, names, 2, &options, locks, &world.error));
    expect(DBLOCK_BUSY, dblock_acquire(world.other, names[1], &options, &lock, &world.error));
    run("BEGIN");
    expect(DBLOCK_E_ARGUMENT, dblock_release_many(locks, 2, &world.error));
    run("COMMIT");
    expect(DBLOCK_OK, dblock_release_many(locks, 2, &world.error));
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
    run("BEGIN");
    expect(DBLOCK_E_ARGUMENT,
        dblock_acquire_many(world.mine, names, 2, &options, locks, &world.error));
    run("COMMIT");
    expect(DBLOCK_OK, dblock_acquire(world.other, names[0], &options, &lock, &world.error));
    give_back(lock);
}

/* On SQLite these two live beside the connection. */
static int is_beside(void)
{
    return !is_recorded() && world.application->has_one_writer;
}

/* Row locks of a server are on a connection of dblock's own. */
static int is_taken_there(void)
{
    return is_recorded() || (world.strategy == DBLOCK_ADVISORY && !is_beside());
}

static void transaction_of_the_application__is_left_alone(void)
{
    dblock_lock *lock = NULL;

    run("BEGIN");
    run("UPDATE account SET balance = balance + 1 WHERE id = 1");
    if (is_taken_there()) {
        expect(DBLOCK_E_ARGUMENT, take(world.mine, WAIT_MS, &lock));
        assert_non_null(strstr(world.error.message, "transaction"));
        assert_non_null(strstr(world.error.hint, "acquire_in"));
    } else { /* beside it, and with nothing to do with that transaction */
        expect(DBLOCK_OK, take(world.mine, 0, &lock));
        give_back(lock);
    }
    assert_int_not_equal(DBLOCK_OK, dblock_ping(world.mine, &world.error));
    run("ROLLBACK");
    assert_int_equal(100, balance());
    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    run("BEGIN");
    run("UPDATE account SET balance = balance + 1 WHERE id = 1");
    if (is_taken_there()) {
        expect(DBLOCK_E_ARGUMENT, dblock_release(lock, &world.error));
        assert_int_equal(1, dblock_lock_is_held(lock));
        expect(DBLOCK_E_ARGUMENT, dblock_confirm(lock, &world.error));
        expect(DBLOCK_E_ARGUMENT,
            dblock_extend(lock, is_recorded() ? TTL_MS : 0, &world.error));
        assert_int_equal(1, dblock_lock_is_held(lock));
    }
    run("COMMIT");
    assert_int_equal(101, balance());
    run("UPDATE account SET balance = 100 WHERE id = 1");
    expect(DBLOCK_OK, dblock_confirm(lock, &world.error));
    give_back(lock);
    expect_free_for(world.other);
}

static void own_locks__guard_and_end_in_its_transaction(void)
{
    dblock_lock *lock = NULL, *second = NULL;

    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    run(world.application->begin);
    expect(DBLOCK_OK, world.application->guard(lock, world.connection, &world.error));
    run("UPDATE account SET balance = balance + 1 WHERE id = 1");
    run("COMMIT");
    assert_int_equal(101, balance());
    run("UPDATE account SET balance = 100 WHERE id = 1");
    run(world.application->begin);
    expect(DBLOCK_OK, world.application->release_in(lock, world.connection, &world.error));
    run("COMMIT");
    expect(DBLOCK_OK, take(world.other, 0, &second));
    give_back(second);
    dblock_lock_free(lock);
    expect_free_for(world.mine);
}

static void heartbeat__needs_a_way_of_its_own(void)
{
    struct dblock_options options = options_of(0);
    dblock_lock *lock = NULL, *second = NULL;

    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    options.ttl_ms = 1000;
    expect(DBLOCK_E_UNSUPPORTED,
        dblock_acquire(world.mine, world.name, &options, &lock, &world.error));
    assert_non_null(strstr(world.error.hint, "keeper_url"));
    expect(DBLOCK_OK, open_mine(world.application->database->url(CONTRACT_URL)));
    expect(DBLOCK_OK, dblock_acquire(world.mine, world.name, &options, &lock, &world.error));
    test_pass_ms(1150);
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect(DBLOCK_BUSY, take(world.other, 0, &second));
    expect(DBLOCK_OK, dblock_confirm(lock, &world.error));
    give_back(lock);
    expect_free_for(world.other);
}

static void freed_lock__goes_with_the_next_call(void)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    dblock_lock_free(lock);
    expect_free_for(world.mine);
    expect_free_for(world.other);
    /* not even then in a transaction of the application; after it */
    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    dblock_lock_free(lock);
    run("BEGIN");
    assert_int_not_equal(DBLOCK_OK, dblock_ping(world.mine, &world.error));
    run("COMMIT");
    expect_free_for(world.mine);
}

static void close__frees_and_leaves_the_connection(void)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(world.mine, 0, &lock));
    dblock_close(world.mine);
    world.mine = NULL;
    assert_int_equal(0, dblock_lock_is_held(lock));
    dblock_lock_free(lock);
    expect(DBLOCK_OK, take(world.other, WAIT_MS, &lock)); /* row: when the server has noticed */
    give_back(lock);
    assert_int_equal(100, balance());
    expect(DBLOCK_OK, open_mine(NULL));
    if (world.strategy == DBLOCK_ROW && !is_beside())
        return;
    expect_free_for(world.mine);
}

static void two_clients__over_one_connection(void)
{
    dblock_client *first = world.mine;
    dblock_lock *lock = NULL, *second = NULL;

    world.mine = NULL;
    expect(DBLOCK_OK, open_mine(NULL));
    if (world.strategy != DBLOCK_ROW || is_beside()) {
        expect(DBLOCK_OK, take(first, 0, &lock));
        expect(DBLOCK_BUSY, take(world.mine, 0, &second));
        expect(DBLOCK_BUSY, take(world.mine, 30, &second));
        expect(DBLOCK_OK, dblock_confirm(lock, &world.error));
        expect(DBLOCK_BUSY, take(world.other, 0, &second));
        give_back(lock);
        expect_free_for(world.mine);
    }
    dblock_close(first);
    expect(DBLOCK_OK, dblock_ping(world.mine, &world.error));
}

/* What it can do is asked for once more without a keeper's URL. */
static void row__needs_a_way_of_its_own(void)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, open_mine(NULL));
    expect(DBLOCK_E_UNSUPPORTED, take(world.mine, 0, &lock));
    assert_non_null(strstr(world.error.hint, "keeper_url"));
    assert_non_null(strstr(world.error.hint, "acquire_in"));
}

static void nothing__is_refused(void)
{
    dblock_client *client = NULL;

    expect(DBLOCK_E_ARGUMENT,
        world.application->open_on(NULL, NULL, &client, &world.error));
    expect(DBLOCK_E_ARGUMENT,
        world.application->open_on(world.connection, NULL, NULL, &world.error));
    expect(DBLOCK_E_UNSUPPORTED,
        open_mine(NULL) == DBLOCK_OK ? dblock_schema_install(world.mine, &world.error)
                                     : DBLOCK_OK);
}

/* ------------------------------------------------------------------------- runs */

enum { LEASE = 1 << DBLOCK_LEASE, RECORDED = LEASE | 1 << DBLOCK_INSERT, ROW = 1 << DBLOCK_ROW,
    EACH = LEASE | ROW | 1 << DBLOCK_ADVISORY, /* insert differs from lease in its statements only */
    ALL = EACH | RECORDED };

#define TEST(strategies, name) { #name, name, strategies }

static const struct test {
    const char *name;
    void (*run)(void);
    unsigned strategies;
} tests[] = {
    TEST(ALL, grants__exclude_those_of_others),
    TEST(ALL, tokens__rise_over_both),
    TEST(EACH, waits__end_with_the_release_of_the_other),
    TEST(EACH, cancelled_wait__leaves_nothing),
    TEST(RECORDED, timed_grant__ends_and_is_extended),
    TEST(RECORDED, inspect_and_break__see_the_same),
    TEST(RECORDED, several_names__all_or_none),
    TEST(ALL, transaction_of_the_application__is_left_alone),
    TEST(LEASE, own_locks__guard_and_end_in_its_transaction),
    TEST(LEASE, heartbeat__needs_a_way_of_its_own),
    TEST(EACH, freed_lock__goes_with_the_next_call),
    TEST(EACH, close__frees_and_leaves_the_connection),
    TEST(EACH, two_clients__over_one_connection),
    TEST(ROW, row__needs_a_way_of_its_own),
    TEST(LEASE, nothing__is_refused),
};

struct run {
    const struct test *test;
    const struct application *application;
    int strategy;
    char title[128];
};

/* Row locks of a server go another way, so that is given. */
static int begin_world(void **state)
{
    const struct run *this_run = *state;
    const struct contract_database *database = this_run->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    static unsigned n_worlds;

    memset(&world, 0, sizeof world);
    world.application = this_run->application;
    world.strategy = this_run->strategy;
    (void)snprintf(world.name, sizeof world.name, "borrowed-%u", ++n_worlds);
    world.connection = world.application->open();
    if (application_set_account(world.application, world.connection) != 0)
        return -1;
    config.schema = database->schema != NULL ? database->schema() : NULL;
    return dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &world.other,
               &world.error) != DBLOCK_OK ||
        open_mine(world.strategy == DBLOCK_ROW && !is_beside() ? database->url(CONTRACT_URL)
                                                               : NULL) != DBLOCK_OK;
}

static int end_world(void **state)
{
    (void)state;
    dblock_close(world.mine);
    dblock_close(world.other);
    world.application->close(world.connection);
    return 0;
}

static void run_one(void **state)
{
    const struct run *this_run = *state;

    this_run->test->run();
}

int main(void)
{
    static struct run runs[CASES_MAX];
    static struct CMUnitTest cases[CASES_MAX];
    const struct application *started[DATABASES_MAX];
    size_t n_runs = 0, n_started = 0, d, i;
    int strategy, n_failed, why_not;

    for (i = 0; applications[i] != NULL; ++i) {
        if (applications[i]->open_on == NULL)
            continue;
        why_not = application_start(applications[i]);
        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy)
            for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
                struct run *this_run = &runs[n_runs];

                if ((tests[i].strategies >> strategy & 1) == 0)
                    continue;
                /* there it needs none: it lives beside the connection */
                if (tests[i].strategies == ROW && started[d]->has_one_writer)
                    continue;
                this_run->application = started[d];
                this_run->strategy = strategy;
                this_run->test = &tests[i];
                (void)snprintf(this_run->title, sizeof this_run->title, "%s, %s: %s",
                    started[d]->database->name, dblock_strategy_name(strategy), tests[i].name);
                cases[n_runs++] = (struct CMUnitTest){ this_run->title, run_one, begin_world,
                    end_world, this_run };
            }
    n_failed = _cmocka_run_group_tests("borrowed", cases, n_runs, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
