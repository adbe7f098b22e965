/* SPDX-License-Identifier: MIT */
/* bank_teller.c - see bank_teller.h. */
#include "bank_teller.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <dblock/dblock.h>

#include "bank.h"
#include "bank_books.h"
#include "processes.h"
#include "test_wait.h"

enum {
    N_TRIES = 3,      /* of one transfer */
    N_CONNECTS = 20,  /* until a client is opened */
    STOPS_ONE_IN = 40,
    STOPS_ALL_ONE_IN = 400 /* where one that stands still keeps all others out */
};

struct teller {
    const struct bank *bank;
    const struct application *application;
    dblock_client *client;
    void *connection;
    uint64_t random;
    int gives_back; /* the locks, with this transfer's COMMIT */
};

static unsigned draw(struct teller *teller, unsigned below)
{
    return bank_draw(&teller->random, below);
}

static void name_account(char *name, size_t size, int account)
{
    (void)snprintf(name, size, "account-%d", account);
}

static struct dblock_options options_of(struct teller *teller)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = teller->bank->strategy;
    if (options.strategy == DBLOCK_LEASE || options.strategy == DBLOCK_INSERT) {
        options.ttl_ms = teller->bank->ttl_ms;
        options.heartbeat = draw(teller, 2) ? DBLOCK_HEARTBEAT_OFF : DBLOCK_HEARTBEAT_ON;
    } else if (teller->bank->locking != BANK_JOINED) {
        options.flags = DBLOCK_FENCED; /* all do, as a guard of such a lock wants it */
    }
    options.wait_ms = 2000;
    return options;
}

static dblock_lock *lock_account(struct teller *teller, int account)
{
    struct dblock_options options = options_of(teller);
    dblock_lock *lock = NULL;
    char name[32];

    name_account(name, sizeof name, account);
    return dblock_acquire(teller->client, name, &options, &lock, NULL) == DBLOCK_OK ? lock : NULL;
}

/* Counts what kept a transfer from being made. */
static int is_fine(const struct teller *teller, dblock_status status)
{
    struct bank_tally *tally = teller->bank->tally;

    if (status == DBLOCK_LOST || status == DBLOCK_NOT_HELD)
        ++tally->n_lost;
    else if (status == DBLOCK_STALE_SNAPSHOT)
        ++tally->n_stale;
    return status == DBLOCK_OK;
}

static int is_bound(const struct teller *teller, dblock_lock *const locks[2])
{
    const struct application *application = teller->application;
    dblock_status (*bind)(dblock_lock *, void *, struct dblock_error *) =
        teller->gives_back ? application->release_in : application->guard;
    struct dblock_error error;

    return teller->bank->locking != BANK_GUARDED ||
        (is_fine(teller, bind(locks[0], teller->connection, &error)) &&
            is_fine(teller, bind(locks[1], teller->connection, &error)));
}

static int join(struct teller *teller, int account)
{
    struct dblock_options options = options_of(teller);
    struct dblock_error error;
    char name[32];

    name_account(name, sizeof name, account);
    return is_fine(teller,
        teller->application->acquire_in(
            teller->client, teller->connection, name, &options, NULL, &error));
}

/* In the order of their names, whichever is paid from. */
static int are_joined(struct teller *teller, const struct bank_entry entries[2])
{
    int is_ordered = entries[0].account < entries[1].account;

    return teller->bank->locking != BANK_JOINED ||
        (join(teller, entries[!is_ordered].account) && join(teller, entries[is_ordered].account));
}

static int begin(const struct teller *teller)
{
    const struct application *application = teller->application;

    return application->run(teller->connection,
        teller->bank->reads_snapshot ? application->begin_snapshot : application->begin);
}

static int commit(const struct teller *teller)
{
    int result = teller->application->run(teller->connection, "COMMIT");

    ++*(result == 0 ? &teller->bank->tally->n_transfers : &teller->bank->tally->n_unknown);
    return result;
}

/* Reads, is stopped by then if he shall be, and writes in a transaction. Where there is one
 * writer, who becomes it and then reads would keep all others out while he is stopped: so he reads
 * before. */
static int transfer(struct teller *teller, struct bank_entry entries[2],
    dblock_lock *const locks[2], int is_to_stop)
{
    const struct application *application = teller->application;
    int reads_before = application->has_one_writer && !teller->bank->reads_snapshot;
    int64_t amount = 1 + draw(teller, 100);

    if (!reads_before && (begin(teller) != 0 || !are_joined(teller, entries)))
        return -1;
    if (bank_read(application, teller->connection, &entries[0]) != 0 ||
        bank_read(application, teller->connection, &entries[1]) != 0)
        return -1;
    if (is_to_stop) {
        ++teller->bank->tally->n_pauses;
        (void)raise(SIGSTOP); /* until somebody continues it */
    }
    if (reads_before && begin(teller) != 0)
        return -1;
    if (!is_bound(teller, locks) ||
        bank_write(application, teller->connection, &entries[0], -amount) != 0 ||
        bank_write(application, teller->connection, &entries[1], amount) != 0)
        return -1;
    return commit(teller);
}

