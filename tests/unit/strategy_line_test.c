/* SPDX-License-Identifier: MIT */
/* strategy_line_test.c - the moves of lease and insert through the line of a name,
 * as whole conversations: what is answered, and the step that must follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "strategy/moves.h"
#include "strategy/strategy.h"

enum { NOW_US = 50000000, IO_US = 8000000, WAIT_US = 30000000 };

static const struct dblk_terms waiting = { NOW_US + WAIT_US, IO_US, UINT64_MAX, 0, 1, 0, 0 };
static const struct dblk_terms trying = { NOW_US, IO_US, 0, 0, 0, 0, 0 };

static struct dblk_machine machine;

static struct dblk_step hear(struct dblk_event event)
{
    event.now_us = event.now_us != 0 ? event.now_us : NOW_US;
    return dblk_machine_next(&machine, &event);
}

static struct dblk_step begin(const struct dblk_terms *terms)
{
    dblk_machine_start(&machine, &dblk_lease, terms);
    return hear((struct dblk_event){ .kind = DBLK_EVENT_STARTED });
}

static struct dblk_step answer(int32_t outcome, uint64_t remaining_us)
{
    return hear((struct dblk_event){ .kind = DBLK_EVENT_ANSWERED, .outcome = outcome,
        .remaining_us = remaining_us, .deadline_us = NOW_US + 1 });
}

static struct dblk_step fail_with(dblock_status status)
{
    return hear((struct dblk_event){ .kind = DBLK_EVENT_FAILED, .status = status,
        .is_transient = status == DBLOCK_E_CONNECTION, .remaining_us = DBLOCK_NO_END });
}

static void begin_as_first(void)
{
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_int_equal(answer(DBLOCK_ANSWER_YES, 0).kind, DBLK_STEP_TAKE);
}

static void try__heeds_nobody_and_never_stands(void **state)
{
    struct dblk_step step = begin(&trying);

    (void)state;
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    step = answer(DBLOCK_ANSWER_BUSY, 5000);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_BUSY);
}

static void wait__stands_takes_as_first_rests_and_takes(void **state)
{
    struct dblk_step step = begin(&waiting);

    (void)state;
    assert_true(step.heeds_line);
    step = answer(DBLOCK_ANSWER_BUSY, 10000000);
    assert_int_equal(step.kind, DBLK_STEP_STAND);
    assert_true(step.wait_us == WAIT_US);
    step = answer(DBLOCK_ANSWER_YES, 0);
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    step = answer(DBLOCK_ANSWER_BUSY, 2000000);
    assert_int_equal(step.kind, DBLK_STEP_REST);
    assert_true(step.until_us == NOW_US + 2000000 + 1000);
    step = answer(DBLOCK_ANSWER_YES, 0); /* woken */
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    step = answer(DBLOCK_ANSWER_YES, 0);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_OK);
}

static void contended__stands_at_once_where_something_wakes(void **state)
{
    struct dblk_terms terms = waiting;
    struct dblk_step step;

    (void)state;
    terms.is_contended = 1;
    terms.needs_session = 1;
    step = begin(&terms);
    assert_int_equal(step.kind, DBLK_STEP_STAND);
    assert_true(step.wait_us == WAIT_US);
    step = answer(DBLOCK_ANSWER_YES, 0);
    assert_int_equal(step.kind, DBLK_STEP_SESSION);
    step = answer(DBLOCK_ANSWER_YES, 0);
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    terms.has_line = 0;
    assert_int_equal(begin(&terms).kind, DBLK_STEP_SESSION);
    terms.has_line = 1;
    terms.give_up_us = NOW_US;
    assert_int_equal(begin(&terms).kind, DBLK_STEP_SESSION);
}

static void rest__is_bounded_by_a_lost_wake_up_and_by_the_wait(void **state)
{
    struct dblk_terms soon = waiting;
    struct dblk_step step;

    (void)state;
    begin_as_first();
    step = answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_true(step.until_us == NOW_US + DBLK_REST_LAST_US);
    soon.give_up_us = NOW_US + 700;
    (void)begin(&soon);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    (void)answer(DBLOCK_ANSWER_YES, 0);
    step = answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_int_equal(step.kind, DBLK_STEP_REST);
    assert_true(step.until_us == NOW_US + 700);
}

static void first__stays_first_through_a_race_and_a_pinned_row(void **state)
{
    static const int32_t outcomes[] = { DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_PINNED };
    size_t i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        struct dblk_step step;

        begin_as_first();
        assert_int_equal(answer(outcomes[i], DBLOCK_NO_END).kind, DBLK_STEP_PAUSE);
        step = hear((struct dblk_event){ .kind = DBLK_EVENT_PAUSED });
        assert_int_equal(step.kind, DBLK_STEP_TAKE);
        assert_false(step.heeds_line);
    }
}

