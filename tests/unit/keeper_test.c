/* SPDX-License-Identifier: MIT */
/* keeper_test.c - what the keeper makes of each answer to a heartbeat, a ping, a read-back: all
 * cases at once, each in a world of its own, as each takes a heartbeat or two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim_driver.h"
#include "test_clock.h"
#include "test_wait.h"

enum { TTL_MS = 1200, MANY = 60 };

enum hurt {
    NOTHING,
    BREAKS, /* the rival ends the lease "broken", so that the keeper reads what it holds */
    PLANTS, /* and a row that nobody here took is there besides */
    RESTARTS
};

static struct keeper_case {
    const char *label;
    enum sim_step step;
    unsigned n_times;
    int32_t answer; /* 0: `status` */
    dblock_status status;
    enum hurt hurt;
    int lease, row, broken; /* held at the end? */
    dblock_client *client, *rival;
    dblock_lock *locks[3];
    char world[40];
} cases[] = {
    { .label = "all is well", .lease = 1, .row = 1, .broken = 1 },
    { .label = "a heartbeat is a victim", .step = SIM_STEP_RENEW, .n_times = 1,
        .answer = DBLOCK_ANSWER_AGAIN, .lease = 1, .row = 1, .broken = 1 },
    { .label = "a heartbeat fails", .step = SIM_STEP_RENEW, .n_times = 1,
        .status = DBLOCK_E_DATABASE, .lease = 1, .row = 1, .broken = 1 },
    { .label = "no heartbeat gets through", .step = SIM_STEP_RENEW, .n_times = MANY,
        .status = DBLOCK_E_DATABASE, .row = 1 },
    { .label = "the session is gone", .step = SIM_STEP_RENEW, .n_times = 1,
        .answer = DBLOCK_ANSWER_NO, .row = 1 },
    { .label = "the session is gone, and stays", .step = SIM_STEP_END, .n_times = 2,
        .answer = DBLOCK_ANSWER_AGAIN, .lease = 1, .row = 1, .broken = 1 },
    { .label = "a ping fails", .step = SIM_STEP_PING, .n_times = 1, .status = DBLOCK_E_DATABASE,
        .lease = 1, .row = 1, .broken = 1 },
    { .label = "no ping gets through", .step = SIM_STEP_PING, .n_times = MANY,
        .status = DBLOCK_E_DATABASE, .lease = 1, .broken = 1 },
    { .label = "the lock is gone", .step = SIM_STEP_PING, .n_times = 1, .answer = DBLOCK_ANSWER_NO,
        .lease = 1, .broken = 1 },
    { .label = "broken", .hurt = BREAKS, .lease = 1, .row = 1 },
    { .label = "broken, and the reading fails", .hurt = BREAKS, .step = SIM_STEP_HOLDS,
        .n_times = 2, .status = DBLOCK_E_DATABASE, .lease = 1, .row = 1 },
    { .label = "broken, and the reading is a victim", .hurt = BREAKS, .step = SIM_STEP_HOLDS,
        .n_times = 1, .answer = DBLOCK_ANSWER_AGAIN, .lease = 1, .row = 1 },
    { .label = "a surplus row", .hurt = PLANTS, .lease = 1, .row = 1 },
    { .label = "a surplus row that stays at first", .hurt = PLANTS, .step = SIM_STEP_DROP,
        .n_times = 1, .answer = DBLOCK_ANSWER_PINNED, .lease = 1, .row = 1 },
    { .label = "a surplus row that cannot be dropped", .hurt = PLANTS, .step = SIM_STEP_DROP,
        .n_times = 2, .status = DBLOCK_E_DATABASE, .lease = 1, .row = 1 },
    { .label = "a restart", .hurt = RESTARTS, .lease = 1, .broken = 1 },
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

static dblock_lock *take(dblock_client *client, const char *name, int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;

    options.strategy = strategy;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    return lock;
}

static void begin_case(struct keeper_case *this, size_t i)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    char url[60];

    (void)snprintf(this->world, sizeof this->world, "keeper_test_%zu", i);
    (void)snprintf(url, sizeof url, "sim:%s", this->world);
    config.ttl_ms = TTL_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), url, &config, &this->client, &error));
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), url, NULL, &this->rival, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(this->client, &error));
    this->locks[0] = take(this->client, "lease", DBLOCK_LEASE);
    this->locks[1] = take(this->client, "row", DBLOCK_ROW);
    this->locks[2] = take(this->client, "broken", DBLOCK_LEASE);
}

