/* SPDX-License-Identifier: MIT */
/* strategy_recorded_test.c - every move of the machine of lease and insert: each
 * event in each stage, the limits, and the jitter of its pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "strategy/moves.h"
#include "strategy/strategy.h"

enum { NOW_US = 50000000, IO_US = 8000000, WAIT_US = 3000000 };

static const struct dblk_terms waiting = { NOW_US + WAIT_US, IO_US, UINT64_MAX, 0, 0, 0, 0 };
static const struct dblk_terms with_session = { NOW_US + WAIT_US, IO_US, UINT64_MAX, 1, 0, 0, 0 };
static const struct dblk_terms trying = { NOW_US, IO_US, 0, 0, 0, 0, 0 };
static const struct dblk_terms for_ever = { UINT64_MAX, IO_US, UINT64_MAX, 0, 0, 0, 0 };

static struct dblk_machine machine_at(const struct dblk_terms *terms, enum dblk_stage stage)
{
    struct dblk_machine machine;

    dblk_machine_start(&machine, &dblk_lease, terms);
    machine.stage = stage;
    if (stage == DBLK_STAGE_LOOK || stage == DBLK_STAGE_RECHECK)
        machine.settle_us = NOW_US + IO_US;
    return machine;
}

static struct dblk_event event_of(enum dblk_event_kind kind)
{
    struct dblk_event event;

    memset(&event, 0, sizeof event);
    event.kind = kind;
    event.now_us = NOW_US;
    return event;
}

static struct dblk_event answer_of(int32_t outcome)
{
    struct dblk_event event = event_of(DBLK_EVENT_ANSWERED);

    event.outcome = outcome;
    event.remaining_us = DBLOCK_NO_END;
    event.deadline_us = NOW_US + 1;
    return event;
}

static struct dblk_event failure_of(dblock_status status, int is_transient, int is_reused)
{
    struct dblk_event event = event_of(DBLK_EVENT_FAILED);

    event.status = status;
    event.is_transient = is_transient;
    event.is_reused = is_reused;
    return event;
}

/* One row: in this stage, under these terms, this event leads to that step. */
struct move {
    const char *what;
    const struct dblk_terms *terms;
    enum dblk_stage stage;
    struct dblk_event event;
    enum dblk_step_kind kind;
    enum dblk_stage after;
    dblock_status status; /* END */
    int is_open;
};

