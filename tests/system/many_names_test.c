/* SPDX-License-Identifier: MIT */
/* many_names_test.c - one client with very many grants: all its leases (and inserts) depend on one
 * row that a heartbeat renews, taking and releasing goes on beside them, and beside the purge of what
 * they leave behind; and its advisory locks share a connection. Runs beside others.
 * Time limit: 300 s */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>

#include "application.h"
#include "test_wait.h"

enum {
    DATABASES_MAX = 4,
    CASES_MAX = 20,
    N_GRANTS = 10000,
    N_ADVISORY = 1000,
    N_LEFT = 100, /* each is aged by statements of its own */
    TTL_MS = 4500,
    N_BEATS = 4, /* more than a ttl of them: it is they that keep the grants */
    LONG_MS = 60000
};

static struct world {
    const struct application *application;
    dblock_client *client, *rival;
    void *connection;
    dblock_lock **locks;
    int strategy;
    int n_taken;
    uint64_t beats_to;
    pthread_t thread;
    int is_running;
    atomic_int is_over;
    atomic_uint n_pairs;
    unsigned n_failed, n_back; /* n_back: tokens that did not rise */
    struct dblock_error error;
} w;

static void expect_at(dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s: line %d: %s instead of %s: %s\n", w.application->database->name, line,
        dblock_status_name(actual), dblock_status_name(expected),
        actual < 0 ? w.error.message : "");
    _fail(__FILE__, line);
}

#define expect(expected, actual) expect_at(expected, actual, __LINE__)

/* The names are numbers; this one is of the thread that takes and releases. */
static const char *const pair_name = "pair";

static dblock_status take(dblock_client *client, const char *name, dblock_lock **ret_lock,
    struct dblock_error *error)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = w.strategy;
    options.ttl_ms = TTL_MS;
    options.heartbeat = DBLOCK_HEARTBEAT_ON;
    return dblock_acquire(client, name, &options, ret_lock, error);
}

static const char *number_name(int number)
{
    static char name[32];

    (void)snprintf(name, sizeof name, "many-%d", number);
    return name;
}

static void take_many(int strategy, int n)
{
    w.strategy = strategy;
    while (w.n_taken < n) {
        expect(DBLOCK_OK,
            take(w.client, number_name(w.n_taken), &w.locks[w.n_taken], &w.error));
        ++w.n_taken;
    }
}

static struct dblock_stats read_stats(void)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    dblock_client_stats(w.client, &stats);
    return stats;
}

static int are_beaten(void *context)
{
    (void)context;
    return read_stats().heartbeats >= w.beats_to;
}

static void await_beats(void)
{
    w.beats_to = read_stats().heartbeats + N_BEATS;
    assert_true(test_until(are_beaten, NULL, LONG_MS));
}

static void expect_all_held(void)
{
    int i;

    for (i = 0; i < w.n_taken; ++i)
        assert_true(dblock_lock_is_held(w.locks[i]));
}

static void expect_rival(dblock_status expected, const char *name)
{
    dblock_lock *lock = NULL;

    expect(expected, take(w.rival, name, &lock, &w.error));
    if (lock != NULL)
        expect(DBLOCK_OK, dblock_release(lock, &w.error));
    dblock_lock_free(lock);
}

static dblock_status take_and_release(
    dblock_client *client, const char *name, int64_t *ret_token, struct dblock_error *error)
{
    dblock_lock *lock = NULL;
    dblock_status status = take(client, name, &lock, error);

    if (status == DBLOCK_OK)
        status = dblock_lock_token(lock, ret_token, error);
    if (status == DBLOCK_OK)
        status = dblock_release(lock, error);
    dblock_lock_free(lock);
    return status;
}

static void *run_pairs(void *context)
{
    struct dblock_error error = { 0 };
    int64_t before = 0;

    (void)context;
    while (!atomic_load(&w.is_over)) {
        int64_t token = 0;

        w.n_failed += take_and_release(w.client, pair_name, &token, &error) != DBLOCK_OK;
        w.n_back += token <= before;
        before = token;
        (void)atomic_fetch_add(&w.n_pairs, 1);
    }
    return NULL;
}

