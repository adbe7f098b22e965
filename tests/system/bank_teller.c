/* SPDX-License-Identifier: MIT */
/* bank_teller.c - see bank_teller.h. */
#include "bank_teller.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <dblock/dblock.h>

#include "processes.h"

enum { N_TRIES = 3 /* of one transfer */ };

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

static void name_account(char *name, size_t size, int account)
{
    (void)snprintf(name, size, "account-%d", account);
}

static dblock_lock *lock_account(struct teller *teller, int account)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;
    char name[32];

    name_account(name, sizeof name, account);
    options.strategy = teller->bank->strategy;
    if (options.strategy == DBLOCK_LEASE) {
        options.ttl_ms = BANK_TTL_MS;
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

/* Reads, is stopped by then if he shall be, and writes in a transaction. Where there is one writer,
 * who reads in the same transaction would keep all others out while he is stopped; so he reads
 * before. */
static int transfer(struct teller *teller, const int accounts[2], dblock_lock *const locks[2],
    int is_to_stop)
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
    if (is_to_stop)
        (void)raise(SIGSTOP); /* until somebody continues it */
    if (application->has_one_writer && application->run(teller->connection, application->begin) != 0)
        return -1;
    if (from < 0 || to < 0 || !is_bound(teller, locks) ||
        write_balance(teller, accounts[0], from - amount, -amount) != 0 ||
        write_balance(teller, accounts[1], to + amount, amount) != 0)
        return -1;
    return application->run(teller->connection, "COMMIT");
}

/* 0, or what is there of them is to be freed: the second lock first. */
static int lock_both(struct teller *teller, const int accounts[2], dblock_lock *locks[2])
{
    int is_ordered = accounts[0] < accounts[1];

    locks[1] = NULL;
    locks[0] = lock_account(teller, accounts[!is_ordered]);
    if (locks[0] != NULL)
        locks[1] = lock_account(teller, accounts[is_ordered]);
    return locks[1] != NULL ? 0 : -1;
}

/* What the database has rolled back for a conflict is tried again under the same locks; on
 * Galera the COMMIT tells. 1: it is done. */
static int transfer_at_last(struct teller *teller, const int accounts[2],
    dblock_lock *const locks[2], int is_to_stop)
{
    int n_tries = 0;

    while (transfer(teller, accounts, locks, is_to_stop && n_tries == 0) != 0) {
        (void)teller->bank->application->run(teller->connection, "ROLLBACK");
        if (++n_tries == N_TRIES || !dblock_lock_is_held(locks[0]) ||
            !dblock_lock_is_held(locks[1]))
            return 0;
    }
    return 1;
}

/* 1: the transfer is done. 0: it was refused, or failed. -1: a lock could not be had. */
static int serve(struct teller *teller, const int accounts[2], int is_to_stop)
{
    dblock_lock *locks[2];
    int result = lock_both(teller, accounts, locks);

    if (result == 0)
        result = transfer_at_last(teller, accounts, locks, is_to_stop);
    dblock_lock_free(locks[1]);
    dblock_lock_free(locks[0]);
    return result;
}

static int employ(struct teller *teller, const struct bank *bank)
{
    const struct contract_database *database = bank->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;

    if (database->go_to_node != NULL)
        database->go_to_node(bank->seed);
    *teller = (struct teller){ bank, NULL, bank->application->open(),
        UINT64_C(0x9E3779B97F4A7C15) * (bank->seed + (unsigned)getpid()) | 1 };
    config.ttl_ms = BANK_TTL_MS; /* so long the server lets a session that holds a lock stand still */
    if (database->schema != NULL)
        config.schema = database->schema();
    return dblock_open(database->driver(), database->url(CONTRACT_URL), &config, &teller->client,
               &error) == DBLOCK_OK
        ? 0
        : -1;
}

int bank_tell(void *context, int ready_fd)
{
    struct teller teller;
    int accounts[2];
    unsigned n_accounts;

    if (employ(&teller, context) != 0)
        return 1;
    n_accounts = (unsigned)teller.bank->n_accounts;
    process_ready(ready_fd, 1);
    for (;;) {
        accounts[0] = (int)draw(&teller, n_accounts);
        accounts[1] = (accounts[0] + 1 + (int)draw(&teller, n_accounts - 1)) % (int)n_accounts;
        (void)serve(&teller, accounts, draw(&teller, 20) == 0);
    }
}

static void find_staged(const struct bank *bank, int accounts[BANK_STAGED])
{
    accounts[0] = bank->n_accounts;
    accounts[1] = accounts[0] + 1;
}

int bank_tell_late(void *context, int ready_fd)
{
    struct teller teller;
    int accounts[BANK_STAGED];
    int result;

    (void)ready_fd;
    if (employ(&teller, context) != 0)
        return 1;
    find_staged(teller.bank, accounts);
    do
        result = serve(&teller, accounts, 1);
    while (result < 0);
    return result ? 0 : BANK_IS_REFUSED;
}

/* What stands still loses an advisory lock only if its machine is gone, or so. */
static int drive_out(const struct teller *teller, const int accounts[BANK_STAGED])
{
    dblock_status status = DBLOCK_OK;
    char name[32];
    int i;

    for (i = 0; i < BANK_STAGED && (status == DBLOCK_OK || status == DBLOCK_NOT_HELD); ++i) {
        name_account(name, sizeof name, accounts[i]);
        status = dblock_break(teller->client, name, DBLOCK_ADVISORY, 0, NULL);
    }
    return status == DBLOCK_OK || status == DBLOCK_NOT_HELD ? 0 : -1;
}

/* On a busy machine this one's locks may be over, too, before it has written. */
int bank_tell_meanwhile(void *context, int ready_fd)
{
    struct teller teller;
    int accounts[BANK_STAGED];

    (void)ready_fd;
    if (employ(&teller, context) != 0)
        return 1;
    find_staged(teller.bank, accounts);
    if (teller.bank->strategy == DBLOCK_ADVISORY && drive_out(&teller, accounts) != 0)
        return 2;
    while (serve(&teller, accounts, 0) != 1)
        continue;
    return 0;
}
