/* SPDX-License-Identifier: MIT */
/* join_test.c - what the library makes of a driver's answers when a lock joins a transaction of the
 * application: the driver's steps are a script, what else is needed is the simulated database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "join_test"

enum { YES = DBLOCK_ANSWER_YES, BUSY = DBLOCK_ANSWER_BUSY, UNSEEDED = DBLOCK_ANSWER_UNSEEDED };

/* A status above zero, which would else be an outcome. */
#define STATUS(status) (100 + (status))

/* What the takes of one join answer: statuses, or outcomes. */
static struct {
    int answers[8];
    int n_asked;
    int was_seeded; /* at the last take */
    uint64_t wait_us;
    dblock_status check;
    dblock_canceller *raises; /* in the middle of a take that waits */
    dblock_client *closes;
} script;

static dblock_client *client;
static struct dblock_error error;

static dblock_status check(void *connection, const char *name, struct dblock_error *reterr)
{
    (void)connection;
    return script.check == DBLOCK_OK
        ? DBLOCK_OK
        : dblock_error_set(reterr, script.check, NULL, "no transaction for %s", name);
}

static void *close_it(void *context)
{
    dblock_close(context);
    return NULL;
}

static dblock_status take(const struct dblock_joining *joining, uint64_t wait_us, int cancel_fd,
    int *ret_outcome, struct dblock_error *reterr)
{
    int answer = script.answers[script.n_asked++];
    struct dblock_call call = { dblock_clock_us() + 5000000, cancel_fd };
    pthread_t thread;

    script.was_seeded = joining->is_seeded;
    script.wait_us = wait_us;
    if (wait_us > 0 && script.raises != NULL)
        dblock_cancel(script.raises);
    if (wait_us > 0 && script.closes != NULL) {
        assert_int_equal(0, pthread_create(&thread, NULL, close_it, script.closes));
        assert_int_equal(-1, dblock_fd_wait(-1, 0, &call, 1));
        assert_int_equal(0, pthread_join(thread, NULL));
    }
    if (answer < 0)
        return dblock_error_set(reterr, answer, NULL, "the script says so");
    if (answer >= STATUS(0))
        return answer - STATUS(0);
    *ret_outcome = answer;
    return DBLOCK_OK;
}

static struct dblock_join_steps steps;

static int begin(void **state)
{
    static const struct dblock_join_steps plain = { .check = check, .take = take };

    (void)state;
    steps = plain;
    memset(&script, 0, sizeof script);
    return sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

#define SCRIPT(...) set_script((const int[8]){ __VA_ARGS__ })

static void set_script(const int *answers)
{
    memset(&script, 0, sizeof script);
    memcpy(script.answers, answers, sizeof script.answers);
}

static dblock_status join(const struct dblock_options *options, dblock_lock **ret_lock)
{
    return dblock_join(client, sim_driver(), &steps, NULL, "x", options, ret_lock, &error);
}

static struct dblock_options of(int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    return options;
}

static void busy__waits_and_is_had(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_lock *lock = NULL;

    (void)state;
    SCRIPT(BUSY);
    assert_int_equal(DBLOCK_BUSY, join(&options, &lock));
    assert_int_equal(1, script.n_asked);
    options.wait_ms = 1000;
    SCRIPT(BUSY, BUSY, YES);
    assert_int_equal(DBLOCK_OK, join(&options, &lock));
    assert_int_equal(3, script.n_asked);
    assert_true(script.wait_us > 0 && script.wait_us <= 1000000);
    assert_int_equal(0, dblock_lock_is_held(lock)); /* nothing is believed of it */
    dblock_lock_free(lock);
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
}

/* The row is made by another connection, in a transaction of its own; a few times at most. */
static void unseeded__makes_the_row(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);

    (void)state;
    SCRIPT(UNSEEDED, YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
    assert_int_equal(1, script.was_seeded);
    assert_int_equal(1, sim_n_steps(WORLD, SIM_STEP_SEED));
    SCRIPT(UNSEEDED, UNSEEDED, UNSEEDED, UNSEEDED, UNSEEDED, UNSEEDED, UNSEEDED, UNSEEDED);
    assert_int_equal(DBLOCK_E_DATABASE, join(&options, NULL));
    assert_int_equal(5, script.n_asked);
    sim_fail_set(WORLD, SIM_STEP_SEED, 1, DBLOCK_E_READ_ONLY);
    SCRIPT(UNSEEDED, YES);
    assert_int_equal(DBLOCK_E_READ_ONLY, join(&options, NULL));
    assert_int_equal(1, script.n_asked);
}

/* With gap locks the row is made before it is asked for, once for each name that is not known. */
static void gap_locks__make_the_row_before(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);

    (void)state;
    steps.has_gap_locks = 1;
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
    assert_int_equal(1, script.was_seeded);
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
    assert_int_equal(0, script.was_seeded);
    assert_int_equal(1, sim_n_steps(WORLD, SIM_STEP_SEED));
    SCRIPT(UNSEEDED, YES);
    assert_int_equal(DBLOCK_E_DATABASE, join(&options, NULL));
    assert_int_equal(1, error.is_transient);
    sim_fail_set(WORLD, SIM_STEP_SEED, 1, DBLOCK_E_READ_ONLY);
    SCRIPT(YES);
    assert_int_equal(DBLOCK_E_READ_ONLY, join(&options, NULL)); /* it is not known any more */
    assert_int_equal(0, script.n_asked);
    options.strategy = DBLOCK_ADVISORY; /* no row */
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
    assert_int_equal(0, script.was_seeded);
}

