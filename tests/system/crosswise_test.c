/* SPDX-License-Identifier: MIT */
/* crosswise_test.c - two that hold a lock each wait for that of the other one, on each database
 * with each strategy. No server's search for deadlocks runs into it: both waits end in their
 * time, what was held is held, and as soon as one gives its lock back the other one goes on.
 * PITFALL(S10), C15. The rest of S10 is shown elsewhere: no line in the log and no old snapshot
 * by many waiters in pgsql_quiet_test.c, the order of arrival across slices in contract/queue.c.
 * Runs beside others. Also on pgsql18. Also on oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <pthread.h>
#ifdef DBLOCK_TEST_HAS_PGSQL
#include <libpq-fe.h>
#endif

#include "contract_database.h"
#include "test_wait.h"

/* Longer than PostgreSQL's deadlock_timeout, which is a second if nobody has set it. */
enum { WAIT_MS = 1700, LONG_MS = 20000, SLACK_MS = 4000, N_STRATEGIES = 4, CASES_MAX = 12 };

static const int strategies[N_STRATEGIES] = {
    DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };

static const struct contract_database *const databases[] = {
    &contract_sim,
#ifdef DBLOCK_TEST_HAS_SQLITE
    &contract_sqlite,
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    &contract_pgsql,
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    &contract_mysql,
#endif
};
enum { N_DATABASES = sizeof databases / sizeof databases[0] };

/* One of the two, with a client of its own. */
struct party {
    const struct run *run;
    int strategy;
    dblock_client *client;
    dblock_lock *mine;
    dblock_lock *theirs;
    char name[64]; /* of what it holds */
    struct party *other;
    pthread_t thread;
    uint64_t wait_ms;
    uint64_t took_ms;
    dblock_status status;
    struct dblock_error error;
};

struct run {
    const struct contract_database *database;
    int is_hasty; /* the server is quick to look for deadlocks */
    char title[96];
    struct party parties[N_STRATEGIES][2];
};

#define EACH(run, s, i) \
    for (s = 0; s < N_STRATEGIES; ++s) \
        for (i = 0; i < 2; ++i)

static void expect_at(
    const struct party *party, dblock_status expected, dblock_status actual, int line)
{
    if (actual == expected)
        return;
    print_error("%s: %s: line %d: %s instead of %s: %s\n", party->run->title,
        dblock_strategy_name(party->strategy), line, dblock_status_name(actual),
        dblock_status_name(expected),
        actual < 0 ? party->error.message : "");
    _fail(__FILE__, line);
}

#define expect(party, expected, actual) expect_at(party, expected, actual, __LINE__)

static dblock_status take(
    struct party *party, const char *name, uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = party->strategy;
    options.wait_ms = wait_ms;
    return dblock_acquire(party->client, name, &options, ret_lock, &party->error);
}

static void *wait_for_the_other(void *context)
{
    struct party *party = context;
    uint64_t begun_ms = test_now_ms();

    party->status = take(party, party->other->name, party->wait_ms, &party->theirs);
    party->took_ms = test_now_ms() - begun_ms;
    return NULL;
}

