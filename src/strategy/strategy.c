/* SPDX-License-Identifier: MIT */
/* strategy.c - starting a machine, and the table of the moves that are allowed:
 * a strategy that makes another one has a bug, and is stopped at that move
 * rather than wherever its effect would show. */
#include "strategy/strategy.h"

#include <assert.h>
#include <string.h>

#define BIT(stage) (1u << (stage))

static const unsigned allowed_moves[] = {
    [DBLK_STAGE_NEW] = BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_STAND) |
        BIT(DBLK_STAGE_END),
    [DBLK_STAGE_SESSION] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_PAUSE) |
        BIT(DBLK_STAGE_END),
    [DBLK_STAGE_SEED] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_PAUSE) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_TAKE] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_SEED) |
        BIT(DBLK_STAGE_PAUSE) | BIT(DBLK_STAGE_STAND) | BIT(DBLK_STAGE_REST) |
        BIT(DBLK_STAGE_LOOK) | BIT(DBLK_STAGE_GIVE_BACK) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_PAUSE] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_STAND] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_PAUSE) |
        BIT(DBLK_STAGE_END),
    [DBLK_STAGE_REST] = BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_PAUSE) |
        BIT(DBLK_STAGE_END),
    [DBLK_STAGE_LOOK] = BIT(DBLK_STAGE_RECHECK) | BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_SESSION) |
        BIT(DBLK_STAGE_GIVE_BACK) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_RECHECK] = BIT(DBLK_STAGE_LOOK) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_GIVE_BACK] = BIT(DBLK_STAGE_SESSION) | BIT(DBLK_STAGE_TAKE) | BIT(DBLK_STAGE_END),
    [DBLK_STAGE_END] = 0,
};

const struct dblk_strategy *dblk_strategy_of(int32_t id)
{
    switch (id) {
    case DBLOCK_LEASE:
        return &dblk_lease;
    case DBLOCK_INSERT:
        return &dblk_insert;
    case DBLOCK_ROW:
        return &dblk_row;
    case DBLOCK_ADVISORY:
        return &dblk_advisory;
    default:
        return NULL;
    }
}

void dblk_machine_start(struct dblk_machine *machine, const struct dblk_strategy *strategy,
    const struct dblk_terms *terms)
{
    memset(machine, 0, sizeof *machine);
    machine->strategy = strategy;
    machine->terms = *terms;
}

struct dblk_step dblk_machine_next(struct dblk_machine *machine, const struct dblk_event *event)
{
    enum dblk_stage before = machine->stage;
    struct dblk_step step = machine->strategy->next(machine, event);

    assert((allowed_moves[before] & BIT(machine->stage)) != 0);
    assert((step.kind == DBLK_STEP_END) == (machine->stage == DBLK_STAGE_END));
    assert((step.kind != DBLK_STEP_PAUSE && step.kind != DBLK_STEP_REST) || step.until_us != 0);
    (void)before;
    return step;
}
