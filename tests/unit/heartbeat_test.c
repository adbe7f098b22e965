/* SPDX-License-Identifier: MIT */
/* heartbeat_test.c - when a session is renewed, until when it may be believed, and
 * that nothing brings it back once it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/heartbeat.h"

enum { TTL_US = 24000000 }; /* divides by 3, 8, 16 and 64 */
enum { SENT_US = 1000000 };

static struct dblk_heartbeat started(void)
{
    struct dblk_heartbeat heartbeat;

    dblk_heartbeat_start(&heartbeat, SENT_US, TTL_US);
    return heartbeat;
}

static void belief__ends_an_eighth_early_and_saturates(void **state)
{
    (void)state;
    assert_int_equal(dblk_belief_end(0, 8000), 7000);
    assert_int_equal(dblk_belief_end(500, 8000), 7500);
    assert_int_equal(dblk_belief_end(10, 7), 17); /* too short for a margin in whole microseconds */
    assert_int_equal(dblk_belief_end(10, 0), 10);
    assert_int_equal(dblk_belief_end(UINT64_MAX - 10, 8000), UINT64_MAX);
    assert_int_equal(dblk_belief_end(1000, UINT64_MAX), 1000 + (UINT64_MAX - UINT64_MAX / 8));
    assert_int_equal(dblk_belief_end(UINT64_MAX / 2, UINT64_MAX), UINT64_MAX);
}

static void start__counts_from_the_sending(void **state)
{
    struct dblk_heartbeat heartbeat = started();

    (void)state;
    assert_int_equal(heartbeat.deadline_us, SENT_US + TTL_US / 8 * 7);
    assert_int_equal(heartbeat.next_us, SENT_US + TTL_US / 3);
    assert_int_equal(heartbeat.changed, 0);
    assert_int_equal(heartbeat.n_failures, 0);
    assert_int_equal(heartbeat.is_lost, 0);
}

static void check__loses_exactly_at_the_deadline(void **state)
{
    struct dblk_heartbeat heartbeat = started();

    (void)state;
    assert_int_equal(dblk_heartbeat_check(&heartbeat, SENT_US), DBLK_BEAT_KEEP);
    assert_int_equal(dblk_heartbeat_check(&heartbeat, heartbeat.deadline_us - 1), DBLK_BEAT_KEEP);
    assert_int_equal(dblk_heartbeat_check(&heartbeat, heartbeat.deadline_us), DBLK_BEAT_LOST);
    /* and a clock that showed less again would not bring it back */
    assert_int_equal(dblk_heartbeat_check(&heartbeat, SENT_US), DBLK_BEAT_LOST);
}

