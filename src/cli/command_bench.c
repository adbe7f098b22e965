/* SPDX-License-Identifier: MIT */
/* command_bench.c - dblock bench: how fast locks are in this very database. It says what
 * it will do and for how long, asks, measures, and leaves nothing behind. */
#define _GNU_SOURCE /* getrandom */
#include "commands.h"

#include "bench.h"
#include "bench_sweep.h"
#include "clock.h"
#include "duration.h"
#include "exit_code.h"
#include "message.h"
#include "new_file.h"
#include "question.h"
#include "signals.h"
#include "url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Beyond what it takes if nothing is slow: connecting, and ending what hangs. */
#define SLACK_MS UINT64_C(30000)

static bool is_chosen(const struct arguments *arguments, int strategy)
{
    return arguments->strategies == 0 || (arguments->strategies & 1u << strategy) != 0;
}

static void make_plan(const struct arguments *arguments, const struct database *database,
    struct bench_plan *ret_plan)
{
    uint64_t n_parts = 0;
    uint32_t number = 0;
    int strategy;

    memset(ret_plan, 0, sizeof *ret_plan);
    ret_plan->arguments = arguments;
    ret_plan->database = database;
    ret_plan->part_ms = arguments->part_ms;
    ret_plan->n_waiters[0] = BENCH_FEW_WAITERS;
    ret_plan->n_waiters[1] = (unsigned)arguments->n_clients;
    ret_plan->n_hand_overs = arguments->n_clients > BENCH_FEW_WAITERS ? 2 : 1;
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; strategy++)
        if (is_chosen(arguments, strategy))
            /* The leases of the heartbeats are taken first, for as long as a part at most. */
            n_parts += 2 + ret_plan->n_hand_overs + (strategy == DBLOCK_LEASE ? 2 : 0);
    ret_plan->about_ms = n_parts * ret_plan->part_ms;
    ret_plan->limit_ms = 2 * ret_plan->about_ms + SLACK_MS;
    /* Process ids are those of one machine, and a name is of all. */
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint32_t)clock_ms();
    (void)snprintf(ret_plan->prefix, sizeof ret_plan->prefix, "dblock-bench/%ld-%08" PRIx32 "/",
        (long)getpid(), number);
}

static void announce(const struct bench_plan *plan)
{
    const struct arguments *arguments = plan->arguments;
    char *where = url_for_people(plan->database->url);
    char names[64] = "";
    char part[DURATION_TEXT_SIZE];
    char about[DURATION_TEXT_SIZE];
    char limit[DURATION_TEXT_SIZE];
    size_t used = 0;
    int strategy;

    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; strategy++)
        if (is_chosen(arguments, strategy))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                used > 0 ? ", " : "", dblock_strategy_name(strategy));
    (void)duration_text(plan->part_ms, part);
    message_warning("measures %s in %s, each for %s: one client alone; %" PRIu64
                    " clients that fight for one lock; hand-over with %s%" PRIu64 " waiters%s",
        names, where != NULL ? where : dblock_driver_scheme(plan->database->driver), part,
        arguments->n_clients, plan->n_hand_overs > 1 ? "2 and with " : "",
        plan->n_hand_overs > 1 ? arguments->n_clients : BENCH_FEW_WAITERS,
        is_chosen(arguments, DBLOCK_LEASE) ? "; heartbeats of many leases" : "");
    message_warning("this loads the database for about %s, %s at most; all names begin with %s "
                    "and are given back",
        duration_text(plan->about_ms, about), duration_text(plan->limit_ms, limit), plan->prefix);
    free(where);
}

/* Before anything is said of what will be done: can it be done? */
static int check_database(const struct database *database)
{
    struct dblock_error error;
    dblock_status status;

    status = dblock_ping(database->client, &error);
    if (status == DBLOCK_OK)
        return -1;
    message_error(&error, "nothing is measured");
    return exit_code_of(status);
}

static int measure(struct bench_plan *plan, struct bench_report *report)
{
    const struct arguments *arguments = plan->arguments;
    unsigned n_left_out = 0;
    int result = -1;
    int strategy;

    report->plan = plan;
    plan->begun_ms = clock_ms();
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY && result == -1; strategy++) {
        struct bench_result *next = &report->results[report->n_results];

        if (!is_chosen(arguments, strategy))
            continue;
        result = bench_measure(plan, strategy, next);
        report->n_results++;
        n_left_out += next->is_left_out ? 1 : 0;
    }
    if (result > EXIT_CODE_SIGNAL)
        message_warning("interrupted; nothing is reported");
    if (result == -1 && n_left_out == report->n_results) {
        message_error(&report->results[0].error, "no strategy can be measured");
        result = EXIT_CODE_CONFIGURATION;
    }
    return result;
}

static int tell(const struct bench_report *report, struct new_file *drawing)
{
    uint64_t n_violations = bench_violations(report);
    int result = report->plan->arguments->is_json ? bench_print_json(report)
                                                  : bench_print_table(report);

    if (result == EXIT_CODE_DONE && drawing->path != NULL)
        result = bench_draw(report, drawing);
    if (n_violations == 0)
        return result;
    message_failure("%" PRIu64 " times a lock was held by two at once, or a token did not rise: "
                    "do not rely on locks in this database",
        n_violations);
    return EXIT_CODE_BUG;
}

static int perform(const struct arguments *arguments, struct database *database,
    struct bench_report *report, struct new_file *drawing)
{
    struct bench_plan plan;
    int result = signals_begin();

    if (result == -1)
        result = new_file_begin(drawing, arguments->svg, "--svg", "nothing is measured");
    if (result == -1)
        result = check_database(database);
    /* The members are forked, and must not meet our connections. */
    dblock_close(database->client);
    database->client = NULL;
    if (result != -1)
        return result;

    make_plan(arguments, database, &plan);
    announce(&plan);
    result = question_ask(arguments, signals_fd(), "Go on?");
    if (result != -1)
        return result;
    result = measure(&plan, report);
    bench_sweep(&plan);
    return result == -1 ? tell(report, drawing) : result;
}

int command_bench(const struct arguments *arguments)
{
    struct bench_report *report = calloc(1, sizeof *report);
    struct new_file drawing = {.path = NULL, .descriptor = -1};
    struct database database;
    int result;

    if (report == NULL) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    result = database_open(arguments, NULL, &database);
    if (result == -1)
        result = perform(arguments, &database, report, &drawing);
    new_file_abandon(&drawing);
    database_close(&database);
    free(report);
    return result;
}