static void judge(const struct move *moves, size_t n_moves)
{
    size_t i;

    for (i = 0; i < n_moves; ++i) {
        const struct move *move = &moves[i];
        struct dblk_machine machine = machine_at(move->terms, move->stage);
        struct dblk_step step = dblk_machine_next(&machine, &move->event);

        if (step.kind != move->kind || machine.stage != move->after ||
            (step.kind == DBLK_STEP_END &&
                (step.status != move->status || step.is_open != move->is_open)))
            fail_msg("%s: step %d stage %d status %d open %d", move->what, (int)step.kind,
                (int)machine.stage, step.status, step.is_open);
    }
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void begin__goes_by_way_of_a_session_if_it_needs_one(void **state)
{
    const struct move moves[] = {
        { "timed", &waiting, DBLK_STAGE_NEW, event_of(DBLK_EVENT_STARTED), DBLK_STEP_TAKE,
            DBLK_STAGE_TAKE, 0, 0 },
        { "heartbeat", &with_session, DBLK_STAGE_NEW, event_of(DBLK_EVENT_STARTED),
            DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "cancelled before", &waiting, DBLK_STAGE_NEW, event_of(DBLK_EVENT_CANCELLED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_CANCELLED, 0 },
        { "closed before", &waiting, DBLK_STAGE_NEW, event_of(DBLK_EVENT_CLOSED), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_E_CLOSED, 0 },
        { "session is there", &with_session, DBLK_STAGE_SESSION, answer_of(DBLOCK_ANSWER_YES),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "session conflicts", &with_session, DBLK_STAGE_SESSION, answer_of(DBLOCK_ANSWER_AGAIN),
            DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "no session: stale", &with_session, DBLK_STAGE_SESSION,
            failure_of(DBLOCK_E_CONNECTION, 1, 1), DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "no session: outage", &with_session, DBLK_STAGE_SESSION,
            failure_of(DBLOCK_E_CONNECTION, 1, 0), DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "no session: no right", &with_session, DBLK_STAGE_SESSION,
            failure_of(DBLOCK_E_PERMISSION, 0, 0), DBLK_STEP_END, DBLK_STAGE_END,
            DBLOCK_E_PERMISSION, 0 },
    };

    (void)state;
    judge(moves, COUNT(moves));
}

static void take__is_judged_by_its_answer(void **state)
{
    struct dblk_event too_late = answer_of(DBLOCK_ANSWER_YES);
    const struct move moves[] = {
        { "granted", &waiting, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_YES), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_OK, 0 },
        { "granted, wait over", &trying, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_YES),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_OK, 0 },
        { "granted too late", &waiting, DBLK_STAGE_TAKE,
            (too_late.deadline_us = NOW_US, too_late), DBLK_STEP_GIVE_BACK, DBLK_STAGE_GIVE_BACK,
            0, 0 },
        { "busy", &waiting, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_BUSY), DBLK_STEP_PAUSE,
            DBLK_STAGE_PAUSE, 0, 0 },
        { "busy, a try", &trying, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_BUSY), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_BUSY, 0 },
        { "pinned", &waiting, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_PINNED), DBLK_STEP_PAUSE,
            DBLK_STAGE_PAUSE, 0, 0 },
        { "pinned, a try", &trying, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_PINNED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_BUSY, 0 },
        { "race", &trying, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_AGAIN), DBLK_STEP_PAUSE,
            DBLK_STAGE_PAUSE, 0, 0 },
        { "session over", &with_session, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_SESSION),
            DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "came late", &waiting, DBLK_STAGE_TAKE, answer_of(DBLOCK_ANSWER_LATE), DBLK_STEP_PAUSE,
            DBLK_STAGE_PAUSE, 0, 0 },
        { "answer lost", &waiting, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_UNCERTAIN, 1, 0),
            DBLK_STEP_LOOK, DBLK_STAGE_LOOK, 0, 0 },
        { "answer lost, a try", &trying, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_UNCERTAIN, 1, 0),
            DBLK_STEP_LOOK, DBLK_STAGE_LOOK, 0, 0 },
        { "answer lost over a stale connection", &waiting, DBLK_STAGE_TAKE,
            failure_of(DBLOCK_E_UNCERTAIN, 1, 1), DBLK_STEP_LOOK, DBLK_STAGE_LOOK, 0, 0 },
        { "stale", &waiting, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 1, 1),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "stale, a try", &trying, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 1, 1),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "stale, with session", &with_session, DBLK_STAGE_TAKE,
            failure_of(DBLOCK_E_CONNECTION, 1, 1), DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "outage", &waiting, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 1, 0),
            DBLK_STEP_PAUSE, DBLK_STAGE_PAUSE, 0, 0 },
        { "outage, a try", &trying, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 1, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CONNECTION, 0 },
        { "refused for good", &waiting, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_CONNECTION, 0, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CONNECTION, 0 },
        { "no table", &for_ever, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_SCHEMA, 0, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_SCHEMA, 0 },
        { "another error", &for_ever, DBLK_STAGE_TAKE, failure_of(DBLOCK_E_DATABASE, 1, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_DATABASE, 0 },
        { "cancelled unsent", &waiting, DBLK_STAGE_TAKE, event_of(DBLK_EVENT_CANCELLED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_CANCELLED, 0 },
    };

    (void)state;
    judge(moves, COUNT(moves));
}

