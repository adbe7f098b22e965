/* SPDX-License-Identifier: MIT */
/* command_run.c - dblock run: take the lock, run COMMAND, release. This file has
 * the order of things; each step is in a file of its own. */
#include "commands.h"

#include "child.h"
#include "child_environment.h"
#include "clock.h"
#include "database.h"
#include "descendants.h"
#include "exit_code.h"
#include "message.h"
#include "report.h"
#include "signal_name.h"
#include "signals.h"
#include "supervise.h"
#include "take.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The grace of a lock that ends with its connection: there is no ttl to take a part
 * of. */
#define CONNECTION_GRACE_MS UINT64_C(10000)

struct run {
    const struct arguments *arguments;
    struct database database;
    struct child_plan plan;
    struct take take;
    struct report report;
    struct outcome outcome;
    struct terminal terminal;
    struct supervision supervision;
    char *grant;
};

static bool is_kept_by_connection(const struct arguments *arguments)
{
    return arguments->strategy == DBLOCK_ROW || arguments->strategy == DBLOCK_ADVISORY;
}

/* What the options say together. */
static int check(const struct arguments *arguments)
{
    const char *name = arguments->command->name;

    if (is_kept_by_connection(arguments) && (arguments->has_ttl || arguments->at_least_ms > 0))
        return message_usage(name, "%s is for lease and insert; %s ends with its connection",
            arguments->has_ttl ? "-t" : "--at-least", dblock_strategy_name(arguments->strategy));
    if (arguments->has_id && arguments->strategy != DBLOCK_ADVISORY)
        return message_usage(name, "--id needs -S advisory");
    /* Half of the ttl must be left for heartbeats and their retries: TERM goes out
     * that long before the others may begin. */
    if (!is_kept_by_connection(arguments) && arguments->has_kill_after &&
        arguments->kill_after_ms > arguments->ttl_ms / 2)
        return message_usage(
            name, "-k is more than half of the ttl of %" PRIu64 " ms", arguments->ttl_ms);
    return take_check(arguments);
}

/* For the options of the acquire, before the ttl in force is known. */
static uint64_t wanted_grace_ms(const struct arguments *arguments)
{
    if (arguments->has_kill_after)
        return arguments->kill_after_ms;
    return is_kept_by_connection(arguments) ? CONNECTION_GRACE_MS : arguments->ttl_ms / 3;
}

/* The library rounds a ttl down to one of its classes. */
static uint64_t grace_ms(const struct arguments *arguments, const dblock_lock *lock)
{
    uint64_t ttl_ms = dblock_lock_ttl_ms(lock);
    uint64_t wanted_ms = wanted_grace_ms(arguments);

    if (is_kept_by_connection(arguments))
        return wanted_ms;
    if (!arguments->has_kill_after)
        return ttl_ms / 3;
    return wanted_ms < ttl_ms / 2 ? wanted_ms : ttl_ms / 2;
}

/* The signal that ended the waiting; 0 if none came. */
static int pending_signal(void)
{
    struct signal_notice notice;

    return signals_next(&notice) ? notice.number : 0;
}

static void keep_error(struct run *run, const struct dblock_error *error)
{
    run->outcome.has_error = true;
    run->outcome.error = *error;
}

/* Returns -1 once the lock is held. */
static int take(struct run *run)
{
    struct outcome *outcome = &run->outcome;
    int number;
    int result;

    run->take.client = run->database.client;
    run->take.options.canceller = signals_canceller();
    if (run->arguments->on_lost == ON_LOST_KILL && !is_kept_by_connection(run->arguments))
        run->take.options.expiring_ms = wanted_grace_ms(run->arguments);
    if (run->arguments->strategy == DBLOCK_INSERT)
        run->take.options.heartbeat = DBLOCK_HEARTBEAT_ON;
    outcome->status = take_lock(&run->take);
    number =
        outcome->status == DBLOCK_OK || outcome->status == DBLOCK_CANCELLED ? pending_signal() : 0;
    if (number != 0) {
        /* Also if the lock was got at the same moment: release() follows. */
        outcome->status = DBLOCK_CANCELLED;
        return EXIT_CODE_SIGNAL + number;
    }
    if (outcome->status == DBLOCK_OK)
        return -1;
    if (outcome->status < 0)
        keep_error(run, &run->take.error);
    result = take_explain(&run->take, outcome->status, "not run");
    return result;
}

/* Token and grant, for COMMAND's environment. Returns -1, or 76 if the lock is
 * gone already. */
static int describe(struct run *run)
{
    struct dblock_error error;
    size_t size = DBLOCK_GRANT_TEXT_SIZE + 3 * strlen(run->arguments->operand);
    dblock_status status;

    status = dblock_lock_token(run->take.lock, &run->outcome.token, &error);
    if (status > 0) {
        message_failure("\"%s\" was lost before COMMAND began; not run", run->arguments->operand);
        run->outcome.is_lost = true;
        return EXIT_CODE_LOST;
    }
    /* Row and advisory locks work where tables or rights for tokens are missing. */
    if (status < 0)
        message_detail("no DBLOCK_TOKEN: %s", error.message);

    run->grant = malloc(size);
    if (run->grant != NULL &&
        dblock_lock_export(run->take.lock, run->grant, size, &error) != DBLOCK_OK) {
        if (!is_kept_by_connection(run->arguments))
            message_detail("no DBLOCK_GRANT: %s", error.message);
        free(run->grant);
        run->grant = NULL;
    }
    return -1;
}

