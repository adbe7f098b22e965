/* SPDX-License-Identifier: MIT */
/* sim_world_test.c - does the simulated world keep the contract of the driver
 * table? Other tests judge the library by it, so it is judged first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim_world.h"

static struct sim_world world;
static struct dblock_answer answer;
static struct dblock_error error;

static const unsigned char owner_a[DBLOCK_ID_SIZE] = "owner a";
static const unsigned char owner_b[DBLOCK_ID_SIZE] = "owner b";
static const unsigned char session_a[DBLOCK_ID_SIZE] = "session a";
static const unsigned char session_b[DBLOCK_ID_SIZE] = "session b";
static const struct sim_caller caller_a = { 1, "host-a", "label-a", 11 };
static const struct sim_caller caller_b = { 2, "host-b", "label-b", 22 };

static int begin(void **state)
{
    (void)state;
    sim_world_init(&world, 1000);
    world.is_installed = 1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    sim_world_fini(&world);
    return 0;
}

static struct dblock_take request(
    const unsigned char *owner, const unsigned char *session, uint64_t ttl_us)
{
    struct dblock_take take = { .subject = { "n", 1, 0, 0 },
        .owner = owner,
        .session = session,
        .ttl_us = ttl_us,
        .not_after_us = INT64_MAX,
        .label = "label" };

    memset(&answer, 0, sizeof answer);
    return take;
}

static int take_timed(int64_t now_us, const struct sim_caller *caller, const unsigned char *owner)
{
    struct dblock_take take = request(owner, NULL, 100);

    assert_int_equal(DBLOCK_OK,
        sim_hold_take(&world, now_us, caller, DBLOCK_LEASE, &take, NULL, &answer, &error));
    return answer.outcome;
}

static int take_with_session(int64_t now_us, const struct sim_caller *caller,
    const unsigned char *owner, const unsigned char *session)
{
    struct dblock_take take = request(owner, session, 0);

    assert_int_equal(DBLOCK_OK,
        sim_hold_take(&world, now_us, caller, DBLOCK_LEASE, &take, NULL, &answer, &error));
    return answer.outcome;
}

static void begin_session(int64_t now_us, const unsigned char *session)
{
    assert_int_equal(
        DBLOCK_OK, sim_session_begin(&world, now_us, &caller_a, session, 100, &answer, &error));
}

static int drop(int64_t now_us, const unsigned char *owner, uint64_t keep_us)
{
    assert_int_equal(DBLOCK_OK,
        sim_hold_drop(&world, now_us, DBLOCK_LEASE, "n", owner, keep_us, &answer, &error));
    return answer.outcome;
}

static void timed_grant__excludes_until_it_expires(void **state)
{
    (void)state;
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1000, &caller_a, owner_a));
    assert_int_equal(100, answer.remaining_us);
    assert_int_equal(DBLOCK_ANSWER_BUSY, take_timed(1099, &caller_b, owner_b));
    assert_int_equal(1, answer.remaining_us);
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1100, &caller_b, owner_b));
    assert_int_equal(DBLOCK_ANSWER_NO, drop(1101, owner_a, 0));
    assert_int_equal(DBLOCK_ANSWER_YES, drop(1102, owner_b, 0));
}

static void heartbeat_grant__lives_as_long_as_its_session(void **state)
{
    (void)state;
    begin_session(1000, session_a);
    begin_session(1000, session_b);
    assert_int_equal(DBLOCK_ANSWER_YES, take_with_session(1000, &caller_a, owner_a, session_a));
    assert_int_equal(DBLOCK_OK, sim_session_renew(&world, 1090, session_a, 100, &answer, &error));
    assert_int_equal(DBLOCK_OK, sim_session_renew(&world, 1090, session_b, 200, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_BUSY, take_with_session(1189, &caller_b, owner_b, session_b));
    assert_int_equal(DBLOCK_ANSWER_YES, take_with_session(1190, &caller_b, owner_b, session_b));
    assert_int_equal(DBLOCK_OK, sim_session_renew(&world, 1190, session_a, 100, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_NO, answer.outcome);
}

static void take__is_refused_to_a_session_that_is_over(void **state)
{
    (void)state;
    assert_int_equal(DBLOCK_ANSWER_SESSION, take_with_session(1000, &caller_a, owner_a, session_a));
    begin_session(1000, session_a);
    assert_int_equal(DBLOCK_ANSWER_SESSION, take_with_session(1100, &caller_a, owner_a, session_a));
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1100, &caller_b, owner_b));
}

static void take__is_late_after_not_after(void **state)
{
    struct dblock_take take = request(owner_a, NULL, 100);

    (void)state;
    take.not_after_us = 1000;
    assert_int_equal(DBLOCK_OK,
        sim_hold_take(&world, 1001, &caller_a, DBLOCK_LEASE, &take, NULL, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_LATE, answer.outcome);
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1001, &caller_b, owner_b));
}

static void tokens__only_grow(void **state)
{
    static const int32_t strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct dblock_take take = request(owner_a, NULL, 100);
        int64_t last = 0;
        int64_t now_us;

        /* the clock stands still, goes back, and the row is dropped or purged in between */
        for (now_us = INT64_C(9000000000); now_us > 0; now_us -= INT64_C(1000000000)) {
            memset(&answer, 0, sizeof answer);
            assert_int_equal(DBLOCK_OK, sim_hold_take(&world, now_us, &caller_a, strategies[i],
                                            &take, NULL, &answer, &error));
            assert_int_equal(DBLOCK_ANSWER_YES, answer.outcome);
            assert_true(answer.token > last);
            last = answer.token;
            assert_int_equal(DBLOCK_OK,
                sim_hold_drop(&world, now_us, strategies[i], "n", owner_a, 0, &answer, &error));
            assert_int_equal(
                DBLOCK_OK, sim_purge(&world, now_us + INT64_C(3600000001), &answer, &error));
            assert_null(sim_hold_row(&world, strategies[i], "n"));
        }
    }
}

