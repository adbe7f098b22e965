/* SPDX-License-Identifier: MIT */
/* sim_driver_many.c - several names in one step: nobody sees the world in between. */
#include "sim_driver_parts.h"

#include <string.h>

static int find_line(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_many *many, size_t *ret_place)
{
    size_t i;

    for (i = 0; i < many->n_names; ++i)
        if (sim_line_has_first(connection, strategy, &many->subjects[i])) {
            *ret_place = i;
            return 1;
        }
    return 0;
}

/* Those before number n, none of which has been seen by anybody. */
static void undo(struct sim_visit *visit, int32_t strategy, const struct dblock_many *many,
    size_t n, struct dblock_error *reterr)
{
    struct dblock_answer answer;

    while (n-- > 0) {
        memset(&answer, 0, sizeof answer);
        (void)sim_hold_drop(visit->world, visit->now_us, strategy, many->subjects[n].name,
            many->owners[n], 0, &answer, reterr);
    }
}

static void note_held(struct sim_visit *visit, int32_t strategy, const struct dblock_many *many,
    struct dblock_error *reterr)
{
    struct dblock_grant seen = DBLOCK_GRANT_INIT;
    struct dblock_answer answer;
    size_t i;

    for (i = 0; visit->is_inside && i < many->n_names; ++i) {
        memset(&answer, 0, sizeof answer);
        if (sim_hold_look(visit->world, visit->now_us, strategy, many->subjects[i].name, &seen,
                &answer, reterr) == DBLOCK_OK && answer.outcome == DBLOCK_ANSWER_YES)
            many->outcomes[i] = DBLOCK_ANSWER_BUSY;
    }
}

dblock_status sim_take_many(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_TAKE, call, answer, reterr);
    struct dblock_take take = *terms;
    struct dblock_grant seen = DBLOCK_GRANT_INIT;
    size_t i;

    if (visit.is_inside && terms->heeds_line &&
        find_line(connection, strategy, many, ret_place)) {
        visit.status = sim_hold_look(visit.world, visit.now_us, strategy,
            many->subjects[*ret_place].name, &seen, answer, reterr);
        answer->outcome = DBLOCK_ANSWER_BUSY;
        if (holder != NULL)
            *holder = seen;
        return sim_leave(&visit, reterr);
    }
    note_held(&visit, strategy, many, reterr);
    for (i = 0; visit.is_inside && i < many->n_names && visit.status == DBLOCK_OK; ++i) {
        take.subject = many->subjects[i];
        take.owner = many->owners[i];
        memset(answer, 0, sizeof *answer);
        visit.status = sim_hold_take(visit.world, visit.now_us, &connection->caller, strategy, &take,
            holder, answer, reterr);
        many->tokens[i] = answer->token;
        if (visit.status != DBLOCK_OK || answer->outcome != DBLOCK_ANSWER_YES) {
            *ret_place = i;
            undo(&visit, strategy, many, i, reterr);
            break;
        }
    }
    return sim_leave(&visit, reterr);
}

dblock_status sim_drop_many(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    struct sim_visit visit = sim_enter(connection, SIM_STEP_DROP, call, answer, reterr);
    size_t i;

    for (i = 0; visit.is_inside && i < many->n_names && visit.status == DBLOCK_OK; ++i) {
        if (many->outcomes[i] == DBLOCK_ANSWER_YES || many->outcomes[i] == DBLOCK_ANSWER_NO)
            continue;
        visit.status = sim_hold_drop(visit.world, visit.now_us, strategy, many->subjects[i].name,
            many->owners[i], 0, answer, reterr);
        many->outcomes[i] = answer->outcome;
        if (visit.status == DBLOCK_OK)
            sim_line_ring(connection, strategy, &many->subjects[i]);
    }
    answer->outcome = 0; /* the library looks for the worst */
    return sim_leave(&visit, reterr);
}
