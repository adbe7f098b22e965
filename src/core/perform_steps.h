/* SPDX-License-Identifier: MIT */
/* perform_steps.h - what the files of perform.h share: a function for each step, and
 * what every one of them needs. Each fills the zeroed `event`; `now_us` is the time. */
#ifndef DBLK_PERFORM_STEPS_H
#define DBLK_PERFORM_STEPS_H

#include "core/perform.h"

/* lease and insert */
void dblk_perform_session(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event);
void dblk_perform_take_recorded(struct dblk_attempt *attempt, uint64_t now_us, int heeds_line,
    struct dblk_event *event);
void dblk_perform_look(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event);
void dblk_perform_give_back(
    struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event);
void dblk_perform_stand(struct dblk_attempt *attempt, uint64_t wait_us, uint64_t now_us,
    struct dblk_event *event);
void dblk_perform_rest(
    struct dblk_attempt *attempt, uint64_t until_us, struct dblk_event *event);

/* What the driver is asked on the connection lent for it: for one name, or for many. */
typedef dblock_status dblk_ask(void *context, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
/* A take of attempt->lock whose owner ids are fresh. `*answer` is of use if the event is ANSWERED. */
void dblk_perform_ask(struct dblk_attempt *attempt, uint64_t now_us, int heeds_line,
    dblk_ask *ask, void *context, struct dblock_answer *answer, struct dblk_event *event);
/* Until when a grant that was asked for then may be believed in. */
uint64_t dblk_perform_deadline(const dblock_lock *lock, uint64_t sent_us);

/* row and advisory */
void dblk_perform_seed(struct dblk_attempt *attempt, uint64_t now_us, struct dblk_event *event) DBLOCK_COLD_;
void dblk_perform_take_connection(struct dblk_attempt *attempt, uint64_t now_us,
    uint64_t wait_us, struct dblk_event *event);

/* For a step of that length: its deadline, within that of the call. */
uint64_t dblk_perform_limit(
    const struct dblk_attempt *attempt, uint64_t now_us, uint64_t length_us);
/* A fresh owner id for a take: 0, or the failure is in attempt->error. */
int dblk_perform_renew_owner(struct dblk_attempt *attempt);
void dblk_perform_fill_take(const struct dblk_attempt *attempt, uint64_t wait_us, int heeds_line,
    struct dblock_take *take);

/* What came of a step. `is_reused`: on a connection that had been idle before. */
void dblk_event_failed(struct dblk_attempt *attempt, dblock_status status, int is_reused,
    struct dblk_event *event) DBLOCK_COLD_;
void dblk_event_answered(const struct dblock_answer *answer, struct dblk_event *event);
/* Of a take; the attempt's error was cleared before it. */
void dblk_event_taken(const struct dblk_attempt *attempt, const struct dblock_answer *answer,
    struct dblk_event *event);

#endif