static void pause__is_followed_by_a_take(void **state)
{
    const struct move moves[] = {
        { "timed", &waiting, DBLK_STAGE_PAUSE, event_of(DBLK_EVENT_PAUSED), DBLK_STEP_TAKE,
            DBLK_STAGE_TAKE, 0, 0 },
        { "heartbeat", &with_session, DBLK_STAGE_PAUSE, event_of(DBLK_EVENT_PAUSED),
            DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "the last one at the end of the wait", &trying, DBLK_STAGE_PAUSE,
            event_of(DBLK_EVENT_PAUSED), DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "cancelled", &waiting, DBLK_STAGE_PAUSE, event_of(DBLK_EVENT_CANCELLED), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_CANCELLED, 0 },
        { "closed", &waiting, DBLK_STAGE_PAUSE, event_of(DBLK_EVENT_CLOSED), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_E_CLOSED, 0 },
        { "to look again", &waiting, DBLK_STAGE_RECHECK, event_of(DBLK_EVENT_PAUSED),
            DBLK_STEP_LOOK, DBLK_STAGE_LOOK, 0, 0 },
    };

    (void)state;
    judge(moves, COUNT(moves));
}

static struct dblk_event look_of(int32_t outcome, int is_mine, int is_past)
{
    struct dblk_event event = answer_of(outcome);

    event.is_mine = is_mine;
    event.is_past = is_past;
    return event;
}

static void look__says_yes_no_or_not_yet(void **state)
{
    struct dblk_event mine_late = look_of(DBLOCK_ANSWER_YES, 1, 0);
    const struct move moves[] = {
        { "mine", &waiting, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_YES, 1, 0), DBLK_STEP_END,
            DBLK_STAGE_END, DBLOCK_OK, 0 },
        { "mine, past", &waiting, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_YES, 1, 1),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_OK, 0 },
        { "mine, not to be believed", &waiting, DBLK_STAGE_LOOK,
            (mine_late.deadline_us = NOW_US, mine_late), DBLK_STEP_GIVE_BACK,
            DBLK_STAGE_GIVE_BACK, 0, 0 },
        { "another's, may still come", &waiting, DBLK_STAGE_LOOK,
            look_of(DBLOCK_ANSWER_YES, 0, 0), DBLK_STEP_PAUSE, DBLK_STAGE_RECHECK, 0, 0 },
        { "nobody's, may still come", &waiting, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_NO, 0, 0),
            DBLK_STEP_PAUSE, DBLK_STAGE_RECHECK, 0, 0 },
        { "nobody's, past", &waiting, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_NO, 0, 1),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "another's, past", &with_session, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_YES, 0, 1),
            DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "another's, past, wait over", &trying, DBLK_STAGE_LOOK,
            look_of(DBLOCK_ANSWER_YES, 0, 1), DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_BUSY, 0 },
        { "nobody's, past, wait over", &trying, DBLK_STAGE_LOOK, look_of(DBLOCK_ANSWER_NO, 0, 1),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CONNECTION, 0 },
        { "look failed", &waiting, DBLK_STAGE_LOOK, failure_of(DBLOCK_E_CONNECTION, 1, 0),
            DBLK_STEP_PAUSE, DBLK_STAGE_RECHECK, 0, 0 },
        { "look's answer lost", &trying, DBLK_STAGE_LOOK, failure_of(DBLOCK_E_UNCERTAIN, 1, 0),
            DBLK_STEP_PAUSE, DBLK_STAGE_RECHECK, 0, 0 },
        { "look refused for good", &waiting, DBLK_STAGE_LOOK,
            failure_of(DBLOCK_E_PERMISSION, 0, 0), DBLK_STEP_PAUSE, DBLK_STAGE_RECHECK, 0, 0 },
        { "cancelled while looking", &waiting, DBLK_STAGE_LOOK, event_of(DBLK_EVENT_CANCELLED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_CANCELLED, 1 },
        { "closed while looking", &waiting, DBLK_STAGE_LOOK, event_of(DBLK_EVENT_CLOSED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CLOSED, 1 },
        { "cancelled between looks", &waiting, DBLK_STAGE_RECHECK,
            event_of(DBLK_EVENT_CANCELLED), DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_CANCELLED, 1 },
        { "closed between looks", &waiting, DBLK_STAGE_RECHECK, event_of(DBLK_EVENT_CLOSED),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CLOSED, 1 },
    };

    (void)state;
    judge(moves, COUNT(moves));
}

