/* SPDX-License-Identifier: MIT */
/* strategy_queued_test.c - every move of the machine of row and advisory, and the
 * table of the four strategies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "strategy/moves.h"
#include "strategy/strategy.h"

enum { NOW_US = 50000000, WAIT_US = 3000000 };

static const struct dblk_terms waiting = { NOW_US + WAIT_US, 8000000, UINT64_MAX, 0, 0, 0, 0 };
static const struct dblk_terms contended = { NOW_US + WAIT_US, 8000000, UINT64_MAX, 0, 0, 1, 0 };
static const struct dblk_terms contended_over = { NOW_US, 8000000, UINT64_MAX, 0, 0, 1, 0 };
static const struct dblk_terms trying = { NOW_US, 8000000, 0, 0, 0, 0, 0 };
static const struct dblk_terms over = { NOW_US - 8000000, 8000000, 0, 0, 0, 0, 0 };
static const struct dblk_terms hurried = { NOW_US, 100000, 0, 0, 0, 0, 0 };
static const struct dblk_terms for_ever = { UINT64_MAX, 8000000, UINT64_MAX, 0, 0, 0, 0 };

static struct dblk_machine machine_at(const struct dblk_terms *terms, enum dblk_stage stage)
{
    struct dblk_machine machine;

    dblk_machine_start(&machine, &dblk_row, terms);
    machine.stage = stage;
    return machine;
}

static struct dblk_event event_of(enum dblk_event_kind kind, int32_t outcome)
{
    struct dblk_event event;

    memset(&event, 0, sizeof event);
    event.kind = kind;
    event.now_us = NOW_US;
    event.outcome = outcome;
    return event;
}

static struct dblk_event failure_of(dblock_status status, int is_transient, int is_reused)
{
    struct dblk_event event = event_of(DBLK_EVENT_FAILED, 0);

    event.status = status;
    event.is_transient = is_transient;
    event.is_reused = is_reused;
    return event;
}

#define ANSWER(name) event_of(DBLK_EVENT_ANSWERED, DBLOCK_ANSWER_##name)

static void moves__are_those_of_the_table(void **state)
{
    const struct {
        const char *what;
        const struct dblk_terms *terms;
        enum dblk_stage stage;
        struct dblk_event event;
        enum dblk_step_kind kind;
        enum dblk_stage after;
        uint64_t wait_us;     /* TAKE */
        dblock_status status; /* END */
    } moves[] = {
        { "begins without waiting", &for_ever, DBLK_STAGE_NEW, event_of(DBLK_EVENT_STARTED, 0),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "contended: waits at once", &contended, DBLK_STAGE_NEW, event_of(DBLK_EVENT_STARTED, 0),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, WAIT_US, 0 },
        { "contended, and no time to wait", &contended_over, DBLK_STAGE_NEW,
            event_of(DBLK_EVENT_STARTED, 0), DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "cancelled before", &waiting, DBLK_STAGE_NEW, event_of(DBLK_EVENT_CANCELLED, 0),
            DBLK_STEP_END, DBLK_STAGE_END, 0, DBLOCK_CANCELLED },
        { "closed before", &waiting, DBLK_STAGE_NEW, event_of(DBLK_EVENT_CLOSED, 0),
            DBLK_STEP_END, DBLK_STAGE_END, 0, DBLOCK_E_CLOSED },
        { "granted", &trying, DBLK_STAGE_TAKE, ANSWER(YES), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_OK },
        { "busy: into the queue", &waiting, DBLK_STAGE_TAKE, ANSWER(BUSY), DBLK_STEP_TAKE,
            DBLK_STAGE_TAKE, WAIT_US, 0 },
        { "busy: for ever", &for_ever, DBLK_STAGE_TAKE, ANSWER(BUSY), DBLK_STEP_TAKE,
            DBLK_STAGE_TAKE, UINT64_MAX, 0 },
        { "busy: a try", &trying, DBLK_STAGE_TAKE, ANSWER(BUSY), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_BUSY },
        { "pinned: free, so it stands in no queue", &waiting, DBLK_STAGE_TAKE, ANSWER(PINNED),
            DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "pinned: a try", &trying, DBLK_STAGE_TAKE, ANSWER(PINNED), DBLK_STEP_END,
            DBLK_STAGE_END, 0, DBLOCK_BUSY },
        { "no row yet", &trying, DBLK_STAGE_TAKE, ANSWER(UNSEEDED), DBLK_STEP_SEED,
            DBLK_STAGE_SEED, 0, 0 },
        { "row made", &trying, DBLK_STAGE_SEED, ANSWER(YES), DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0,
            0 },
        { "victim", &trying, DBLK_STAGE_TAKE, ANSWER(AGAIN), DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0,
            0 },
        { "after the pause", &waiting, DBLK_STAGE_PAUSE, event_of(DBLK_EVENT_PAUSED, 0),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "answer lost: it went with its connection", &waiting, DBLK_STAGE_TAKE,
            failure_of(DBLOCK_E_UNCERTAIN, 1, 0), DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "answer lost: a try was not reached", &trying, DBLK_STAGE_TAKE,
            failure_of(DBLOCK_E_UNCERTAIN, 1, 0), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_E_CONNECTION },
        { "stale", &trying, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 1, 1),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "stale: no time for another", &over, DBLK_STAGE_TAKE,
            failure_of(DBLOCK_E_CONNECTION, 1, 1), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_E_CONNECTION },
        { "seed: outage", &waiting, DBLK_STAGE_SEED, failure_of(DBLOCK_E_CONNECTION, 1, 0),
            DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "seed: read-only", &waiting, DBLK_STAGE_SEED, failure_of(DBLOCK_E_READ_ONLY, 0, 0),
            DBLK_STEP_END, DBLK_STAGE_END, 0, DBLOCK_E_READ_ONLY },
        { "cancelled in the queue", &waiting, DBLK_STAGE_TAKE,
            event_of(DBLK_EVENT_CANCELLED, 0), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_CANCELLED },
        { "closed in the queue", &waiting, DBLK_STAGE_TAKE, event_of(DBLK_EVENT_CLOSED, 0),
            DBLK_STEP_END, DBLK_STAGE_END, 0, DBLOCK_E_CLOSED },
        { "cancelled while pausing", &waiting, DBLK_STAGE_PAUSE,
            event_of(DBLK_EVENT_CANCELLED, 0), DBLK_STEP_END, DBLK_STAGE_END, 0,
            DBLOCK_CANCELLED },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof moves / sizeof moves[0]; ++i) {
        struct dblk_machine machine = machine_at(moves[i].terms, moves[i].stage);
        struct dblk_step step = dblk_machine_next(&machine, &moves[i].event);

        if (step.kind != moves[i].kind || machine.stage != moves[i].after || step.is_open != 0 ||
            (step.kind == DBLK_STEP_TAKE && step.wait_us != moves[i].wait_us) ||
            (step.kind == DBLK_STEP_END && step.status != moves[i].status))
            fail_msg("%s: step %d stage %d status %d", moves[i].what, (int)step.kind,
                (int)machine.stage, step.status);
    }
}

