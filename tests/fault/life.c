/* SPDX-License-Identifier: MIT */
/* life.c - see life.h. */
#include "life.h"

#include <dblock/check.h>
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

enum { TTL_MS = 2000 };

static void complain(struct life *life, const char *step, const char *what)
{
    ++life->n_wrong;
    (void)fprintf(stderr, "# %s, number %lu: %s: %s\n", life->fault, life->n, step, what);
}

/* Answers above zero are all possible: who has lost a lock is told so. A failure has its reason. */
static dblock_status judge(
    struct life *life, const char *step, dblock_status status, const struct dblock_error *error)
{
    if (status < 0 && (error->status != status || error->message[0] == 0))
        complain(life, step, dblock_status_text(status));
    return status;
}

static int is_row(int strategy)
{
    return strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT;
}

static struct dblock_options options_of(int strategy, uint32_t flags)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    options.strategy = strategy;
    options.flags = flags;
    options.ttl_ms = is_row(strategy) ? TTL_MS : 0;
    return options;
}

/* Whoever believes that he holds it is the only one who was given it. */
static void challenge(struct life *life, dblock_lock *lock, const char *name, int strategy)
{
    struct dblock_options options = options_of(strategy, 0);
    dblock_lock *taken = NULL;
    int is_held = dblock_lock_is_held(lock);

    if (dblock_acquire(life->rival, name, &options, &taken, NULL) == DBLOCK_OK && is_held &&
        dblock_lock_is_held(lock))
        complain(life, "rival", "there are two holders");
    dblock_lock_free(taken);
}

static void move(struct life *life, dblock_lock *lock)
{
    struct dblock_error error;
    char text[4 * DBLOCK_GRANT_TEXT_SIZE];
    dblock_lock *copy = NULL;
    dblock_status status;

    status = dblock_lock_export(lock, text, sizeof text, &error);
    if (judge(life, "export", status, &error) != DBLOCK_OK)
        return;
    status = dblock_lock_import(life->client, text, &copy, &error);
    if (judge(life, "import", status, &error) != DBLOCK_OK)
        return;
    judge(life, "confirm of what was imported", dblock_confirm(copy, &error), &error);
    dblock_lock_free(copy);
}

/* A lock that belongs to a transaction of the application: that has it at once. */
static dblock_status check_transaction(
    void *connection, const char *name, struct dblock_error *reterr)
{
    (void)connection;
    (void)name;
    (void)reterr;
    return DBLOCK_OK;
}

static dblock_status take_in_transaction(const struct dblock_joining *joining, uint64_t wait_us,
    int cancel_fd, int *ret_outcome, struct dblock_error *reterr)
{
    (void)joining;
    (void)wait_us;
    (void)cancel_fd;
    (void)reterr;
    *ret_outcome = DBLOCK_ANSWER_YES;
    return DBLOCK_OK;
}

static void join(struct life *life)
{
    static const struct dblock_join_steps steps = {
        .check = check_transaction, .take = take_in_transaction, .has_gap_locks = 1
    };
    struct dblock_options options = options_of(DBLOCK_ROW, DBLOCK_FENCED);
    struct dblock_error error;
    dblock_lock *lock = NULL;

    judge(life, "join",
        dblock_join(
            life->client, life->driver, &steps, NULL, "joined", &options, &lock, &error),
        &error);
    dblock_lock_free(lock);
}

static void cancel_nothing(void *context, const struct dblock_call *call)
{
    (void)context;
    (void)call;
}

static void free_nothing(void *context)
{
    (void)context;
}

static void watch(struct life *life, dblock_lock *lock)
{
    static const struct dblock_watch way = { cancel_nothing, free_nothing, NULL };
    struct dblock_error error;
    dblock_canceller *canceller = NULL;

    judge(life, "watch", dblock_watch_begin(lock, &way, &error), &error);
    dblock_watch_end(lock);
    judge(life, "canceller_new", dblock_canceller_new(&canceller, &error), &error);
    dblock_canceller_free(canceller);
}