static void failure__is_told_as_it_is(void **state)
{
    static const int statuses[] = { DBLOCK_E_DATABASE, DBLOCK_E_CONNECTION, DBLOCK_STALE_SNAPSHOT,
        DBLOCK_ROLLED_BACK };
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_lock *lock = NULL;
    size_t i;

    (void)state;
    options.wait_ms = 100;
    for (i = 0; i < sizeof statuses / sizeof statuses[0]; ++i) {
        const int answer = statuses[i] < 0 ? statuses[i] : STATUS(statuses[i]);

        SCRIPT(answer);
        assert_int_equal(statuses[i], join(&options, &lock));
        SCRIPT(BUSY, answer);
        assert_int_equal(statuses[i], join(&options, &lock));
        assert_null(lock);
    }
    SCRIPT(YES);
    script.check = DBLOCK_E_ARGUMENT;
    assert_int_equal(DBLOCK_E_ARGUMENT, join(&options, &lock));
    assert_int_equal(0, script.n_asked);
}

static void wish__that_no_transaction_can_fulfil_is_refused(void **state)
{
    struct dblock_options options = of(DBLOCK_LEASE);
    dblock_driver other = *sim_driver();

    (void)state;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, join(&options, NULL));
    options = of(DBLOCK_ROW);
    options.flags = DBLOCK_FAIR;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, join(&options, NULL));
    options = of(DBLOCK_ADVISORY);
    options.flags = DBLOCK_FENCED;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, join(&options, NULL));
    options.strategy = DBLOCK_ROW;
    steps.cannot_fence = 1;
    assert_int_equal(DBLOCK_E_UNSUPPORTED, join(&options, NULL));
    options = of(9);
    assert_int_equal(DBLOCK_E_ARGUMENT, join(&options, NULL));
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_join(client, &other, &steps, NULL, "x", NULL, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_join(client, sim_driver(), &steps, NULL, "", NULL, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_join(NULL, sim_driver(), &steps, NULL, "x", NULL, NULL, &error));
    assert_int_equal(0, script.n_asked);
}

/* S3: the number is handed out once the transaction, which has the lock, has answered again. */
static void fenced__draws_beside_the_transaction(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_lock *lock = NULL;
    int64_t token = 0;

    (void)state;
    options.flags = DBLOCK_FENCED;
    SCRIPT(UNSEEDED, YES, YES);
    assert_int_equal(DBLOCK_OK, join(&options, &lock));
    assert_int_equal(3, script.n_asked);
    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error));
    assert_true(token > 0);
    dblock_lock_free(lock);
    lock = NULL;
    SCRIPT(YES, UNSEEDED);
    assert_int_equal(DBLOCK_E_DATABASE, join(&options, &lock));
    SCRIPT(YES, DBLOCK_E_CONNECTION);
    assert_int_equal(DBLOCK_E_CONNECTION, join(&options, &lock));
    sim_fail_set(WORLD, SIM_STEP_DRAW, 1, DBLOCK_E_READ_ONLY);
    SCRIPT(YES, YES);
    assert_int_equal(DBLOCK_E_READ_ONLY, join(&options, &lock));
    assert_int_equal(1, script.n_asked);
    assert_null(lock);
}