static void answered__moves_the_deadline_from_its_own_sending(void **state)
{
    static const struct {
        uint64_t sent_us, now_us; /* after the start */
        uint64_t next_us;
    } cases[] = {
        { TTL_US / 3, TTL_US / 3 + 1000, TTL_US / 3 * 2 },
        { TTL_US / 3, TTL_US / 3 * 2, TTL_US / 3 * 2 }, /* due just now, and so at once */
        /* so late that the next one is due already: not a burst */
        { TTL_US / 3, TTL_US / 3 * 2 + 1, TTL_US / 3 * 2 + 1 + TTL_US / 16 },
        { 0, TTL_US / 8 * 7 - 1, TTL_US / 8 * 7 - 1 + TTL_US / 16 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct dblk_heartbeat heartbeat = started();

        heartbeat.n_failures = 3;
        assert_int_equal(dblk_heartbeat_answered(&heartbeat, SENT_US + cases[i].sent_us,
                             SENT_US + cases[i].now_us, 1, 0), DBLK_BEAT_KEEP);
        assert_int_equal(
            heartbeat.deadline_us, SENT_US + cases[i].sent_us + TTL_US / 8 * 7);
        assert_int_equal(heartbeat.next_us, SENT_US + cases[i].next_us);
        assert_int_equal(heartbeat.n_failures, 0);
    }
}

static void answered__reads_back_once_for_each_change(void **state)
{
    struct dblk_heartbeat heartbeat = started();
    uint64_t sent_us = SENT_US + 1;

    (void)state;
    assert_int_equal(
        dblk_heartbeat_answered(&heartbeat, sent_us, sent_us, 1, 0), DBLK_BEAT_KEEP);
    assert_int_equal(
        dblk_heartbeat_answered(&heartbeat, sent_us, sent_us, 1, 2), DBLK_BEAT_READ);
    assert_int_equal(
        dblk_heartbeat_answered(&heartbeat, sent_us, sent_us, 1, 2), DBLK_BEAT_KEEP);
    /* lower: the database forgot one in a fail-over; that is a change too */
    assert_int_equal(
        dblk_heartbeat_answered(&heartbeat, sent_us, sent_us, 1, 1), DBLK_BEAT_READ);
}

static void no__loses_for_good(void **state)
{
    struct dblk_heartbeat heartbeat = started();

    (void)state;
    assert_int_equal(dblk_heartbeat_answered(&heartbeat, SENT_US + 1, SENT_US + 2, 0, 0),
        DBLK_BEAT_LOST);
    assert_int_equal(dblk_heartbeat_answered(&heartbeat, SENT_US + 3, SENT_US + 4, 1, 0),
        DBLK_BEAT_LOST);
    assert_int_equal(dblk_heartbeat_failed(&heartbeat, SENT_US + 5, 0), DBLK_BEAT_LOST);
    assert_int_equal(dblk_heartbeat_check(&heartbeat, SENT_US + 6), DBLK_BEAT_LOST);
}

static void late_yes__does_not_revive(void **state)
{
    struct dblk_heartbeat heartbeat = started();
    uint64_t deadline_us = heartbeat.deadline_us;

    (void)state;
    /* sent in time, and the database did renew: the holder has been told all the same */
    assert_int_equal(dblk_heartbeat_answered(&heartbeat, deadline_us - 10, deadline_us, 1, 0),
        DBLK_BEAT_LOST);
    assert_int_equal(heartbeat.deadline_us, deadline_us);
    assert_int_equal(dblk_heartbeat_answered(&heartbeat, deadline_us - 10, deadline_us - 5, 1, 0),
        DBLK_BEAT_LOST);
    assert_int_equal(heartbeat.deadline_us, deadline_us);
}

static void failed__tries_again_sooner_than_a_beat_and_not_after_the_deadline(void **state)
{
    static const struct {
        unsigned n_before;
        uint64_t most_us;
    } cases[] = {
        { 0, TTL_US / 64 },
        { 1, TTL_US / 64 * 2 },
        { 2, TTL_US / 64 * 3 },
        { 3, TTL_US / 64 * 4 },
        { 4, TTL_US / 16 },
        { 5, TTL_US / 16 },
        { 1000000, TTL_US / 16 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        static const uint64_t draws[] = { 0, 1, 12345, UINT64_MAX / 3, UINT64_MAX };
        size_t k;

        for (k = 0; k < sizeof draws / sizeof draws[0]; ++k) {
            struct dblk_heartbeat heartbeat = started();
            uint64_t now_us = SENT_US + TTL_US / 3;

            heartbeat.n_failures = cases[i].n_before;
            assert_int_equal(
                dblk_heartbeat_failed(&heartbeat, now_us, draws[k]), DBLK_BEAT_RETRY);
            assert_in_range(
                heartbeat.next_us - now_us, cases[i].most_us / 2, cases[i].most_us);
            assert_int_equal(heartbeat.n_failures, cases[i].n_before + 1);
            assert_int_equal(heartbeat.deadline_us, SENT_US + TTL_US / 8 * 7);
        }
    }
}

static void failed__never_waits_past_the_deadline(void **state)
{
    struct dblk_heartbeat heartbeat = started();

    (void)state;
    assert_int_equal(dblk_heartbeat_failed(&heartbeat, heartbeat.deadline_us - 1, UINT64_MAX),
        DBLK_BEAT_RETRY);
    assert_int_equal(heartbeat.next_us, heartbeat.deadline_us);
    assert_int_equal(
        dblk_heartbeat_failed(&heartbeat, heartbeat.deadline_us, 0), DBLK_BEAT_LOST);
}

/* Refused at once each time, a whole outage long: many tries, and none wasted on a storm. */
static void outage__is_filled_with_a_bounded_number_of_tries(void **state)
{
    struct dblk_heartbeat heartbeat = started();
    uint64_t now_us = heartbeat.next_us;
    unsigned n_tries = 0;

    (void)state;
    while (dblk_heartbeat_failed(&heartbeat, now_us, n_tries * 977u) == DBLK_BEAT_RETRY) {
        assert_true(heartbeat.next_us > now_us);
        now_us = heartbeat.next_us;
        ++n_tries;
    }
    assert_int_equal(now_us, heartbeat.deadline_us);
    assert_in_range(n_tries, 8, 24);
}

static void times__saturate(void **state)
{
    struct dblk_heartbeat heartbeat;

    (void)state;
    dblk_heartbeat_start(&heartbeat, UINT64_MAX - 5, TTL_US);
    assert_int_equal(heartbeat.deadline_us, UINT64_MAX);
    assert_int_equal(heartbeat.next_us, UINT64_MAX);
    assert_int_equal(dblk_heartbeat_check(&heartbeat, UINT64_MAX - 1), DBLK_BEAT_KEEP);
    assert_int_equal(
        dblk_heartbeat_failed(&heartbeat, UINT64_MAX - 1, UINT64_MAX), DBLK_BEAT_RETRY);
    assert_int_equal(heartbeat.next_us, UINT64_MAX);
    dblk_heartbeat_start(&heartbeat, SENT_US, 20); /* a ttl too short for any of the fractions */
    assert_int_equal(dblk_heartbeat_failed(&heartbeat, SENT_US, 0), DBLK_BEAT_RETRY);
    assert_int_equal(heartbeat.next_us, SENT_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(belief__ends_an_eighth_early_and_saturates),
        cmocka_unit_test(start__counts_from_the_sending),
        cmocka_unit_test(check__loses_exactly_at_the_deadline),
        cmocka_unit_test(answered__moves_the_deadline_from_its_own_sending),
        cmocka_unit_test(answered__reads_back_once_for_each_change),
        cmocka_unit_test(no__loses_for_good),
        cmocka_unit_test(late_yes__does_not_revive),
        cmocka_unit_test(failed__tries_again_sooner_than_a_beat_and_not_after_the_deadline),
        cmocka_unit_test(failed__never_waits_past_the_deadline),
        cmocka_unit_test(outage__is_filled_with_a_bounded_number_of_tries),
        cmocka_unit_test(times__saturate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