static int child_exit_code(int status)
{
    return WIFSIGNALED(status) ? EXIT_CODE_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* COMMAND from its start to its end. */
static int run_child(struct run *run)
{
    struct outcome *outcome = &run->outcome;
    struct supervision *supervision = &run->supervision;
    char **environment = child_environment_new(
        run->arguments, &run->database, run->take.lock, outcome->token, run->grant);

    if (environment == NULL) {
        message_failure("out of memory; not run");
        return EXIT_CODE_MACHINE;
    }
    terminal_open(&run->terminal);
    descendants_adopt();
    signals_watch_child(!run->arguments->is_foreground && run->terminal.descriptor >= 0);
    supervision->kill_after_ms = grace_ms(run->arguments, run->take.lock);
    supervision->child =
        child_start(&run->plan, environment, run->arguments->is_foreground, &run->terminal);
    child_environment_free(environment);
    if (supervision->child < 0) {
        int cause = errno;

        message_failure("cannot run %s: %s", run->plan.path, strerror(cause));
        if (cause == EAGAIN || cause == ENOMEM || cause == EMFILE || cause == ENFILE)
            return EXIT_CODE_MACHINE;
        return cause == ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_RUN;
    }
    supervise(supervision);

    outcome->has_child = true;
    outcome->child_pid = supervision->child;
    outcome->child_status = supervision->child_status;
    outcome->is_lost = supervision->is_lost;
    outcome->is_exit_of_child = !supervision->is_lost;
    return supervision->is_lost ? EXIT_CODE_LOST : child_exit_code(supervision->child_status);
}

/* Is there nothing to give back, and nobody who would hear of it? A release and the end of a
 * connection wait for their answers, and whoever waits for our exit status would wait with them. */
static bool is_all_lost(const struct run *run)
{
    return run->outcome.is_lost && run->supervision.is_out_of_reach;
}

/* Gives the lock back. COMMAND's own status outlives a failure of that: its work
 * was protected, and the lock is free within the ttl. */
static int release(struct run *run, int result)
{
    struct dblock_error error;
    dblock_status status;

    if (run->take.lock == NULL || is_all_lost(run))
        return result;
    status = dblock_release(run->take.lock, &error);
    if (status < 0) {
        message_error(&error, "the lock is free again within its ttl");
        if (!run->outcome.has_error)
            keep_error(run, &error);
    } else if (status == DBLOCK_LOST && run->outcome.has_child && !run->outcome.is_lost) {
        /* Between the last heartbeat and now. */
        message_failure("\"%s\" was lost before COMMAND ended", run->arguments->operand);
        run->outcome.is_lost = true;
        run->outcome.is_exit_of_child = false;
        result = EXIT_CODE_LOST;
    } else if (status == DBLOCK_PENDING) {
        message_detail("the lock is free when the transaction that stands on it ends");
    }
    return result;
}

static int perform(struct run *run)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    uint64_t held_since_ms;
    int result;

    result = child_find(run->arguments->words, run->arguments->shell_text, &run->plan);
    if (result != -1)
        return result;
    result = report_begin(&run->report, run->arguments->report);
    if (result != -1)
        return result;
    result = signals_begin();
    if (result != -1)
        return result;
    take_configure(run->arguments, &config);
    result = database_open(run->arguments, &config, &run->database);
    if (result != -1)
        return result;
    run->supervision.client = run->database.client;
    result = supervise_prepare(&run->supervision);
    if (result != -1)
        return result;
    result = take(run);
    held_since_ms = clock_ms();
    if (result == -1)
        result = describe(run);
    if (result == -1)
        result = run_child(run);
    result = release(run, result);
    run->outcome.held_ms = clock_ms() - held_since_ms;
    return result;
}

int command_run(const struct arguments *arguments)
{
    struct run run;
    int result = check(arguments);

    if (result != -1)
        return result;
    memset(&run, 0, sizeof run);
    run.arguments = arguments;
    run.terminal.descriptor = -1;
    run.report.file.descriptor = -1;
    run.supervision = (struct supervision){.arguments = arguments, .terminal = &run.terminal};
    run.outcome.status = DBLOCK_E_CLOSED; /* no acquire was made */
    run.outcome.take = &run.take;
    take_init(&run.take, arguments);

    result = perform(&run);
    run.outcome.exit_code = result;
    report_finish(&run.report, &run.outcome);
    if (is_all_lost(&run))
        _exit(result); /* not exit(): the library's threads are still at it */
    dblock_lock_free(run.take.lock);
    database_close(&run.database);
    child_plan_clear(&run.plan);
    free(run.grant);
    return result;
}
