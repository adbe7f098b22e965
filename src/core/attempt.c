/* SPDX-License-Identifier: MIT */
/* attempt.c - see attempt.h. */
#include "core/attempt.h"

#include <string.h>

#include "core/error.h"

void dblk_attempt_set_terms(
    const struct dblk_attempt *attempt, uint64_t begun_us, struct dblk_terms *ret_terms)
{
    const dblock_client *client = attempt->client;
    const struct dblk_wish *wish = attempt->wish;

    memset(ret_terms, 0, sizeof *ret_terms);
    ret_terms->give_up_us = dblk_later(begun_us, wish->wait_us);
    /* half for the statement, and half, with an eighth more, to settle it if its answer is lost: one
     * I/O limit in all */
    ret_terms->io_us = client->settings.io_us / 32 * 15;
    ret_terms->outage_us = client->settings.outage_us;
    ret_terms->needs_session = wish->is_heartbeat;
    ret_terms->is_fair = wish->is_fair;
    ret_terms->has_line = wish->wait_us > 0 && dblk_place_is_possible(client);
}

void dblk_attempt_count_waiter(
    const struct dblk_attempt *attempt, const struct dblk_step *step, int by)
{
    if (step->kind != DBLK_STEP_PAUSE && step->kind != DBLK_STEP_REST && step->wait_us == 0)
        return;
    dblk_lock_client(attempt->client);
    attempt->client->stats.waiters += (uint32_t)by;
    dblk_unlock_client(attempt->client);
}

void dblk_attempt_count(
    const struct dblk_attempt *attempt, dblock_status status, uint64_t begun_us)
{
    dblock_client *client = attempt->client;

    dblk_lock_client(client);
    client->stats.wait_us += dblk_until(begun_us, dblk_now_us());
    client->stats.busy += status == DBLOCK_BUSY;
    client->stats.uncertain += status == DBLOCK_E_UNCERTAIN;
    dblk_unlock_client(client);
}

static dblock_status tell_busy(const struct dblk_attempt *attempt, struct dblock_error *reterr)
{
    dblock_status status;

    if (attempt->wish->busy == NULL)
        return DBLOCK_BUSY;
    status = dblk_struct_write(attempt->wish->busy, attempt->holder, sizeof *attempt->holder,
        "options.busy", reterr);
    return status == DBLOCK_OK ? DBLOCK_BUSY : status;
}

dblock_status dblk_attempt_tell(
    struct dblk_attempt *attempt, dblock_status status, struct dblock_error *reterr)
{
    if (status == DBLOCK_BUSY)
        return tell_busy(attempt, reterr);
    if (status < 0)
        dblk_error_tell(reterr, &attempt->error);
    return status;
}