static void give_back__is_followed_by_another_attempt(void **state)
{
    const struct move moves[] = {
        { "given back", &waiting, DBLK_STAGE_GIVE_BACK, answer_of(DBLOCK_ANSWER_YES),
            DBLK_STEP_TAKE, DBLK_STAGE_TAKE, 0, 0 },
        { "had ended", &with_session, DBLK_STAGE_GIVE_BACK, answer_of(DBLOCK_ANSWER_NO),
            DBLK_STEP_SESSION, DBLK_STAGE_SESSION, 0, 0 },
        { "given back, wait over", &trying, DBLK_STAGE_GIVE_BACK, answer_of(DBLOCK_ANSWER_YES),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_BUSY, 0 },
        { "answer lost", &waiting, DBLK_STAGE_GIVE_BACK, failure_of(DBLOCK_E_UNCERTAIN, 1, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_UNCERTAIN, 1 },
        /* the drop had no effect, and so the grant may be in force: that is not "no effect" */
        { "not reached", &waiting, DBLK_STAGE_GIVE_BACK, failure_of(DBLOCK_E_CONNECTION, 1, 1),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_UNCERTAIN, 1 },
        { "no right", &waiting, DBLK_STAGE_GIVE_BACK, failure_of(DBLOCK_E_PERMISSION, 0, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_UNCERTAIN, 1 },
        { "closing", &waiting, DBLK_STAGE_GIVE_BACK, failure_of(DBLOCK_E_CLOSED, 0, 0),
            DBLK_STEP_END, DBLK_STAGE_END, DBLOCK_E_CLOSED, 1 },
    };

    (void)state;
    judge(moves, COUNT(moves));
}

/* ------------------------------------------------------------------- pauses */

static uint64_t pause_after(struct dblk_machine *machine, struct dblk_event event, uint64_t random)
{
    struct dblk_step step;

    event.random = random;
    step = dblk_machine_next(machine, &event);
    assert_int_equal(step.kind, DBLK_STEP_PAUSE);
    assert_true(step.until_us >= event.now_us);
    return step.until_us - event.now_us;
}

static void busy__pauses_grow_and_stay_in_bounds(void **state)
{
    unsigned n_pauses;

    (void)state;
    for (n_pauses = 0; n_pauses < 40; ++n_pauses) {
        struct dblk_machine machine = machine_at(&for_ever, DBLK_STAGE_TAKE);
        uint64_t least_us = dblk_backoff(n_pauses, 0, DBLK_LOOK_FIRST_US, DBLK_LOOK_LAST_US);
        uint64_t pause_us;

        machine.n_pauses = n_pauses;
        pause_us = pause_after(&machine, answer_of(DBLOCK_ANSWER_BUSY), n_pauses * 7919u);
        assert_in_range(pause_us, least_us, DBLK_LOOK_LAST_US);
        assert_int_equal(machine.n_pauses, n_pauses + 1);
        assert_int_equal(machine.n_again, 0);
    }
}

static void busy__pauses_no_longer_than_the_grant_lasts_or_the_wait(void **state)
{
    struct dblk_event short_rest = answer_of(DBLOCK_ANSWER_BUSY);
    struct dblk_terms terms = waiting;
    struct dblk_machine machine = machine_at(&for_ever, DBLK_STAGE_TAKE);

    (void)state;
    short_rest.remaining_us = 100;
    machine.n_pauses = 20;
    assert_int_equal(pause_after(&machine, short_rest, UINT64_MAX), 1100);
    terms.give_up_us = NOW_US + 7;
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    machine.n_pauses = 20;
    assert_int_equal(pause_after(&machine, answer_of(DBLOCK_ANSWER_BUSY), UINT64_MAX), 7);
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    assert_int_equal(pause_after(&machine, short_rest, UINT64_MAX), 7);
}

static void again__is_bounded(void **state)
{
    static const int32_t outcomes[] = { DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_SESSION,
        DBLOCK_ANSWER_LATE };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(outcomes); ++i) {
        struct dblk_machine machine = machine_at(&trying, DBLK_STAGE_TAKE);
        struct dblk_event event = answer_of(outcomes[i]);
        struct dblk_step step;
        unsigned n_tries;

        for (n_tries = 0; n_tries < DBLK_AGAIN_MAX; ++n_tries) {
            machine.stage = DBLK_STAGE_TAKE;
            assert_in_range(pause_after(&machine, event, n_tries), DBLK_AGAIN_FIRST_US / 2,
                DBLK_AGAIN_LAST_US);
        }
        machine.stage = DBLK_STAGE_TAKE;
        step = dblk_machine_next(&machine, &event);
        assert_int_equal(step.kind, DBLK_STEP_END);
        assert_int_equal(step.status, DBLOCK_BUSY);
        /* one that may still wait goes on */
        machine = machine_at(&for_ever, DBLK_STAGE_TAKE);
        machine.n_again = DBLK_AGAIN_MAX;
        (void)pause_after(&machine, event, 1);
        assert_int_equal(machine.n_again, 0);
    }
}

static void stale_connections__are_bounded(void **state)
{
    struct dblk_machine machine = machine_at(&trying, DBLK_STAGE_TAKE);
    struct dblk_event event = failure_of(DBLOCK_E_CONNECTION, 1, 1);
    struct dblk_step step;
    unsigned i;

    (void)state;
    for (i = 0; i < DBLK_REUSED_MAX; ++i) {
        step = dblk_machine_next(&machine, &event);
        assert_int_equal(step.kind, DBLK_STEP_TAKE);
    }
    step = dblk_machine_next(&machine, &event);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_E_CONNECTION);
}

