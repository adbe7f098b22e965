/* SPDX-License-Identifier: MIT */
/* bank_test.c - tellers in processes of their own move money between accounts, each under
 * the locks of both, while they are stopped beyond the ttl and killed at random. A teller
 * reads a balance and writes what it has computed, so whoever writes on what he read too
 * long ago makes money or loses it. Without the guard that happens; with it the sum and the
 * history of every account are right, however the transactions read. It is staged once, on two
 * accounts that are for nothing else, as chance need not bring it about.
 * BANK_TRANSFERS asks for more than a moment's worth of them, BANK_ONLY=pgsql for one database;
 * bank-soak does both for all servers. Time limit: 300 s */
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
#include <sys/wait.h>
#include <unistd.h>

#include "application.h"
#include "bank_teller.h"
#include "processes.h"
#include "test_wait.h"

enum {
    N_TELLERS = 16,
    N_ACCOUNTS = 50,
    N_FEW = 3,           /* so that mistakes are likely */
    OPENING = 1000,      /* balance of each account at first */
    STOP_MS = 250,       /* beyond the ttl */
    LEAST_TRANSFERS = 150,
    LIMIT_MS = 60000,
    UNGUARDED_MS = 5000, /* for chance to make a mistake, too */
    STAGE_MS = 30000     /* for each part of what is staged */
};

/* ---------------------------------------------------------------------- the bank */

static void must(const struct application *application, void *connection, const char *sql)
{
    if (application->run(connection, sql) != 0) {
        print_error("%s\n", sql);
        fail();
    }
}

static void open_accounts(const struct bank *bank, void *connection)
{
    char sql[160];
    int i;

    must(bank->application, connection,
        "CREATE TABLE IF NOT EXISTS bank_account (id INTEGER NOT NULL PRIMARY KEY, balance BIGINT"
        " NOT NULL)");
    must(bank->application, connection,
        "CREATE TABLE IF NOT EXISTS bank_history (account INTEGER NOT NULL, amount BIGINT NOT NULL)");
    must(bank->application, connection, "DELETE FROM bank_account");
    must(bank->application, connection, "DELETE FROM bank_history");
    for (i = 0; i < bank->n_accounts + BANK_STAGED; ++i) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO bank_account (id, balance) VALUES (%d, %d)", i,
            OPENING);
        must(bank->application, connection, sql);
    }
}

/* Accounts whose balance is not what its history adds up to. */
static int64_t count_wrong(const struct bank *bank, void *connection)
{
    return bank->application->number(connection,
        "SELECT count(*) FROM bank_account AS a LEFT JOIN (SELECT account, sum(amount) AS total"
        " FROM bank_history GROUP BY account) AS h ON h.account = a.id"
        " WHERE a.balance - 1000 <> coalesce(h.total, 0)");
}

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
    assert_int_equal(bank->is_guarded ? BANK_IS_REFUSED : 0, process_wait(&late, STAGE_MS));
}

static void start_teller(struct bank *bank, struct test_process *teller)
{
    ++bank->seed;
    assert_int_equal(0, process_start(teller, bank_tell, bank));
    assert_int_equal(1, process_await(teller, 20000));
}

/* Who has stopped himself is left alone for longer than the ttl; some are killed for good. */
static void disturb(struct bank *bank, struct test_process *tellers, unsigned round)
{
    struct test_process *victim = &tellers[round * 7 % N_TELLERS];
    int i;

    test_pass_ms(STOP_MS); /* that the ttl is over is what is tested */
    for (i = 0; i < N_TELLERS; ++i)
        (void)kill(tellers[i].pid, SIGCONT);
    if (round % 2 == 0)
        return;
    process_kill(victim);
    start_teller(bank, victim);
}

static int64_t wanted_transfers(void)
{
    const char *text = getenv("BANK_TRANSFERS");

    return text != NULL ? strtoll(text, NULL, 10) : LEAST_TRANSFERS;
}

/* Until there is what is wanted: so many transfers, or (unguarded) another mistake. */
static void work(struct bank *bank)
{
    struct test_process tellers[N_TELLERS];
    void *connection = bank->application->open();
    int64_t n_staged = bank->is_guarded ? 0 : BANK_STAGED;
    int64_t n_wrong, n_transfers;
    unsigned round = 0;
    uint64_t end_ms;
    int i;

    open_accounts(bank, connection);
    stage(bank);
    assert_int_equal(n_staged, count_wrong(bank, connection));
    end_ms = test_now_ms() +
        (bank->is_guarded ? LIMIT_MS + (uint64_t)wanted_transfers() * 50 : UNGUARDED_MS);
    for (i = 0; i < N_TELLERS; ++i)
        start_teller(bank, &tellers[i]);
    do {
        disturb(bank, tellers, round++);
        n_wrong = count_wrong(bank, connection);
        n_transfers =
            bank->application->number(connection, "SELECT count(*) / 2 FROM bank_history");
    } while (n_wrong == n_staged && test_now_ms() < end_ms &&
        (!bank->is_guarded || n_transfers < wanted_transfers()));
    for (i = 0; i < N_TELLERS; ++i)
        process_kill(&tellers[i]);
    n_wrong = count_wrong(bank, connection);
    print_message("%lld transfers, %lld accounts are wrong\n", (long long)n_transfers,
        (long long)n_wrong);
    if (bank->is_guarded) {
        assert_int_equal(0, n_wrong);
        assert_int_equal((int64_t)(bank->n_accounts + BANK_STAGED) * OPENING,
            bank->application->number(connection, "SELECT sum(balance) FROM bank_account"));
        assert_true(n_transfers >= wanted_transfers());
    } else {
        assert_true(n_wrong >= n_staged);
    }
    bank->application->close(connection);
}

/* ------------------------------------------------------------------------ running */

static void run_bank(void **state)
{
    work(*state);
}

static const struct way {
    const char *title;
    int strategy;
    int reads_snapshot;
    int is_guarded;
} ways[] = {
    { "without_a_guard__money_is_made_or_lost", DBLOCK_LEASE, 0, 0 },
    { "guarded__the_books_are_right", DBLOCK_LEASE, 0, 1 },
    { "guarded_snapshots__the_books_are_right", DBLOCK_LEASE, 1, 1 },
    { "rows_without_a_guard__money_is_made_or_lost", DBLOCK_ROW, 0, 0 },
    { "guarded_rows__the_books_are_right", DBLOCK_ROW, 0, 1 },
    { "guarded_advisory_locks__the_books_are_right", DBLOCK_ADVISORY, 1, 1 },
};

enum { N_WAYS = sizeof ways / sizeof ways[0] };

/* Only PostgreSQL ends the session of a client that stands still within the time of this test. */
static int is_possible(const struct application *application, const struct way *way)
{
    return way->strategy == DBLOCK_LEASE
        ? !(application->has_one_writer && way->reads_snapshot)
        : application->database == &contract_pgsql;
}

int main(void)
{
    static struct bank banks[20];
    static struct CMUnitTest cases[20];
    static char titles[20][100];
    const struct application *started[4];
    size_t n_started = 0, n_banks = 0, i;
    int n_failed, how;

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

            if (!is_possible(started[i], &ways[how]))
                continue;
            *bank = (struct bank){ started[i], ways[how].strategy, ways[how].reads_snapshot,
                ways[how].is_guarded, ways[how].is_guarded ? N_ACCOUNTS : N_FEW, 1 };
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
