/* SPDX-License-Identifier: MIT */
/* cron.c - one of many: ten machines start this at 02:30, one does the work; a
 * signal ends the wait, a lost lock ends the work.
 *
 *     cron sqlite:/tmp/app.db */
#include <dblock/dblock.h>
#include <dblock/sqlite.h>

#include <signal.h>
#include <stdio.h>

static dblock_canceller *stop;

static void on_term(int number)
{
    (void)number;
    dblock_cancel(stop); /* async-signal-safe, and it stays raised */
}

static int report(dblock_lock *lock, void *context)
{
    int day;

    (void)context;
    for (day = 1; day <= 31 && dblock_lock_is_held(lock); ++day) /* stop when it is lost */
        printf("day %d\n", day);
    return day > 31 ? 0 : 1;
}

static int fail(const struct dblock_error *error)
{
    fprintf(stderr, "report: %s%s%s\n", error->message, error->hint[0] != 0 ? "; " : "",
        error->hint);
    return error->is_transient ? 69 : 78;
}

int main(int argc, char **argv)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct sigaction action = { 0 };
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    dblock_status status;
    int result = 0;

    status = dblock_canceller_new(&stop, &error);
    if (status != DBLOCK_OK)
        return fail(&error);
    action.sa_handler = on_term;
    (void)sigaction(SIGTERM, &action, NULL);
    status = dblock_open(dblock_sqlite_driver(), argc > 1 ? argv[1] : "", NULL, &client, &error);
    if (status != DBLOCK_OK)
        return fail(&error);
    options.label = "nightly report";
    options.min_hold_ms = 100; /* more than the clocks of the machines differ by */
    options.canceller = stop;
    options.busy = &holder;
    status = dblock_with(client, "nightly-report", &options, report, NULL, &result, &error);
    if (status == DBLOCK_BUSY)
        fprintf(stderr, "report: runs on %s, process %lld\n", holder.host, (long long)holder.pid);
    if (status < 0)
        result = fail(&error);
    else if (status > 0)
        result = status == DBLOCK_BUSY ? 75 : status == DBLOCK_LOST ? 76 : 128 + SIGTERM;
    dblock_close(client);
    dblock_canceller_free(stop);
    return result;
}
