/* SPDX-License-Identifier: MIT */
/* worker.c - see soak.h: a process that takes names, holds them for a while and gives them back, in
 * all the ways that there are, by one thread or two, and now and then begins with a new client. */
#include "soak.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processes.h"
#include "test_wait.h"

enum {
    ROUNDS_OF_A_CLIENT = 400,
    TICK_MS = 4,
    PAUSE_MS = 50,
    LATE_MS = 5000,
    LONG_HOLD_MS = 2 * TTL_MS,
    OPEN_FILES_MAX = 1024
};

struct self {
    struct soak_worker *worker;
    dblock_client *client;
    unsigned n_harms; /* when a call last went well */
    struct dblock_error error;
};

static void count(struct self *self, enum count what)
{
    (void)atomic_fetch_add_explicit(&self->worker->counts[what], 1, memory_order_relaxed);
}

static const char *find_url(const struct soak_worker *worker)
{
    const struct soak_database *database = &soak_databases[worker->database];

    return worker->is_proxied ? database->proxied_url(tcp_proxy_port(database->proxy))
                              : database->contract->url(CONTRACT_URL);
}

/* A harm can be found out late: by the next call, or by those in whose way is what it left, such
 * as a message that is half at the server, which has locked a row and waits for the other half. */
static int is_excused(const struct self *self, uint64_t begun_us, dblock_status status)
{
    const struct soak_worker *worker = self->worker;
    uint64_t harmed_us = atomic_load(&worker->harmed_us);

    if (status == DBLOCK_E_DATABASE && strstr(self->error.message, "a guarded transaction stands"))
        harmed_us = atomic_load(&soak_shared->network_harmed_us[worker->database]);
    else if (status != DBLOCK_E_CONNECTION && status != DBLOCK_E_UNCERTAIN)
        return 0;
    return atomic_load(&worker->n_harms) != self->n_harms ||
        (harmed_us > 0 && begun_us < harmed_us + LATE_MS * UINT64_C(1000));
}

static void take_note(
    struct self *self, const char *what, uint64_t begun_us, dblock_status status)
{
    const char *harm = atomic_load(&self->worker->harm);

    if (status >= 0)
        self->n_harms = soak_harms_before(self->worker);
    else if (is_excused(self, begun_us, status))
        count(self, status == DBLOCK_E_UNCERTAIN ? COUNT_UNCERTAIN : COUNT_UNREACHED);
    else
        soak_violation(VIOLATION_ERROR,
            "%s %s%s: %s: %s after %llu ms, %llu ms after it was %s: %s (%s)",
            soak_databases[self->worker->database].contract->name,
            dblock_strategy_name(soak_strategies[self->worker->strategy]),
            self->worker->is_proxied ? " by proxy" : "", what, dblock_status_name(status),
            (unsigned long long)(soak_now_us() - begun_us) / 1000,
            (unsigned long long)(soak_now_us() - atomic_load(&self->worker->harmed_us)) / 1000,
            harm != NULL ? harm : "harmed", self->error.message, self->error.hint);
}

/* A call that was allowed to last `limit_ms` and began at `begun_us`. */
static void take_time(struct self *self, uint64_t begun_us, uint64_t limit_ms, unsigned n_stops)
{
    uint64_t took_us = soak_now_us() - begun_us;

    if (took_us <= limit_ms * 1000 || atomic_load(&self->worker->n_stops) != n_stops)
        return;
    took_us -= limit_ms * 1000;
    if (took_us > atomic_load(&self->worker->latest_us))
        atomic_store(&self->worker->latest_us, took_us);
}

static void note_trace(const struct dblock_trace *trace, void *context)
{
    if (trace->kind == DBLOCK_TRACE_RELEASE && trace->detail != NULL &&
        strstr(trace->detail, "another thread") != NULL)
        count(context, COUNT_HANDED);
}

static int open_client(struct self *self)
{
    const struct contract_database *contract = soak_databases[self->worker->database].contract;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    unsigned n_stops = atomic_load(&self->worker->n_stops);
    uint64_t begun_us = soak_now_us();
    dblock_status status;

    config.schema = contract->schema != NULL ? contract->schema() : NULL;
    config.connect_timeout_ms = IO_LIMIT_MS;
    config.io_timeout_ms = IO_LIMIT_MS;
    config.on_trace = note_trace;
    config.trace_context = self;
    status =
        dblock_open(contract->driver(), find_url(self->worker), &config, &self->client, &self->error);
    take_note(self, "open", begun_us, status);
    take_time(self, begun_us, IO_LIMIT_MS, n_stops);
    if (status != DBLOCK_OK)
        return -1;
    count(self, COUNT_CLIENTS);
    return 0;
}

/* 1: it was still held at the end. */
static int hold(struct self *self, dblock_lock *lock)
{
    uint64_t until_us =
        soak_now_us() + (soak_draw(60) == 0 ? LONG_HOLD_MS : soak_draw(25)) * UINT64_C(1000);

    do {
        if (!dblock_lock_is_held(lock)) {
            soak_leave(self->worker);
            count(self, COUNT_LOST);
            return 0;
        }
        soak_stay(self->worker, dblock_lock_remaining_ms(lock));
        test_pass_ms(TICK_MS);
    } while (soak_now_us() < until_us && soak_now_us() < atomic_load(&soak_shared->end_us));
    return dblock_lock_is_held(lock);
}

