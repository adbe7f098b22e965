/* SPDX-License-Identifier: MIT */
/* cut_held.c - what is done with a grant, cut at each message. PITFALL(I2), P1, P4, P6, P8. */
#include "cut.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "test_wait.h"

/* A wake-up that is lost with the connection costs five seconds at most. */
enum { HEIR_MS = 6000 };

/* ----------------------------------------------------------------- release */

static void act_release(struct cut_run *run)
{
    run->status = dblock_release(run->mine, &run->error);
}

static void judge_release(struct cut_run *run)
{
    struct dblock_error error;

    if (dblock_lock_is_held(run->mine))
        cut_fail(run, "released, and believed in");
    if (run->status == DBLOCK_OK) {
        if (cut_try(run) != DBLOCK_OK)
            cut_fail(run, "released, and not free");
        return;
    }
    /* its connection may have ended before anything was sent */
    if (!(run->status == DBLOCK_LOST && run->kind & CUT_LIVE && !run->is_dry))
        cut_expect_error(run);
    cut_expect_free(run, CUT_FREE_MS);
    if (dblock_release(run->mine, &error) != DBLOCK_NOT_HELD)
        cut_fail(run, "a second release is not told so");
}

/* ---------------------------------------------- somebody waits for it */

struct heir {
    struct cut_run *run;
    dblock_status status;
    uint64_t had_ms;
};

static void *wait_as_heir(void *context)
{
    struct heir *heir = context;
    struct dblock_options options = cut_options(heir->run);
    struct dblock_error error;

    options.wait_ms = HEIR_MS;
    heir->status = dblock_acquire(
        heir->run->other, heir->run->name, &options, &heir->run->theirs, &error);
    heir->had_ms = test_now_ms();
    return NULL;
}

static int has_heir(void *context)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)dblock_client_stats(((struct cut_run *)context)->other, &stats);
    return stats.waiters > 0;
}

static void act_hand_over(struct cut_run *run)
{
    struct heir heir = { run, DBLOCK_OK, 0 };
    pthread_t thread;
    uint64_t begun_ms;

    if (pthread_create(&thread, NULL, wait_as_heir, &heir) != 0) {
        cut_fail(run, "no thread");
        return;
    }
    (void)test_until(has_heir, run, 2000);
    begun_ms = test_now_ms();
    act_release(run);
    (void)pthread_join(thread, NULL);
    run->number = (int64_t)(heir.had_ms - begun_ms);
    if (heir.status != DBLOCK_OK)
        cut_fail(run, "released (%s), and whoever waits is told %s after %ld ms",
            dblock_status_name(run->status), dblock_status_name(heir.status), (long)run->number);
}

static void judge_hand_over(struct cut_run *run)
{
    if (dblock_lock_is_held(run->mine))
        cut_fail(run, "released, and believed in");
    if (run->status != DBLOCK_OK &&
        !(run->status == DBLOCK_LOST && run->kind & CUT_LIVE && !run->is_dry))
        cut_expect_error(run);
    if (run->theirs != NULL && dblock_release(run->theirs, NULL) != DBLOCK_OK)
        cut_fail(run, "whoever waited for it cannot release it");
}

/* No second call is needed: what is freed is given back behind the caller's back. */
static void act_free(struct cut_run *run)
{
    dblock_lock_free(run->mine);
    run->mine = NULL;
    cut_await_work(run);
}

static void judge_free(struct cut_run *run)
{
    cut_expect_free(run, CUT_FREE_MS);
}

static void act_close(struct cut_run *run)
{
    dblock_close(run->client);
    run->client = NULL;
    cut_await_work(run);
}

/* Whatever was lost on the way ends with its ttl. */
static void judge_close(struct cut_run *run)
{
    if (dblock_lock_is_held(run->mine))
        cut_fail(run, "its client is closed, and it is believed in");
    cut_expect_free(run, CUT_SHORT_TTL_MS + 400);
}

/* ----------------------------------------------------- confirm and extend */

static void act_confirm(struct cut_run *run)
{
    run->status = dblock_confirm(run->mine, &run->error);
}

/* Nobody has ended it but a cut of its own connection. */
static void judge_held(struct cut_run *run)
{
    struct dblock_error error;
    dblock_status status;

    if (run->status == DBLOCK_LOST && run->kind & CUT_LIVE && !run->is_dry) {
        if (dblock_lock_is_held(run->mine))
            cut_fail(run, "LOST, and believed in");
        cut_expect_free(run, CUT_FREE_MS);
        return;
    }
    if (run->status != DBLOCK_OK)
        cut_expect_error(run);
    if (run->kind & CUT_RECORDED && !dblock_lock_is_held(run->mine))
        cut_fail(run, "it is in force, and not believed in after %s",
            dblock_status_name(run->status));
    cut_expect_one_holder(run);
    status = dblock_release(run->mine, &error);
    if (status != DBLOCK_OK && !(run->is_cut && run->kind & CUT_LIVE && status == DBLOCK_LOST) &&
        !(run->is_hung && status < 0))
        cut_fail(run, "its release says %s", dblock_status_name(status));
    cut_expect_free(run, CUT_FREE_MS);
}

