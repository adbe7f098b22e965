/* SPDX-License-Identifier: MIT */
/* bank_test.c - tellers in processes of their own move money between accounts, each under
 * the locks of both, while they are stopped beyond the ttl and killed, and their connections are
 * lost or ended, at random. A teller reads a balance and writes what it has computed, so whoever
 * writes on what he read too long ago makes money or loses it. Without the guard that happens; with
 * it, or with locks that are the transaction's own, the sum and the history of every account are
 * right, however the transactions read. It is staged once, on two accounts that are for nothing
 * else, as chance need not bring it about.
 * BANK_TRANSFERS asks for more than a moment's worth of them, and for all ways; BANK_ONLY=pgsql for
 * one database, BANK_WAY=joined for the ways with that in their titles; on a slow machine, where
 * locks are over before anybody has written, BANK_TTL=600 (ms). bank-soak does it for all servers.
 * Time limit: 300 s */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "application.h"
#include "bank.h"
#include "bank_books.h"
#include "bank_teller.h"
#include "bank_trouble.h"
#include "processes.h"
#include "test_wait.h"

enum {
    N_ACCOUNTS = 50,
    N_FEW = 3,           /* so that mistakes are likely */
    LEAST_TRANSFERS = 100,
    TTL_MS = 150,
    SOAK_PART = 10,      /* of what is wanted of the ways that are for soak only */
    LIMIT_MS = 60000,
    UNGUARDED_MS = 2000, /* for chance to make a mistake, too */
    STAGE_MS = 30000     /* for each part of what is staged */
};

static struct bank_tally *tally; /* shared with the tellers */

/* -------------------------------------------------------------------------- stage */

static int is_stopped(void *context)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t) * (pid_t *)context, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid != 0;
}

/* One that has read stands still until another has got its locks, transferred and is gone. */
static void stage(struct bank *bank)
{
    struct test_process late, other;

    ++bank->seed;
    assert_int_equal(0, process_start(&late, bank_tell_late, bank));
    assert_true(test_until(is_stopped, &late.pid, STAGE_MS));
    ++bank->seed;
    assert_int_equal(0, process_start(&other, bank_tell_meanwhile, bank));
    assert_int_equal(0, process_wait(&other, STAGE_MS));
    assert_int_equal(0, kill(late.pid, SIGCONT));
    assert_int_equal(
        bank->locking == BANK_GUARDED ? BANK_IS_REFUSED : 0, process_wait(&late, STAGE_MS));
}

/* Who holds what a transaction or (but on PostgreSQL) a session has is not driven out by standing
 * still. */
static int is_staged(const struct bank *bank)
{
    if (bank->locking == BANK_JOINED)
        return 0;
    return bank->locking == BANK_BARE || bank->strategy == DBLOCK_LEASE ||
        bank->strategy == DBLOCK_INSERT || bank->application->database == &contract_pgsql;
}

/* --------------------------------------------------------------------------- work */

static int64_t from_environment(const char *name, int64_t usual)
{
    const char *text = getenv(name);

    return text != NULL ? strtoll(text, NULL, 10) : usual;
}

static int64_t wanted_transfers(const struct bank *bank)
{
    return from_environment("BANK_TRANSFERS", LEAST_TRANSFERS) / bank->part;
}

/* Over a connection for this alone, as all others are ended now and then. */
static int64_t ask(
    const struct bank *bank, int64_t (*question)(const struct application *, void *))
{
    void *connection = bank->application->open();
    int64_t answer = question(bank->application, connection);

    bank->application->close(connection);
    return answer;
}

static void open_books(const struct bank *bank)
{
    void *connection = bank->application->open();

    assert_int_equal(
        0, bank_open_books(bank->application, connection, bank->n_accounts + BANK_STAGED));
    bank->application->close(connection);
}

static void tell(const struct bank_trouble *trouble, uint64_t duration_ms, int64_t n_wrong)
{
    print_message("%u transfers in %u ms, %u more commits without an answer; %u pauses,"
                  " %u kills, %u connections lost, %u ended; %u guards refused, %u old snapshots,"
                  " %u rolled back; %lld accounts are wrong\n", (unsigned)tally->n_transfers,
        (unsigned)duration_ms, (unsigned)tally->n_unknown, (unsigned)tally->n_pauses,
        trouble->n_kills, trouble->n_losses, trouble->n_ends, (unsigned)tally->n_lost,
        (unsigned)tally->n_stale, (unsigned)tally->n_conflicts, (long long)n_wrong);
}