static void begin_pairs(void)
{
    assert_int_equal(0, pthread_create(&w.thread, NULL, run_pairs, NULL));
    w.is_running = 1;
}

static void end_pairs(void)
{
    atomic_store(&w.is_over, 1);
    if (w.is_running)
        (void)pthread_join(w.thread, NULL);
    w.is_running = 0;
    assert_int_equal(0, w.n_failed);
    assert_int_equal(0, w.n_back);
}

static int64_t count(const char *what, const char *of)
{
    char sql[160];
    int64_t number;

    (void)snprintf(sql, sizeof sql, "SELECT count(%s) FROM dblock_%s", what, of);
    number = w.application->number(w.connection, sql);
    assert_true(number >= 0);
    return number;
}

/* One statement a heartbeat, because there is only one row that it has to write. */
static void depend_on_one_row(int strategy)
{
    const char *table = dblock_strategy_name(strategy);
    uint64_t begun_ms = test_now_ms();

    take_many(strategy, N_GRANTS);
    print_message("# %s: %d of %s taken in %d ms\n", w.application->database->name,
        (int)N_GRANTS, table, (int)(test_now_ms() - begun_ms));
    begin_pairs();
    await_beats();
    end_pairs();
    print_message("# %s: %u pairs beside %d heartbeats\n", w.application->database->name,
        atomic_load(&w.n_pairs), (int)N_BEATS);
    assert_true(atomic_load(&w.n_pairs) > N_BEATS);
    expect_all_held();
    assert_int_equal(1, count("DISTINCT session", table));
    assert_int_equal(N_GRANTS, count("session", table));
    assert_int_equal(1, count("*", "session"));
    assert_int_equal(N_GRANTS, read_stats().locks_held);
    assert_int_equal(0, read_stats().lost);
    expect_rival(DBLOCK_BUSY, number_name(0));
    expect_rival(DBLOCK_BUSY, number_name(N_GRANTS - 1));
    dblock_close(w.client); /* gives all of them back at once */
    w.client = NULL;
    expect_rival(DBLOCK_OK, number_name(0));
    expect_rival(DBLOCK_OK, number_name(N_GRANTS - 1));
}

static void leases__depend_on_one_row(void **state)
{
    (void)state;
    depend_on_one_row(DBLOCK_LEASE);
}

static void inserts__depend_on_one_row(void **state)
{
    (void)state;
    depend_on_one_row(DBLOCK_INSERT);
}

static int is_at_it(void *n_pairs)
{
    return atomic_load(&w.n_pairs) > *(unsigned *)n_pairs;
}

/* A batch that would have to wait for somebody is left for the next time. */
static int is_purged(void *n_left)
{
    expect(DBLOCK_OK, contract_purge(w.application->database, &w.error));
    return count("*", "lease") <= *(int64_t *)n_left;
}

/* Free for two hours: the keepers' purge takes them away, here one batch after the other. */
static void names_left_behind__are_purged_beside_takes(void **state)
{
    const struct contract_database *database = w.application->database;
    int64_t before = 0, after = 0;
    int64_t one = 1; /* that of the pairs */
    unsigned n_pairs = 0;
    int i;

    (void)state;
    take_many(DBLOCK_LEASE, N_LEFT);
    for (i = 0; i < N_LEFT; ++i)
        expect(DBLOCK_OK, dblock_release(w.locks[i], &w.error));
    expect(DBLOCK_OK, take_and_release(w.client, number_name(0), &before, &w.error));
    for (i = 0; i < N_LEFT; ++i)
        database->age(number_name(i));
    begin_pairs();
    assert_true(test_until(is_at_it, &n_pairs, LONG_MS));
    n_pairs = atomic_load(&w.n_pairs);
    assert_true(test_until(is_purged, &one, LONG_MS));
    assert_true(test_until(is_at_it, &n_pairs, LONG_MS));
    end_pairs();
    expect(DBLOCK_OK, take_and_release(w.rival, number_name(0), &after, &w.error));
    assert_true(after > before);
}

