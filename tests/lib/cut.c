/* SPDX-License-Identifier: MIT */
/* cut.c - see cut.h. */
#include "cut.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_wait.h"

void cut_fail(struct cut_run *run, const char *format, ...)
{
    va_list arguments;

    if (run->failure[0] != 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(run->failure, sizeof run->failure, format, arguments);
    va_end(arguments);
}

int cut_strategy(const struct cut_run *run)
{
    switch (run->kind) {
    case CUT_LEASE:
        return DBLOCK_LEASE;
    case CUT_INSERT:
        return DBLOCK_INSERT;
    case CUT_ROW:
        return DBLOCK_ROW;
    default:
        return DBLOCK_ADVISORY;
    }
}

struct dblock_options cut_options(const struct cut_run *run)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = cut_strategy(run);
    options.ttl_ms = run->kind & CUT_RECORDED ? run->ttl_ms : 0;
    return options;
}

static dblock_client *open_client(const struct cut_database *database, const char *url,
    uint64_t connect_ms, uint64_t io_ms, uint64_t ttl_ms)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;

    config.schema = database->contract->schema != NULL ? database->contract->schema() : NULL;
    config.connect_timeout_ms = connect_ms;
    config.io_timeout_ms = io_ms;
    config.ttl_ms = ttl_ms;
    if (dblock_open(database->contract->driver(), url, &config, &client, &error) != DBLOCK_OK) {
        (void)fprintf(stderr, "cut: %s\n", error.message);
        abort();
    }
    return client;
}

dblock_client *cut_open_other(const struct cut_database *database)
{
    return open_client(database, database->direct_url(), CUT_CONNECT_MS, 10000, CUT_TTL_MS);
}

void cut_take_mine(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    uint64_t end_ms = test_now_ms() + 5000;
    dblock_status status;

    do /* nothing is cut, but the machine may be busy and its I/O limit is short */
        status = dblock_acquire(run->client, run->name, &options, &run->mine, &run->error);
    while ((status == DBLOCK_BUSY || (status < 0 && run->error.is_transient)) &&
        test_now_ms() < end_ms);
    if (status != DBLOCK_OK)
        cut_fail(run, "not prepared: %s: %s", dblock_status_name(status),
            status < 0 ? run->error.message : "");
}

void cut_take_theirs(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    dblock_status status =
        dblock_acquire(run->other, run->name, &options, &run->theirs, &run->error);

    if (status != DBLOCK_OK)
        cut_fail(run, "not prepared: %s: %s", dblock_status_name(status),
            status < 0 ? run->error.message : "");
}

dblock_status cut_try(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status = dblock_acquire(run->other, run->name, &options, &lock, &error);

    if (status < 0)
        cut_fail(run, "the second client: %s: %s", dblock_status_name(status), error.message);
    if (lock != NULL && dblock_release(lock, &error) != DBLOCK_OK)
        cut_fail(run, "the second client cannot release what it got");
    dblock_lock_free(lock);
    return status;
}

static int is_free(void *context)
{
    return cut_try(context) != DBLOCK_BUSY;
}

void cut_expect_free(struct cut_run *run, uint64_t within_ms)
{
    uint64_t begun_ms = test_now_ms();

    if (!test_until(is_free, run, within_ms))
        cut_fail(run, "nobody can have the name for %u ms, after %s (%s)", (unsigned)within_ms,
            dblock_status_name(run->status), run->status < 0 ? run->error.message : "");
    else if (test_now_ms() - begun_ms > within_ms + 1000)
        cut_fail(run, "the second client needed %u ms",
            (unsigned)(test_now_ms() - begun_ms));
}

static int is_quiet(void *context)
{
    return tcp_proxy_quiet_ms(((struct cut_run *)context)->proxy) >= 5;
}

void cut_settle(struct cut_run *run)
{
    (void)test_until(is_quiet, run, 2000);
}

static int has_worked(void *context)
{
    return tcp_proxy_n_messages(((struct cut_run *)context)->proxy) > 0;
}