/* 0, or what is there of them is to be freed: the second lock first. */
static int lock_both(
    struct teller *teller, struct bank_entry entries[2], dblock_lock *locks[2])
{
    int is_ordered = entries[0].account < entries[1].account;
    int i;

    if (teller->bank->locking != BANK_HELD && teller->bank->locking != BANK_GUARDED)
        return 0;
    for (i = 0; i < 2; ++i) {
        int which = i == 0 ? !is_ordered : is_ordered;

        locks[i] = lock_account(teller, entries[which].account);
        if (locks[i] == NULL ||
            dblock_lock_token(locks[i], &entries[which].token, NULL) != DBLOCK_OK)
            return -1;
    }
    return 0;
}

static int are_held(dblock_lock *const locks[2])
{
    return locks[0] == NULL || (dblock_lock_is_held(locks[0]) && dblock_lock_is_held(locks[1]));
}

/* 1: what was begun is undone. A connection that cannot do that is replaced. */
static int roll_back(struct teller *teller)
{
    ++teller->bank->tally->n_conflicts;
    if (teller->application->run(teller->connection, "ROLLBACK") == 0 ||
        teller->application->has_one_writer)
        return 1;
    teller->application->close(teller->connection);
    teller->connection = teller->application->open();
    return 0;
}

/* What the database has rolled back for a conflict is tried again under the same locks; on
 * Galera the COMMIT tells. Not what may still be carried out, as its connection was lost: for the
 * end of that only the next grant waits. 1: it is done. */
static int transfer_at_last(struct teller *teller, struct bank_entry entries[2],
    dblock_lock *const locks[2], int is_to_stop)
{
    int n_tries = 0;

    while (transfer(teller, entries, locks, is_to_stop && n_tries == 0) != 0) {
        if (!roll_back(teller) || ++n_tries == N_TRIES || !are_held(locks) || teller->gives_back)
            return 0;
    }
    return 1;
}

/* 1: the transfer is done. 0: it was refused, or failed. -1: a lock could not be had. */
static int serve(struct teller *teller, const int accounts[2], int is_to_stop)
{
    struct bank_entry entries[2] = { { accounts[0], 0, 0, 0 }, { accounts[1], 0, 0, 0 } };
    dblock_lock *locks[2] = { NULL, NULL };
    int result = lock_both(teller, entries, locks);

    if (result == 0)
        result = transfer_at_last(teller, entries, locks, is_to_stop);
    dblock_lock_free(locks[1]);
    dblock_lock_free(locks[0]);
    return result;
}

static void go_through_network(const struct bank *bank)
{
    const struct contract_database *database = bank->application->database;
    unsigned port = bank->n_routes > 0 ? database->port() : 0;
    int i;

    for (i = 0; i < bank->n_routes; ++i)
        if (bank->routes[i].server == port)
            database->go_to_port(bank->routes[i].proxy);
}

static int employ(struct teller *teller, const struct bank *bank)
{
    const struct contract_database *database = bank->application->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_status status = DBLOCK_E_CONNECTION;
    int i;

    if (database->go_to_node != NULL)
        database->go_to_node(bank->seed);
    go_through_network(bank);
    *teller = (struct teller){ bank, bank->application, NULL, bank->application->open(),
        UINT64_C(0x9E3779B97F4A7C15) * (bank->seed + (unsigned)getpid()) | 1, 0 };
    /* so long the server lets a session that holds a lock stand still */
    config.ttl_ms = bank->ttl_ms;
    if (database->schema != NULL)
        config.schema = database->schema();
    for (i = 0; i < N_CONNECTS && status == DBLOCK_E_CONNECTION; ++i)
        status = dblock_open(
            database->driver(), database->url(CONTRACT_URL), &config, &teller->client, &error);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "bank_teller: %s\n", error.message);
    return status == DBLOCK_OK ? 0 : -1;
}

int bank_tell(void *context, int ready_fd)
{
    const struct bank *bank = context;
    struct teller teller;
    unsigned n_accounts = (unsigned)bank->n_accounts;
    unsigned stops_one_in = bank->application->has_one_writer && bank->locking == BANK_JOINED
        ? STOPS_ALL_ONE_IN
        : STOPS_ONE_IN;
    int can_give_back = bank->strategy == DBLOCK_LEASE || bank->strategy == DBLOCK_INSERT;
    int accounts[2];

    if (employ(&teller, bank) != 0)
        return 1;
    process_ready(ready_fd, 1);
    for (;;) {
        accounts[0] = (int)draw(&teller, n_accounts);
        accounts[1] = (accounts[0] + 1 + (int)draw(&teller, n_accounts - 1)) % (int)n_accounts;
        teller.gives_back = can_give_back && draw(&teller, 4) == 0;
        (void)serve(&teller, accounts, draw(&teller, stops_one_in) == 0);
        ++bank->tally->n_served[bank->teller];
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
