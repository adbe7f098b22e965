/* SPDX-License-Identifier: MIT */
/* bank_test.c - tellers in processes of their own move money between accounts, each under
 * the locks of both, while they are stopped beyond the ttl and killed at random. A teller
 * reads a balance and writes what it has computed, so whoever writes on what he read too
 * long ago makes money or loses it. Without the guard that is shown to happen; with it the
 * sum and the history of every account are right, however the transactions read.
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
#include <unistd.h>

#include "application.h"
#include "processes.h"
#include "test_wait.h"

enum {
    N_TELLERS = 16,
    N_ACCOUNTS = 50,
    N_FEW = 3,         /* accounts where a mistake is to be shown */
    OPENING = 1000,    /* balance of each account at first */
    TTL_MS = 150,
    STOP_MS = 250,     /* beyond the ttl */
    N_TRIES = 3,       /* of one transfer */
    LEAST_TRANSFERS = 150,
    LIMIT_MS = 60000
};

struct bank {
    const struct application *application;
    int strategy;
    int reads_snapshot;
    int is_guarded;
    int n_accounts;
    unsigned seed;
};

/* ------------------------------------------------------------------- one teller */

struct teller {
    const struct bank *bank;
    dblock_client *client;
    void *connection;
    uint64_t random;
};

static unsigned draw(struct teller *teller, unsigned below)
{
    teller->random ^= teller->random << 13;
    teller->random ^= teller->random >> 7;
    teller->random ^= teller->random << 17;
    return (unsigned)(teller->random % below);
}

static dblock_lock *lock_account(struct teller *teller, int account)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    char name[32];

    (void)snprintf(name, sizeof name, "account-%d", account);
    options.strategy = teller->bank->strategy;
    if (options.strategy == DBLOCK_LEASE) {
        options.ttl_ms = TTL_MS;
        options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    } else {
        options.flags = DBLOCK_FENCED; /* all do, as a guard of such a lock wants it */
    }
    options.wait_ms = 2000;
    return dblock_acquire(teller->client, name, &options, &lock, NULL) == DBLOCK_OK ? lock : NULL;
}

static int64_t read_balance(const struct teller *teller, int account)
{
    char sql[100];

    (void)snprintf(sql, sizeof sql, "SELECT balance FROM bank_account WHERE id = %d", account);
    return teller->bank->application->number(teller->connection, sql);
}

static int write_balance(
    const struct teller *teller, int account, int64_t balance, int64_t change)
{
    char sql[160];

    (void)snprintf(sql, sizeof sql, "UPDATE bank_account SET balance = %lld WHERE id = %d",
        (long long)balance, account);
    if (teller->bank->application->run(teller->connection, sql) != 0)
        return -1;
    (void)snprintf(sql, sizeof sql,
        "INSERT INTO bank_history (account, amount) VALUES (%d, %lld)", account, (long long)change);
    return teller->bank->application->run(teller->connection, sql);
}

static int is_bound(const struct teller *teller, dblock_lock *const locks[2])
{
    struct dblock_error error;

    return !teller->bank->is_guarded ||
        (teller->bank->application->guard(locks[0], teller->connection, &error) == DBLOCK_OK &&
            teller->bank->application->guard(locks[1], teller->connection, &error) == DBLOCK_OK);
}

/* Reads, is perhaps stopped by then, and writes in a transaction. Where there is one writer, who
 * reads in the same transaction would keep all others out while he is stopped; so he reads before. */
static int transfer(struct teller *teller, const int accounts[2], dblock_lock *const locks[2])
{
    const struct application *application = teller->bank->application;
    int64_t amount = 1 + draw(teller, 100);
    int64_t from, to;

    if (!application->has_one_writer &&
        application->run(teller->connection,
            teller->bank->reads_snapshot ? application->begin_snapshot : application->begin) != 0)
        return -1;
    from = read_balance(teller, accounts[0]);
    to = read_balance(teller, accounts[1]);
    if (draw(teller, 20) == 0)
        (void)raise(SIGSTOP); /* until somebody continues it */
    if (application->has_one_writer && application->run(teller->connection, application->begin) != 0)
        return -1;
    if (from < 0 || to < 0 || !is_bound(teller, locks) ||
        write_balance(teller, accounts[0], from - amount, -amount) != 0 ||
        write_balance(teller, accounts[1], to + amount, amount) != 0)
        return -1;
    return application->run(teller->connection, "COMMIT");
}

