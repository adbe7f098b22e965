/* SPDX-License-Identifier: MIT */
/* sqlite_join.c - row and advisory locks in a transaction of the application.
 *
 * The lock is one of this client like any other, so it is waited for and met as those are. It is
 * given back when the transaction ends (sqlite_end.c), after what that has written can be seen.
 *
 * First the lock, then the file's writer: who waits for the lock keeps nobody from writing, unless
 * his transaction did so already, by another lock or a change. But he may wait for a lock whose
 * holder waits to become the writer, and then both would stand until somebody's time is over. So
 * who does not become it within moments gives the lock back, and starts again. */
#include <dblock/sqlite.h>

#include <string.h>

#include "sqlite_application.h"
#include "sqlite_byte.h"
#include "sqlite_end.h"
#include "sqlite_target.h"

#define HOLDS_US 3000u
#define PAUSE_SHORTEST_US 500u
#define PAUSE_SPREAD_US 1000u

struct handle {
    sqlite3 *database;
    const char *source_id;
    dblock_client *client;
    const struct dblock_options *options;
};

static dblock_status check(void *connection, const char *name, struct dblock_error *reterr)
{
    const struct handle *handle = connection;
    const struct sqlite_application application = { handle->database, "lock", name, reterr };

    return sqlite_application_check(&application, handle->source_id);
}

static void hear_nothing(const struct dblock_event *event, void *context)
{
    (void)event;
    (void)context;
}

static dblock_status acquire(const struct dblock_joining *joining, uint64_t wait_us,
    dblock_lock **ret_lock, struct dblock_error *reterr)
{
    const struct handle *handle = joining->connection;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;

    if (handle->options != NULL) { /* which has been found good */
        memcpy(&options, handle->options,
            handle->options->struct_size < sizeof options ? handle->options->struct_size
                                                          : sizeof options);
        options.struct_size = sizeof options;
    }
    options.strategy = joining->strategy;
    options.wait_ms = wait_us == UINT64_MAX ? DBLOCK_FOREVER : wait_us / 1000;
    options.busy = NULL;
    options.on_event = hear_nothing;
    options.context = NULL;
    return dblock_acquire(handle->client, joining->subject.name, &options, ret_lock, reterr);
}

static void drop(dblock_lock *lock)
{
    (void)dblock_release(lock, NULL);
    dblock_lock_free(lock);
}

/* ------------------------------------------------------------- the file's writer */

struct patience {
    uint64_t until_us;
    int is_asked; /* for a wait, which is not where SQLite sees that it would be in vain */
};

/* As all pauses before the write lock: short ones, of random length. */
static uint64_t pause_us(void)
{
    return PAUSE_SHORTEST_US + dblock_clock_us() * 7919 % PAUSE_SPREAD_US;
}

static int wait_for_writer(void *context, int n_waits)
{
    struct patience *patience = context;
    struct dblock_call pause = { dblock_clock_us(), -1 };

    (void)n_waits;
    patience->is_asked = 1;
    if (pause.deadline_us >= patience->until_us)
        return 0;
    pause.deadline_us += pause_us();
    (void)dblock_fd_wait(-1, 0, &pause, 0);
    return 1;
}

/* `busy_ms` is the connection's own time-out. Without one, or with a handler of the application's,
 * which cannot be asked for and given back, that is left to it. */
static int become_writer(
    sqlite3 *database, struct sqlite_end *end, int busy_ms, struct patience *patience)
{
    int code;

    if (busy_ms > 0)
        (void)sqlite3_busy_handler(database, wait_for_writer, patience);
    code = sqlite_end_await(end);
    if (busy_ms > 0)
        (void)sqlite3_busy_timeout(database, busy_ms);
    return code;
}

/* With it, or without the lock. */
static dblock_status take_both(const struct dblock_joining *joining, struct sqlite_end *end,
    uint64_t wait_us, dblock_lock **ret_lock, struct dblock_error *reterr)
{
    const struct handle *handle = joining->connection;
    const struct sqlite_application application = {
        handle->database, "lock", joining->subject.name, reterr };
    int busy_ms = sqlite_application_setting(handle->database, "PRAGMA busy_timeout");
    uint64_t begun_us = dblock_clock_us();
    uint64_t end_us = begun_us + (busy_ms > 0 ? (uint64_t)busy_ms * 1000 : 0);
    uint64_t left_us = wait_us;

    for (;;) {
        dblock_status status = acquire(joining, left_us, ret_lock, reterr);
        struct patience patience = { dblock_clock_us() + HOLDS_US, 0 };
        struct dblock_call pause = { 0, -1 };
        uint64_t now_us;
        int code;

        if (status != DBLOCK_OK)
            return status;
        if (patience.until_us > end_us)
            patience.until_us = end_us;
        code = become_writer(handle->database, end, busy_ms, &patience);
        if (code == SQLITE_OK)
            return DBLOCK_OK;
        drop(*ret_lock);
        now_us = dblock_clock_us();
        if (!patience.is_asked || now_us >= end_us)
            return sqlite_application_fail(&application, code);
        pause.deadline_us = now_us + pause_us();
        (void)dblock_fd_wait(-1, 0, &pause, 0); /* who cancels is heard by the acquire */
        now_us = dblock_clock_us();
        if (wait_us != UINT64_MAX)
            left_us = now_us - begun_us < wait_us ? wait_us - (now_us - begun_us) : 0;
    }
}

static dblock_status take(const struct dblock_joining *joining, uint64_t wait_us, int cancel_fd,
    int *ret_outcome, struct dblock_error *reterr)
{
    const struct handle *handle = joining->connection;
    const struct sqlite_application application = {
        handle->database, "lock", joining->subject.name, reterr };
    int64_t number = sqlite_byte_number(joining->strategy, &joining->subject);
    dblock_lock *lock = NULL;
    struct sqlite_end *end;
    dblock_status status = sqlite_application_check_file(&application, joining->target->path);
    int code;

    (void)cancel_fd;
    if (status != DBLOCK_OK)
        return status;
    end = sqlite_end_of(handle->database, &code);
    if (end == NULL)
        return sqlite_application_fail(&application, code);
    *ret_outcome = DBLOCK_ANSWER_YES;
    if (sqlite_end_has(end, joining->strategy, number))
        return DBLOCK_OK;
    status = take_both(joining, end, wait_us, &lock, reterr);
    *ret_outcome = DBLOCK_ANSWER_BUSY;
    if (status != DBLOCK_OK)
        return status == DBLOCK_BUSY ? DBLOCK_OK : status;
    *ret_outcome = DBLOCK_ANSWER_YES;
    if (sqlite_end_add(end, joining->strategy, number, lock) != 0) {
        drop(lock);
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    }
    return DBLOCK_OK;
}

dblock_status dblock_sqlite_acquire_in(dblock_client *client, struct sqlite3 *database,
    const char *source_id, const char *name, const struct dblock_options *options,
    dblock_lock **ret_lock, struct dblock_error *reterr)
{
    static const struct dblock_join_steps steps = {
        .check = check, .take = take, .waits_itself = 1, .cannot_fence = 1 };
    struct handle handle = { database, source_id, client, options };

    return dblock_join(
        client, dblock_sqlite_driver(), &steps, &handle, name, options, ret_lock, reterr);
}