static int is_safe(const struct bank *bank)
{
    return bank->locking == BANK_GUARDED || bank->locking == BANK_JOINED;
}

/* Until there is what is wanted: so many transfers, or (without a guard) another mistake. */
static const char *work(struct bank_trouble *trouble, int64_t n_staged)
{
    const struct bank *bank = trouble->bank;
    uint64_t end_ms = test_now_ms() +
        (is_safe(bank) ? LIMIT_MS + (uint64_t)wanted_transfers(bank) * 50 : UNGUARDED_MS);
    const char *problem = bank_trouble_employ(trouble);
    int is_done = 0;

    while (problem == NULL && !is_done && test_now_ms() < end_ms) {
        problem = bank_trouble_make(trouble);
        is_done = is_safe(bank) ? tally->n_transfers >= wanted_transfers(bank)
                                : ask(bank, bank_count_wrong) > n_staged;
    }
    return problem;
}

static void run_bank(void **state)
{
    struct bank *bank = *state;
    struct bank_trouble trouble;
    int64_t n_staged = is_staged(bank) && !is_safe(bank) ? BANK_STAGED : 0;
    uint64_t begun_ms;
    int64_t n_wrong;
    const char *problem;

    memset(tally, 0, sizeof *tally);
    bank->tally = tally;
    open_books(bank);
    if (is_staged(bank))
        stage(bank);
    assert_int_equal(n_staged, ask(bank, bank_count_wrong));
    problem = bank_trouble_start(&trouble, bank);
    begun_ms = test_now_ms();
    if (problem == NULL)
        problem = work(&trouble, n_staged);
    bank_trouble_end(&trouble);
    n_wrong = ask(bank, bank_count_wrong);
    tell(&trouble, test_now_ms() - begun_ms, n_wrong);
    if (problem != NULL)
        fail_msg("%s", problem);
    if (is_safe(bank)) {
        assert_int_equal(0, n_wrong);
        assert_int_equal(
            (int64_t)(bank->n_accounts + BANK_STAGED) * BANK_OPENING, ask(bank, bank_sum));
        assert_true(ask(bank, bank_count_transfers) >= wanted_transfers(bank));
    } else {
        assert_true(n_wrong >= n_staged);
        assert_true(n_wrong > 0);
    }
}

/* ------------------------------------------------------------------------ running */

enum when {
    ALWAYS,
    IF_STAGED, /* else as SOAK */
    SOAK,
    RARELY /* as SOAK, with fewer transfers */
};

static const struct way {
    const char *title;
    int strategy;
    enum bank_locking locking;
    int reads_snapshot;
    enum when when;
} ways[] = {
    { "without_a_guard__money_is_made_or_lost", DBLOCK_LEASE, BANK_HELD, 0, ALWAYS },
    { "guarded__the_books_are_right", DBLOCK_LEASE, BANK_GUARDED, 0, ALWAYS },
    { "guarded_snapshots__the_books_are_right", DBLOCK_LEASE, BANK_GUARDED, 1, ALWAYS },
    { "guarded_inserts__the_books_are_right", DBLOCK_INSERT, BANK_GUARDED, 0, RARELY },
    { "guarded_inserts_snapshots__the_books_are_right", DBLOCK_INSERT, BANK_GUARDED, 1, RARELY },
    { "rows_without_a_guard__money_is_made_or_lost", DBLOCK_ROW, BANK_HELD, 0, SOAK },
    { "guarded_rows__the_books_are_right", DBLOCK_ROW, BANK_GUARDED, 0, IF_STAGED },
    { "guarded_rows_snapshots__the_books_are_right", DBLOCK_ROW, BANK_GUARDED, 1, RARELY },
    { "guarded_advisory_locks__the_books_are_right", DBLOCK_ADVISORY, BANK_GUARDED, 0, RARELY },
    { "guarded_advisory_locks_snapshots__the_books_are_right", DBLOCK_ADVISORY, BANK_GUARDED, 1,
        IF_STAGED },
    { "without_a_lock__money_is_made_or_lost", DBLOCK_ROW, BANK_BARE, 0, SOAK },
    { "joined_rows__the_books_are_right", DBLOCK_ROW, BANK_JOINED, 0, SOAK },
    { "joined_rows_snapshots__the_books_are_right", DBLOCK_ROW, BANK_JOINED, 1, ALWAYS },
    { "joined_advisory_locks__the_books_are_right", DBLOCK_ADVISORY, BANK_JOINED, 0, RARELY },
    { "joined_advisory_locks_snapshots__the_books_are_right", DBLOCK_ADVISORY, BANK_JOINED, 1,
        RARELY },
};