static void seeding__is_bounded(void **state)
{
    struct dblk_machine machine = machine_at(&for_ever, DBLK_STAGE_TAKE);
    struct dblk_event unseeded = ANSWER(UNSEEDED);
    struct dblk_event seeded = ANSWER(YES);
    struct dblk_step step;
    unsigned i;

    (void)state;
    for (i = 0; i < DBLK_AGAIN_MAX; ++i) {
        step = dblk_machine_next(&machine, &unseeded);
        assert_int_equal(step.kind, DBLK_STEP_SEED);
        step = dblk_machine_next(&machine, &seeded);
        assert_int_equal(step.kind, DBLK_STEP_TAKE);
    }
    step = dblk_machine_next(&machine, &unseeded); /* the row that was made is never seen */
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_E_DATABASE);
}

static void again__is_bounded_for_a_try(void **state)
{
    struct dblk_machine machine = machine_at(&trying, DBLK_STAGE_TAKE);
    struct dblk_event again = ANSWER(AGAIN);
    struct dblk_event paused = event_of(DBLK_EVENT_PAUSED, 0);
    struct dblk_step step;
    unsigned i;

    (void)state;
    for (i = 0; i < DBLK_AGAIN_MAX; ++i) {
        again.random = i * UINT64_C(104729);
        step = dblk_machine_next(&machine, &again);
        assert_int_equal(step.kind, DBLK_STEP_PAUSE);
        assert_in_range(
            step.until_us - NOW_US, DBLK_AGAIN_FIRST_US / 2, DBLK_AGAIN_LAST_US);
        step = dblk_machine_next(&machine, &paused);
        assert_int_equal(step.kind, DBLK_STEP_TAKE);
    }
    step = dblk_machine_next(&machine, &again);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_BUSY);
}

