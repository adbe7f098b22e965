/* SPDX-License-Identifier: MIT */
/* callback.c - what may be done in a callback, and what a slow one costs. */
#include "hearing.h"

#include <string.h>

enum { SLACK_MS = 1500, TTL_MS = HEARING_TTL_MS };

static void try_everything(const struct dblock_event *event, struct hearing *hearing)
{
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    struct dblock_event next = DBLOCK_EVENT_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_client *client = hearing->client;
    dblock_lock *lock = NULL;
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX];
    int64_t token = 0;
    int fd = -1;
    int result = 0;

    if (event->kind != DBLOCK_EVENT_LOST)
        return;
    hearing->lock = event->lock;
    /* [any] */
    hearing->n_wrong += dblock_lock_is_held(event->lock) != 0;
    hearing->n_wrong += dblock_lock_remaining_ms(event->lock) != 0;
    hearing->n_wrong += strlen(dblock_lock_owner(event->lock)) != 32;
    hearing->n_wrong += dblock_lock_context(event->lock) != hearing;
    hearing->n_wrong += dblock_client_stats(client, &stats) != DBLOCK_OK;
    hearing->n_wrong += dblock_client_next_event(client, &next) != DBLOCK_EMPTY;
    /* all others */
    hearing->n_wrong += dblock_acquire(client, "x", NULL, &lock, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_release(event->lock, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_extend(event->lock, 0, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_confirm(event->lock, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_lock_token(event->lock, &token, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_lock_fd(event->lock, &fd, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_client_fd(client, &fd, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong +=
        dblock_lock_export(event->lock, text, sizeof text, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_lock_import(client, "x", &lock, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_lock_detach(event->lock, 1000, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_with(client, "x", NULL, NULL, NULL, &result, NULL) == DBLOCK_OK;
    hearing->n_wrong += dblock_list(client, NULL, NULL, NULL, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_inspect(client, "x", 0, &grant, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_break(client, "x", DBLOCK_LEASE, 0, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_ping(client, NULL) != DBLOCK_E_CALLBACK;
    hearing->n_wrong += dblock_schema_install(client, NULL) != DBLOCK_E_CALLBACK;
}

static void callback__may_call_any_functions_only(struct contract *contract)
{
    struct hearing hearing = { .act = try_everything };
    dblock_client *client = open_client(contract, NULL);

    (void)take_hearing(contract, client, own_name(contract, "x"), &hearing);
    assert_true(test_until(has_heard_lost, &hearing, TTL_MS + SLACK_MS));
    assert_int_equal(0, hearing.n_wrong);
    release(contract, take(contract, client, own_name(contract, "y")));
}

static int is_handed_over(void *context)
{
    return atomic_load(&((struct hearing *)context)->is_handed_over);
}

static void free_it(const struct dblock_event *event, struct hearing *hearing)
{
    hearing->lock = NULL;
    (void)test_until(is_handed_over, hearing, 5000);
    dblock_lock_free(event->lock);
}

static void callback__may_free_its_own_lock(struct contract *contract)
{
    struct hearing hearing = { .act = free_it };
    dblock_client *client = open_client(contract, NULL);

    (void)take_hearing(contract, client, own_name(contract, "x"), &hearing);
    --contract->n_locks; /* freed there, not by us */
    atomic_store(&hearing.is_handed_over, 1);
    assert_true(test_until(has_heard_lost, &hearing, TTL_MS + SLACK_MS));
    release(contract, take(contract, client, own_name(contract, "y")));
}

static void linger(const struct dblock_event *event, struct hearing *hearing)
{
    (void)event;
    atomic_store(&hearing->n_expiring, 1);
    test_pass_ms(300);
    atomic_store(&hearing->n_restored, 1);
}

static void free__waits_for_a_callback_that_runs(struct contract *contract)
{
    struct hearing hearing = { .act = linger };
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    uint64_t end_ms = test_now_ms() + 5000;
    dblock_lock *lock;

    options.ttl_ms = 400; /* a grant whose answer is slower than its ttl is none */
    options.on_event = hear;
    options.context = &hearing;
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    while (atomic_load(&hearing.n_expiring) == 0 && test_now_ms() < end_ms)
        test_pass_ms(2);
    assert_int_equal(1, atomic_load(&hearing.n_expiring));
    free_lock(contract, lock);
    assert_int_equal(1, atomic_load(&hearing.n_restored)); /* it had come to its end */
}

static void linger_long(const struct dblock_event *event, struct hearing *hearing)
{
    (void)event;
    (void)hearing;
    test_pass_ms(2000);
}

/* One lock's slow callback must not cost another its heartbeat. */
static void slow_callback__does_not_stop_heartbeats(struct contract *contract)
{
    struct hearing hearing = { .act = linger_long };
    dblock_client *client = open_client(contract, NULL);
    struct dblock_options options = own_options(contract);
    dblock_lock *lock;

    options.ttl_ms = 1600; /* less than the callback takes */
    lock = take_with(contract, client, own_name(contract, "x"), &options);
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    options.ttl_ms = 150;
    options.on_event = hear;
    options.context = &hearing;
    (void)take_with(contract, client, own_name(contract, "y"), &options);
    assert_true(test_until(has_heard_lost, &hearing, 5000));
    assert_int_equal(1, dblock_lock_is_held(lock));
    expect_status(contract, DBLOCK_OK, dblock_confirm(lock, &contract->error));
}

struct trace_watch {
    atomic_int n_calls;
    atomic_int n_wrong;
    _Atomic(dblock_client *) client;
};

static void call_from_trace(const struct dblock_trace *trace, void *context)
{
    struct trace_watch *watch = context;
    dblock_client *client = atomic_load(&watch->client);
    struct dblock_stats stats = DBLOCK_STATS_INIT;
    dblock_lock *lock = NULL;

    (void)trace;
    if (client == NULL)
        return;
    (void)atomic_fetch_add(&watch->n_calls, 1);
    if (dblock_client_stats(client, &stats) != DBLOCK_OK ||
        dblock_acquire(client, "x", NULL, &lock, NULL) != DBLOCK_E_CALLBACK ||
        dblock_ping(client, NULL) != DBLOCK_E_CALLBACK)
        (void)atomic_fetch_add(&watch->n_wrong, 1);
}

/* Called with no lock of ours held, on whichever thread does the thing. */
static void trace__may_call_any_functions_only(struct contract *contract)
{
    struct trace_watch watch = { 0 };
    struct dblock_config config = own_config(contract);
    struct dblock_options options = own_options(contract);
    dblock_client *client;

    config.on_trace = call_from_trace;
    config.trace_context = &watch;
    client = open_configured(contract, CONTRACT_URL, &config);
    atomic_store(&watch.client, client);
    options.ttl_ms = 200;
    (void)take_with(contract, client, own_name(contract, "x"), &options);
    release(contract, take(contract, client, own_name(contract, "y")));
    test_pass_ms(300); /* heartbeats, and losses, are traced too */
    atomic_store(&watch.client, NULL);
    close_client(contract, client);
    assert_true(atomic_load(&watch.n_calls) >= 3);
    assert_int_equal(0, atomic_load(&watch.n_wrong));
}

/* ------------------------------------------------------- closing from a callback */

static void close_it(const struct dblock_event *event, struct hearing *hearing)
{
    (void)event;
    dblock_close(hearing->client);
}

/* It does nothing there: the keeper cannot wait for itself. */
static void close__does_nothing_in_a_callback(struct contract *contract)
{
    struct hearing hearing = { .act = close_it };
    dblock_client *client = open_client(contract, NULL);

    hearing.client = client;
    (void)take_hearing(contract, client, own_name(contract, "x"), &hearing);
    assert_true(test_until(has_heard_lost, &hearing, TTL_MS + SLACK_MS));
    release(contract, take(contract, client, own_name(contract, "y")));
}

static void close_from_trace(const struct dblock_trace *trace, void *context)
{
    struct trace_watch *watch = context;

    (void)trace;
    (void)atomic_fetch_add(&watch->n_calls, 1);
    dblock_close(atomic_load(&watch->client));
}

static void close__does_nothing_in_a_trace(struct contract *contract)
{
    struct trace_watch watch = { 0 };
    struct dblock_config config = own_config(contract);
    dblock_client *client;

    config.on_trace = close_from_trace;
    config.trace_context = &watch;
    client = open_configured(contract, CONTRACT_URL, &config);
    atomic_store(&watch.client, client);
    release(contract, take(contract, client, own_name(contract, "x")));
    release(contract, take(contract, client, own_name(contract, "x")));
    atomic_store(&watch.client, NULL);
    close_client(contract, client); /* while there is a watch to trace into */
    assert_true(atomic_load(&watch.n_calls) >= 2);
}

struct ending {
    struct contract *contract;
    dblock_client *client;
};

static int end_client(dblock_lock *lock, void *context)
{
    struct ending *ending = context;

    close_client(ending->contract, ending->client);
    return dblock_lock_is_held(lock);
}

/* The work of dblock_with() may do it: the lock outlives the client, and is over. */
static void close__in_the_work_ends_the_lock(struct contract *contract)
{
    const char *name = own_name(contract, "x");
    struct ending ending = { contract, open_client(contract, NULL) };
    struct dblock_options options = own_options(contract);
    int was_held = -1;

    expect_status(contract, DBLOCK_LOST,
        dblock_with(
            ending.client, name, &options, end_client, &ending, &was_held, &contract->error));
    assert_int_equal(0, was_held);
    /* what a connection held is free once the server has seen its end */
    release(contract, take_within(contract, open_client(contract, "other"), name, 5000));
}

const struct contract_case callback_cases[] = {
    { "close__in_the_work_ends_the_lock", close__in_the_work_ends_the_lock, ALL, NULL },
    { "close__does_nothing_in_a_callback", close__does_nothing_in_a_callback, TIMED, NULL },
    { "close__does_nothing_in_a_trace", close__does_nothing_in_a_trace, ALL, NULL },
    { "trace__may_call_any_functions_only", trace__may_call_any_functions_only, ALL, NULL },
    { "callback__may_call_any_functions_only", callback__may_call_any_functions_only, TIMED, NULL },
    { "callback__may_free_its_own_lock", callback__may_free_its_own_lock, TIMED, NULL },
    { "free__waits_for_a_callback_that_runs", free__waits_for_a_callback_that_runs, TIMED, NULL },
    { "slow_callback__does_not_stop_heartbeats", slow_callback__does_not_stop_heartbeats, BEAT,
        NULL },
    { NULL, NULL, 0, NULL },
};
