/* SPDX-License-Identifier: MIT */
/* pgsql_full_test.c - PostgreSQL has no room for one more lock, or one more connection: that is
 * told with the way out, what is held stays held, and as soon as something is given back there is
 * room again. PITFALL(C22). Restarts the server with little room, and as it was at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/dblock.h>

#include "contract_database.h"
#include "server_process.h"
#include "test_wait.h"

/* Of 10 locks a connection, and 20 of these. */
enum { LOCKS_MAX = 5000, TTL_MS = 3000, WAIT_MS = 400, IO_MS = 4000, SLACK_MS = 3000 };

static dblock_client *mine, *other;
static dblock_lock *locks[LOCKS_MAX];
static size_t n_locks;
static struct dblock_error error;

static dblock_client *open_client(void)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *client = NULL;

    config.schema = contract_pgsql.schema();
    config.ttl_ms = TTL_MS;
    config.io_timeout_ms = IO_MS;
    if (dblock_open(contract_pgsql.driver(), contract_pgsql.url(CONTRACT_URL), &config, &client,
            &error) != DBLOCK_OK)
        print_error("%s\n", error.message);
    return client;
}

static dblock_status take(dblock_client *client, int strategy, const char *name, uint64_t wait_ms,
    dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.wait_ms = wait_ms;
    memset(&error, 0, sizeof error);
    return dblock_acquire(client, name, &options, ret_lock, &error);
}

static void expect(dblock_status expected, dblock_status actual)
{
    if (actual != expected)
        fail_msg("%s instead of %s: %s", dblock_status_name(actual), dblock_status_name(expected),
            error.message);
}

static const char *number_name(size_t number)
{
    static char name[32];

    (void)snprintf(name, sizeof name, "full-%zu", number);
    return name;
}

/* What stood in the way of the last. */
static dblock_status fill(int strategy)
{
    dblock_status status = DBLOCK_OK;

    for (n_locks = 0; status == DBLOCK_OK && n_locks < LOCKS_MAX; ++n_locks)
        status = take(mine, strategy, number_name(n_locks), 0, &locks[n_locks]);
    if (status != DBLOCK_OK)
        --n_locks;
    print_message("# %s: there was room for %zu\n", dblock_strategy_name(strategy), n_locks);
    return status;
}

static void release_all(void)
{
    while (n_locks > 0) {
        dblock_lock *lock = locks[--n_locks];

        expect(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
}

static void expect_hint(const char *word)
{
    if (strstr(error.hint, word) == NULL || strstr(error.hint, "lease") == NULL)
        fail_msg("%s (%s)", error.message, error.hint);
}

static void expect_lease(dblock_client *client)
{
    dblock_lock *lock = NULL;

    expect(DBLOCK_OK, take(client, DBLOCK_LEASE, "full-lease", 0, &lock));
    expect(DBLOCK_OK, dblock_confirm(lock, &error));
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* Or the server itself has just given a lock back, and that was the place for this one. */
static void expect_full(dblock_status status, dblock_lock *lock)
{
    if (status == DBLOCK_OK) {
        expect(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
        return;
    }
    assert_true(status < 0);
    assert_string_equal("53200", error.sqlstate);
    expect_hint("max_locks_per_transaction");
}

static int is_time(void *context)
{
    return test_now_ms() >= *(uint64_t *)context;
}

/* The pings of a whole ttl, with nothing free. */
static void expect_all_held_for_a_ttl(void)
{
    uint64_t end_ms = test_now_ms() + TTL_MS + TTL_MS / 3;
    size_t i;

    assert_true(test_until(is_time, &end_ms, 2 * TTL_MS));
    for (i = 0; i < n_locks; ++i)
        assert_true(dblock_lock_is_held(locks[i]));
    expect(DBLOCK_OK, dblock_confirm(locks[0], &error));
    expect(DBLOCK_OK, dblock_confirm(locks[n_locks - 1], &error));
}

static void no_room_for_a_lock__is_told(void **state)
{
    dblock_lock *lock = NULL;
    uint64_t begun_ms;

    (void)state;
    expect_lease(other);
    expect(DBLOCK_E_DATABASE, fill(DBLOCK_ADVISORY));
    assert_in_range(n_locks, 10, LOCKS_MAX - 1);
    assert_string_equal("53200", error.sqlstate);
    expect_hint("max_locks_per_transaction");
    /* the server has no room for the locks of a new connection either; that too is told in time,
     * and nobody is given what is held */
    begun_ms = test_now_ms();
    expect_full(take(other, DBLOCK_ADVISORY, "full-wait", WAIT_MS, &lock), lock);
    assert_true(test_now_ms() - begun_ms < WAIT_MS + IO_MS + SLACK_MS);
    assert_true(take(other, DBLOCK_ADVISORY, number_name(0), 0, &lock) != DBLOCK_OK);
    /* nothing at all can be written then; it is no other error, and over with the next release */
    expect_full(take(other, DBLOCK_LEASE, "full-lease", 0, &lock), lock);
    expect_all_held_for_a_ttl();
    release_all();
    expect_lease(other);
    expect(DBLOCK_OK, take(other, DBLOCK_ADVISORY, "full-wait", WAIT_MS, &lock));
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
    assert_true(fill(DBLOCK_ADVISORY) != DBLOCK_OK);
    assert_true(n_locks > 10);
    release_all();
}

static void no_room_for_a_connection__is_told(void **state)
{
    dblock_lock *lock = NULL;

    (void)state;
    expect_lease(other);
    expect(DBLOCK_E_CONNECTION, fill(DBLOCK_ROW));
    assert_in_range(n_locks, 2, 20);
    assert_string_equal("53300", error.sqlstate);
    expect_hint("max_connections");
    expect_lease(other);
    expect_all_held_for_a_ttl();
    release_all();
    expect(DBLOCK_OK, take(mine, DBLOCK_ROW, number_name(0), 0, &lock));
    expect(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

static int restart(int has_room)
{
    static const char *const words[] = { "restart", "pgsql", "-c", "max_locks_per_transaction=10",
        "-c", "max_connections=20", NULL };
    static const char *const few_words[] = { "restart", "pgsql", NULL };

    return server_services(has_room ? few_words : words);
}

static int open_all(void **state)
{
    (void)state;
    if (restart(0) != 0 || contract_pgsql.start() != NULL)
        return -1;
    mine = open_client();
    other = open_client();
    if (mine == NULL || other == NULL || dblock_schema_install(mine, &error) != DBLOCK_OK)
        return -1;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    dblock_close(mine);
    dblock_close(other);
    while (n_locks > 0)
        dblock_lock_free(locks[--n_locks]);
    contract_pgsql.stop();
    return restart(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_room_for_a_lock__is_told),
        cmocka_unit_test(no_room_for_a_connection__is_told),
    };

    if (getenv("DBLOCK_TEST_PGSQL") == NULL || getenv("DBLOCK_TEST_SERVICES") == NULL) {
        (void)printf("skip: DBLOCK_TEST_PGSQL names no server, or DBLOCK_TEST_SERVICES no"
                     " ci/services\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, open_all, close_all);
}
