/* SPDX-License-Identifier: MIT */
/* cut_many.c - several names at once, cut at each message: all or none, P8. */
#include "cut.h"

#include <dblock/many.h>
#include <stdio.h>
#include <string.h>

static void name_second(const struct cut_run *run, char name[64])
{
    (void)snprintf(name, 64, "%.60s-2", run->name);
}

/* The locks are `mine` and `context`. */
static void act_try(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    dblock_lock *locks[2] = { NULL, NULL };
    char second[64];
    const char *names[2] = { run->name, second };

    name_second(run, second);
    run->status =
        dblock_acquire_many(run->client, names, 2, &options, locks, &run->error);
    run->mine = locks[0];
    run->context = locks[1];
}

static void act_release(struct cut_run *run)
{
    dblock_lock *locks[2] = { run->mine, run->context };

    run->status = dblock_release_many(locks, 2, &run->error);
}

/* The second name, as if the run were about that. */
static void expect_second_free(struct cut_run *run)
{
    char first[64], second[64];

    memcpy(first, run->name, sizeof first);
    name_second(run, second);
    memcpy(run->name, second, sizeof run->name);
    cut_expect_free(run, CUT_FREE_MS);
    memcpy(run->name, first, sizeof run->name);
}

static void judge_try(struct cut_run *run)
{
    struct dblock_error error;
    dblock_lock *second = run->context;
    dblock_status status;

    if (run->status == DBLOCK_OK) {
        status = dblock_confirm(second, &error);
        if (status == DBLOCK_OK)
            status = dblock_release(second, &error);
        if (status != DBLOCK_OK && !(run->is_hung && status < 0))
            cut_fail(run, "OK, and of the second name %s: %s", dblock_status_name(status),
                status < 0 ? error.message : "");
        dblock_lock_free(second);
    } else if (second != NULL) {
        cut_fail(run, "a second lock object besides an error");
    }
    cut_judge_acquire(run);
    expect_second_free(run);
}

static void prepare_held(struct cut_run *run)
{
    cut_warm(run);
    act_try(run);
    if (run->status != DBLOCK_OK)
        cut_fail(run, "not to be had: %s", run->error.message);
}

static void judge_release(struct cut_run *run)
{
    if (run->status < 0)
        cut_expect_error(run);
    else if (run->status != DBLOCK_OK)
        cut_fail(run, "released, and told %s", dblock_status_name(run->status));
    dblock_lock_free(run->context);
    cut_expect_free(run, CUT_FREE_MS);
    expect_second_free(run);
}

const struct cut_case cut_many_cases[] = {
    { "try several", CUT_RECORDED, 0, 0, cut_warm, act_try, judge_try, 0 },
    { "release several", CUT_RECORDED, 0, 0, prepare_held, act_release, judge_release, 0 },
    { NULL, 0, 0, 0, NULL, NULL, NULL, 0 },
};
