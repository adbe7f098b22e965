/* SPDX-License-Identifier: MIT */
/* command_acquire.c - dblock acquire: a lock that outlives this command. */
#include "commands.h"

#include "acquisition.h"
#include "exit_code.h"
#include "json_output.h"
#include "keeper.h"
#include "message.h"
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int check(const struct arguments *arguments)
{
    const char *name = arguments->command->name;

    if (!arguments->has_ttl)
        return message_usage(name, "-t is missing: how long is the lock to be held?");
    if (arguments->strategy == DBLOCK_ROW || arguments->strategy == DBLOCK_ADVISORY)
        return message_usage(name, "a lock of strategy %s ends with its connection; use dblock run",
            dblock_strategy_name(arguments->strategy));
    return take_check(arguments);
}

/* NULL for what is no answer of the database, and no document either. */
static const char *outcome_text(dblock_status status)
{
    switch (status) {
    case DBLOCK_OK:
        return "held";
    case DBLOCK_BUSY:
        return "busy";
    default:
        return NULL;
    }
}

static int print_json(const char *name, const struct acquisition *acquisition)
{
    dblock_status status = acquisition->status;
    json_t *document = json_document("acquire");

    json_set_text(document, "name", name);
    json_set_text(document, "outcome", outcome_text(status));
    json_set_text(document, "grant", status == DBLOCK_OK ? acquisition->grant : NULL);
    (void)json_object_set_new(
        document, "lock", status == DBLOCK_OK ? json_grant(&acquisition->lock) : json_null());
    (void)json_object_set_new(
        document, "holder", status == DBLOCK_BUSY ? json_grant(&acquisition->holder) : json_null());
    return json_print(document, stdout);
}

static int print_grant(const struct acquisition *acquisition)
{
    if (printf("%s\n", acquisition->grant) >= 0 && fflush(stdout) == 0)
        return EXIT_CODE_DONE;
    message_failure("cannot write the grant: %s; the lock is given back", strerror(errno));
    return EXIT_CODE_MACHINE;
}

/* Says what there is to say; returns the exit status. */
static int print(const struct arguments *arguments, const struct acquisition *acquisition)
{
    struct take take;
    int result = EXIT_CODE_DONE;

    if (acquisition->result != -1)
        return acquisition->result;
    if (arguments->is_json && outcome_text(acquisition->status) != NULL)
        result = print_json(arguments->operand, acquisition);
    else if (acquisition->status == DBLOCK_OK)
        result = print_grant(acquisition);
    if (acquisition->status == DBLOCK_OK || result != EXIT_CODE_DONE)
        return result;
    if (acquisition->status == DBLOCK_CANCELLED)
        return EXIT_CODE_SIGNAL + acquisition->signal;
    take_init(&take, arguments);
    take.holder = acquisition->holder;
    take.error = acquisition->error;
    take.is_held_by_parent = acquisition->is_held_by_parent;
    return take_explain(&take, acquisition->status, "not taken");
}

static int acquire_for_process(const struct arguments *arguments)
{
    struct acquisition acquisition;
    pid_t keeper;
    int result;

    keeper_start(arguments, &acquisition, &keeper);
    result = print(arguments, &acquisition);
    if (result != EXIT_CODE_DONE && keeper > 0)
        (void)kill(keeper, SIGTERM); /* gives it back, or has ended already */
    return result;
}

static int acquire_for_time(const struct arguments *arguments)
{
    struct acquisition acquisition;
    struct database database;
    dblock_lock *lock;
    int result = signals_begin();

    if (result != -1)
        return result;
    memset(&database, 0, sizeof database);
    acquisition_make(arguments, false, &database, &lock, &acquisition);
    /* The time runs from now; and the object that is freed below releases nothing. */
    if (lock != NULL)
        acquisition.status = dblock_lock_detach(lock, arguments->ttl_ms, &acquisition.error);
    result = print(arguments, &acquisition);
    if (lock != NULL && result != EXIT_CODE_DONE)
        (void)dblock_release(lock, NULL); /* a failure leaves it to the ttl */
    dblock_lock_free(lock);
    database_close(&database);
    return result;
}

int command_acquire(const struct arguments *arguments)
{
    int result = check(arguments);

    if (result != -1)
        return result;
    return arguments->parent_pid != 0 ? acquire_for_process(arguments)
                                      : acquire_for_time(arguments);
}
