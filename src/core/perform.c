/* SPDX-License-Identifier: MIT */
/* perform.c - see perform.h. The steps themselves are in perform_recorded.c and
 * perform_connection.c. */
#include "core/perform.h"

#include <errno.h>
#include <string.h>

#include "core/perform_steps.h"
#include "core/session.h"
#include "core/trace.h"

void dblk_event_failed(struct dblk_attempt *attempt, dblock_status status, int is_reused,
    struct dblk_event *event)
{
    if (status > 0) { /* a wait that was ended */
        int verdict = dblk_waiter_verdict(&attempt->waiter);

        event->kind = verdict != 0 ? (enum dblk_event_kind)verdict : DBLK_EVENT_CANCELLED;
        return;
    }
    event->kind = DBLK_EVENT_FAILED;
    event->status = status;
    event->is_transient = attempt->error.is_transient != 0;
    event->is_reused = is_reused;
}

void dblk_event_answered(const struct dblock_answer *answer, struct dblk_event *event)
{
    event->kind = DBLK_EVENT_ANSWERED;
    event->outcome = answer->outcome;
    event->status = DBLOCK_OK;
    event->remaining_us = answer->remaining_us;
}

void dblk_event_taken(const struct dblk_attempt *attempt, const struct dblock_answer *answer,
    struct dblk_event *event)
{
    dblk_event_answered(answer, event);
    if (answer->outcome == DBLOCK_ANSWER_AGAIN)
        event->status = attempt->error.status;
}

uint64_t dblk_perform_limit(
    const struct dblk_attempt *attempt, uint64_t now_us, uint64_t length_us)
{
    return dblk_sooner(dblk_later(now_us, length_us), attempt->end_us);
}

/* A new owner id for each take: an id that was sent once may still be on its way. */
int dblk_perform_renew_owner(struct dblk_attempt *attempt)
{
    int fault;

    dblk_lock_client(attempt->client);
    dblk_lock_unregister(attempt->lock);
    fault = dblk_lock_register(attempt->lock);
    dblk_unlock_client(attempt->client);
    if (fault == ENOMEM)
        (void)dblock_error_set(&attempt->error, DBLOCK_E_MEMORY, NULL, "out of memory");
    else if (fault != 0)
        (void)dblock_error_set(&attempt->error, DBLOCK_E_SYSTEM, NULL,
            "no random bytes for an owner: %s", strerror(fault));
    return fault;
}

void dblk_perform_fill_take(const struct dblk_attempt *attempt, uint64_t wait_us, int heeds_line,
    struct dblock_take *take)
{
    const dblock_lock *lock = attempt->lock;

    take->subject = lock->subject;
    take->owner = lock->owner;
    take->session = lock->session != NULL ? lock->session->id : NULL;
    take->ttl_us = atomic_load(&lock->ttl_us);
    take->not_after_us = attempt->not_after_us;
    take->wait_us = wait_us;
    take->is_fair = attempt->wish->is_fair;
    take->heeds_line = heeds_line;
    take->label = lock->label;
}

static void trace_wait(const struct dblk_attempt *attempt, uint64_t begun_us)
{
    dblk_trace(attempt->client, DBLOCK_TRACE_WAIT, DBLOCK_OK, attempt->lock->subject.name, NULL,
        0, begun_us);
}

void dblk_perform(
    struct dblk_attempt *attempt, const struct dblk_step *step, struct dblk_event *ret_event)
{
    uint64_t begun_us = ret_event->now_us;

    memset(ret_event, 0, sizeof *ret_event);
    ret_event->kind = DBLK_EVENT_ANSWERED;
    switch (step->kind) {
    case DBLK_STEP_SESSION:
        dblk_perform_session(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_SEED:
        dblk_perform_seed(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_TAKE:
        if (attempt->lock->strategy->lives_in_connection)
            dblk_perform_take_connection(attempt, begun_us, step->wait_us, ret_event);
        else
            dblk_perform_take_recorded(attempt, begun_us, step->heeds_line, ret_event);
        dblk_trace(attempt->client, DBLOCK_TRACE_ATTEMPT,
            ret_event->kind == DBLK_EVENT_FAILED ? ret_event->status
                : ret_event->kind == DBLK_EVENT_ANSWERED &&
                    ret_event->outcome == DBLOCK_ANSWER_YES
                ? DBLOCK_OK
                : DBLOCK_BUSY,
            attempt->lock->subject.name,
            ret_event->kind == DBLK_EVENT_FAILED ? attempt->error.message : NULL,
            attempt->lock->token, begun_us);
        break;
    case DBLK_STEP_LOOK:
        dblk_perform_look(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_GIVE_BACK:
        dblk_perform_give_back(attempt, begun_us, ret_event);
        break;
    case DBLK_STEP_STAND:
        dblk_perform_stand(attempt, step->wait_us, begun_us, ret_event);
        trace_wait(attempt, begun_us);
        break;
    case DBLK_STEP_REST:
        dblk_perform_rest(attempt, step->until_us, ret_event);
        trace_wait(attempt, begun_us);
        break;
    default: /* PAUSE */
        ret_event->kind =
            (enum dblk_event_kind)dblk_waiter_pause(&attempt->waiter, step->until_us);
        trace_wait(attempt, begun_us);
        break;
    }
    if (ret_event->now_us == 0)
        ret_event->now_us = dblk_now_us();
    /* jitter only where something has to be waited for: an uncontended take draws none */
    if (ret_event->kind != DBLK_EVENT_ANSWERED || ret_event->outcome != DBLOCK_ANSWER_YES)
        ret_event->random = dblk_random_u64();
}