enum { N_WAYS = sizeof ways / sizeof ways[0], BANKS_MAX = 4 * N_WAYS };

/* As where several nodes are written to: there are no such locks. */
static int is_supported(const struct bank *bank)
{
    const struct contract_database *database = bank->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_client *client = NULL;
    dblock_lock *lock = NULL;
    dblock_status status;

    if (database->schema != NULL)
        config.schema = database->schema();
    options.strategy = bank->strategy;
    status = dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &client, NULL);
    if (status == DBLOCK_OK)
        status = dblock_acquire(client, "is-there-such-a-lock", &options, &lock, NULL);
    dblock_lock_free(lock);
    dblock_close(client);
    return status != DBLOCK_E_UNSUPPORTED;
}

static int is_possible(const struct bank *bank)
{
    const struct application *application = bank->application;

    if (bank->locking == BANK_JOINED && (application->joins & 1u << bank->strategy) == 0)
        return 0;
    /* a file has no two ways to read, and who has not seen the last write cannot write */
    if (application->has_one_writer &&
        (bank->locking == BANK_JOINED ? !bank->reads_snapshot : bank->locking == BANK_BARE))
        return 0;
    return bank->locking != BANK_HELD || is_staged(bank);
}

static int is_wanted(const struct bank *bank, const struct way *way)
{
    const char *only = getenv("BANK_WAY");

    if (only != NULL)
        return strstr(way->title, only) != NULL;
    return getenv("BANK_TRANSFERS") != NULL || way->when == ALWAYS ||
        (way->when == IF_STAGED && is_staged(bank));
}

int main(void)
{
    static struct bank banks[BANKS_MAX];
    static struct CMUnitTest cases[BANKS_MAX];
    static char titles[BANKS_MAX][100];
    const struct application *started[4];
    size_t n_started = 0, n_banks = 0, i;
    int n_failed, how;

    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        return 1;
    for (i = 0; applications[i] != NULL; ++i) {
        const char *only = getenv("BANK_ONLY");
        int why_not = applications[i]->title != NULL ||
                (only != NULL && strcmp(only, applications[i]->database->name) != 0)
            ? 77
            : application_start(applications[i]);

        if (why_not == 1)
            return 1;
        if (why_not == 0)
            started[n_started++] = applications[i];
    }
    for (i = 0; i < n_started; ++i)
        for (how = 0; how < N_WAYS; ++how) {
            struct bank *bank = &banks[n_banks];

            *bank = (struct bank){ .application = started[i],
                .strategy = ways[how].strategy,
                .reads_snapshot = ways[how].reads_snapshot,
                .locking = ways[how].locking,
                .ttl_ms = (unsigned)from_environment("BANK_TTL", TTL_MS),
                .part = ways[how].when == RARELY ? SOAK_PART : 1,
                .seed = 1 };
            bank->n_accounts = is_safe(bank) ? N_ACCOUNTS : N_FEW;
            if (!is_possible(bank) || !is_wanted(bank, &ways[how]) || !is_supported(bank))
                continue;
            (void)snprintf(titles[n_banks], sizeof titles[0], "%s: %s", started[i]->database->name,
                ways[how].title);
            cases[n_banks] = (struct CMUnitTest){ titles[n_banks], run_bank, NULL, NULL, bank };
            ++n_banks;
        }
    n_failed = _cmocka_run_group_tests("bank", cases, n_banks, NULL, NULL);
    for (i = 0; i < n_started; ++i)
        started[i]->database->stop();
    return n_started == 0 ? 77 : n_failed == 0 ? 0 : 1;
}
