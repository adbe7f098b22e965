/* SPDX-License-Identifier: MIT */
/* cut_acquire.c - connecting and acquiring, cut at each message. PITFALL(I1), P1, P8. */
#include "cut.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "test_wait.h"

static void acquire(struct cut_run *run, uint64_t wait_ms)
{
    struct dblock_options options = cut_options(run);

    options.wait_ms = wait_ms;
    run->status = dblock_acquire(run->client, run->name, &options, &run->mine, &run->error);
}

static void act_ping(struct cut_run *run)
{
    run->status = dblock_ping(run->client, &run->error);
}

static int is_reached(void *context)
{
    struct cut_run *run = context;

    return dblock_ping(run->client, &run->error) == DBLOCK_OK;
}

/* A database that can be reached all the time but for one connection. */
static void judge_ping(struct cut_run *run)
{
    if (run->status != DBLOCK_OK)
        cut_expect_error(run);
    if (!test_until(is_reached, run, CUT_FREE_MS))
        cut_fail(run, "the next ping: %s", run->error.message);
}

static void act_try(struct cut_run *run)
{
    acquire(run, 0);
}

/* Somebody else has it all the time, so the answer must not be OK. */
static void judge_busy(struct cut_run *run)
{
    struct dblock_error error;
    dblock_status status;

    if (run->status == DBLOCK_OK)
        cut_fail(run, "OK, and somebody else has it");
    else if (run->status != DBLOCK_BUSY)
        cut_expect_error(run);
    status = dblock_confirm(run->theirs, &error);
    if (status == DBLOCK_OK)
        status = dblock_release(run->theirs, &error);
    if (status != DBLOCK_OK)
        cut_fail(run, "whoever has it is told %s: %s", dblock_status_name(status),
            status < 0 ? error.message : "");
    cut_expect_free(run, CUT_FREE_MS);
}

static void act_wait_in_vain(struct cut_run *run)
{
    acquire(run, CUT_WAIT_MS);
}

/* ---------------------------------------------- somebody releases meanwhile */

struct waiting {
    struct cut_run *run;
    atomic_int is_done;
};

static void *wait_for_it(void *context)
{
    struct waiting *waiting = context;

    acquire(waiting->run, 3000);
    atomic_store(&waiting->is_done, 1);
    return NULL;
}

static int is_waiting(void *context)
{
    struct waiting *waiting = context;
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)dblock_client_stats(waiting->run->client, &stats);
    return atomic_load(&waiting->is_done) ||
        (stats.waiters > 0 && tcp_proxy_quiet_ms(waiting->run->proxy) >= 8);
}

static void act_wait(struct cut_run *run)
{
    struct waiting waiting = { run, 0 };
    struct dblock_error error;
    pthread_t thread;

    if (pthread_create(&thread, NULL, wait_for_it, &waiting) != 0) {
        cut_fail(run, "no thread");
        return;
    }
    (void)test_until(is_waiting, &waiting, 2000);
    if (dblock_release(run->theirs, &error) != DBLOCK_OK)
        cut_fail(run, "whoever has it has lost it");
    (void)pthread_join(thread, NULL);
}

const struct cut_case cut_acquire_cases[] = {
    { "ping", CUT_LEASE, CUT_FRESH | CUT_LOGIN, 0, NULL, act_ping, judge_ping, 0 },
    { "try", CUT_ALL, CUT_FRESH, 0, NULL, act_try, cut_judge_acquire, 0 },
    { "try again", CUT_ALL, 0, 0, cut_warm, act_try, cut_judge_acquire, 0 },
    { "try what is held", CUT_ALL, 0, 0, cut_prepare_theirs, act_try, judge_busy, 0 },
    { "wait in vain", CUT_ALL, 0, 0, cut_prepare_theirs, act_wait_in_vain, judge_busy, 0 },
    /* three seconds are many times what a hand-over needs: BUSY means that it was forgotten */
    { "wait", CUT_ALL, 0, 0, cut_prepare_theirs, act_wait, cut_judge_acquire, 6000 },
    { NULL, 0, 0, 0, NULL, NULL, NULL, 0 },
};
