/* SPDX-License-Identifier: MIT */
/* cut_look.c - what is asked and done about grants of others, and about the tables, cut at each
 * message. P3, P4, P8. */
#include "cut.h"

#include <dblock/sys/driver.h>

#include <stdio.h>
#include <string.h>

static int is_theirs(const struct cut_run *run, const struct dblock_grant *grant)
{
    return run->kind & CUT_RECORDED
        ? strcmp(grant->owner, dblock_lock_owner(run->theirs)) == 0
        : 1;
}

static void act_inspect(struct cut_run *run)
{
    run->grant = (struct dblock_grant)DBLOCK_GRANT_INIT;
    run->status =
        dblock_inspect(run->client, run->name, cut_strategy(run), &run->grant, &run->error);
}

static void judge_inspect(struct cut_run *run)
{
    if (run->status == DBLOCK_OK && !is_theirs(run, &run->grant))
        cut_fail(run, "OK, and not whoever has it");
    else if (run->status != DBLOCK_OK)
        cut_expect_error(run);
}

static int count_grant(const struct dblock_grant *grant, void *context)
{
    struct cut_run *run = context;

    if (is_theirs(run, grant))
        ++run->number;
    return 0;
}

static void act_list(struct cut_run *run)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;

    filter.strategy = cut_strategy(run);
    filter.name = run->name;
    run->number = 0;
    run->status = dblock_list(run->client, &filter, count_grant, run, &run->error);
}

static void judge_list(struct cut_run *run)
{
    if (run->status == DBLOCK_OK && run->number != 1)
        cut_fail(run, "OK, and it is listed %d times", (int)run->number);
    else if (run->status != DBLOCK_OK)
        cut_expect_error(run);
}

static void act_break(struct cut_run *run)
{
    run->status = dblock_break(run->client, run->name, cut_strategy(run), 0, &run->error);
}

static void judge_break(struct cut_run *run)
{
    struct dblock_error error;
    dblock_status status = dblock_confirm(run->theirs, &error);

    if (run->is_dry && run->status == DBLOCK_E_UNSUPPORTED)
        return;
    if (run->status == DBLOCK_OK && status != DBLOCK_LOST)
        cut_fail(run, "OK, and its holder has it");
    else if (run->status != DBLOCK_OK && run->status != DBLOCK_E_UNSUPPORTED)
        cut_expect_error(run);
    if (status != DBLOCK_OK && status != DBLOCK_LOST)
        cut_fail(run, "the holder is told %s", dblock_status_name(status));
    /* nothing but this grant has ended */
    if (status == DBLOCK_LOST)
        cut_expect_free(run, CUT_FREE_MS);
    else if (run->status == DBLOCK_E_CONNECTION && dblock_release(run->theirs, &error) != DBLOCK_OK)
        cut_fail(run, "the holder cannot release it");
}

/* ---------------------------------------------------------------- transfer */

static void prepare_export(struct cut_run *run)
{
    static char text[DBLOCK_GRANT_TEXT_SIZE + 3 * 64];

    cut_prepare_theirs(run);
    if (run->theirs != NULL &&
        dblock_lock_export(run->theirs, text, sizeof text, &run->error) != DBLOCK_OK)
        cut_fail(run, "not prepared: %s", run->error.message);
    run->context = text;
}

static void act_import(struct cut_run *run)
{
    run->status = dblock_lock_import(run->client, run->context, &run->mine, &run->error);
}

static void judge_import(struct cut_run *run)
{
    struct dblock_error error;

    if (run->status != DBLOCK_OK)
        cut_expect_error(run);
    else if (!dblock_lock_is_held(run->mine) ||
        strcmp(dblock_lock_owner(run->mine), dblock_lock_owner(run->theirs)) != 0)
        cut_fail(run, "OK, and not held, or not that grant");
    if (dblock_confirm(run->theirs, &error) != DBLOCK_OK)
        cut_fail(run, "its holder has lost it");
    if (dblock_release(run->status == DBLOCK_OK ? run->mine : run->theirs, &error) != DBLOCK_OK)
        cut_fail(run, "it cannot be released");
    cut_expect_free(run, CUT_FREE_MS);
}