static void use(struct life *life, dblock_lock *lock, int strategy, int is_released)
{
    struct dblock_error error;
    int64_t token;
    int fd;

    judge(life, "token", dblock_lock_token(lock, &token, &error), &error);
    watch(life, lock);
    judge(life, "fd", dblock_lock_fd(lock, &fd, &error), &error);
    judge(life, "confirm", dblock_confirm(lock, &error), &error);
    if (!is_row(strategy))
        return;
    move(life, lock);
    if (is_released) /* else it would stay */
        judge(life, "detach", dblock_lock_detach(lock, TTL_MS, &error), &error);
    judge(life, "extend", dblock_extend(lock, TTL_MS, &error), &error);
    judge(life, "extend to less", dblock_extend(lock, TTL_MS / 2, &error), &error);
}

static void hold_one(struct life *life, int strategy, uint32_t flags, int is_released)
{
    struct dblock_options options = options_of(strategy, flags);
    struct dblock_error error;
    char name[40];
    dblock_lock *lock = NULL;
    dblock_status status;

    if (strategy == DBLOCK_ROW) /* whose row is made with the first use of the name */
        (void)snprintf(name, sizeof name, "one-%d-%u", strategy, ++life->n_rows);
    else
        (void)snprintf(name, sizeof name, "one-%d", strategy);
    status = dblock_acquire(life->client, name, &options, &lock, &error);
    if (judge(life, "acquire", status, &error) != DBLOCK_OK)
        return;
    challenge(life, lock, name, strategy);
    use(life, lock, strategy, is_released);
    if (is_released)
        judge(life, "release", dblock_release(lock, &error), &error);
    dblock_lock_free(lock);
}

static int work(dblock_lock *lock, void *context)
{
    *(int *)context = dblock_lock_is_held(lock);
    return 0;
}

/* The rival has it: a short wait, a row of the holder, and then it is taken away from him. */
static void meet_rival(struct life *life, int strategy)
{
    struct dblock_options options = options_of(strategy, 0);
    struct dblock_grant holder = DBLOCK_GRANT_INIT;
    struct dblock_error error;
    dblock_lock *theirs = NULL;
    int n_worked = 0;
    dblock_status status = dblock_acquire(life->rival, "rival", &options, &theirs, NULL);

    options.busy = &holder;
    options.wait_ms = 3;
    judge(life, "with", dblock_with(life->client, "rival", &options, work, &n_worked, NULL, &error),
        &error);
    judge(life, "inspect",
        dblock_inspect(life->client, "rival", strategy, &holder, &error), &error);
    if (status == DBLOCK_OK && is_row(strategy)) { /* a guarded transaction stands on it, at first */
        (void)sim_hold_guard(sim_world_lock(life->world), strategy, "rival", 1);
        sim_world_unlock(life->world);
        judge(life, "break", dblock_break(life->client, "rival", strategy, 0, &error), &error);
        (void)sim_hold_guard(sim_world_lock(life->world), strategy, "rival", -1);
        sim_world_unlock(life->world);
    } else if (status == DBLOCK_OK) {
        judge(life, "break", dblock_break(life->client, "rival", strategy, 0, &error), &error);
    }
    dblock_lock_free(theirs);
}

static void free_all(dblock_lock **locks)
{
    for (size_t i = 0; i < 3; ++i) {
        dblock_lock_free(locks[i]);
        locks[i] = NULL;
    }
}

/* The rival has the second of three names, unless the fault was his. */
static void meet_rival_among_several(
    struct life *life, const char *const *names, struct dblock_options *options)
{
    struct dblock_error error;
    dblock_lock *theirs = NULL;
    dblock_lock *locks[3] = { NULL, NULL, NULL };
    dblock_status status;
    int is_there =
        dblock_acquire(life->rival, names[1], options, &theirs, NULL) == DBLOCK_OK;

    options->wait_ms = 3;
    status = dblock_acquire_many(life->client, names, 3, options, locks, &error);
    if (judge(life, "acquire_many in vain", status, &error) == DBLOCK_OK && is_there &&
        dblock_lock_is_held(theirs))
        complain(life, "acquire_many", "there are two holders");
    if (status == DBLOCK_OK)
        free_all(locks);
    options->wait_ms = 0;
    status = dblock_acquire_some(life->client, names, 3, options, locks, NULL, &error);
    if (judge(life, "acquire_some", status, &error) == DBLOCK_OK && locks[1] != NULL && is_there &&
        dblock_lock_is_held(theirs))
        complain(life, "acquire_some", "there are two holders");
    if (status == DBLOCK_OK)
        free_all(locks);
    dblock_lock_free(theirs);
}