void cut_await_work(struct cut_run *run)
{
    if (run->is_hung)
        return;
    (void)test_until(has_worked, run, CUT_SHORT_TTL_MS / 2);
    cut_settle(run);
}

/* So often that the calls after it may block in the client library (core/alarm.h). */
void cut_warm(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    int i;

    for (i = 0; i < 2; ++i) {
        dblock_lock *lock = NULL;

        if (dblock_acquire(run->client, "warm", &options, &lock, &error) == DBLOCK_OK)
            (void)dblock_release(lock, NULL);
        dblock_lock_free(lock);
    }
    (void)!dblock_inspect(run->client, "warm", cut_strategy(run), &grant, &error);
}

void cut_prepare_theirs(struct cut_run *run)
{
    cut_take_theirs(run);
    cut_warm(run);
}

void cut_expect_error(struct cut_run *run)
{
    if (run->is_dry)
        cut_fail(run, "nothing was cut, and it answers %s: %s", dblock_status_name(run->status),
            run->status < 0 ? run->error.message : "");
    else if (run->status != DBLOCK_E_CONNECTION && run->status != DBLOCK_E_UNCERTAIN)
        cut_fail(run, "it answers %s: %s", dblock_status_name(run->status),
            run->status < 0 ? run->error.message : "");
    else if (!run->error.is_transient)
        cut_fail(run, "a cut connection is no lasting error");
}

static int is_not_believed(void *context)
{
    return !dblock_lock_is_held(((struct cut_run *)context)->mine);
}

/* What lives in a connection is free as soon as the server sees its end, and is believed until the
 * holder's side does: that takes a moment. A row is believed only before its end. */
void cut_expect_one_holder(struct cut_run *run)
{
    struct dblock_options options = cut_options(run);
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status = dblock_acquire(run->other, run->name, &options, &lock, &error);

    if (status == DBLOCK_OK) {
        if (run->kind & CUT_RECORDED ? dblock_lock_is_held(run->mine)
                                     : !test_until(is_not_believed, run, 500))
            cut_fail(run, "two holders: a second client has it, and the first believes in it");
        (void)dblock_release(lock, NULL);
    } else if (status != DBLOCK_BUSY) {
        cut_fail(run, "the second client: %s", error.message);
    }
    dblock_lock_free(lock);
}

void cut_judge_acquire(struct cut_run *run)
{
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_status status;

    if (run->status == DBLOCK_BUSY) {
        cut_fail(run, "BUSY, and nobody had it");
        return;
    }
    if (run->status != DBLOCK_OK) {
        cut_expect_error(run);
        if (run->mine != NULL)
            cut_fail(run, "a lock object besides an error");
        /* "not held by you" is said of what is so */
        cut_expect_free(run,
            run->status == DBLOCK_E_CONNECTION && run->kind & CUT_RECORDED ? 200 : CUT_FREE_MS);
        return;
    }
    if (run->kind & CUT_RECORDED) {
        status = dblock_inspect(run->other, run->name, cut_strategy(run), &grant, &error);
        if (status != DBLOCK_OK || strcmp(grant.owner, dblock_lock_owner(run->mine)) != 0)
            cut_fail(run, "OK, and the database says %s, owner \"%s\"",
                dblock_status_name(status), grant.owner);
    }
    cut_expect_one_holder(run);
    status = dblock_release(run->mine, &error);
    /* a connection that was cut a moment ago may be found out by the release itself */
    if (status != DBLOCK_OK &&
        !(run->is_cut && run->kind & CUT_LIVE &&
            (status == DBLOCK_LOST || status == DBLOCK_E_UNCERTAIN)) &&
        !(run->is_hung && status < 0))
        cut_fail(run, "acquired, and its release says %s", dblock_status_name(status));
    cut_expect_free(run, CUT_FREE_MS);
}