static void drop__keeps_the_name_taken_for_min_hold(void **state)
{
    (void)state;
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1000, &caller_a, owner_a));
    assert_int_equal(DBLOCK_ANSWER_YES, drop(1010, owner_a, 500));
    assert_int_equal(DBLOCK_ANSWER_BUSY, take_timed(1509, &caller_b, owner_b));
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1510, &caller_b, owner_b));
}

static void guard__pins_the_row(void **state)
{
    struct dblock_subject subject = { "n", 1, 0, 0 };

    (void)state;
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1000, &caller_a, owner_a));
    assert_true(sim_hold_guard(&world, DBLOCK_LEASE, "n", 1));
    assert_int_equal(DBLOCK_ANSWER_PINNED, drop(1001, owner_a, 0));
    assert_int_equal(DBLOCK_OK, sim_end(&world, 1002, DBLOCK_LEASE, &subject, 0, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_PINNED, answer.outcome);
    assert_int_equal(DBLOCK_ANSWER_BUSY, take_timed(1003, &caller_b, owner_b));
    assert_int_equal(DBLOCK_ANSWER_PINNED, take_timed(1200, &caller_b, owner_b));
    assert_true(sim_hold_guard(&world, DBLOCK_LEASE, "n", -1));
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1200, &caller_b, owner_b));
}