static void advisory_locks__share_a_connection(void **state)
{
    uint32_t n_connections;
    int i;

    (void)state;
    take_many(DBLOCK_ADVISORY, 1);
    n_connections = read_stats().connections;
    take_many(DBLOCK_ADVISORY, N_ADVISORY);
    assert_in_range(read_stats().connections, 1, n_connections);
    expect(DBLOCK_OK, dblock_confirm(w.locks[N_ADVISORY / 2], &w.error));
    expect_all_held();
    expect_rival(DBLOCK_BUSY, number_name(0));
    expect_rival(DBLOCK_BUSY, number_name(N_ADVISORY - 1));
    for (i = 0; i < N_ADVISORY; i += 2)
        expect(DBLOCK_OK, dblock_release(w.locks[i], &w.error));
    expect_rival(DBLOCK_OK, number_name(0));
    expect_rival(DBLOCK_BUSY, number_name(1)); /* the others are there as before */
    expect(DBLOCK_OK, dblock_confirm(w.locks[1], &w.error));
    for (i = 1; i < N_ADVISORY; i += 2)
        expect(DBLOCK_OK, dblock_release(w.locks[i], &w.error));
    expect_rival(DBLOCK_OK, number_name(1));
    expect_rival(DBLOCK_OK, number_name(N_ADVISORY - 1));
}

static dblock_status open_client(dblock_client **ret_client)
{
    const struct contract_database *database = w.application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    if (database->schema != NULL)
        config.schema = database->schema();
    return dblock_open(
        database->driver(), database->url(CONTRACT_URL), &config, ret_client, &w.error);
}

static int begin_world(void **state)
{
    w = (struct world){ .application = *state };
    w.locks = calloc(N_GRANTS, sizeof(dblock_lock *));
    if (w.locks == NULL || open_client(&w.client) != DBLOCK_OK ||
        open_client(&w.rival) != DBLOCK_OK)
        return -1;
    w.connection = w.application->open();
    return 0;
}

static int end_world(void **state)
{
    int i;

    (void)state;
    end_pairs();
    dblock_close(w.client);
    dblock_close(w.rival);
    for (i = 0; i < w.n_taken; ++i)
        dblock_lock_free(w.locks[i]);
    free(w.locks);
    w.application->close(w.connection);
    return 0;
}

static const struct {
    const char *name;
    CMUnitTestFunction run;
} tests[] = {
    { "names_left_behind__are_purged_beside_takes", names_left_behind__are_purged_beside_takes },
    { "leases__depend_on_one_row", leases__depend_on_one_row },
    { "inserts__depend_on_one_row", inserts__depend_on_one_row },
    { "advisory_locks__share_a_connection", advisory_locks__share_a_connection },
};

int main(void)
{
    static struct CMUnitTest cases[CASES_MAX];
    static char titles[CASES_MAX][96];
    const struct application *started[DATABASES_MAX];
    size_t n_started = 0, n_cases = 0, i, d;
    int n_failed;

    for (i = 0; applications[i] != NULL; ++i) {
        int why_not;

        if (n_started > 0 && started[n_started - 1]->database == applications[i]->database)
            continue;
        why_not = application_start(applications[i]);
        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (d = 0; d < n_started; ++d)
        for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
            (void)snprintf(titles[n_cases], sizeof titles[0], "%s: %s",
                started[d]->database->name, tests[i].name);
            cases[n_cases] = (struct CMUnitTest){ titles[n_cases], tests[i].run, begin_world,
                end_world, (void *)(uintptr_t)started[d] };
            ++n_cases;
        }
    n_failed = _cmocka_run_group_tests("many_names", cases, n_cases, NULL, NULL);
    for (d = 0; d < n_started; ++d)
        started[d]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