void cut_run_begin(struct cut_run *run, const struct cut_case *test)
{
    static atomic_uint number;

    run->ttl_ms = test->ttl_ms != 0 ? test->ttl_ms : CUT_TTL_MS;
    run->mine = run->theirs = NULL;
    run->context = NULL;
    run->status = DBLOCK_OK;
    memset(&run->error, 0, sizeof run->error);
    run->failure[0] = 0;
    (void)snprintf(run->name, sizeof run->name, "%s-%u", test->name, ++number);
    if (run->client == NULL)
        run->client = open_client(run->database,
            run->database->proxied_url(tcp_proxy_port(run->proxy)),
            run->connect_ms != 0 ? run->connect_ms : CUT_CONNECT_MS,
            run->io_ms != 0 ? run->io_ms : CUT_IO_MS, run->ttl_ms);
    if (test->prepare != NULL)
        test->prepare(run);
}

/* ------------------------------------------------------------------- a lane */

struct sessions {
    struct cut_run *run;
    unsigned int n_sessions;
};

static int has_few_sessions(void *context)
{
    struct sessions *sessions = context;
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    sessions->n_sessions = sessions->run->database->n_sessions();
    if (sessions->run->client != NULL)
        (void)dblock_client_stats(sessions->run->client, &stats);
    return sessions->n_sessions <= stats.connections;
}

/* What was cut is gone from the server, as is what was closed. */
static void expect_few_sessions(struct cut_run *run)
{
    struct sessions sessions = { run, 0 };

    if (!test_until(has_few_sessions, &sessions, CUT_SESSIONS_MS))
        cut_fail(run, "%u sessions are left on the server", sessions.n_sessions);
}

enum { MESSAGES_MAX = 300, DRY_MAX = 6 };

static void close_client(struct cut_run *run)
{
    dblock_close(run->client);
    run->client = NULL;
    expect_few_sessions(run);
}

static void run_once(struct cut_run *run, const struct cut_case *test, unsigned int at,
    enum tcp_proxy_cut cut, struct cut_tally *tally)
{
    int is_tried_again = run->is_dry && run->n_dry < DRY_MAX;
    uint64_t begun_ms;
    int64_t excess_ms;
    uint64_t limit_ms =
        test->limit_ms != 0 ? test->limit_ms : 2 * CUT_IO_MS + CUT_CONNECT_MS;

    run->is_cut = 0;
    cut_run_begin(run, test);
    cut_settle(run);
    if (run->failure[0] == 0) {
        tcp_proxy_arm(run->proxy, at, cut, (test->how & CUT_LOGIN) != 0);
        begun_ms = test_now_ms();
        test->act(run);
        excess_ms = (int64_t)(test_now_ms() - begun_ms) - (int64_t)limit_ms;
        if (excess_ms > tally->worst_ms)
            tally->worst_ms = excess_ms;
        if (excess_ms > 1000)
            cut_fail(run, "it took %u ms", (unsigned)(test_now_ms() - begun_ms));
        run->is_cut = tcp_proxy_disarm(run->proxy);
        test->judge(run);
    }
    if (run->client != NULL)
        expect_few_sessions(run);
    dblock_lock_free(run->theirs);
    if ((test->how & CUT_FRESH) != 0 || run->failure[0] != 0)
        close_client(run);
    dblock_lock_free(run->mine);
    (void)tcp_proxy_disarm(run->proxy);
    if (run->failure[0] != 0 && !is_tried_again) {
        ++tally->n_failures;
        (void)fprintf(stderr, "FAILED %s %s %s, %s message %u (%s): %s\n",
            run->database->contract->name, dblock_strategy_name(cut_strategy(run)), test->name,
            run->is_dry ? "not cut"
                : cut == PROXY_CUTS_BEFORE
                ? "cut before"
                : "cut after",
            at, tcp_proxy_victim(run->proxy), run->failure);
    }
}

/* One of so many, unless DBLOCK_TEST_CUTS is "all". */
enum { SAMPLE = 12 };

static int is_thorough(void)
{
    const char *cuts = getenv("DBLOCK_TEST_CUTS");

    return cuts != NULL && strcmp(cuts, "all") == 0;
}