static void end__fences_and_tells_the_session(void **state)
{
    struct dblock_subject subject = { "n", 1, 0, 0 };
    int64_t token;

    (void)state;
    begin_session(1000, session_a);
    assert_int_equal(DBLOCK_ANSWER_YES, take_with_session(1000, &caller_a, owner_a, session_a));
    token = answer.token;
    assert_int_equal(
        DBLOCK_OK, sim_end(&world, 1001, DBLOCK_LEASE, &subject, token + 1, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_NO, answer.outcome);
    assert_int_equal(
        DBLOCK_OK, sim_end(&world, 1001, DBLOCK_LEASE, &subject, token, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_YES, answer.outcome);
    assert_int_equal(DBLOCK_OK, sim_session_renew(&world, 1002, session_a, 100, &answer, &error));
    assert_int_equal(1, answer.changed);
    assert_int_equal(DBLOCK_ANSWER_YES, take_timed(1, &caller_b, owner_b));
    assert_true(answer.token > token + 1);
}

static uint64_t last_granted;

static void remember_grant(void *context, uint64_t connection, enum sim_notice notice)
{
    (void)context;
    if (notice == SIM_GRANTED)
        last_granted = connection;
}

static void queue__serves_in_order_of_arrival(void **state)
{
    static const struct sim_caller callers[] = { { 7, "h", "l", 1 }, { 3, "h", "l", 1 } };
    struct dblock_take take = request(owner_a, NULL, 0);

    (void)state;
    world.notice = remember_grant;
    assert_int_equal(
        DBLOCK_OK, sim_lock_take(&world, 1, &caller_a, DBLOCK_ROW, &take, NULL, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_UNSEEDED, answer.outcome);
    assert_int_equal(DBLOCK_OK, sim_lock_seed(&world, 1, &take.subject, &answer, &error));
    assert_int_equal(
        DBLOCK_OK, sim_lock_take(&world, 1, &caller_a, DBLOCK_ROW, &take, NULL, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_YES, answer.outcome);
    sim_lock_enqueue(&world, &callers[0], DBLOCK_ROW, &take);
    sim_lock_enqueue(&world, &callers[1], DBLOCK_ROW, &take);
    sim_connection_end(&world, 2, caller_a.connection);
    assert_int_equal(7, last_granted);
    assert_true(sim_lock_is_held(&world, 7, DBLOCK_ROW, &take.subject));
    assert_int_equal(
        DBLOCK_OK, sim_lock_drop(&world, 3, 7, DBLOCK_ROW, &take.subject, &answer, &error));
    assert_int_equal(3, last_granted);
    assert_int_equal(
        DBLOCK_OK, sim_lock_drop(&world, 3, 7, DBLOCK_ROW, &take.subject, &answer, &error));
    assert_int_equal(DBLOCK_ANSWER_NO, answer.outcome);
}

static int collect(const struct dblock_grant *grant, void *context)
{
    char *text = context;
    size_t length = strlen(text);

    (void)snprintf(text + length, 64 - length, "%s ", grant->name);
    return 0;
}

static void list__goes_by_byte_order_and_pages(void **state)
{
    static const char *const names[] = { "b", "a", "c", "B" };
    struct dblock_page page = { .strategy = DBLOCK_INSERT, .limit = 2 };
    char text[64] = "";
    size_t i;

    (void)state;
    for (i = 0; i < 4; ++i) {
        struct dblock_take take = request(owner_a, NULL, 100);

        take.subject.name = names[i];
        assert_int_equal(DBLOCK_OK,
            sim_hold_take(&world, 1, &caller_a, DBLOCK_INSERT, &take, NULL, &answer, &error));
    }
    assert_int_equal(DBLOCK_OK, sim_list(&world, 2, &page, collect, text, &answer, &error));
    assert_string_equal("B a ", text);
    page.after = "a";
    assert_int_equal(DBLOCK_OK, sim_list(&world, 2, &page, collect, text, &answer, &error));
    assert_string_equal("B a b c ", text);
    page.after = NULL;
    assert_int_equal(DBLOCK_OK, sim_list(&world, 101, &page, collect, text, &answer, &error));
    assert_string_equal("B a b c ", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timed_grant__excludes_until_it_expires, begin, end),
        cmocka_unit_test_setup_teardown(heartbeat_grant__lives_as_long_as_its_session, begin, end),
        cmocka_unit_test_setup_teardown(take__is_refused_to_a_session_that_is_over, begin, end),
        cmocka_unit_test_setup_teardown(take__is_late_after_not_after, begin, end),
        cmocka_unit_test_setup_teardown(tokens__only_grow, begin, end),
        cmocka_unit_test_setup_teardown(drop__keeps_the_name_taken_for_min_hold, begin, end),
        cmocka_unit_test_setup_teardown(guard__pins_the_row, begin, end),
        cmocka_unit_test_setup_teardown(end__fences_and_tells_the_session, begin, end),
        cmocka_unit_test_setup_teardown(queue__serves_in_order_of_arrival, begin, end),
        cmocka_unit_test_setup_teardown(list__goes_by_byte_order_and_pages, begin, end),
    };

    return cmocka_run_group_tests_name("sim_world", tests, NULL, NULL);
}