static void outage__is_waited_out_as_long_as_the_terms_say(void **state)
{
    struct dblk_terms terms = for_ever;
    struct dblk_event event = failure_of(DBLOCK_E_CONNECTION, 1, 0);
    struct dblk_machine machine;
    struct dblk_step step;

    (void)state;
    terms.outage_us = 5000000;
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    machine.n_pauses = 30; /* of another cause: the outage begins with short ones */
    assert_in_range(pause_after(&machine, event, 9), DBLK_OUTAGE_FIRST_US / 2,
        DBLK_OUTAGE_FIRST_US);
    assert_int_equal(machine.outage_us, NOW_US);
    event.now_us = NOW_US + terms.outage_us - 10;
    machine.stage = DBLK_STAGE_TAKE;
    machine.n_pauses = 30;
    assert_int_equal(pause_after(&machine, event, 9), 10);
    event.now_us = NOW_US + terms.outage_us;
    machine.stage = DBLK_STAGE_TAKE;
    step = dblk_machine_next(&machine, &event);
    assert_int_equal(step.kind, DBLK_STEP_END);
    assert_int_equal(step.status, DBLOCK_E_CONNECTION);

    /* an answer ends the outage: the next one is counted anew */
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    event.now_us = NOW_US;
    (void)pause_after(&machine, event, 0);
    machine.stage = DBLK_STAGE_TAKE;
    (void)pause_after(&machine, answer_of(DBLOCK_ANSWER_BUSY), 0);
    assert_int_equal(machine.outage_us, 0);

    /* not longer than the wait, and never past the end of time */
    terms.give_up_us = NOW_US + 10;
    terms.outage_us = UINT64_MAX;
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    assert_int_equal(pause_after(&machine, event, UINT64_MAX), 10);
    machine = machine_at(&for_ever, DBLK_STAGE_TAKE);
    event.now_us = UINT64_MAX - 100;
    assert_in_range(pause_after(&machine, event, UINT64_MAX), 0, 100);
}