/* How many messages it takes if nothing is cut. The first time it still connects, and if the
 * machine is busy the short I/O limit may be over. */
static unsigned int run_dry(
    struct cut_run *run, const struct cut_case *test, struct cut_tally *tally)
{
    unsigned int n_messages = 0;
    int is_cold = (test->how & CUT_FRESH) == 0;

    run->is_dry = 1;
    for (run->n_dry = 1; run->n_dry <= DRY_MAX; ++run->n_dry) {
        run_once(run, test, 0, PROXY_CUTS_BEFORE, tally);
        n_messages = tcp_proxy_n_messages(run->proxy);
        if (run->failure[0] == 0 && n_messages < MESSAGES_MAX && !is_cold)
            break;
        is_cold = 0;
    }
    run->is_dry = 0;
    return n_messages < MESSAGES_MAX ? n_messages : MESSAGES_MAX;
}

static void run_case(struct cut_run *run, const struct cut_case *test, struct cut_tally *tally)
{
    uint64_t begun_ms = test_now_ms();
    unsigned int n_before = tally->n_points;
    unsigned int stride = is_thorough() ? 1 : SAMPLE;
    unsigned int first = (unsigned int)begun_ms; /* another one each time */
    char is_in_flight[MESSAGES_MAX];
    unsigned int n_messages;
    unsigned int at;

    n_messages = run_dry(run, test, tally);
    for (at = 0; at < MESSAGES_MAX; ++at)
        is_in_flight[at] = (char)tcp_proxy_is_in_flight(run->proxy, at);
    for (at = 1 + first % stride; at < MESSAGES_MAX; at += stride) {
        run_once(run, test, at, PROXY_CUTS_BEFORE, tally);
        tally->n_points += (unsigned int)run->is_cut;
        if (at >= n_messages && !run->is_cut)
            break;
        if (is_in_flight[at])
            continue;
        run_once(run, test, at, PROXY_CUTS_AFTER, tally);
        tally->n_points += (unsigned int)run->is_cut;
    }
    if (run->client != NULL)
        close_client(run);
    (void)fprintf(stderr, "# %s %s %s: %u messages, %u cuts, %u ms\n",
        run->database->contract->name, dblock_strategy_name(cut_strategy(run)), test->name,
        n_messages, tally->n_points - n_before, (unsigned)(test_now_ms() - begun_ms));
}

void cut_lane(const struct cut_database *database, unsigned int kind,
    const struct cut_case *const *tables, struct cut_tally *tally)
{
    const char *only = getenv("CUT_ONLY");
    struct cut_run run = { .database = database, .kind = kind, .ttl_ms = CUT_TTL_MS };
    const char *complaint = database->contract->start();
    struct tcp_proxy *plain, *login;

    memset(tally, 0, sizeof *tally);
    tally->worst_ms = INT32_MIN;
    plain = tcp_proxy_start_from(database->wire, database->port(), CUT_SOURCE);
    login = tcp_proxy_start(database->wire, database->port());
    if (complaint != NULL || plain == NULL || login == NULL) {
        (void)fprintf(stderr, "cut: %s\n", complaint != NULL ? complaint : "no proxy");
        tally->n_failures = 1;
        return;
    }
    run.other = cut_open_other(database);
    if (dblock_schema_install(run.other, &run.error) != DBLOCK_OK) {
        (void)fprintf(stderr, "cut: %s\n", run.error.message);
        abort();
    }
    for (; *tables != NULL; ++tables) {
        const struct cut_case *test;

        for (test = *tables; test->name != NULL; ++test)
            if ((test->kinds & kind) != 0 && (only == NULL || strcmp(only, test->name) == 0)) {
                run.proxy = (test->how & CUT_LOGIN) != 0 ? login : plain;
                run_case(&run, test, tally);
            }
    }
    dblock_close(run.other);
    tcp_proxy_stop(plain);
    tcp_proxy_stop(login);
    database->contract->stop();
}