/* What the database has rolled back for a conflict is tried again under the same locks; on
 * Galera the COMMIT tells. */
static void transfer_at_last(
    struct teller *teller, const int accounts[2], dblock_lock *const locks[2])
{
    int n_tries = 0;

    while (transfer(teller, accounts, locks) != 0) {
        (void)teller->bank->application->run(teller->connection, "ROLLBACK");
        if (++n_tries == N_TRIES || !dblock_lock_is_held(locks[0]) ||
            !dblock_lock_is_held(locks[1]))
            break;
    }
}

static void serve(struct teller *teller)
{
    int accounts[2];
    dblock_lock *locks[2];

    accounts[0] = (int)draw(teller, (unsigned)teller->bank->n_accounts);
    accounts[1] = (accounts[0] + 1 + (int)draw(teller, (unsigned)teller->bank->n_accounts - 1)) %
        teller->bank->n_accounts;
    locks[0] = lock_account(teller, accounts[0] < accounts[1] ? accounts[0] : accounts[1]);
    locks[1] = locks[0] == NULL
        ? NULL
        : lock_account(teller, accounts[0] < accounts[1] ? accounts[1] : accounts[0]);
    if (locks[1] != NULL)
        transfer_at_last(teller, accounts, locks);
    dblock_lock_free(locks[1]);
    dblock_lock_free(locks[0]);
}

static int tell(void *context, int ready_fd)
{
    const struct bank *bank = context;
    const struct contract_database *database = bank->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    struct teller teller = { bank, NULL, NULL,
        UINT64_C(0x9E3779B97F4A7C15) * (bank->seed + (unsigned)getpid()) | 1 };

    if (database->go_to_node != NULL)
        database->go_to_node(bank->seed);
    teller.connection = bank->application->open();
    config.ttl_ms = TTL_MS; /* so long the server lets a session that holds a lock stand still */
    if (database->schema != NULL)
        config.schema = database->schema();
    if (dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &teller.client,
            &error) != DBLOCK_OK)
        return 1;
    process_ready(ready_fd, 1);
    for (;;)
        serve(&teller);
}

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
    for (i = 0; i < bank->n_accounts; ++i) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO bank_account (id, balance) VALUES (%d, %d)", i,
            OPENING);
        must(bank->application, connection, sql);
    }
}

/* Accounts whose balance is not what its history adds up to. */
static int64_t count_wrong(const struct bank *bank, void *connection)
{
    return bank->application->number(connection,
        "SELECT count(*) FROM bank_account AS a WHERE a.balance - 1000 <> (SELECT"
        " coalesce(sum(h.amount), 0) FROM bank_history AS h WHERE h.account = a.id)");
}

static void start_teller(struct bank *bank, struct test_process *teller)
{
    ++bank->seed;
    assert_int_equal(0, process_start(teller, tell, bank));
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

/* Until there is what is wanted: so many transfers, or (unguarded) a mistake. */
static void work(struct bank *bank)
{
    struct test_process tellers[N_TELLERS];
    void *connection = bank->application->open();
    uint64_t end_ms = test_now_ms() + LIMIT_MS + (uint64_t)wanted_transfers() * 50;
    int64_t n_wrong, n_transfers;
    unsigned round = 0;
    int i;

    open_accounts(bank, connection);
    for (i = 0; i < N_TELLERS; ++i)
        start_teller(bank, &tellers[i]);
    do {
        disturb(bank, tellers, round++);
        n_wrong = count_wrong(bank, connection);
        n_transfers =
            bank->application->number(connection, "SELECT count(*) / 2 FROM bank_history");
    } while (n_wrong >= 0 && test_now_ms() < end_ms &&
        (bank->is_guarded ? n_wrong == 0 && n_transfers < wanted_transfers() : n_wrong == 0));
    for (i = 0; i < N_TELLERS; ++i)
        process_kill(&tellers[i]);
    n_wrong = count_wrong(bank, connection);
    print_message("%lld transfers, %lld accounts are wrong\n", (long long)n_transfers,
        (long long)n_wrong);
    if (bank->is_guarded) {
        assert_int_equal(0, n_wrong);
        assert_int_equal((int64_t)bank->n_accounts * OPENING,
            bank->application->number(connection, "SELECT sum(balance) FROM bank_account"));
        assert_true(n_transfers >= wanted_transfers());
    } else {
        assert_true(n_wrong > 0);
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
