/* SPDX-License-Identifier: MIT */
/* sqlite_join.c - row and advisory locks in a transaction of the application.
 *
 * The lock is one of this client like any other, so it is waited for and met as those are. It is
 * given back when the transaction ends (sqlite_end.c), after what that has written can be seen.
 *
 * First the lock, then the file's writer: who waits for the lock keeps nobody from writing, unless
 * his transaction did so already. */
#include <dblock/sqlite.h>

#include <string.h>

#include "sqlite_application.h"
#include "sqlite_byte.h"
#include "sqlite_end.h"
#include "sqlite_target.h"

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

static dblock_status acquire(
    const struct dblock_joining *joining, dblock_lock **ret_lock, struct dblock_error *reterr)
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
    options.busy = NULL;
    options.on_event = hear_nothing;
    options.context = NULL;
    return dblock_acquire(handle->client, joining->subject.name, &options, ret_lock, reterr);
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

    (void)wait_us;
    (void)cancel_fd;
    if (status != DBLOCK_OK)
        return status;
    end = sqlite_end_of(handle->database, &code);
    if (end == NULL)
        return sqlite_application_fail(&application, code);
    *ret_outcome = DBLOCK_ANSWER_YES;
    if (sqlite_end_has(end, joining->strategy, number))
        return DBLOCK_OK;
    status = acquire(joining, &lock, reterr);
    *ret_outcome = DBLOCK_ANSWER_BUSY;
    if (status != DBLOCK_OK)
        return status == DBLOCK_BUSY ? DBLOCK_OK : status;
    code = sqlite_end_await(end);
    if (code != SQLITE_OK)
        status = sqlite_application_fail(&application, code);
    else if (sqlite_end_add(end, joining->strategy, number, lock) != 0)
        status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    *ret_outcome = DBLOCK_ANSWER_YES;
    if (status != DBLOCK_OK) {
        (void)dblock_release(lock, NULL);
        dblock_lock_free(lock);
    }
    return status;
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
