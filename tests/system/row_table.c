/* SPDX-License-Identifier: MIT */
/* row_table.c - see row_table.h. */
#include "row_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "test_wait.h"

enum { IO_MS = 1500, SLACK_MS = 1500 };

static dblock_client *open_on(const struct row_table *table)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;

    config.schema = table->schema;
    config.strategy = DBLOCK_ROW;
    config.io_timeout_ms = IO_MS;
    assert_int_equal(DBLOCK_OK, dblock_open(table->driver, table->url, &config, &client, &error));
    return client;
}

/* With a token, or NULL and `*ret_status`; without that it waits, as the server may not have noticed
 * yet that the last holder's connection is gone. */
static dblock_lock *take(dblock_client *client, const char *name, dblock_status *ret_status)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;

    options.flags = DBLOCK_FENCED;
    options.wait_ms = ret_status == NULL ? 10000 : 0;
    memset(&error, 0, sizeof error);
    status = dblock_acquire(client, name, &options, &lock, &error);
    if (ret_status != NULL)
        *ret_status = status;
    else if (status != DBLOCK_OK)
        fail_msg("%s: %s (%s)", dblock_status_name(status), error.message, error.hint);
    return lock;
}

static int64_t token_of(dblock_lock *lock)
{
    int64_t token = 0;

    assert_int_equal(DBLOCK_OK, dblock_lock_token(lock, &token, NULL));
    return token;
}

static void expect_held(dblock_lock *lock)
{
    assert_int_equal(DBLOCK_OK, dblock_confirm(lock, NULL));
    assert_int_equal(1, dblock_lock_is_held(lock));
}

void row_table__waits_for_its_holders(const struct row_table *table)
{
    dblock_client *client = open_on(table);
    dblock_client *other = open_on(table);
    dblock_lock *lock = take(client, "held", NULL);
    int64_t token = token_of(lock);
    dblock_status status;

    assert_int_equal(0, table->run("TRUNCATE TABLE dblock_row", 1));
    expect_held(lock);
    assert_int_equal(0, table->run("DELETE FROM dblock_row", 1));
    expect_held(lock);
    assert_null(take(other, "held", &status));
    assert_int_equal(DBLOCK_BUSY, status);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, NULL));
    dblock_lock_free(lock);

    assert_int_equal(1, table->run("DELETE FROM dblock_row", 1));
    lock = take(other, "held", NULL);
    assert_true(token_of(lock) > token);
    token = token_of(lock);
    assert_null(take(client, "held", &status));
    assert_int_equal(DBLOCK_BUSY, status);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, NULL));
    dblock_lock_free(lock);

    assert_int_equal(1, table->run("TRUNCATE TABLE dblock_row", 1));
    lock = take(client, "held", NULL);
    assert_true(token_of(lock) > token);
    dblock_close(other);
    dblock_close(client);
    dblock_lock_free(lock);
}

struct truncation {
    const struct row_table *table;
    int result;
};

static void *truncate_table(void *context)
{
    struct truncation *truncation = context;

    truncation->result = truncation->table->run("TRUNCATE TABLE dblock_row", 20);
    return NULL;
}

static int is_waiting(void *context)
{
    return ((const struct row_table *)context)->count_waiting() > 0;
}

void waiting_truncate__lets_every_call_end(const struct row_table *table)
{
    struct row_table copy = *table;
    struct truncation truncation = { table, -2 };
    dblock_client *client = open_on(table);
    dblock_client *other = open_on(table);
    dblock_lock *lock = take(client, "held", NULL);
    dblock_lock *second;
    dblock_status status;
    uint64_t begun_ms;
    pthread_t thread;

    dblock_lock_free(take(other, "free", NULL)); /* its row is there, and its connection open */
    assert_int_equal(0, pthread_create(&thread, NULL, truncate_table, &truncation));
    assert_true(test_until(is_waiting, &copy, 5000));
    begun_ms = test_now_ms();
    second = take(other, "free", &status);
    assert_true(test_now_ms() - begun_ms < IO_MS + SLACK_MS);
    assert_null(second);
    assert_true(status == DBLOCK_BUSY || status == DBLOCK_E_DATABASE ||
                status == DBLOCK_E_CONNECTION || status == DBLOCK_E_UNCERTAIN);
    print_message("behind a TRUNCATE: %s\n", dblock_status_name(status));
    expect_held(lock);
    assert_int_equal(-2, truncation.result);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, NULL));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(1, truncation.result);
    dblock_lock_free(lock);
    lock = take(other, "free", NULL);
    dblock_lock_free(lock);
    lock = take(client, "held", NULL);
    dblock_close(other);
    dblock_close(client);
    dblock_lock_free(lock);
}
