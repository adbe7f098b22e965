/* SPDX-License-Identifier: MIT */
/* keeper_sessions_test.c - heartbeats that hang, that are answered too late or by another server,
 * and what the keeper finds although nothing tells of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/client.h"
#include "core/session.h"
#include "sim_driver.h"
#include "test_clock.h"
#include "test_wait.h"

#define WORLD "keeper_sessions_test"
#define URL "sim:" WORLD

enum { TTL_MS = 2000, IO_MS = 1000, MANY = 100 };

static dblock_client *client, *rival;
static dblock_lock *lock;
static struct dblock_error error;

enum harm { NONE, HANGS, SLEEPS };
static atomic_int harm; /* to the next renewal, between its answer and the client's look at it */
static atomic_int is_hanging, may_go_on;

static dblock_status renew(struct dblock_connection *connection, const struct dblock_call *call,
    const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status =
        sim_driver()->session.renew(connection, call, session, ttl_us, answer, reterr);

    switch (atomic_exchange(&harm, NONE)) {
    case HANGS:
        atomic_store(&is_hanging, 1);
        (void)test_until(test_is_set, &may_go_on, 10000);
        break;
    case SLEEPS:
        test_clock_forward(UINT64_C(24) * 3600 * 1000000);
        break;
    default:
        break;
    }
    return status;
}

static int begin(void **state)
{
    static dblock_driver driver;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    (void)state;
    test_clock_begin();
    driver = *sim_driver();
    driver.session.renew = renew;
    config.ttl_ms = TTL_MS;
    config.io_timeout_ms = IO_MS;
    atomic_store(&harm, NONE);
    atomic_store(&is_hanging, 0);
    atomic_store(&may_go_on, 0);
    if (sim_open(&driver, URL, &config, &client, &error) != 0 ||
        sim_open(sim_driver(), URL, NULL, &rival, &error) != 0)
        return -1;
    lock = NULL;
    return dblock_acquire(client, "x", NULL, &lock, &error) == DBLOCK_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    atomic_store(&may_go_on, 1);
    dblock_lock_free(lock);
    dblock_close(client);
    dblock_close(rival);
    sim_forget(WORLD);
    test_clock_end();
    return 0;
}

static void expect_lost(int fd)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;

    assert_true(test_readable(fd, 5000));
    assert_int_equal(DBLOCK_OK, dblock_client_next_event(client, &event));
    assert_int_equal(DBLOCK_EVENT_LOST, event.kind);
    assert_int_equal(DBLOCK_CAUSE_DEADLINE, event.cause);
    assert_ptr_equal(lock, event.lock);
    assert_int_equal(0, dblock_lock_is_held(lock));
}

static void expect_free_for_the_rival(void)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *theirs = NULL;

    options.wait_ms = 5000;
    assert_int_equal(DBLOCK_OK, dblock_acquire(rival, "x", &options, &theirs, &error));
    dblock_lock_free(theirs);
}

/* The thread that renews is stuck in a client library: the loss is told in time all the same, and a
 * good answer that comes later does not bring back what was given up. */
static void heartbeat__that_hangs(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_client_fd(client, &fd, &error));
    atomic_store(&harm, HANGS);
    assert_true(test_until(test_is_set, &is_hanging, 5000));
    expect_lost(fd);
    assert_int_equal(0, atomic_load(&may_go_on));
    atomic_store(&may_go_on, 1);
    assert_int_equal(DBLOCK_LOST, dblock_confirm(lock, &error));
    expect_free_for_the_rival();
}

/* PITFALL(B7): the machine slept behind the answer. */
static void heartbeat__that_is_old_when_it_is_seen(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_client_fd(client, &fd, &error));
    atomic_store(&harm, SLEEPS);
    expect_lost(fd);
    expect_free_for_the_rival();
}

/* Its row cannot be deleted, however often that is tried: once it has expired for certain, the
 * client does without. */
static void session__that_cannot_be_ended(void **state)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    struct dblk_session *left = NULL;
    uint64_t begun_ms = test_now_ms();
    unsigned nth;

    (void)state;
    for (nth = 1; nth <= MANY; ++nth)
        sim_fail_set(WORLD, SIM_STEP_END, nth, DBLOCK_E_DATABASE);
    sim_answer_set(WORLD, SIM_STEP_RENEW, 1, DBLOCK_ANSWER_NO);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    do {
        assert_true(test_now_ms() - begun_ms < 15000);
        test_pass_ms(20);
        dblk_lock_client(client);
        left = client->sessions;
        dblk_unlock_client(client);
    } while (left != NULL);
    assert_true(sim_n_steps(WORLD, SIM_STEP_END) > 0);
    assert_int_equal(DBLOCK_OK, dblock_client_stats(client, &stats));
    assert_int_equal(0, stats.sessions);
}

/* A row of this client's session that nobody here knows of. */
static void plant(int restarts)
{
    static const unsigned char owner[DBLOCK_ID_SIZE] = "planted by hand";
    unsigned char session[DBLOCK_ID_SIZE];
    struct sim_world *world = sim_world_lock(WORLD);

    memcpy(session, sim_hold_row(world, DBLOCK_LEASE, "x")->session, sizeof session);
    sim_hold_plant(world, sim_now_us_held(WORLD), DBLOCK_LEASE, "planted", owner, session);
    if (restarts)
        world->start_us += 1000000;
    sim_world_unlock(WORLD);
}

static int is_given_back(void *context)
{
    const struct sim_row *row =
        sim_hold_row(sim_world_lock(WORLD), DBLOCK_LEASE, "planted");
    int is_free = row == NULL || !row->has_owner;

    (void)context;
    sim_world_unlock(WORLD);
    return is_free;
}

static int has_beaten(void *context)
{
    (void)context;
    return sim_n_steps(WORLD, SIM_STEP_RENEW) > 0;
}

/* Nothing tells of it: once in a while, the session's rows are read. */
static void surplus__that_nothing_tells_of(void **state)
{
    const unsigned every = 64; /* beats: see keeper_sessions.c */

    (void)state;
    assert_true(test_until(has_beaten, NULL, 5000));
    plant(0);
    dblk_lock_client(client);
    client->sessions->n_beats = every - 1;
    dblk_unlock_client(client);
    assert_true(test_until(is_given_back, NULL, 5000));
    assert_int_equal(1, dblock_lock_is_held(lock));
}

/* Behind a pooler a restart of the server breaks no connection; it may have undone a release. */
static void surplus__of_a_restart_behind_a_pooler(void **state)
{
    (void)state;
    assert_true(test_until(has_beaten, NULL, 5000));
    plant(1);
    assert_true(test_until(is_given_back, NULL, 5000));
    assert_int_equal(1, dblock_lock_is_held(lock));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heartbeat__that_hangs),
        TEST(heartbeat__that_is_old_when_it_is_seen),
        TEST(session__that_cannot_be_ended),
        TEST(surplus__that_nothing_tells_of),
        TEST(surplus__of_a_restart_behind_a_pooler),
    };

    return cmocka_run_group_tests_name("keeper_sessions", tests, NULL, NULL);
}