/* Nobody else need have it: the server may not have seen yet that the lost attempt is over. */
static void busy__after_a_lost_answer_is_asked_again(void **state)
{
    struct dblk_machine machine = machine_at(&trying, DBLK_STAGE_TAKE);
    struct dblk_event lost = failure_of(DBLOCK_E_UNCERTAIN, 1, 1);
    struct dblk_event busy = ANSWER(BUSY);
    struct dblk_event paused = event_of(DBLK_EVENT_PAUSED, 0);
    struct dblk_step step;

    (void)state;
    assert_int_equal(dblk_machine_next(&machine, &lost).kind, DBLK_STEP_TAKE);
    step = dblk_machine_next(&machine, &busy);
    assert_int_equal(step.kind, DBLK_STEP_PAUSE);
    assert_true(step.until_us > NOW_US && step.until_us <= NOW_US + DBLK_SETTLE_LAST_US);
    assert_int_equal(dblk_machine_next(&machine, &paused).kind, DBLK_STEP_TAKE);
    busy.now_us = NOW_US + DBLK_GHOST_US; /* it must be gone, so this is somebody else */
    step = dblk_machine_next(&machine, &busy);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_BUSY);

    /* no time to find out, and busy would be a guess */
    machine = machine_at(&hurried, DBLK_STAGE_TAKE);
    busy.now_us = NOW_US;
    (void)dblk_machine_next(&machine, &lost);
    assert_int_equal(dblk_machine_next(&machine, &busy).kind, DBLK_STEP_PAUSE);
    (void)dblk_machine_next(&machine, &paused);
    busy.now_us = NOW_US + hurried.io_us;
    step = dblk_machine_next(&machine, &busy);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_E_CONNECTION);
}

static void strategies__are_found_by_their_number(void **state)
{
    static const struct {
        int32_t id;
        int is_heartbeat_default, lives_in_connection;
    } cases[] = { { DBLOCK_LEASE, 1, 0 }, { DBLOCK_INSERT, 0, 0 }, { DBLOCK_ROW, 0, 1 },
        { DBLOCK_ADVISORY, 0, 1 } };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const struct dblk_strategy *strategy = dblk_strategy_of(cases[i].id);

        assert_non_null(strategy);
        assert_int_equal(strategy->id, cases[i].id);
        assert_int_equal(strategy->is_heartbeat_default, cases[i].is_heartbeat_default);
        assert_int_equal(strategy->lives_in_connection, cases[i].lives_in_connection);
    }
    assert_null(dblk_strategy_of(0));
    assert_null(dblk_strategy_of(-1));
    assert_null(dblk_strategy_of(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves__are_those_of_the_table),
        cmocka_unit_test(seeding__is_bounded),
        cmocka_unit_test(again__is_bounded_for_a_try),
        cmocka_unit_test(busy__after_a_lost_answer_is_asked_again),
        cmocka_unit_test(strategies__are_found_by_their_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