#ifdef DBLOCK_TEST_HAS_PGSQL
/* For sessions of this world that begin from now on. */
static void set_hasty(int is_hasty)
{
    PGconn *admin = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    char sql[120];
    PGresult *result;

    (void)snprintf(sql, sizeof sql, "ALTER ROLE %s %s", contract_word(),
        is_hasty ? "SET deadlock_timeout = 100" : "RESET deadlock_timeout");
    result = PQexec(admin, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        print_error("%s", PQerrorMessage(admin));
    PQclear(result);
    PQfinish(admin);
}
#else
static void set_hasty(int is_hasty)
{
    (void)is_hasty;
}
#endif

static int begin(void **state)
{
    struct run *run = *state;
    static unsigned n_runs;
    size_t s, i;

    ++n_runs;
    if (run->is_hasty)
        set_hasty(1);
    EACH (run, s, i) {
        struct party *party = &run->parties[s][i];
        struct dblock_config config = DBLOCK_CONFIG_INIT;

        memset(party, 0, sizeof *party);
        party->run = run;
        party->strategy = strategies[s];
        party->other = &run->parties[s][1 - i];
        (void)snprintf(party->name, sizeof party->name, "crosswise-%u-%zu", n_runs, i);
        if (run->database->schema != NULL)
            config.schema = run->database->schema();
        if (dblock_open(run->database->driver(), run->database->url(CONTRACT_URL), &config,
                &party->client, &party->error) != DBLOCK_OK)
            return -1;
    }
    return 0;
}

static int end(void **state)
{
    struct run *run = *state;
    size_t s, i;

    EACH (run, s, i) {
        dblock_lock_free(run->parties[s][i].mine);
        dblock_lock_free(run->parties[s][i].theirs);
    }
    EACH (run, s, i)
        dblock_close(run->parties[s][i].client);
    if (run->is_hasty)
        set_hasty(0);
    return 0;
}

/* Each of the two waits so long. */
static void wait_crosswise(struct run *run, const uint64_t waits_ms[2])
{
    size_t s, i;

    EACH (run, s, i) {
        struct party *party = &run->parties[s][i];

        expect(party, DBLOCK_OK, take(party, party->name, 0, &party->mine));
    }
    EACH (run, s, i) {
        struct party *party = &run->parties[s][i];

        party->wait_ms = waits_ms[i];
        assert_int_equal(0, pthread_create(&party->thread, NULL, wait_for_the_other, party));
    }
}

static void both_waits__end_in_their_time(void **state)
{
    static const uint64_t waits_ms[2] = { WAIT_MS, WAIT_MS };
    struct run *run = *state;
    size_t s, i;

    wait_crosswise(run, waits_ms);
    EACH (run, s, i)
        assert_int_equal(0, pthread_join(run->parties[s][i].thread, NULL));
    EACH (run, s, i) {
        struct party *party = &run->parties[s][i];

        expect(party, DBLOCK_BUSY, party->status);
        assert_in_range(party->took_ms, WAIT_MS - 50, WAIT_MS + SLACK_MS);
        expect(party, DBLOCK_OK, dblock_confirm(party->mine, &party->error));
    }
}

/* The first one gives up and releases; the second goes on waiting, and gets it. */
static void one_that_gives_up__lets_the_other_on(void **state)
{
    static const uint64_t waits_ms[2] = { WAIT_MS, LONG_MS };
    struct run *run = *state;
    struct party *first, *second;
    size_t s;

    wait_crosswise(run, waits_ms);
    for (s = 0; s < N_STRATEGIES; ++s) {
        first = &run->parties[s][0];
        assert_int_equal(0, pthread_join(first->thread, NULL));
        if (first->status == DBLOCK_BUSY)
            first->status = dblock_release(first->mine, &first->error);
    }
    for (s = 0; s < N_STRATEGIES; ++s)
        assert_int_equal(0, pthread_join(run->parties[s][1].thread, NULL));
    for (s = 0; s < N_STRATEGIES; ++s) {
        first = &run->parties[s][0];
        second = &run->parties[s][1];
        expect(first, DBLOCK_OK, first->status);
        expect(second, DBLOCK_OK, second->status);
        assert_in_range(second->took_ms, WAIT_MS - 500, WAIT_MS + SLACK_MS);
        expect(second, DBLOCK_OK, dblock_confirm(second->mine, &second->error));
        expect(second, DBLOCK_OK, dblock_release(second->theirs, &second->error));
    }
}

/* Of all that was done before, in the log of PostgreSQL, where each line names the role. */
static void log__has_no_line_of_it(void **state)
{
    const char *data = getenv("DBLOCK_TEST_PGSQL_DATA");
    char path[400], line[2048];
    int n_lines = 0;
    FILE *log;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/../log", data != NULL ? data : "");
    log = fopen(path, "r");
    if (log == NULL)
        skip();
    while (fgets(line, sizeof line, log) != NULL)
        if (strstr(line, contract_word()) != NULL &&
            (strstr(line, "deadlock") != NULL || strstr(line, "lock timeout") != NULL ||
                strstr(line, "canceling") != NULL || strstr(line, "still waiting") != NULL)) {
            print_error("%s", line);
            ++n_lines;
        }
    (void)fclose(log);
    assert_int_equal(0, n_lines);
}

static int start(const struct contract_database *database)
{
    const char *why_not = database->start();
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_status status;

    if (why_not != NULL) {
        (void)fprintf(stderr, "skip: %s: %s\n", database->name, why_not);
        return 0;
    }
    if (database->schema != NULL)
        config.schema = database->schema();
    status = dblock_open(
        database->driver(), database->url(CONTRACT_URL), &config, &client, &error);
    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    dblock_close(client);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "%s: %s\n", database->name, error.message);
    return status == DBLOCK_OK;
}

static struct CMUnitTest case_of(struct run *run, const struct contract_database *database,
    const char *title, CMUnitTestFunction fn)
{
    run->database = database;
    (void)snprintf(run->title, sizeof run->title, "%s: %s", database->name, title);
    return (struct CMUnitTest){ run->title, fn, begin, end, run };
}

int main(void)
{
    static struct run runs[CASES_MAX];
    static struct CMUnitTest cases[CASES_MAX];
    int is_started[N_DATABASES];
    size_t n = 0, d;
    int n_failed, n_started = 0;

    for (d = 0; d < N_DATABASES; ++d) {
        n_started += is_started[d] = start(databases[d]);
        if (!is_started[d])
            continue;
        cases[n] = case_of(
            &runs[n], databases[d], "both waits end", both_waits__end_in_their_time);
        ++n;
        cases[n] = case_of(
            &runs[n], databases[d], "one gives up", one_that_gives_up__lets_the_other_on);
        ++n;
        if (strcmp(databases[d]->name, "pgsql") == 0) {
            runs[n].is_hasty = 1;
            cases[n] = case_of(&runs[n], databases[d], "both waits end, a short deadlock_timeout",
                both_waits__end_in_their_time);
            ++n;
            cases[n++] = (struct CMUnitTest){ "pgsql: the log", log__has_no_line_of_it, NULL, NULL,
                NULL };
        }
    }
    n_failed = _cmocka_run_group_tests("crosswise", cases, n, NULL, NULL);
    for (d = 0; d < N_DATABASES; ++d)
        if (is_started[d])
            databases[d]->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