/* P7: a take that was sent late (a connection that came late) has less time to be settled. */
static void settling__does_not_make_the_call_longer(void **state)
{
    struct dblk_terms terms = waiting;
    struct dblk_event event = failure_of(DBLOCK_E_UNCERTAIN, 1, 0);
    struct dblk_machine machine;

    (void)state;
    terms.give_up_us = NOW_US - 3 * IO_US / 2;
    machine = machine_at(&terms, DBLK_STAGE_TAKE);
    assert_int_equal(dblk_machine_next(&machine, &event).kind, DBLK_STEP_LOOK);
    assert_int_equal(machine.settle_us, terms.give_up_us + 2 * IO_US + IO_US / 8);
}

static void settling__ends_uncertain_when_its_time_is_over(void **state)
{
    struct dblk_machine machine = machine_at(&waiting, DBLK_STAGE_TAKE);
    struct dblk_event event = failure_of(DBLOCK_E_UNCERTAIN, 1, 0);
    struct dblk_event look = look_of(DBLOCK_ANSWER_NO, 0, 0);
    struct dblk_event failure = failure_of(DBLOCK_E_CONNECTION, 1, 0);
    struct dblk_event paused = event_of(DBLK_EVENT_PAUSED);
    uint64_t end_us = NOW_US + IO_US + IO_US / 8;
    struct dblk_step step = dblk_machine_next(&machine, &event);
    unsigned n_looks = 0;

    (void)state;
    assert_int_equal(step.kind, DBLK_STEP_LOOK);
    assert_int_equal(machine.settle_us, end_us);
    assert_int_equal(machine.failure, DBLOCK_E_UNCERTAIN);
    for (;;) {
        look.random = failure.random = n_looks * 104729u;
        failure.now_us = look.now_us;
        step = dblk_machine_next(&machine, n_looks % 3 == 2 ? &failure : &look);
        if (step.kind == DBLK_STEP_END)
            break;
        assert_int_equal(step.kind, DBLK_STEP_PAUSE);
        assert_in_range(step.until_us, look.now_us + 1, look.now_us + DBLK_SETTLE_LAST_US);
        assert_true(step.until_us <= end_us);
        look.now_us = paused.now_us = step.until_us;
        step = dblk_machine_next(&machine, &paused);
        assert_int_equal(step.kind, DBLK_STEP_LOOK);
        ++n_looks;
    }
    assert_int_equal(look.now_us, end_us);
    assert_int_equal(step.status, DBLOCK_E_UNCERTAIN);
    assert_int_equal(step.is_open, 1);
    assert_true(n_looks > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin__goes_by_way_of_a_session_if_it_needs_one),
        cmocka_unit_test(take__is_judged_by_its_answer),
        cmocka_unit_test(pause__is_followed_by_a_take),
        cmocka_unit_test(look__says_yes_no_or_not_yet),
        cmocka_unit_test(give_back__is_followed_by_another_attempt),
        cmocka_unit_test(busy__pauses_grow_and_stay_in_bounds),
        cmocka_unit_test(busy__pauses_no_longer_than_the_grant_lasts_or_the_wait),
        cmocka_unit_test(again__is_bounded),
        cmocka_unit_test(stale_connections__are_bounded),
        cmocka_unit_test(outage__is_waited_out_as_long_as_the_terms_say),
        cmocka_unit_test(settling__does_not_make_the_call_longer),
        cmocka_unit_test(settling__ends_uncertain_when_its_time_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