static void hold_several(struct life *life)
{
    static const char *const names[] = { "a", "b", "c" };
    struct dblock_options options = options_of(DBLOCK_LEASE, 0);
    struct dblock_error error;
    dblock_lock *locks[3] = { NULL, NULL, NULL };
    dblock_status status = dblock_acquire_many(life->client, names, 3, &options, locks, &error);

    if (judge(life, "acquire_many", status, &error) == DBLOCK_OK) {
        challenge(life, locks[1], names[1], DBLOCK_LEASE);
        judge(life, "release_many", dblock_release_many(locks, 3, &error), &error);
        free_all(locks);
    }
    meet_rival_among_several(life, names, &options);
}

static int count_grant(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static int count_finding(const struct dblock_finding *finding, void *context)
{
    (void)finding;
    ++*(int *)context;
    return 0;
}

static void look(struct life *life)
{
    struct dblock_error error;
    int n = 0;

    judge(life, "ping", dblock_ping(life->client, &error), &error);
    judge(life, "install", dblock_schema_install(life->client, &error), &error);
    judge(life, "list", dblock_list(life->client, NULL, count_grant, &n, &error), &error);
    judge(life, "check", dblock_check(life->client, count_finding, &n, &error), &error);
}

/* A lost answer is looked for during a part of the limit: a short one. */
static dblock_status open_client(
    struct life *life, dblock_client **ret_client, struct dblock_error *reterr)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    char url[80];

    (void)snprintf(url, sizeof url, "sim:%s", life->world);
    config.io_timeout_ms = 100;
    *ret_client = NULL;
    return dblock_open(life->driver, url, &config, ret_client, reterr);
}

void life_run(struct life *life)
{
    struct dblock_error error;
    int strategy, fd;
    dblock_status status = open_client(life, &life->client, &error);

    if (judge(life, "open", status, &error) != DBLOCK_OK)
        return;
    judge(life, "client_fd", dblock_client_fd(life->client, &fd, &error), &error);
    look(life);
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy) {
        hold_one(life, strategy, 0, 1);
        hold_one(life, strategy, DBLOCK_FENCED, 0);
        meet_rival(life, strategy);
    }
    hold_several(life);
    join(life);
    dblock_close(life->client);
}

void life_begin(struct life *life, const char *world)
{
    struct dblock_error error;

    memset(life, 0, sizeof *life);
    life->world = world;
    life->driver = life_driver();
    life->fault = "nothing";
    if (open_client(life, &life->rival, &error) != DBLOCK_OK ||
        dblock_schema_install(life->rival, &error) != DBLOCK_OK)
        abort();
}

int life_is_over(struct life *life)
{
    static const char *const names[] = { "one-1", "one-2", "one-3", "one-4", "a", "b", "c" };
    struct dblock_options options;
    dblock_lock *lock;
    size_t i;
    int is_good = 1;

    for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
        options = options_of(i < 4 ? (int)i + 1 : DBLOCK_LEASE, 0);
        options.wait_ms = 2 * TTL_MS;
        lock = NULL;
        if (dblock_acquire(life->rival, names[i], &options, &lock, NULL) != DBLOCK_OK) {
            complain(life, names[i], "stays taken");
            is_good = 0;
        }
        dblock_lock_free(lock);
    }
    return is_good;
}

void life_end(struct life *life)
{
    dblock_close(life->rival);
    sim_forget(life->world);
}

static dblock_status check(struct dblock_connection *connection, const struct dblock_call *call,
    dblock_finding_fn fn, void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    static const struct dblock_finding finding = { sizeof finding, DBLOCK_FINDING_WARNING,
        1u << DBLOCK_LEASE, "simulated", "all of it", "use a database" };

    (void)fn(&finding, context);
    return sim_driver()->connection.ping(connection, call, answer, reterr);
}

const dblock_driver *life_driver(void)
{
    static dblock_driver driver;

    if (driver.abi == 0) {
        driver = *sim_driver();
        driver.observe.check = check;
    }
    return &driver;
}

const dblock_driver *life_plain_driver(void)
{
    static dblock_driver driver;

    if (driver.abi == 0) {
        driver = *sim_driver();
        driver.lease.draw = driver.insert.draw = NULL;
        driver.lease.drop_many = driver.insert.drop_many = NULL;
        memset(&driver.line, 0, sizeof driver.line);
    }
    return &driver;
}

int life_count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    if (folder == NULL)
        abort();
    while (readdir(folder) != NULL)
        ++n;
    (void)closedir(folder);
    return n;
}
