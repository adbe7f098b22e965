/* SPDX-License-Identifier: MIT */
/* alarm_test.c - a call that blocks ends at its deadline, and never by that of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alarm.h"
#include "core/environment.h"

#define SECOND 1000000u

struct pair {
    struct dblk_alarms alarms;
    struct dblk_alarm alarm;
    int here, there; /* the ends of a connection */
};

static struct pair pair;

static int set_up(void **state)
{
    int ends[2];

    (void)state;
    memset(&pair, 0, sizeof pair);
    assert_int_equal(dblk_alarms_init(&pair.alarms), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pair.here = ends[0];
    pair.there = ends[1];
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dblk_alarm_forget(&pair.alarms, &pair.alarm, 0);
    dblk_alarms_stop(&pair.alarms);
    dblk_alarms_fini(&pair.alarms);
    (void)close(pair.here);
    (void)close(pair.there);
    return 0;
}

static int begin(uint64_t in_us)
{
    return dblk_alarm_begin(&pair.alarms, &pair.alarm, pair.here, dblk_now_us() + in_us);
}

static int end(void)
{
    return dblk_alarm_end(&pair.alarms, &pair.alarm);
}

/* The first calls of a connection are not worth a thread. */
static void begin_watched(uint64_t in_us)
{
    int n_calls = 0;

    while (!begin(in_us))
        assert_true(++n_calls < 10);
}

static void first_calls__are_not_watched(void **state)
{
    (void)state;
    assert_int_equal(begin(SECOND), 0);
    assert_int_equal(pair.alarms.is_running, 0);
    begin_watched(SECOND);
    assert_int_equal(pair.alarms.is_running, 1);
    assert_int_equal(end(), 0);
}

static void call__that_blocks_ends_at_its_deadline(void **state)
{
    uint64_t begun_us = dblk_now_us();
    char byte;

    (void)state;
    begin_watched(SECOND / 10);
    assert_int_equal(recv(pair.here, &byte, 1, 0), 0); /* as if the other side had hung up */
    assert_true(dblk_now_us() - begun_us >= SECOND / 10);
    assert_int_equal(end(), 1);
}

static void shorter_call__is_not_ended_by_the_limit_before_it(void **state)
{
    uint64_t begun_us;
    char byte;

    (void)state;
    begin_watched(3600 * (uint64_t)SECOND);
    assert_int_equal(end(), 0);
    begun_us = dblk_now_us();
    begin_watched(SECOND / 10);
    assert_int_equal(recv(pair.here, &byte, 1, 0), 0);
    assert_true(dblk_now_us() - begun_us < 600 * (uint64_t)SECOND);
    assert_int_equal(end(), 1);
}

static void longer_call__outlives_the_limit_before_it(void **state)
{
    char byte = 0;

    (void)state;
    begin_watched(SECOND / 20);
    assert_int_equal(end(), 0);
    begin_watched(3600 * (uint64_t)SECOND);
    /* the thread has looked when it was told to, and found a later limit */
    while (atomic_load(&pair.alarm.look_us) < dblk_now_us() + 60 * (uint64_t)SECOND)
        (void)sched_yield();
    assert_int_equal(send(pair.there, "x", 1, 0), 1);
    assert_int_equal(recv(pair.here, &byte, 1, 0), 1);
    assert_int_equal(end(), 0);
}

static void idle_connection__is_not_shut_down(void **state)
{
    char byte = 0;

    (void)state;
    begin_watched(SECOND / 20);
    assert_int_equal(end(), 0);
    while (atomic_load(&pair.alarm.look_us) != 0)
        (void)sched_yield();
    assert_int_equal(send(pair.there, "x", 1, 0), 1);
    assert_int_equal(recv(pair.here, &byte, 1, 0), 1);
}

/* The client library has closed its descriptor by itself, and the number is somebody else's. */
static void reused_number__is_left_alone(void **state)
{
    int ends[2];
    char byte = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    begin_watched(SECOND / 20);
    assert_int_equal(dup2(ends[0], pair.here), pair.here);
    while (atomic_load(&pair.alarm.limit_us) != UINT64_MAX)
        (void)sched_yield();
    assert_int_equal(end(), 1);
    assert_int_equal(send(ends[1], "x", 1, 0), 1);
    assert_int_equal(recv(pair.here, &byte, 1, 0), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void *block(void *context)
{
    char byte;

    (void)context;
    assert_int_equal(recv(pair.here, &byte, 1, 0), 0);
    return (void *)(intptr_t)end();
}

static void stop__waits_for_a_call_under_way(void **state)
{
    pthread_t thread;
    void *has_rung = NULL;

    (void)state;
    begin_watched(SECOND / 10);
    assert_int_equal(pthread_create(&thread, NULL, block, NULL), 0);
    dblk_alarms_stop(&pair.alarms);
    assert_int_equal(pthread_join(thread, &has_rung), 0);
    assert_int_equal((intptr_t)has_rung, 1);
    assert_int_equal(begin(SECOND), 0); /* nobody would end it */
}

static void stop__does_not_wait_for_the_limit_of_a_call_that_ends(void **state)
{
    pthread_t thread;
    uint64_t begun_us = dblk_now_us();

    (void)state;
    begin_watched(3600 * (uint64_t)SECOND);
    assert_int_equal(pthread_create(&thread, NULL, block, NULL), 0);
    assert_int_equal(shutdown(pair.there, SHUT_RDWR), 0);
    dblk_alarms_stop(&pair.alarms);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(dblk_now_us() - begun_us < 600 * (uint64_t)SECOND);
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        ++n;
    (void)closedir(folder);
    return n;
}

static void forget__leaves_no_descriptor(void **state)
{
    int n_before = count_descriptors();

    (void)state;
    begin_watched(SECOND);
    assert_int_equal(end(), 0);
    assert_int_equal(count_descriptors(), n_before + 1);
    dblk_alarm_forget(&pair.alarms, &pair.alarm, 0);
    assert_int_equal(count_descriptors(), n_before);
    assert_int_equal(begin(SECOND), 0);
}

/* Where there is no socket, or nobody left to ring, a call looks after its limit itself. */
static void unwatchable__is_not_watched(void **state)
{
    struct dblk_alarm other;
    int n_before = count_descriptors();
    int i;

    (void)state;
    memset(&other, 0, sizeof other);
    for (i = 0; i < 5; ++i)
        assert_int_equal(dblk_alarm_begin(&pair.alarms, &other, 1 << 20, dblk_now_us()), 0);
    assert_int_equal(pair.alarms.is_running, 0);
    dblk_alarms_stop(&pair.alarms);
    memset(&other, 0, sizeof other);
    for (i = 0; i < 5; ++i)
        assert_int_equal(dblk_alarm_begin(&pair.alarms, &other, pair.here, dblk_now_us()), 0);
    assert_int_equal(pair.alarms.is_running, 0);
    assert_int_equal(count_descriptors(), n_before);
    dblk_alarm_forget(&pair.alarms, &other, 0);
}

/* One that has rung is not waited for: its call ends by itself. */
static void stop__does_not_wait_for_what_has_rung(void **state)
{
    (void)state;
    begin_watched(SECOND / 50);
    while (atomic_load(&pair.alarm.limit_us) != UINT64_MAX)
        (void)sched_yield();
    dblk_alarms_stop(&pair.alarms);
    assert_int_equal(end(), 1);
}

/* In a child the thread is not there, and its mutex may never be free. */
static void forget__in_a_forked_child(void **state)
{
    int n_before = count_descriptors();

    (void)state;
    begin_watched(SECOND);
    assert_int_equal(end(), 0);
    (void)pthread_mutex_lock(&pair.alarms.mutex);
    pair.alarms.first = NULL; /* so that the thread does not touch what is forgotten */
    dblk_alarm_forget(&pair.alarms, &pair.alarm, 1);
    (void)pthread_mutex_unlock(&pair.alarms.mutex);
    assert_int_equal(count_descriptors(), n_before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_calls__are_not_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(call__that_blocks_ends_at_its_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            shorter_call__is_not_ended_by_the_limit_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            longer_call__outlives_the_limit_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_connection__is_not_shut_down, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reused_number__is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stop__waits_for_a_call_under_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            stop__does_not_wait_for_the_limit_of_a_call_that_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forget__leaves_no_descriptor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unwatchable__is_not_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stop__does_not_wait_for_what_has_rung, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forget__in_a_forked_child, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