static void hurt(struct keeper_case *this)
{
    static const unsigned char owner[DBLOCK_ID_SIZE] = "planted by hand";
    unsigned char session[DBLOCK_ID_SIZE];
    struct sim_world *world;
    struct dblock_error error;
    unsigned nth;

    if (this->hurt == PLANTS) {
        world = sim_world_lock(this->world);
        memcpy(session, sim_hold_row(world, DBLOCK_LEASE, "lease")->session, sizeof session);
        sim_hold_plant(
            world, sim_now_us_held(this->world), DBLOCK_LEASE, "planted", owner, session);
        sim_world_unlock(this->world);
    }
    if (this->hurt == BREAKS || this->hurt == PLANTS)
        assert_int_equal(
            DBLOCK_OK, dblock_break(this->rival, "broken", DBLOCK_LEASE, 0, &error));
    if (this->hurt == RESTARTS)
        sim_restart(this->world);
    for (nth = 1; nth <= this->n_times; ++nth)
        if (this->answer != 0)
            sim_answer_set(this->world, this->step, nth, this->answer);
        else
            sim_fail_set(this->world, this->step, nth, this->status);
}

static int is_as_expected(void *context)
{
    const struct keeper_case *this = context;
    const struct sim_row *row;

    row = sim_hold_row(sim_world_lock(this->world), DBLOCK_LEASE, "planted");
    sim_world_unlock(this->world);
    return dblock_lock_is_held(this->locks[0]) == this->lease &&
        dblock_lock_is_held(this->locks[1]) == this->row &&
        dblock_lock_is_held(this->locks[2]) == this->broken && (row == NULL || !row->has_owner);
}

static void end_case(struct keeper_case *this)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;
    int n_lost = 0;
    size_t i;

    while (dblock_client_next_event(this->client, &event) == DBLOCK_OK && event.kind != 0)
        n_lost += event.kind == DBLOCK_EVENT_LOST;
    if (n_lost != 3 - this->lease - this->row - this->broken)
        fail_msg("%s: %d are told lost", this->label, n_lost);
    for (i = 0; i < 3; ++i) {
        (void)dblock_release(this->locks[i], NULL);
        dblock_lock_free(this->locks[i]);
    }
}

static void keeper__in_all_cases(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_CASES; ++i)
        begin_case(&cases[i], i);
    for (i = 0; i < N_CASES; ++i)
        hurt(&cases[i]);
    test_pass_ms(TTL_MS * 3 / 2);
    for (i = 0; i < N_CASES; ++i) {
        if (!test_until(is_as_expected, &cases[i], 3000))
            fail_msg("%s: lease %d, row %d, broken %d", cases[i].label,
                dblock_lock_is_held(cases[i].locks[0]), dblock_lock_is_held(cases[i].locks[1]),
                dblock_lock_is_held(cases[i].locks[2]));
        end_case(&cases[i]);
    }
    test_pass_ms(TTL_MS); /* idle sessions are ended */
    for (i = 0; i < N_CASES; ++i) {
        dblock_close(cases[i].client);
        dblock_close(cases[i].rival);
        sim_forget(cases[i].world);
    }
}

#define WORLD "keeper_test"

static int ends[2]; /* of the socket that each connection shows */

static int show_socket(const struct dblock_connection *connection)
{
    (void)connection;
    return ends[0];
}

static int is_pinged(void *context)
{
    return sim_n_steps(WORLD, SIM_STEP_PING) > *(uint64_t *)context;
}

static void *confirm(void *context)
{
    struct dblock_error error;

    assert_int_equal(DBLOCK_OK, dblock_confirm(context, &error));
    return NULL;
}

static int is_proving(void *context)
{
    return sim_n_steps(WORLD, SIM_STEP_PROVE) > *(uint64_t *)context;
}

/* A hang-up is looked into at once: here it was none. And whoever finds that something was said on
 * a connection asks before he sends a release whose answer might never come. */