static void waits_itself__is_asked_once(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)state;
    steps.waits_itself = 1;
    options.wait_ms = 700;
    SCRIPT(BUSY);
    assert_int_equal(DBLOCK_BUSY, join(&options, NULL));
    assert_int_equal(1, script.n_asked);
    assert_int_equal(700000, script.wait_us);
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, NULL));
    SCRIPT(DBLOCK_E_DATABASE);
    assert_int_equal(DBLOCK_E_DATABASE, join(&options, NULL));
    assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &stats));
    assert_int_equal(0, stats.grants); /* counted by whoever waits */
}

static void busy__says_who_holds_it(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    struct dblock_options plain = of(DBLOCK_ROW);
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    dblock_client *rival = NULL;
    dblock_lock *lock = NULL;

    (void)state;
    options.busy = &holder;
    SCRIPT(BUSY);
    assert_int_equal(DBLOCK_BUSY, join(&options, NULL)); /* gone since, or not one of ours */
    assert_string_equal("x", holder.name);
    assert_string_equal("", holder.owner);
    assert_int_equal(
        DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error));
    plain.label = "the rival";
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", &plain, &lock, &error));
    SCRIPT(BUSY);
    assert_int_equal(DBLOCK_BUSY, join(&options, NULL));
    assert_string_equal("the rival", holder.label);
    options.strategy = DBLOCK_ADVISORY;
    options.has_advisory_id = 1;
    options.advisory_id = 7;
    SCRIPT(BUSY);
    assert_int_equal(DBLOCK_BUSY, join(&options, NULL));
    assert_int_equal(DBLOCK_ADVISORY, holder.strategy);
    dblock_lock_free(lock);
    dblock_close(rival);
}

static void cancelled__is_told_from_closed(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    dblock_canceller *canceller = NULL;

    (void)state;
    options.wait_ms = 5000;
    SCRIPT(BUSY, STATUS(DBLOCK_CANCELLED)); /* somebody cancelled the statement itself */
    assert_int_equal(DBLOCK_CANCELLED, join(&options, NULL));
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&canceller, &error));
    options.canceller = canceller;
    SCRIPT(BUSY, STATUS(DBLOCK_CANCELLED));
    script.raises = canceller;
    assert_int_equal(DBLOCK_CANCELLED, join(&options, NULL));
    SCRIPT(BUSY, YES); /* it is raised before the wait begins */
    assert_int_equal(DBLOCK_CANCELLED, join(&options, NULL));
    assert_int_equal(1, script.n_asked);
    dblock_canceller_free(canceller);
    options.canceller = NULL;
    SCRIPT(BUSY, STATUS(DBLOCK_CANCELLED));
    script.closes = client;
    assert_int_equal(DBLOCK_E_CLOSED, join(&options, NULL));
    client = NULL;
}

/* What an object of such a lock cannot do, as its transaction has it. */
static void object__is_not_a_grant(void **state)
{
    struct dblock_options options = of(DBLOCK_ROW);
    struct dblock_guarded guarded;
    dblock_lock *lock = NULL;
    int64_t token;
    int fd = -1;

    (void)state;
    SCRIPT(YES);
    assert_int_equal(DBLOCK_OK, join(&options, &lock));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_extend(lock, 5000, &error));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, dblock_lock_detach(lock, 5000, &error));
    assert_int_not_equal(DBLOCK_OK, dblock_lock_token(lock, &token, &error)); /* none was drawn */
    assert_int_equal(
        DBLOCK_E_UNSUPPORTED, dblock_guard_begin(lock, sim_driver(), &guarded, &error));
    assert_int_equal(DBLOCK_OK, dblock_lock_fd(lock, &fd, &error));
    assert_int_equal(0, test_readable(fd, 0));
    assert_int_equal(DBLOCK_PENDING, dblock_release(lock, &error));
    assert_int_equal(1, test_readable(fd, 1000));
    dblock_lock_free(lock);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(busy__waits_and_is_had),
        TEST(unseeded__makes_the_row),
        TEST(gap_locks__make_the_row_before),
        TEST(failure__is_told_as_it_is),
        TEST(wish__that_no_transaction_can_fulfil_is_refused),
        TEST(fenced__draws_beside_the_transaction),
        TEST(waits_itself__is_asked_once),
        TEST(busy__says_who_holds_it),
        TEST(cancelled__is_told_from_closed),
        TEST(object__is_not_a_grant),
    };

    return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