static void place_that_is_lost__is_taken_anew_at_the_end(void **state)
{
    struct dblk_step step;

    (void)state;
    begin_as_first();
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    step = answer(DBLOCK_ANSWER_AGAIN, 0);
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_true(step.heeds_line);
    assert_int_equal(answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END).kind, DBLK_STEP_STAND);
}

static void sleeper_in_front__is_passed_once(void **state)
{
    struct dblk_step step;

    (void)state;
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    step = answer(DBLOCK_ANSWER_AGAIN, 0);
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    assert_int_equal(answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END).kind, DBLK_STEP_STAND);
}

/* The answer of a stand whose time is over: one last take, which says who holds it. Past
 * those who stand there, unless that is to be in order of arrival. */
static void wait_that_ends_in_line__asks_once_more(void **state)
{
    struct dblk_terms terms = waiting;
    struct dblk_step step;

    (void)state;
    for (terms.is_fair = 0; terms.is_fair < 2; ++terms.is_fair) {
        (void)begin(&terms);
        (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
        step = hear((struct dblk_event){ .kind = DBLK_EVENT_ANSWERED,
            .outcome = DBLOCK_ANSWER_BUSY, .now_us = NOW_US + WAIT_US });
        assert_int_equal(step.kind, DBLK_STEP_TAKE);
        assert_int_equal(terms.is_fair, step.heeds_line);
        step = hear((struct dblk_event){ .kind = DBLK_EVENT_ANSWERED,
            .outcome = DBLOCK_ANSWER_BUSY, .now_us = NOW_US + WAIT_US });
        assert_int_equal(step.kind, DBLK_STEP_END);
        assert_int_equal(step.status, DBLOCK_BUSY);
    }
}

static void where_nothing_wakes__it_looks_from_time_to_time(void **state)
{
    struct dblk_step step;

    (void)state;
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    step = answer(DBLOCK_ANSWER_NO, 0);
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_false(step.heeds_line);
    assert_int_equal(answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END).kind, DBLK_STEP_PAUSE);
}

static void failure_of_the_line__is_not_one_of_the_acquire(void **state)
{
    struct dblk_step step;

    (void)state;
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_int_equal(fail_with(DBLOCK_E_CONNECTION).kind, DBLK_STEP_PAUSE);
    step = hear((struct dblk_event){ .kind = DBLK_EVENT_PAUSED });
    assert_int_equal(step.kind, DBLK_STEP_TAKE);
    assert_true(step.heeds_line);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    (void)answer(DBLOCK_ANSWER_YES, 0);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_int_equal(fail_with(DBLOCK_E_LOGIN).kind, DBLK_STEP_PAUSE); /* in REST */
    assert_false(machine.is_first);
    assert_int_equal(hear((struct dblk_event){ .kind = DBLK_EVENT_PAUSED }).kind, DBLK_STEP_TAKE);
}

static void ends_that_concern_the_call__end_it(void **state)
{
    struct dblk_step step;

    (void)state;
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    step = hear((struct dblk_event){ .kind = DBLK_EVENT_CANCELLED });
    assert_int_equal(step.status, DBLOCK_CANCELLED);
    assert_false(step.is_open);
    begin_as_first();
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    assert_int_equal(
        hear((struct dblk_event){ .kind = DBLK_EVENT_CLOSED }).status, DBLOCK_E_CLOSED);
    (void)begin(&waiting);
    (void)answer(DBLOCK_ANSWER_BUSY, DBLOCK_NO_END);
    step = fail_with(DBLOCK_E_UNSUPPORTED);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(try__heeds_nobody_and_never_stands),
        cmocka_unit_test(wait__stands_takes_as_first_rests_and_takes),
        cmocka_unit_test(contended__stands_at_once_where_something_wakes),
        cmocka_unit_test(rest__is_bounded_by_a_lost_wake_up_and_by_the_wait),
        cmocka_unit_test(first__stays_first_through_a_race_and_a_pinned_row),
        cmocka_unit_test(place_that_is_lost__is_taken_anew_at_the_end),
        cmocka_unit_test(sleeper_in_front__is_passed_once),
        cmocka_unit_test(wait_that_ends_in_line__asks_once_more),
        cmocka_unit_test(where_nothing_wakes__it_looks_from_time_to_time),
        cmocka_unit_test(failure_of_the_line__is_not_one_of_the_acquire),
        cmocka_unit_test(ends_that_concern_the_call__end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