static void hang_up__is_looked_into(void **state)
{
    static dblock_driver driver;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *lock;
    pthread_t thread;
    uint64_t n;
    int i;

    (void)state;
    driver = *sim_driver();
    driver.connection.fd = show_socket;
    for (i = 0; i < 6; ++i) {
        static const dblock_status expected[] = { DBLOCK_OK, DBLOCK_OK, DBLOCK_LOST,
            DBLOCK_E_DATABASE, DBLOCK_LOST, DBLOCK_E_CONNECTION };

        assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
        assert_int_equal(DBLOCK_OK, dblock_open(&driver, "sim:" WORLD, NULL, &client, &error));
        assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
        lock = take(client, "x", DBLOCK_ROW);
        n = sim_n_steps(WORLD, SIM_STEP_PROVE);
        if (i == 1) { /* the connection is in use: a little later */
            sim_fault_set(WORLD, SIM_STEP_PROVE, 1, SIM_FAULT_DELAY, 100000);
            assert_int_equal(0, pthread_create(&thread, NULL, confirm, lock));
            assert_true(test_until(is_proving, &n, 5000));
        }
        n = sim_n_steps(WORLD, SIM_STEP_PING);
        assert_int_equal(0, close(ends[1]));
        assert_true(test_until(is_pinged, &n, 2000)); /* else not for ten seconds */
        if (i == 1)
            assert_int_equal(0, pthread_join(thread, NULL));
        assert_int_equal(1, dblock_lock_is_held(lock));
        n = sim_n_steps(WORLD, SIM_STEP_PROVE);
        if (i == 2)
            sim_answer_set(WORLD, SIM_STEP_PROVE, 1, DBLOCK_ANSWER_NO);
        if (i == 3)
            sim_fail_set(WORLD, SIM_STEP_PROVE, 1, DBLOCK_E_DATABASE);
        if (i == 4) /* the lock ended with its connection, and not by this release */
            sim_fault_set(WORLD, SIM_STEP_PROVE, 1, SIM_FAULT_LOSE, 0);
        if (i == 5)
            sim_fail_set(WORLD, SIM_STEP_PROVE, 1, DBLOCK_E_UNCERTAIN);
        test_pass_ms(1); /* what was heard just now is trusted */
        assert_int_equal(expected[i], dblock_release(lock, &error));
        assert_true(sim_n_steps(WORLD, SIM_STEP_PROVE) > n);
        dblock_lock_free(lock);
        dblock_close(client);
        assert_int_equal(0, close(ends[0]));
        sim_fault_clear(WORLD);
    }
    sim_forget(WORLD);
}

static int is_renewed(void *context)
{
    (void)context;
    return sim_n_steps(WORLD, SIM_STEP_RENEW) > 0;
}

static int is_purged(void *context)
{
    return sim_n_steps(WORLD, SIM_STEP_PURGE) >= *(unsigned *)context;
}

/* Rows that nobody needs are taken away once in a while, and soon again as long as there is more.
 * PITFALL(B7): between two looks a day is over, as after a sleep of the machine: what was held then
 * is not believed in for a moment. */
static void purge__comes_once_in_a_while(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_lock *lock;
    unsigned n;

    (void)state;
    test_clock_begin();
    config.ttl_ms = TTL_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    lock = take(client, "x", DBLOCK_LEASE);
    assert_true(test_until(is_renewed, NULL, 5000)); /* the keeper has set its times */
    sim_answer_set(WORLD, SIM_STEP_PURGE, 1, DBLOCK_ANSWER_AGAIN);
    sim_fail_set(WORLD, SIM_STEP_PURGE, 2, DBLOCK_E_DATABASE);
    for (n = 1; n <= 3; ++n) {
        if (n != 2) { /* the first one answers that it is to come again, soon */
            assert_int_equal(1, dblock_lock_is_held(lock));
            test_clock_forward(UINT64_C(24) * 3600 * 1000000);
            assert_int_equal(0, dblock_lock_is_held(lock));
            assert_int_equal(0, dblock_lock_remaining_ms(lock));
        }
        dblock_lock_free(lock);
        lock = take(client, "x", DBLOCK_LEASE);
        assert_true(test_until(is_purged, &n, 5000));
    }
    dblock_lock_free(lock);
    dblock_close(client);
    sim_forget(WORLD);
    test_clock_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeper__in_all_cases),
        cmocka_unit_test(hang_up__is_looked_into),
        cmocka_unit_test(purge__comes_once_in_a_while),
    };

    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