/* What else may be asked of a lock that is held. */
static void ask(struct self *self, dblock_client *client, dblock_lock *lock, const char *name)
{
    dblock_status status = DBLOCK_OK;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    uint64_t begun_us = soak_now_us();

    switch (soak_draw(12)) {
    case 0:
        status = dblock_confirm(lock, &self->error);
        break;
    case 1:
        status = dblock_extend(lock, 0, &self->error);
        break;
    case 2:
        status = dblock_inspect(
            client, name, soak_strategies[self->worker->strategy], &grant, &self->error);
        break;
    default:
        return;
    }
    take_note(self, "ask", begun_us, status);
}

static void release(struct self *self, dblock_lock *lock)
{
    unsigned n_stops = atomic_load(&self->worker->n_stops);
    uint64_t begun_us = soak_now_us();
    dblock_status status;

    soak_leave(self->worker); /* before it is sent */
    if (soak_draw(10) == 0)
        return; /* left to dblock_lock_free() */
    status = dblock_release(lock, &self->error);
    take_note(self, "release", begun_us, status);
    take_time(self, begun_us, IO_LIMIT_MS, n_stops);
    if (status == DBLOCK_LOST)
        count(self, COUNT_LOST);
}

/* What the acquire answered. */
static dblock_status take_once(struct self *self)
{
    struct soak_worker *worker = self->worker;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    int number = (int)soak_draw(N_NAMES);
    unsigned n_harms = soak_harms_before(worker);
    unsigned n_stops = atomic_load(&worker->n_stops);
    int64_t token_before = soak_largest_token(worker, number);
    int64_t token = 0;
    uint64_t begun_us = soak_now_us();
    dblock_lock *lock = NULL;
    dblock_status status;
    char name[64];

    soak_name(worker->database, worker->strategy, number, name, sizeof name);
    options.strategy = soak_strategies[worker->strategy];
    options.ttl_ms = TTL_MS;
    options.wait_ms = soak_draw(3) == 0 ? 0 : soak_draw(1500);
    options.flags = worker->strategy < 2 && soak_draw(4) == 0 ? DBLOCK_FAIR : 0;
    status = dblock_acquire(self->client, name, &options, &lock, &self->error);
    take_note(self, "acquire", begun_us, status);
    take_time(self, begun_us, options.wait_ms + 2 * IO_LIMIT_MS, n_stops);
    if (status == DBLOCK_BUSY)
        count(self, COUNT_BUSY);
    if (status != DBLOCK_OK)
        return status;
    begun_us = soak_now_us();
    status = dblock_lock_token(lock, &token, &self->error);
    take_note(self, "token", begun_us, status);
    if (status == DBLOCK_OK) {
        soak_enter(worker, number, token, token_before, n_harms, dblock_lock_remaining_ms(lock));
        count(self, COUNT_GRANTS);
        if (hold(self, lock))
            ask(self, self->client, lock, name);
        if (atomic_load(&worker->n_harms) != n_harms)
            count(self, COUNT_GRANTS_UNDER_HARM);
        release(self, lock);
    }
    dblock_lock_free(lock);
    return DBLOCK_OK;
}

/* The conductor's proxy could end no connection as long as a worker has it open, too. */
static void close_what_was_inherited(int ready_fd)
{
    int fd = (int)sysconf(_SC_OPEN_MAX);

    if (fd > OPEN_FILES_MAX)
        fd = OPEN_FILES_MAX;
    while (--fd > STDERR_FILENO)
        if (fd != ready_fd)
            (void)close(fd);
}

static int is_over(void)
{
    return soak_now_us() >= atomic_load(&soak_shared->end_us);
}

/* Up to `n_rounds`; 0: until `is_told` to end. */
static void go_on(struct self *self, unsigned n_rounds, atomic_int *is_told)
{
    unsigned i;

    for (i = 0; !is_over() && !atomic_load(is_told) && (n_rounds == 0 || i < n_rounds); ++i)
        if (take_once(self) == DBLOCK_E_CONNECTION)
            test_pass_ms(PAUSE_MS);
}

static void begin_self(struct self *self, struct soak_worker *worker)
{
    soak_leave(worker);
    memset(self, 0, sizeof *self);
    self->worker = worker;
    self->n_harms = atomic_load(&worker->n_harms) - 1; /* it may begin in the middle of a harm */
}

struct twin {
    struct self self;
    pthread_t thread;
    atomic_int is_told;
};

static void *work_as_twin(void *context)
{
    struct twin *twin = context;

    go_on(&twin->self, 0, &twin->is_told);
    return NULL;
}

/* With one client, which is closed once nobody uses it. */
static void work_together(struct self *self, struct twin *twin)
{
    atomic_int is_told = 0;
    int has_twin = 0;

    if (self->worker->twin != NULL) {
        twin->self.client = self->client;
        atomic_store(&twin->is_told, 0);
        has_twin = pthread_create(&twin->thread, NULL, work_as_twin, twin) == 0;
    }
    go_on(self, self->worker->is_steady ? 0 : ROUNDS_OF_A_CLIENT, &is_told);
    atomic_store(&twin->is_told, 1);
    if (has_twin)
        (void)pthread_join(twin->thread, NULL);
    dblock_close(self->client);
    self->client = NULL;
}

int soak_work(void *context, int ready_fd)
{
    struct soak_worker *worker = context;
    struct self self;
    struct twin twin;

    close_what_was_inherited(ready_fd);
    begin_self(&self, worker);
    memset(&twin, 0, sizeof twin);
    if (worker->twin != NULL)
        begin_self(&twin.self, worker->twin);
    process_ready(ready_fd, 1);
    while (!is_over())
        if (open_client(&self) == 0)
            work_together(&self, &twin);
        else
            test_pass_ms(PAUSE_MS);
    return 0;
}