static void act_extend(struct cut_run *run)
{
    run->status = dblock_extend(run->mine, 3 * CUT_TTL_MS, &run->error);
}

static void act_shorten(struct cut_run *run)
{
    run->status = dblock_extend(run->mine, CUT_TTL_MS / 4, &run->error);
}

static void act_detach(struct cut_run *run)
{
    run->status = dblock_lock_detach(run->mine, CUT_TTL_MS / 4, &run->error);
}

/* Believed no longer than the database keeps it. */
static void judge_extend(struct cut_run *run)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    uint64_t believed_ms = dblock_lock_remaining_ms(run->mine);
    dblock_status status =
        dblock_inspect(run->other, run->name, cut_strategy(run), &grant, &error);

    if (status != DBLOCK_OK || strcmp(grant.owner, dblock_lock_owner(run->mine)) != 0)
        cut_fail(run, "the database has it no more");
    else if (believed_ms > grant.remaining_ms + 100)
        cut_fail(run, "%s: believed for %u ms, and in force for %u",
            dblock_status_name(run->status), (unsigned)believed_ms,
            (unsigned)grant.remaining_ms);
    else if (run->status == DBLOCK_OK && grant.is_heartbeat)
        cut_fail(run, "OK, and it has a heartbeat yet");
    else if (run->status == DBLOCK_OK && grant.remaining_ms > CUT_TTL_MS / 4 &&
        grant.remaining_ms < 2 * CUT_TTL_MS)
        cut_fail(run, "OK, and the end has not been moved");
    judge_held(run);
}

/* --------------------------------------------------------------- heartbeat */

struct beats {
    struct cut_run *run;
    uint64_t n_beats;
};

static int has_beaten(void *context)
{
    struct beats *beats = context;
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)dblock_client_stats(beats->run->client, &stats);
    return stats.heartbeats > beats->n_beats || !dblock_lock_is_held(beats->run->mine);
}

/* Until the next renewal has got through; of a connection, its ping. */
static void act_renew(struct cut_run *run)
{
    struct beats beats = { run, 0 };
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)dblock_client_stats(run->client, &stats);
    beats.n_beats = stats.heartbeats;
    if (run->kind & CUT_RECORDED)
        (void)test_until(has_beaten, &beats, 2 * CUT_SHORT_TTL_MS);
    else
        cut_await_work(run);
}

/* With two thirds of the ttl left the next try is in time. */
static void judge_renew(struct cut_run *run)
{
    if (run->is_dry && !dblock_lock_is_held(run->mine))
        cut_fail(run, "nothing was cut, and it is lost");
    cut_expect_one_holder(run);
    (void)dblock_release(run->mine, NULL);
    cut_expect_free(run, CUT_FREE_MS);
}

/* ------------------------------------------------------------------ tokens */

static void act_token(struct cut_run *run)
{
    run->status = dblock_lock_token(run->mine, &run->number, &run->error);
}

static void judge_token(struct cut_run *run)
{
    int64_t token = run->status == DBLOCK_OK ? run->number : 0;
    int64_t next = 0;
    struct dblock_error error;

    if (run->status == DBLOCK_OK && token <= 0)
        cut_fail(run, "OK, and no token");
    judge_held(run);
    cut_take_theirs(run);
    if (run->theirs != NULL &&
        (dblock_lock_token(run->theirs, &next, &error) != DBLOCK_OK || next <= token))
        cut_fail(run, "the next token is not larger");
}

const struct cut_case cut_held_cases[] = {
    { "release", CUT_ALL, 0, 0, cut_take_mine, act_release, judge_release, 0 },
    { "hand over", CUT_ALL, 0, 0, cut_take_mine, act_hand_over, judge_hand_over, HEIR_MS },
    { "free", CUT_ALL, 0, 0, cut_take_mine, act_free, judge_free, 3000 },
    { "close", CUT_ALL, CUT_FRESH, CUT_SHORT_TTL_MS, cut_take_mine, act_close, judge_close,
        CUT_IO_MS + 100 },
    { "confirm", CUT_ALL, 0, 0, cut_take_mine, act_confirm, judge_held, 0 },
    { "extend", CUT_INSERT, 0, 0, cut_take_mine, act_extend, judge_extend, 0 },
    { "shorten", CUT_INSERT, 0, 0, cut_take_mine, act_shorten, judge_extend, 0 },
    { "detach", CUT_LEASE, 0, 0, cut_take_mine, act_detach, judge_extend, 0 },
    { "renew", CUT_LEASE | CUT_LIVE, 0, CUT_SHORT_TTL_MS, cut_take_mine, act_renew, judge_renew,
        3000 },
    { "token", CUT_LIVE, 0, 0, cut_take_mine, act_token, judge_token, 0 },
    { NULL, 0, 0, 0, NULL, NULL, NULL, 0 },
};