/* ------------------------------------------------------------------ schema */

static void prepare_install(struct cut_run *run)
{
    run->database->contract->drop_tables();
}

static void act_install(struct cut_run *run)
{
    run->status = dblock_schema_install(run->client, &run->error);
}

/* Installed, or installed by asking again. */
static void judge_install(struct cut_run *run)
{
    struct dblock_error error;

    if (run->status != DBLOCK_OK) {
        cut_expect_error(run);
        if (dblock_schema_install(run->client, &error) != DBLOCK_OK)
            cut_fail(run, "asked again: %s", error.message);
    }
    if (dblock_ping(run->other, &error) != DBLOCK_OK)
        cut_fail(run, "%s, and the tables are not there: %s", dblock_status_name(run->status),
            error.message);
}

/* ------------------------------------------------------------------- purge */

/* The keeper's own, of which no caller is told: so it is called below the library. */
static void prepare_purge(struct cut_run *run)
{
    cut_take_theirs(run);
    if (run->theirs == NULL)
        return;
    if (dblock_lock_token(run->theirs, &run->number, &run->error) != DBLOCK_OK ||
        dblock_release(run->theirs, &run->error) != DBLOCK_OK)
        cut_fail(run, "not prepared: %s", run->error.message);
    dblock_lock_free(run->theirs);
    run->theirs = NULL;
    run->database->contract->age(run->name);
}

static void act_purge(struct cut_run *run)
{
    const struct dblock_driver *driver = run->database->contract->driver();
    struct dblock_target_config config = {
        .url = run->database->proxied_url(tcp_proxy_port(run->proxy)),
        .schema = run->database->contract->schema != NULL ? run->database->contract->schema() : NULL,
        .host = "host",
        .label = "",
        .connect_timeout_us = CUT_CONNECT_MS * 1000,
        .io_timeout_us = CUT_IO_MS * 1000,
        .ttl_us = CUT_TTL_MS * 1000
    };
    struct dblock_call call = { dblock_clock_us() + 2 * CUT_IO_MS * 1000, -1 };
    struct dblock_answer answer;
    struct dblock_connection *connection = NULL;
    struct dblock_target *target = NULL;

    memset(&answer, 0, sizeof answer);
    run->status = driver->target_open(&config, &target, &run->error);
    if (run->status == DBLOCK_OK)
        run->status = driver->connection.open(
            target, DBLOCK_ROLE_KEEPER, &call, &connection, &answer, &run->error);
    if (run->status == DBLOCK_OK)
        run->status = driver->observe.purge(connection, &call, &answer, &run->error);
    driver->connection.close(connection, DBLOCK_CLOSE_ABORT);
    driver->target_close(target);
}

static void judge_purge(struct cut_run *run)
{
    int64_t next = 0;
    struct dblock_error error;

    if (run->status != DBLOCK_OK)
        cut_expect_error(run);
    cut_take_theirs(run);
    if (run->theirs != NULL && (dblock_lock_token(run->theirs, &next, &error) != DBLOCK_OK ||
                                   next <= run->number))
        cut_fail(run, "the next token is not larger");
}

const struct cut_case cut_look_cases[] = {
    { "inspect", CUT_ALL, 0, 0, cut_prepare_theirs, act_inspect, judge_inspect, 0 },
    { "list", CUT_ALL, 0, 0, cut_prepare_theirs, act_list, judge_list, 0 },
    { "break", CUT_ALL, 0, 0, cut_prepare_theirs, act_break, judge_break, 0 },
    { "import", CUT_RECORDED, 0, 0, prepare_export, act_import, judge_import, 0 },
    { "purge", CUT_ALL, 0, 0, prepare_purge, act_purge, judge_purge, 0 },
    /* once, in the lane that has the least to do */
    { "install", CUT_ADVISORY, 0, 0, prepare_install, act_install, judge_install, 0 },
    { NULL, 0, 0, 0, NULL, NULL, NULL, 0 },
};
